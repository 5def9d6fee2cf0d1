"""A system: the programs of a cluster, and what a target has to know of them to run them.

A target decides where the nodes run and how they are linked; a system decides which nodes there
are, which command starts each of them, and how the cluster reports its state. Targets know nothing
of versions.
"""

import abc
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, ClassVar, Literal, NamedTuple

from broker_impl.node.exit_status import STORAGE_FAILED
from harness.cluster import mutants
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.node import ClusterError
from harness.cluster.observe.metadata_view import MetadataView
from harness.cluster.observe.readiness import until_writable
from model.cluster_facts import ClusterFacts
from model.layout import Layout
from model.plan import Plan
from model.roles import NodeId
from nemesis.package import Package

Service = Literal["kafka", "zookeeper"]
Say = Callable[[str], None]


class SystemUnavailable(ClusterError):
    """The programs of a system are not on this machine; the message says what would help."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node runs: its addresses and folders, which its configuration must contain."""

    node: NodeId
    folder: Path
    """The folder of its configuration and logs, as this process sees it."""
    data: PurePath
    """The folder of its data, as the node sees it."""
    listens: Mapping[str, Address]
    """The addresses to bind, by listener."""
    advertised: Mapping[str, Address]
    """The addresses at which clients reach a listener, where they differ: those of proxies."""
    links: Mapping[NodeId, Address]
    """The addresses at which the node reaches the other ends of its links."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The IP addresses that host names have for this node only, by name."""
    seen: PurePath | None = None
    """The folder of its configuration, as the node sees it, if that is a copy."""

    @property
    def configuration(self) -> PurePath:
        """The absolute path of the folder of its configuration, as the node sees it."""
        return self.seen or self.folder.resolve()

    def port(self, listener: str, end: NodeId) -> int:
        """Return the port at which the node reaches an end of a link, or its own for a listener."""
        link = self.links.get(end)
        return link.port if link is not None else self.listens[listener].port


class Program(NamedTuple):
    """The command of a node."""

    argv: Sequence[str]
    environment: Mapping[str, str] = {}
    first: Sequence[str] = ()
    """A command that must end successfully before the first start; empty if there is none."""
    stopped_status: int = 0
    """The exit status of an orderly end that SIGTERM requested."""


@dataclass(frozen=True, slots=True)
class ImageSource:
    """What the container image of a system's programs is built from."""

    name: str
    """The image's name without a tag, which is a digest of everything that goes into the image."""
    base: Literal["python", "java"]
    """Which programs the base image must have; the Dockerfile's argument ``BASE`` names it."""
    dockerfile: str
    files: Mapping[str, Path] = field(default_factory=dict, hash=False)
    """The files of the build context, by their paths in it."""


Image = str | ImageSource | None
"""A container image: one that the user names, one to build, or ``None`` for this project's own."""


class Contained(NamedTuple):
    """How a node runs in a container."""

    command: Sequence[str] | None
    """``None``: the command of the image."""
    environment: Mapping[str, str] = {}
    stopped_status: int = 0
    """The exit status of an orderly end that SIGTERM requested."""


class System(abc.ABC):
    """The programs of a cluster."""

    name: str
    """Its name in plans, such as ``apache-kafka:3.9.1``."""
    broker: Mapping[str, str]
    """Default broker settings, which workload and plan may override."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Its own options with their defaults; a plan may override them."""
    start_timeout_s: float = 20.0
    """How long the whole cluster may take to become ready."""
    answer_timeout_s: float = 4.0
    """How long a restarted node may take to answer before the harness continues."""
    start_s: float = 0.0
    """How long a node takes to start, beyond what faults allow for by themselves."""
    stop_timeout_s: float = 12.0
    """How long a node may take to end after SIGTERM."""
    storage_failed_status: int = STORAGE_FAILED
    """The exit status of a broker that ends because its disk is full or has failed."""
    reuses_ports: bool = False
    """Do its programs listen with ``SO_REUSEPORT``, so that their ports can be reserved?"""
    service: Service = "kafka"
    """What its clients speak to: brokers, or ZooKeeper servers of a cluster without brokers."""

    @abc.abstractmethod
    def layout(self, plan: Plan) -> Layout:
        """Return the nodes of a plan's cluster."""

    @abc.abstractmethod
    def listeners(self, node: NodeId, plan: Plan) -> tuple[str, ...]:
        """Return the names of a node's listeners; the first is the one that is probed."""

    @abc.abstractmethod
    def links(self, plan: Plan) -> Iterator[LinkSpec]:
        """Yield the links that faults may touch."""

    @abc.abstractmethod
    def program(self, place: Place, plan: Plan) -> Program:
        """Write the configuration of a node into its folder, and return its command."""

    @abc.abstractmethod
    def view(self, addresses: Mapping[NodeId, Address], rng: random.Random) -> MetadataView:
        """Return a view of the metadata; ``addresses``: all nodes, past all faults."""

    @abc.abstractmethod
    def refusal(self, plan: Plan) -> str | None:
        """Return why the system cannot run a resolved plan; ``None`` if it can."""

    def fitted(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return other defaults for those of a workload's options that this system refuses."""
        del options
        return {}

    @abc.abstractmethod
    def session_timeout_s(self, plan: Plan) -> float:
        """Return after which silence a broker, or a client of ZooKeeper, is declared dead."""

    def missing(self) -> str | None:
        """Return why this machine does not have its programs; ``None`` if they can be provided."""
        return None

    async def prepare(self, plan: Plan, say: Say) -> None:
        """Provide a plan's programs, which may take minutes.

        Raises :class:`SystemUnavailable`.
        """
        return

    def image(self, node: NodeId, plan: Plan) -> Image:
        """Return the image of a node's container; the programs have been prepared."""
        raise NotImplementedError(f"{self.name} does not run in containers")

    def contained(self, place: Place, plan: Plan) -> Contained:
        """Write the configuration of a node into its folder, and return how a container runs it.

        The target copies the folder's files to :attr:`Place.configuration`.
        """
        raise NotImplementedError(f"{self.name} does not run in containers")

    def memory_mb(self, node: NodeId, plan: Plan) -> int:
        """Return the least memory with which a node works in a container, in MiB."""
        return 0

    async def ready(self, view: MetadataView, brokers: Mapping[NodeId, Address]) -> None:
        """Wait until a replicated topic can be written; the caller limits the time."""
        await until_writable(view, brokers)

    async def may_start_again(self, node: NodeId, view: MetadataView) -> bool:
        """Return whether a node that has ended may be started now, or would end at once."""
        return True

    def mutants(self) -> Mapping[str, mutants.Mutant]:
        """Return the bugs that can be planted in its brokers, by name."""
        return {}

    def offers(self, package: Package) -> bool:
        """Return whether the faults of a package can be applied to its programs."""
        return True

    def has_kip(self, kip: int) -> bool:
        """Return whether it implements a Kafka Improvement Proposal that workloads need."""
        return True

    async def facts(
        self, brokers: Mapping[NodeId, Address], topics: Sequence[str]
    ) -> ClusterFacts | None:
        """Return what the cluster reports about itself; ``None`` if the plan says everything."""
        return None

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions that a plan records."""
        return {}


Ready = Callable[[MetadataView, Mapping[NodeId, Address]], Awaitable[None]]
MakeView = Callable[[Mapping[NodeId, Address]], MetadataView]
