"""The target ``containers``: every node in its own container, and Toxiproxy in another.

Nodes reach each other, and this machine reaches them, only through ports of Toxiproxy's container.
The start of a cluster first removes what ended harnesses have left behind.
"""

import asyncio
import contextlib
import dataclasses
import logging
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import ClassVar

from harness.cluster import links, security
from harness.cluster.address import Address
from harness.cluster.certified_cluster import CertifiedCluster
from harness.cluster.containers import (
    container_cleanup,
    container_export,
    container_spec,
    engine,
    labels,
    limits,
    network,
    node_files,
    node_images,
    packets,
    plan_options,
)
from harness.cluster.containers.container import Container, ContainerState
from harness.cluster.containers.container_spec import Recipe
from harness.cluster.containers.disks import DATA, Disks
from harness.cluster.containers.doors import ANY, API_PORT, MESH, Doors
from harness.cluster.containers.engine import Engine, EngineError
from harness.cluster.containers.helper_container import HelperContainers, HelperError, beside
from harness.cluster.containers.network import Network
from harness.cluster.containers.network_attachment import NetworkAttachment
from harness.cluster.containers.node_images import NodeImages
from harness.cluster.expected_exits import ExpectedExits
from harness.cluster.links import LinkSpec
from harness.cluster.mesh import toxiproxy
from harness.cluster.mesh.link_proof import PROBE_TIMEOUT_S
from harness.cluster.mesh.proxied_cluster import ProxiedCluster
from harness.cluster.mesh.toxiproxy import ProxyEndpoint
from harness.cluster.node import ClusterError, Exit, Node
from harness.cluster.observe import probe
from harness.cluster.observe.probe import protocol_of
from harness.cluster.polling import until
from harness.cluster.ports import HOST
from harness.cluster.registry import Registry
from harness.cluster.system import MakeView, Place, Ready, System
from model.capabilities.processes import ResourceUsage
from model.link_faults import LinkFaults
from model.plan import Plan
from model.roles import NodeId

log = logging.getLogger(__name__)

CONFIGURATION = PurePosixPath("/etc/faultline")
"""The folder of a node's configuration, in its container."""
MESH_BYTES = 256 << 20
MESH_KERNEL: Mapping[str, str] = {"net.ipv4.tcp_syn_retries": "1"}
"""Kernel settings of Toxiproxy's container.

Toxiproxy connects to a node before it accepts for that node again, and closes no link meanwhile.
The address of a dead or disconnected node does not answer at all: with this setting a connect fails
after 3 s instead of 127.
"""

COLLECT_TIMEOUT_S = 60.0
LOOK_S = 0.5
"""How often to ask the engine which containers have ended."""
_ROOT = "0:0"


@dataclass(frozen=True, slots=True)
class _EngineResources:
    """The engine's resources that a cluster uses."""

    images: NodeImages
    network: Network
    disks: Disks
    helpers: HelperContainers
    attachment: NetworkAttachment


