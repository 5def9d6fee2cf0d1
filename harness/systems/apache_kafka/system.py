"""The system ``apache-kafka:VERSION``: a release of Apache Kafka, with ZooKeeper or with KRaft.

Every node resolves the names of the others to addresses of its own (``jdk.net.hosts.file``), where
the proxies of its links listen. So each ordered pair of nodes has its own link, without a container
or a namespace.
"""

import base64
import hashlib
import itertools
import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from harness.cluster import ensembles, links, settings
from harness.cluster.address import Address
from harness.cluster.base_cluster import CONTROLLER_FIRST
from harness.cluster.links import LinkSpec
from harness.cluster.observe import cluster_config
from harness.cluster.observe.kafka_metadata import KafkaView
from harness.cluster.observe.metadata_view import MetadataView, ViewUnavailable
from harness.cluster.observe.readiness import until_writable_on_any_release
from harness.cluster.observe.zookeeper_metadata import View
from harness.cluster.settings import PEER_LISTENER
from harness.cluster.system import (
    Contained,
    Image,
    Place,
    Program,
    Say,
    System,
    SystemUnavailable,
)
from harness.systems.apache_kafka import configuration, contained, distribution, log4j
from harness.systems.apache_kafka.configuration import CONTROLLER_LISTENER
from harness.systems.apache_kafka.releases import PRODUCT, Release
from harness.systems.java import jars, jvm, lockfile, maven, zoo_cfg
from harness.systems.java.jvm import Runtime
from harness.systems.kafka import contained as kafka_contained
from harness.systems.kafka.configuration import zookeeper_command
from model import options
from model.capabilities.control_plane import CanAdminister
from model.cluster_facts import ClusterFacts
from model.layout import PEER_PORTS, Layout, with_kraft
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId
from nemesis.package import Package

TICK_MS = 500
COORDINATION = ("zookeeper", "kraft", "kraft-separate")
"""What coordinates the brokers: ZooKeeper, controllers in the brokers' processes, or controllers
that are processes of their own."""
SEGMENT_BYTES, SEGMENT_BYTES_MIN = "segment_bytes", 1 << 20
"""The option of workloads with small segments, and its least value since KIP-1030."""
HOME = "FAULTLINE_KAFKA_HOME"
"""The environment variable with the folder of an unpacked distribution (``--kafka-home``)."""
RELEASE, OURS = "release", "kafka"
"""Whose ZooKeeper coordinates the brokers."""
_LEAST = {"heap_mb": 128, "controllers": 1}
_MOST = {"heap_mb": 65_536, "controllers": 9}


