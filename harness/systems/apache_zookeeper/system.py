"""The system ``apache-zookeeper:VERSION``: servers of a release, and some of ours if asked for.

The option ``ours`` makes the first servers of the ensemble those of this project, which speak the
same protocols: a mixed ensemble.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, ClassVar

from harness.cluster import ensembles, links, mutants
from harness.cluster.links import LinkSpec
from harness.cluster.system import Contained, Image, Place, Program, Say
from harness.systems.apache_kafka import contained as java_contained
from harness.systems.apache_zookeeper import logs
from harness.systems.apache_zookeeper.releases import PRODUCT, Release
from harness.systems.java import jars, jvm, lockfile, maven, zoo_cfg
from harness.systems.java.jvm import Runtime
from harness.systems.kafka import contained as our_contained
from harness.systems.kafka.configuration import zookeeper_command
from harness.systems.zookeeper.system import ZooKeeper, settings_of
from model import options as options_
from model.plan import Plan
from model.roles import NodeId

OURS = "ours"
"""The option with the number of servers that are this project's."""
_LEAST = {OURS: 0, "heap_mb": 64}


class ApacheZooKeeper(ZooKeeper):
    """Servers of a release of Apache ZooKeeper."""

    options: ClassVar[Mapping[str, Any]] = {**ZooKeeper.options, OURS: 0, "heap_mb": 256}
    start_timeout_s = 60.0
    start_s = 3.0
    answer_timeout_s = 8.0
    stop_timeout_s = 20.0
    storage_failed_status = 1
    reuses_ports = False

    def __init__(self, release: Release) -> None:
        self.release = release
        self.name = f"apache-zookeeper:{release}"
        self._classpath: Sequence[Path] = ()

    def links(self, plan: Plan) -> Iterator[LinkSpec]:
        return links.of_zookeepers(self.layout(plan), by_name=True)

    async def prepare(self, plan: Plan, say: Say) -> None:
        self._classpath = await jars.resolve(str(self.release), say, PRODUCT)

    def program(self, place: Place, plan: Plan) -> Program:
        if self._is_ours(place.node, plan):
            command = zookeeper_command(place, self.layout(plan))
            return Program([*command, *settings_of(plan)])
        return self._program(place, plan, Runtime(jvm.find(), self._classpath))

    def image(self, node: NodeId, plan: Plan) -> Image:
        if self._is_ours(node, plan):
            return None
        return java_contained.source(self._classpath, java_contained.ZOOKEEPER_NAME)

    def contained(self, place: Place, plan: Plan) -> Contained:
        if self._is_ours(place.node, plan):
            ours = our_contained.zookeeper(place, self.layout(plan))
            return ours._replace(command=[*(ours.command or ()), *settings_of(plan)])
        found = self._program(place, plan, java_contained.RUNTIME)
        command = java_contained.command(found.argv, found.first, str(place.data))
        return Contained(command, found.environment, found.stopped_status)

    def memory_mb(self, node: NodeId, plan: Plan) -> int:
        if self._is_ours(node, plan):
            return 0
        return self._heap_mb(plan) + jvm.BESIDE_HEAP_MB

    def mutants(self) -> Mapping[str, mutants.Mutant]:
        return {}

    def refusal(self, plan: Plan) -> str | None:
        wanted = {**self.options, **plan.options}
        named = {name: wanted[name] for name in _LEAST}
        refusal = super().refusal(plan) or options_.refusal(named, _LEAST)
        if refusal is None and wanted[OURS] > wanted[ensembles.SERVERS]:
            refusal = (
                f"options: {OURS}={wanted[OURS]}: there are {wanted[ensembles.SERVERS]} servers"
            )
        return refusal or self.missing()

    def missing(self) -> str | None:
        try:
            if not jars.is_cached(str(self.release), PRODUCT):
                maven.require()
        except lockfile.UnknownRelease as error:
            return f"--system {self.name}: {error}"
        except maven.MavenMissing as error:
            return f"--system {self.name}: {error}, which downloads it; install Maven"
        return None

    @property
    def versions(self) -> Mapping[str, str]:
        return {"apache-zookeeper": str(self.release)}

    def _is_ours(self, node: NodeId, plan: Plan) -> bool:
        count = int({**self.options, **plan.options}[OURS])
        return node in self.layout(plan).zookeepers[:count]

    def _heap_mb(self, plan: Plan) -> int:
        return int({**self.options, **plan.options}["heap_mb"])

    def _program(self, place: Place, plan: Plan, runtime: Runtime) -> Program:
        """Write the files of a server that runs the release, and return its command."""
        chosen = ensembles.settings(plan)
        more = {
            "snapCount": chosen[ensembles.SNAP_COUNT],
            "commitLogCount": chosen[ensembles.LOG_COUNT],
        }
        text = zoo_cfg.settings_of(place, self.layout(plan), chosen[ensembles.TICK], more)
        (place.folder / "zoo.cfg").write_text(text)
        (place.folder / "hosts").write_text(zoo_cfg.hosts(place))
        logs.write_configuration(place.folder)
        folder: PurePath = place.configuration
        command = jvm.command(
            runtime,
            zoo_cfg.MAIN,
            [str(folder / "zoo.cfg")],
            heap_mb=self._heap_mb(plan),
            folder=place.data if place.seen else folder,
            properties={
                "jdk.net.hosts.file": str(folder / "hosts"),
                **logs.properties(folder),
            },
        )
        return Program(command, first=zoo_cfg.first(place), stopped_status=jvm.STOPPED_STATUS)