class Containers(ProxiedCluster, CertifiedCluster):
    """A cluster of containers on the engine of this machine."""

    START_TIMEOUT_S = 60.0
    LOOK_EVERY_S: ClassVar[float] = 0.2

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        rng: random.Random,
        *,
        system: System,
        make_view: MakeView | None = None,
        ready: Ready | None = None,
    ) -> None:
        super().__init__(plan, folder, rng, system=system, make_view=make_view, ready=ready)
        self._options = {**plan_options.OPTIONS, **plan.options}
        self._labels = labels.of_run(folder.name)
        self._prefix = "-".join(
            ["faultline", re.sub(r"[^a-zA-Z0-9_.-]", "-", folder.name), str(os.getpid())]
        )
        self._expected_exits = ExpectedExits(
            lambda: asyncio.get_running_loop().time(), system.storage_failed_status
        )
        self._doors = self._laid_out()
        self._limited: set[NodeId] = set()
        self._leaking: set[NodeId] = set()
        self._images: NodeImages | None = None
        self._containers: dict[NodeId, Container] = {}
        self._engine: Engine | None = None
        self._resources: _EngineResources | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._registry = Registry(folder.name)

    # --- Cluster

    async def start_node(self, node: NodeId) -> None:
        container = self._containers[node]
        await self._may_start_again(node)
        await container.start()
        await self._here.attachment.keep_out(container)
        await self._answering(node, self.ANSWER_TIMEOUT_S)

    # --- CanCut

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        return dataclasses.replace(
            super().link_faults(one, other),
            disconnected=any(map(self._here.attachment.is_pulled, (one, other))),
            lossy=not self._leaking.isdisjoint((one, other)),
        )

    # --- CanDisconnect

    async def disconnect(self, node: NodeId) -> None:
        await self._here.attachment.pull(self._containers[node])

    async def reconnect(self, node: NodeId) -> None:
        await self._here.attachment.put_back(self._containers[node])

    async def is_disconnected(self, node: NodeId) -> bool:
        if await self._here.attachment.is_in(self._containers[node]):
            return False
        return not await probe.answers(self.direct(node), protocol_of(node), PROBE_TIMEOUT_S)

    # --- CanFillDisk

    async def fill_disk(self, node: NodeId) -> None:
        self._expected_exits.begin(node, "disk")
        await self._here.disks.fill(node, self._containers[MESH])

    async def free_disk(self, node: NodeId) -> None:
        if not self._expected_exits.expects(node, "disk"):
            return
        await self._here.disks.free(node, self._containers[MESH])
        await self._containers[node].look()
        self._expected_exits.end(node, "disk")

    async def disk_free_bytes(self, node: NodeId) -> int:
        return await self._here.disks.free_bytes(node, self._containers[MESH])

    # --- CanLimitResources

    async def limit_cpu(self, node: NodeId, cpus: float) -> None:
        self._limited.add(node)
        await limits.set_cpus(self._asked, self._containers[node], cpus)

    async def limit_memory(self, node: NodeId, bytes_: int) -> None:
        self._limited.add(node)
        self._expected_exits.begin(node, "memory")
        await limits.set_memory(self._asked, self._containers[node], bytes_)

    async def lift_limits(self, node: NodeId) -> None:
        if node not in self._limited:
            return
        container = self._containers[node]
        await limits.set_cpus(self._asked, container, self._options["cpus"])
        await limits.set_memory(self._asked, container, self._memory_bytes(node))
        await container.look()
        self._expected_exits.end(node, "memory")
        self._limited.discard(node)

    async def resource_usage(self, node: NodeId) -> ResourceUsage:
        return await limits.resource_usage(self._asked, self._containers[node])

    # --- CanDropPackets

    async def drop_packets(self, node: NodeId, share: float) -> None:
        self._leaking.add(node)
        await self._nft(node, packets.rules(share))

    async def pass_packets(self, node: NodeId) -> None:
        if node in self._leaking and await self.is_running(node):
            await self._nft(node, packets.NO_RULES)
        self._leaking.discard(node)

    async def packets_dropped(self, node: NodeId) -> int | None:
        if not await self.is_running(node):
            return None
        try:
            return packets.dropped(await self._nft(node, "--json", "list", "table", *packets.TABLE))
        except HelperError as error:
            if packets.NO_TABLE in str(error):
                return None
            raise

    # --- implementation

    @property
    def _asked(self) -> Engine:
        assert self._engine is not None, "the cluster has been started"
        return self._engine

    @property
    def _here(self) -> _EngineResources:
        assert self._resources is not None, "the cluster was started"
        return self._resources

    async def _prepare(self) -> None:
        client = await asyncio.to_thread(engine.connect)
        self._engine = Engine(client)
        for left in await self._engine.call(container_cleanup.reap, client):
            log.warning("an object of an earlier run could not be removed: %s", left)
        self._images = await self._engine.call(
            node_images.ensure, client, self._system, self._plan, _silently
        )

    async def _begin(self) -> None:
        (self._folder / "nodes").mkdir(parents=True, exist_ok=True)
        self._issue_certificates()
        self._registry.uses_engine(True)
        self._ports.update(self._doors.ports)
        self._resources = await self._lay()
        self._watcher = asyncio.create_task(self._watch(), name="watch containers")
        await self._start_mesh()
        for link in self._watching():
            await self._add_link(link)

    def _laid_out(self) -> Doors:
        """Assign a port to each listener and to each link."""
        listeners = {node: self._system.listeners(node, self._plan) for node in self.nodes}
        return Doors(self.layout, listeners, (*self._watching(), *self._system.links(self._plan)))

    def _watching(self) -> Iterator[LinkSpec]:
        probed = {node: self._system.listeners(node, self._plan)[0] for node in self.nodes}
        return links.watching(probed, self.brokers if security.of(self._plan) else ())

    async def _lay(self) -> _EngineResources:
        """Create the network and the disks."""
        asked, images = self._asked, self._images
        assert images is not None, "the images have been prepared"
        made = await asked.call(
            network.create, asked.client, self._prefix, self._labels, (MESH, *self.nodes)
        )
        disks = Disks(asked, self._prefix, self._labels, self._disk_bytes)
        fills = plan_options.fills_disks(self._plan)
        for node in self.nodes:
            await disks.create(node, small=fills and node in self.layout.members)
        helpers = HelperContainers(asked, images.own.node, self._labels)
        return _EngineResources(images, made, disks, helpers, NetworkAttachment(asked, made))

    async def _start_mesh(self) -> None:
        """Start Toxiproxy; its container ends last, as it holds the ports and the small disks."""
        disks = self._here.disks
        container = await self._create(
            MESH,
            Recipe(
                image=self._here.images.own.toxiproxy,
                command=["-host=0.0.0.0", f"-port={API_PORT}", "-proxy-metrics"],
                labels=self._labels,
                host=MESH,
                environment=toxiproxy.ENVIRONMENT,
                volumes=disks.mounts(),
                names=self._here.network.hosts,
                publishes=self._doors.inside,
                published_at=self._doors.of_clients(self.client_ports),
                sysctls=MESH_KERNEL,
                memory_bytes=MESH_BYTES + len(disks.small) * self._disk_bytes,
            ),
        )
        await container.start()
        if rules := self._doors.redirections(self._here.network.hosts):
            await self._nft(MESH, rules)
        ports = published((await container.inspect())["NetworkSettings"]["Ports"])
        self.mesh.connect(self._doors.publish(ports))

        async def answers() -> bool:
            if not await container.is_up():
                raise ClusterError(f"{MESH} ended while it started: {await container.last_line()}")
            return await self.mesh.answers()

        await until(answers)

    async def _make_node(self, place: Place) -> Node:
        place.folder.mkdir(parents=True, exist_ok=True)
        place = dataclasses.replace(place, seen=CONFIGURATION)
        how = self._system.contained(place, self._plan)
        container = await self._create(
            place.node,
            Recipe(
                image=self._here.images.of_nodes[place.node],
                command=how.command,
                labels=self._labels,
                host=place.node,
                names=place.names,
                environment=how.environment,
                volumes={DATA: self._here.disks.volume(place.node)},
                memory_bytes=self._memory_bytes(place.node),
                cpus=self._options["cpus"],
            ),
            how.stopped_status,
        )
        if place.node in self._here.images.named:
            await self._here.disks.open_to_all(place.node, self._here.helpers)
        await self._copy(place.folder.iterdir(), container)
        return container

    async def _copy(self, paths: Iterable[Path], container: Container) -> None:
        """Copy files into the folder of a node's configuration."""
        files = node_files.archive(paths, CONFIGURATION)
        await self._asked.call(self._asked.client.api.put_archive, container.identity, "/", files)

    async def _create(self, name: NodeId, made: Recipe, stopped_status: int = 0) -> Container:
        """Create a container without starting it."""
        asked = self._asked
        identity = await asked.call(
            container_spec.create, asked.client, f"{self._prefix}-{name}", made, self._here.network
        )
        container = self._containers[name] = Container(
            name, identity, asked, self._ended, stopped_status
        )
        return container

    def _memory_bytes(self, node: NodeId) -> int:
        """A node's memory limit; a small disk is kept in memory and counts as its node's."""
        disk_bytes = self._disk_bytes if node in self._here.disks.small else 0
        wanted_mb = int(self._options["memory_mb"])
        memory_mb = max(wanted_mb, self._system.memory_mb(node, self._plan))
        return (memory_mb << 20) + disk_bytes

    @property
    def _disk_bytes(self) -> int:
        return int(self._options["disk_mb"]) << 20

    def _data_of(self, name: NodeId) -> PurePosixPath:
        return PurePosixPath(DATA)

    def _host_of(self, name: NodeId) -> str:
        return name

    def _listens(self, name: NodeId, port: int) -> Address:
        return Address(ANY, port)

    def _names_of(self, name: NodeId) -> Mapping[str, str]:
        return self._doors.names(name, self._here.network.hosts)

    def _endpoint(self, wanted: LinkSpec) -> ProxyEndpoint:
        return self._doors.endpoint(wanted)

    def _past(self, node: NodeId, listener: str) -> Address:
        return self._doors.past(node, guarded=security.has_tls(listener, self._plan))

    def _guarded(self, node: NodeId) -> Address:
        return self._doors.past(node, guarded=True)

    def _certified_hosts(self, node: NodeId) -> Sequence[str]:
        return [HOST, MESH, node]

    async def _hand_over(self, node: NodeId, key_store: Path) -> PurePath:
        await self._copy([key_store], self._containers[node])
        return CONFIGURATION / key_store.name

    def _ended(self, end: Exit, state: ContainerState) -> None:
        if not self._expected_exits.cover(end, oom_killed=state.oom_killed):
            self.unexpected_exits.append(end)

    async def _watch(self) -> None:
        """Look for unexpected exits until cancelled; any other end of this task fails the run."""
        asked = self._asked
        what = {"label": [f"{name}={value}" for name, value in self._labels.items()]}
        while True:
            await asyncio.sleep(LOOK_S)
            with contextlib.suppress(EngineError):  # a busy engine is asked again
                found = await asked.call(asked.client.api.containers, all=True, filters=what)
                ended = {one["Id"] for one in found if one["State"] in ("exited", "dead")}
                for container in list(self._containers.values()):
                    if container.identity in ended:
                        await container.look()

    async def _nft(self, node: NodeId, *words: str) -> str:
        return await self._here.helpers.run(
            ["nft", *words],
            user=_ROOT,
            network=beside(self._containers[node].identity),
            capabilities=["NET_ADMIN"],
        )

    async def _end(self) -> None:
        blind = await _cancelled(self._watcher)
        if self._engine is None:
            return
        asked, self._engine = self._engine, None
        await asked.settle()
        try:
            async with asyncio.timeout(COLLECT_TIMEOUT_S):
                await asyncio.gather(*(self._collect(asked, name) for name in self._containers))
        except TimeoutError:
            log.warning("not all logs and data were copied within %g s", COLLECT_TIMEOUT_S)
        finally:
            await self._sweep(asked)
        if blind is not None:
            raise ClusterError(
                f"some exits may be missing: the watcher failed: {blind!r}"
            ) from blind

    async def _sweep(self, asked: Engine) -> None:
        """Remove everything that belongs to this cluster."""
        try:
            left = await asked.call(container_cleanup.sweep, asked.client, self._is_mine)
        except EngineError as error:
            left = [str(error)]
        asked.close()
        if not left:
            self._registry.uses_engine(False)
        for what in left:
            log.warning(
                "the cluster could not remove an object; the next start tries again: %s", what
            )

    async def _collect(self, asked: Engine, name: NodeId) -> None:
        """Stop a container, and copy its log and data as far as possible."""
        container, folder = self._containers[name], self._folder_of(name)
        try:
            if name != MESH:  # its container holds the others' small disks
                await container.kill()
                await asked.call(
                    container_export.data, asked.client, container.identity, DATA, folder
                )
            await asked.call(container_export.log, asked.client, container.identity, folder)
        except Exception as error:  # noqa: BLE001 - reported; the other nodes are still copied
            log.warning("%s: its log and data could not be copied completely: %r", name, error)

    def _is_mine(self, found: Mapping[str, str] | None) -> bool:
        return self._labels.items() <= dict(found or {}).items()


async def _cancelled(watcher: asyncio.Task[None] | None) -> BaseException | None:
    """Cancel the task; return the exception that had ended it before, if any."""
    if watcher is None:
        return None
    watcher.cancel()
    [end] = await asyncio.gather(watcher, return_exceptions=True)
    return None if isinstance(end, asyncio.CancelledError) else end


def published(ports: Mapping[str, Sequence[Mapping[str, str]] | None]) -> dict[int, int]:
    """Map a container's published ports to this machine's, from the engine's description.

    Ports that the image only exposes are left out.
    """
    return {
        int(inside.partition("/")[0]): int(outside[0]["HostPort"])
        for inside, outside in ports.items()
        if outside
    }


def _silently(_: str) -> None:
    """Discard progress messages."""