class ApacheKafka(System):
    """A release of Apache Kafka."""

    options: ClassVar[Mapping[str, Any]] = {
        # zookeeper, kraft or kraft-separate; by default ZooKeeper for releases that have it.
        "coordination": "",
        # Whose ZooKeeper: that of the release, or this project's.
        "zookeeper": "release",
        **ensembles.OPTIONS,
        "controllers": 3,
        "heap_mb": 512,
        # In containers: the image of the brokers and controllers, in place of one built from jars.
        "image": "",
    }
    start_timeout_s = 120.0
    start_s = 6.0
    answer_timeout_s = 12.0
    stop_timeout_s = 20.0
    storage_failed_status = 1

    def __init__(self, release: Release) -> None:
        self.release = release
        self.name = f"apache-kafka:{release}"
        modes = {**configuration.ZOOKEEPER_MODE, **configuration.KRAFT_MODE}
        self.broker = {**configuration.SCALED, **modes}
        self._classpath: Sequence[Path] = ()

    # --- nodes, listeners and links

    def coordination(self, plan: Plan) -> str:
        """Return what coordinates the brokers, one of :data:`COORDINATION`."""
        default = "zookeeper" if self.release.has_zookeeper else "kraft"
        return str(plan.options.get("coordination") or default)

    def layout(self, plan: Plan) -> Layout:
        wanted = {**self.options, **plan.options}
        mode = self.coordination(plan)
        if mode == "zookeeper":
            return ensembles.layout(plan)
        combined = mode == "kraft"
        controllers = min(int(wanted["controllers"]), plan.brokers if combined else 9)
        return with_kraft(plan.brokers, controllers, combined=combined)

    def listeners(self, node: NodeId, plan: Plan) -> tuple[str, ...]:
        layout = self.layout(plan)
        if node in layout.zookeepers:
            return (ZOOKEEPER, *(PEER_PORTS if layout.is_ensemble else ()))
        if node in layout.separate:
            return (CONTROLLER_LISTENER,)
        own = links.listeners(plan.options.get("client_listeners", ()))
        has_role = len(layout.ends_of(node)) > 1
        return (*own, CONTROLLER_LISTENER) if has_role else own

    def links(self, plan: Plan) -> Iterator[LinkSpec]:
        layout = self.layout(plan)
        for broker in layout.brokers:
            yield from links.of_clients(broker, plan.options.get("client_listeners", ()))
        for one, other in itertools.permutations(layout.brokers, 2):
            yield LinkSpec(one, other, PEER_LISTENER, by_name=True)
        for broker, server in itertools.product(layout.brokers, layout.zookeepers):
            yield LinkSpec(broker, server, ZOOKEEPER)
        yield from links.of_zookeepers(layout, by_name=True)
        for one, controller in itertools.product(
            (*layout.brokers, *layout.separate), layout.controllers
        ):
            if layout.node_of(controller) != one:
                yield LinkSpec(one, controller, CONTROLLER_LISTENER, by_name=True)

    def offers(self, package: Package) -> bool:
        return self.release.reassigns or CanAdminister not in package.needs

    def has_kip(self, kip: int) -> bool:
        return self.release.has_kip(kip)

    # --- what runs

    async def prepare(self, plan: Plan, say: Say) -> None:
        if not self._needs_jars(plan):
            return
        if home := os.environ.get(HOME):
            self._classpath = _unpacked(Path(home), self.release)
        else:
            self._classpath = await jars.resolve(str(self.release), say, PRODUCT)

    def program(self, place: Place, plan: Plan) -> Program:
        if self._is_our_zookeeper(place.node, plan):
            return Program(zookeeper_command(place, self.layout(plan)))
        return self._program(place, plan, Runtime(jvm.find(), self._classpath))

    def image(self, node: NodeId, plan: Plan) -> Image:
        if self._is_our_zookeeper(node, plan):
            return None
        return self._named_image(node, plan) or contained.source(self._classpath)

    def contained(self, place: Place, plan: Plan) -> Contained:
        if self._is_our_zookeeper(place.node, plan):
            return kafka_contained.zookeeper(place, self.layout(plan))
        if self._named_image(place.node, plan):
            named = self._settings(place, plan)
            settings.write(place.folder / "server.properties", named)
            variables = contained.environment(
                named, self._cluster_id(plan), self._heap_mb(plan), "/tmp"
            )
            return Contained(None, variables, jvm.STOPPED_STATUS)
        found = self._program(place, plan, contained.RUNTIME)
        command = contained.command(found.argv, found.first, str(place.data))
        return Contained(command, found.environment, found.stopped_status)

    def memory_mb(self, node: NodeId, plan: Plan) -> int:
        if self._is_our_zookeeper(node, plan):
            return 0
        return self._heap_mb(plan) + jvm.BESIDE_HEAP_MB

    def _is_our_zookeeper(self, node: NodeId, plan: Plan) -> bool:
        return node.startswith(ZOOKEEPER) and plan.options.get("zookeeper") == OURS

    def _named_image(self, node: NodeId, plan: Plan) -> str:
        """Return the image that the user names for a node, empty if there is none."""
        return "" if node.startswith(ZOOKEEPER) else str(plan.options.get("image", ""))

    def _needs_jars(self, plan: Plan) -> bool:
        """Return whether a node runs the jars, and not an image that the user names."""
        return any(
            not self._is_our_zookeeper(node, plan) and not self._named_image(node, plan)
            for node in self.layout(plan).nodes
        )

    def _program(self, place: Place, plan: Plan, runtime: Runtime) -> Program:
        """Write the files of a node that runs the release, and return its command."""
        layout = self.layout(plan)
        status = jvm.STOPPED_STATUS
        if place.node in layout.zookeepers:
            (place.folder / "zoo.cfg").write_text(zoo_cfg.settings_of(place, layout, TICK_MS))
            path = str(place.configuration / "zoo.cfg")
            command = self._java(runtime, zoo_cfg.MAIN, place, plan, path)
            return Program(command, first=zoo_cfg.first(place), stopped_status=status)
        settings.write(place.folder / "server.properties", self._settings(place, plan))
        path = str(place.configuration / "server.properties")
        first = self._format(runtime, place, plan, path) if layout.is_kraft else []
        command = self._java(runtime, "kafka.Kafka", place, plan, path)
        return Program(command, first=first, stopped_status=status)

    def _settings(self, place: Place, plan: Plan) -> dict[str, str]:
        """Return all settings of a broker or controller."""
        layout = self.layout(plan)
        is_separate = place.node in layout.separate
        make = configuration.of_controller if is_separate else configuration.of_broker
        return make(place, plan, layout)

    def _format(self, runtime: Runtime, place: Place, plan: Plan, path: str) -> list[str]:
        """The command that formats the storage of a KRaft node (KIP-631)."""
        # One word: an id may begin with a hyphen, which would be taken for an option.
        words = ("format", f"--cluster-id={self._cluster_id(plan)}", "-c", path)
        return self._java(runtime, "kafka.tools.StorageTool", place, plan, *words)

    def _cluster_id(self, plan: Plan) -> str:
        digest = hashlib.sha256(f"{self.name} {plan.seed}".encode()).digest()[:16]
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def _heap_mb(self, plan: Plan) -> int:
        return int({**self.options, **plan.options}["heap_mb"])

    def _java(
        self, runtime: Runtime, main: str, place: Place, plan: Plan, *arguments: str
    ) -> list[str]:
        version = str(self.release)
        (place.folder / "hosts").write_text(zoo_cfg.hosts(place))
        quiet = () if place.node.startswith(ZOOKEEPER) else log4j.QUIET
        log4j.write_configuration(version, place.folder, quiet)
        folder = place.configuration
        writable = place.data if place.seen else folder
        return jvm.command(
            runtime,
            main,
            arguments,
            heap_mb=self._heap_mb(plan),
            folder=writable,
            properties={
                "jdk.net.hosts.file": str(folder / "hosts"),
                "kafka.logs.dir": str(writable),
            },
            options=log4j.logging_options(version, folder),
        )

    # --- what is seen

    def view(self, addresses: Mapping[NodeId, Address], rng: random.Random) -> MetadataView:
        servers = [str(at) for node, at in addresses.items() if node.startswith(ZOOKEEPER)]
        if servers:
            # Brokers hear of a change of an ISR after seconds, before 2.7 after up to a minute.
            return View(",".join(servers), rng)
        brokers = {node: at for node, at in addresses.items() if node.startswith("broker-")}
        controllers = {node: at for node, at in addresses.items() if node not in brokers}
        return KafkaView(brokers, controllers=controllers, quorum_node_of=configuration.node_of)

    async def ready(self, view: MetadataView, brokers: Mapping[NodeId, Address]) -> None:
        await until_writable_on_any_release(view, brokers)

    async def may_start_again(self, node: NodeId, view: MetadataView) -> bool:
        """A broker ends at once while ZooKeeper has the session of its former process.

        It cannot register itself then, and waits for nothing (NodeExistsException in
        ``KafkaZkClient.registerBroker``); a supervisor would start it again.
        """
        if not isinstance(view, View) or not node.startswith("broker-"):
            return True
        try:
            return node not in await view.live()
        except ViewUnavailable:  # ZooKeeper is away, and will have the session when it is back
            return False

    async def facts(
        self, brokers: Mapping[NodeId, Address], topics: Sequence[str]
    ) -> ClusterFacts | None:
        return await cluster_config.read(brokers, topics)

    def refusal(self, plan: Plan) -> str | None:
        mode = self.coordination(plan)
        if mode not in COORDINATION:
            return f"options: coordination={mode}: must be one of {', '.join(COORDINATION)}"
        if mode == "zookeeper" and not self.release.has_zookeeper:
            return f"options: coordination={mode}: {self.name} has no ZooKeeper mode"
        if mode != "zookeeper" and not self.release.has_kraft:
            return f"options: coordination={mode}: {self.name} has no KRaft mode for production"
        if mode != "zookeeper" and plan.options.get(CONTROLLER_FIRST):
            return f"options: {CONTROLLER_FIRST}=True: KRaft's controllers elect one of themselves"
        wanted = {**self.options, **plan.options}
        if wanted["zookeeper"] not in (RELEASE, OURS):
            return f"options: zookeeper={wanted['zookeeper']}: must be {RELEASE} or {OURS}"
        if not isinstance(wanted["image"], str):
            return f"options: image={wanted['image']}: must be the name of an image"
        if self.release.has_kip(1030) and wanted.get(SEGMENT_BYTES, math.inf) < SEGMENT_BYTES_MIN:
            return (
                f"options: {SEGMENT_BYTES}={wanted[SEGMENT_BYTES]}: {self.name} has no segments"
                f" below {SEGMENT_BYTES_MIN} bytes; use --set options.{SEGMENT_BYTES}="
                f"{SEGMENT_BYTES_MIN} and options.segment_ms to end them by their age"
            )
        refusal = options.refusal(wanted, _LEAST) or _too_many(wanted) or ensembles.refusal(wanted)
        return refusal or (self.missing() if self._needs_jars(plan) else None)

    def fitted(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Let segments end by their age where small ones are refused (KIP-1030)."""
        if SEGMENT_BYTES in options and self.release.has_kip(1030):
            return {SEGMENT_BYTES: SEGMENT_BYTES_MIN, "segment_ms": 1000}
        return {}

    def missing(self) -> str | None:
        if HOME in os.environ:
            return None
        version = str(self.release)
        try:
            if not jars.is_cached(version, PRODUCT):
                maven.require()
        except lockfile.UnknownRelease as error:
            return f"--system {self.name}: {error}; name the folder of a distribution: --kafka-home"
        except maven.MavenMissing as error:
            return (
                f"--system {self.name}: {error}, which downloads it; install Maven, or name the"
                " folder of a distribution: --kafka-home"
            )
        return None

    def session_timeout_s(self, plan: Plan) -> float:
        wanted = {**self.broker, **plan.broker}
        name = (
            "zookeeper.session.timeout.ms"
            if self.release.has_zookeeper
            else "broker.session.timeout.ms"
        )
        return int(wanted[name]) / 1000

    @property
    def versions(self) -> Mapping[str, str]:
        return {"apache-kafka": str(self.release)}


def _too_many(wanted: Mapping[str, Any]) -> str | None:
    """Return which option exceeds what a machine or a quorum can have; ``None`` if none does."""
    for name, most in _MOST.items():
        if wanted[name] > most:
            return f"options: {name}={wanted[name]}: must be at most {most:,}"
    return None


def _unpacked(home: Path, release: Release) -> Sequence[Path]:
    """Return the class path of the user's distribution, which must be the plan's release."""
    found = distribution.open_distribution(home)
    if found.version != str(release):
        raise SystemUnavailable(f"{home} contains Apache Kafka {found.version}, not {release}")
    return found.classpath
