"""The system ``apache-kafka:VERSION``: a release of Apache Kafka, with ZooKeeper or with KRaft.

Every node resolves the names of the others to addresses of its own (``jdk.net.hosts.file``), where
the proxies of its links listen. So each ordered pair of nodes has its own link, without a container
or a namespace.
"""

import base64
import hashlib
import itertools
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from harness.cluster import links, settings
from harness.cluster.address import Address
from harness.cluster.base_cluster import CONTROLLER_FIRST
from harness.cluster.links import LinkSpec
from harness.cluster.observe import cluster_config
from harness.cluster.observe.kafka_metadata import KafkaView
from harness.cluster.observe.metadata_view import MetadataView
from harness.cluster.observe.readiness import until_writable_on_any_release
from harness.cluster.observe.zookeeper_metadata import View
from harness.cluster.settings import PEER_LISTENER
from harness.cluster.system import Place, Program, Say, System, SystemUnavailable
from harness.systems.apache_kafka import (
    configuration,
    distribution,
    jars,
    jvm,
    lockfile,
    log4j,
    maven,
)
from harness.systems.apache_kafka.configuration import CONTROLLER_LISTENER
from harness.systems.apache_kafka.releases import Release
from harness.systems.kafka.system import zookeeper_command
from model import options, roles
from model.capabilities.control_plane import CanAdminister
from model.cluster_facts import ClusterFacts
from model.layout import PEER_PORTS, Layout, peer_port, with_kraft, with_zookeeper
from model.plan import Plan
from model.roles import ZOOKEEPER, NodeId
from nemesis.package import Package

TICK_MS = 500
COORDINATION = ("zookeeper", "kraft", "kraft-separate")
"""What coordinates the brokers: ZooKeeper, controllers in the brokers' processes, or controllers
that are processes of their own."""
HOME = "FAULTLINE_KAFKA_HOME"
"""The environment variable with the folder of an unpacked distribution (``--kafka-home``)."""
RELEASE, OURS = "release", "kafka"
"""Whose ZooKeeper coordinates the brokers."""
_LEAST = {"heap_mb": 128, "zookeeper_servers": 1, "controllers": 1}
_MOST = {"heap_mb": 65_536, "zookeeper_servers": 9, "controllers": 9}


class ApacheKafka(System):
    """A release of Apache Kafka."""

    options: ClassVar[Mapping[str, Any]] = {
        # zookeeper, kraft or kraft-separate; by default ZooKeeper for releases that have it.
        "coordination": "",
        # Whose ZooKeeper: that of the release, or this project's.
        "zookeeper": "release",
        "zookeeper_servers": 1,
        "controllers": 3,
        "heap_mb": 512,
    }
    start_timeout_s = 120.0
    start_s = 6.0
    answer_timeout_s = 12.0
    stop_timeout_s = 20.0

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
            return with_zookeeper(plan.brokers, int(wanted["zookeeper_servers"]))
        combined = mode == "kraft"
        controllers = min(int(wanted["controllers"]), plan.brokers if combined else 9)
        return with_kraft(plan.brokers, controllers, combined=combined)

    def listeners(self, node: NodeId, plan: Plan) -> tuple[str, ...]:
        layout = self.layout(plan)
        if node in layout.zookeepers:
            return (ZOOKEEPER, *(PEER_PORTS if len(layout.zookeepers) > 1 else ()))
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
        for one, other in itertools.permutations(layout.zookeepers, 2):
            for port in PEER_PORTS:
                yield LinkSpec(one, peer_port(other, port), port, by_name=True)
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

    async def prepare(self, say: Say) -> None:
        if home := os.environ.get(HOME):
            self._classpath = _unpacked(Path(home), self.release)
        else:
            self._classpath = await jars.resolve(str(self.release), say)

    def program(self, place: Place, plan: Plan) -> Program:
        layout = self.layout(plan)
        if place.node in layout.zookeepers and plan.options.get("zookeeper") == OURS:
            return Program(zookeeper_command(place))
        if place.node in layout.zookeepers:
            path = place.folder / "zoo.cfg"
            path.write_text(configuration.of_zookeeper(place, layout, TICK_MS))
            (place.folder / "data" / "myid").write_text(f"{roles.number(place.node)}\n")
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            command = self._java(main, place, plan, str(path))
            return Program(command, stopped_status=jvm.STOPPED_STATUS)
        path = place.folder / "server.properties"
        make = (
            configuration.of_controller
            if place.node in layout.separate
            else configuration.of_broker
        )
        settings.write(path, make(place, plan, layout))
        first = self._format(place, plan, path) if layout.is_kraft else ()
        command = self._java("kafka.Kafka", place, plan, str(path))
        return Program(command, first=first, stopped_status=jvm.STOPPED_STATUS)

    def _format(self, place: Place, plan: Plan, path: Path) -> list[str]:
        """The command that formats the storage of a KRaft node (KIP-631)."""
        digest = hashlib.sha256(f"{self.name} {plan.seed}".encode()).digest()[:16]
        cluster = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        words = ("format", "-t", cluster, "-c", str(path))
        return self._java("kafka.tools.StorageTool", place, plan, *words)

    def _java(self, main: str, place: Place, plan: Plan, *arguments: str) -> list[str]:
        version, folder = str(self.release), place.folder
        hosts = folder / "hosts"
        hosts.write_text(configuration.hosts(place))
        quiet = () if place.node.startswith(ZOOKEEPER) else log4j.QUIET
        log4j.write_configuration(version, folder, quiet)
        return jvm.command(
            main,
            self._classpath,
            arguments,
            heap_mb=int({**self.options, **plan.options}["heap_mb"]),
            folder=folder,
            properties={"jdk.net.hosts.file": str(hosts), "kafka.logs.dir": str(folder)},
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
        if wanted["zookeeper"] == OURS and wanted["zookeeper_servers"] != 1:
            return f"options: zookeeper={OURS}: this project's ZooKeeper has one server"
        return options.refusal(wanted, _LEAST) or _too_many(wanted) or self.missing()

    def missing(self) -> str | None:
        if HOME in os.environ:
            return None
        version = str(self.release)
        try:
            if not jars.is_cached(version):
                maven.require()
        except lockfile.UnknownRelease as error:
            return f"--system {self.name}: {error}; name the folder of a distribution: --kafka-home"
        except maven.MavenMissing as error:
            return (
                f"--system {self.name}: {error}, which downloads it; install Maven, or name the"
                " folder of a distribution: --kafka-home"
            )
        return None

    def session_timeout_s(self, broker: Mapping[str, str]) -> float:
        wanted = {**self.broker, **broker}
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
