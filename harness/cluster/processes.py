"""The target ``processes``: brokers and ZooKeeper as processes of this machine, a mesh between.

Whoever starts a cluster of processes first ends what earlier harnesses were killed over.
"""

import asyncio
import contextlib
import random
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from harness.cluster import probe, settings, toxiproxy
from harness.cluster.node import Exit, Node, NodeError
from harness.cluster.ports import HOST, Ports
from harness.cluster.probe import Protocol as ProbeProtocol
from harness.cluster.readiness import until_writable
from harness.cluster.registry import Registry, reap
from harness.cluster.settings import PEER_LISTENER, Addresses
from harness.cluster.sight import Partition, Sight, Unseen
from harness.cluster.toxiproxy import Mesh
from harness.cluster.view import View
from harness.cluster.waiting import until
from model import roles
from model.plan import Plan
from model.roles import CLIENTS, ZOOKEEPER, NodeId

START_TIMEOUT_S = 20.0
PATIENCE_S = 4.0
"""How long a node that is started again may take to answer before others are attended to."""
STOP_TIMEOUT_S = 12.0
"""A controlled shutdown promises to end within 10 s."""
PROBE_TIMEOUT_S = 2.0
"""How long a node that is well may take to answer a probe past the mesh."""
ROUND_TRIP_S_MAX = 4.0
"""A link that takes longer to answer is not slow but cut."""
GRACE_S = 0.3
"""How much longer than the direct one a probe through a link is waited for, if it is not slow."""
SLOWNESS_S_MAX = 1.0
"""A link that is made slower than this cannot be told from a cut one in the time there is."""


class ClusterError(Exception):
    """The cluster cannot be had; the message says which node said what."""


class Commands:
    """How the nodes are started: this project's own broker and ZooKeeper, by this Python."""

    def zookeeper(self, port: int, data: Path) -> Sequence[str]:
        return [
            *(sys.executable, "-m", "broker_impl.zookeeper", "--listen", f"{HOST}:{port}"),
            *("--data", str(data), "--tick-ms", str(settings.TICK_MS), "--reuse-port"),
        ]

    def broker(self, properties: Path, mutants: Sequence[str]) -> Sequence[str]:
        planted = [word for name in mutants for word in ("--mutant", name)]
        return [sys.executable, "-m", "broker_impl", str(properties), "--reuse-port", *planted]


class Processes:
    """A cluster of local processes; offers every capability of :mod:`model.roles`."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        rng: random.Random,
        *,
        commands: Commands | None = None,
        sight: Callable[[str], Sight] | None = None,
        ready: Callable[[Sight, Mapping[NodeId, int]], Awaitable[None]] = until_writable,
        state: Path | None = None,
    ) -> None:
        """Nothing is started yet. ``folder`` is the run's; ``rng`` is for ZooKeeper's sessions.

        ``plan.options["client_listeners"]`` names clients that get listeners, and so links, of
        their own. The keyword arguments are for tests: other programs, another view, another
        notion of ready, another place for the registry.
        """
        self._plan = plan
        self._folder = folder
        self._commands = commands or Commands()
        self._sight_of = sight or (lambda connect: View(connect, rng))
        self._ready = ready
        self._state = state
        self._clients: tuple[str, ...] = tuple(plan.options.get("client_listeners", ()))
        self._ports = Ports()
        self._registry: Registry | None = None
        self._nodes: dict[NodeId, Node] = {}
        self._listening: dict[NodeId, dict[str, int]] = {}
        self._mesh: Mesh | None = None
        self._sight: Sight | None = None
        self.unexpected_exits: list[Exit] = []
        """Nodes that ended by themselves."""

    # --- Cluster

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        return (*self.brokers, ZOOKEEPER)

    @property
    def brokers(self) -> tuple[NodeId, ...]:
        return tuple(roles.broker(number) for number in self._numbers)

    @property
    def mesh(self) -> Mesh:
        assert self._mesh is not None, "the cluster was started"
        return self._mesh

    @property
    def view(self) -> Sight:
        assert self._sight is not None, "the cluster was started"
        return self._sight

    def bootstrap(self, client: str | None = None) -> str:
        party = CLIENTS if client is None else roles.client(client)
        ports = [self.mesh.between(party, broker)[0].listens for broker in self.brokers]
        return ",".join(f"{HOST}:{port}" for port in ports)

    def direct(self, broker: NodeId) -> int:
        """The port of a broker's client listener itself, past the mesh."""
        return self._listening[broker][settings.CLIENT_LISTENER]

    async def start(self) -> None:
        """Up and ready, or :class:`ClusterError` and everything ended."""
        reap(self._state)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start()
                await self._ready(self.view, {name: self.direct(name) for name in self.brokers})
        except TimeoutError:
            reason = self._what_failed() or "not ready in time"
            await self.stop()
            raise ClusterError(f"no cluster after {START_TIMEOUT_S:g} s: {reason}") from None
        except (NodeError, toxiproxy.MeshError, OSError) as error:
            await self.stop()
            raise ClusterError(str(error)) from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        if self._sight is not None:
            await self._sight.close()
        await asyncio.gather(*(node.kill() for node in self._nodes.values()))
        self._ports.close()

    async def recover(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                for name in self.nodes:
                    if self._nodes[name].pid is None:
                        await self.start_node(name)
                await until(self._is_whole)
        except (TimeoutError, NodeError):
            return False
        return True

    def drop_data(self) -> None:
        """Remove the nodes' data, keep their logs; for runs that need no second look."""
        for name in self.nodes:
            shutil.rmtree(self._folder_of(name) / "data", ignore_errors=True)

    # --- CanKill, CanRestart, CanPause

    async def kill(self, node: NodeId) -> None:
        await self._nodes[node].kill()

    async def start_node(self, node: NodeId) -> None:
        """Start it and wait until it answers, but not for long: other faults may keep it from that.

        Raises :class:`NodeError` when it ends.
        """
        await self._nodes[node].start()
        await self._answering(node, PATIENCE_S)

    async def stop_node(self, node: NodeId) -> int:
        return await self._nodes[node].stop(STOP_TIMEOUT_S)

    async def is_running(self, node: NodeId) -> bool:
        """Measured: its process is there, or somebody accepts connections on its port."""
        if self._nodes[node].pid is not None:
            return True
        return await probe.accepts(HOST, self._first_port(node))

    async def pause(self, node: NodeId) -> None:
        self._nodes[node].pause()

    async def resume(self, node: NodeId) -> None:
        self._nodes[node].resume()

    async def is_paused(self, node: NodeId) -> bool:
        return self._nodes[node].is_paused

    # --- CanCut, CanRefuse

    async def cut(self, source: NodeId, target: NodeId) -> None:
        await self.mesh.cut(source, target)

    async def heal(self, source: NodeId, target: NodeId) -> None:
        await self.mesh.heal(source, target)

    async def heal_all(self) -> None:
        await self.mesh.heal_all()

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        verdicts = await asyncio.gather(
            *(self._is_silent(link) for link in self.mesh.between(source, target))
        )
        told = [verdict for verdict in verdicts if verdict is not None]
        return all(told) if told else None

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        await self.mesh.refuse(one, other)

    async def accept(self, one: NodeId, other: NodeId) -> None:
        await self.mesh.accept(one, other)

    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        links = self.mesh.between(one, other)
        accepted = await asyncio.gather(*(probe.accepts(HOST, link.listens) for link in links))
        return not any(accepted)

    # --- CanSlow

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        await self.mesh.slow(source, target, latency_s)

    async def quicken(self, source: NodeId, target: NodeId) -> None:
        await self.mesh.quicken(source, target)

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        clock = asyncio.get_running_loop().time

        async def took(link: toxiproxy.Link) -> float | None:
            began, protocol = clock(), _protocol(link.acceptor)
            answered = await probe.answers(HOST, link.listens, protocol, ROUND_TRIP_S_MAX)
            return clock() - began if answered else None

        probes = [asyncio.create_task(took(link)) for link in self.mesh.between(source, target)]
        try:
            for first in asyncio.as_completed(probes):
                if (seconds := await first) is not None:
                    return seconds
            return None
        finally:
            for task in probes:
                task.cancel()

    # --- HasRoles

    async def controller(self) -> NodeId | None:
        try:
            return await self.view.controller()
        except Unseen:
            return None

    async def leader(self, key: str) -> NodeId | None:
        partition = await self._partition(key)
        return partition.leader if partition is not None else None

    async def isr(self, key: str) -> tuple[NodeId, ...]:
        partition = await self._partition(key)
        return partition.isr if partition is not None else ()

    # --- how

    @property
    def _numbers(self) -> range:
        return range(1, self._plan.brokers + 1)

    def _folder_of(self, name: NodeId) -> Path:
        return self._folder / "nodes" / name

    def _node(self, name: NodeId, argv: Sequence[str], **environment: str) -> Node:
        assert self._registry is not None, "the registry is made first"
        folder = self._folder_of(name)
        return Node(name, argv, folder, self._registry, self.unexpected_exits.append, environment)

    async def _start(self) -> None:
        nodes = self._folder / "nodes"
        nodes.mkdir(parents=True, exist_ok=True)
        self._registry = Registry(self._folder.name, self._state, nodes / "pids.json")
        zookeeper_port = self._ports.reserve()
        self._listening[ZOOKEEPER] = {ZOOKEEPER: zookeeper_port}
        data = self._folder_of(ZOOKEEPER) / "data"
        data.mkdir(parents=True, exist_ok=True)
        self._nodes[ZOOKEEPER] = self._node(
            ZOOKEEPER, self._commands.zookeeper(zookeeper_port, data)
        )
        server = self._node("toxiproxy", toxiproxy.command(), **toxiproxy.ENVIRONMENT)
        self._nodes["toxiproxy"] = server
        self._mesh = Mesh(server)
        await asyncio.gather(self._nodes[ZOOKEEPER].start(), self._mesh.start())
        await self._add_links(zookeeper_port)
        for number in self._numbers:
            self._prepare_broker(number)
        await self._answering(ZOOKEEPER, START_TIMEOUT_S)
        await asyncio.gather(*(self._nodes[broker].start() for broker in self.brokers))
        self._sight = self._sight_of(f"{HOST}:{zookeeper_port}")
        await asyncio.gather(*(self._answering(name, START_TIMEOUT_S) for name in self.brokers))

    async def _add_links(self, zookeeper_port: int) -> None:
        for broker in self.brokers:
            names = [settings.client_listener(name) for name in (None, *self._clients)]
            self._listening[broker] = {
                name: self._ports.reserve() for name in (*names, PEER_LISTENER)
            }
        for broker in self.brokers:
            ports = self._listening[broker]
            for name in (None, *self._clients):
                party = CLIENTS if name is None else roles.client(name)
                await self.mesh.add(party, broker, ports[settings.client_listener(name)])
            for peer in self.brokers:
                if peer != broker:
                    await self.mesh.add(peer, broker, ports[PEER_LISTENER])
            await self.mesh.add(broker, ZOOKEEPER, zookeeper_port)

    def _prepare_broker(self, number: int) -> None:
        name = roles.broker(number)
        folder = self._folder_of(name)
        data = folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        towards = {(link.opener, link.acceptor): link.listens for link in self.mesh.links}
        listeners = self._listening[name]
        advertised = dict(listeners)
        for client in (None, *self._clients):
            party = CLIENTS if client is None else roles.client(client)
            advertised[settings.client_listener(client)] = towards[party, name]
        addresses = Addresses(
            listeners=listeners,
            advertised=advertised,
            zookeeper=towards[name, ZOOKEEPER],
            peers={
                peer: towards[name, roles.broker(peer)] for peer in self._numbers if peer != number
            },
        )
        properties = folder / "server.properties"
        settings.write(
            properties,
            settings.of_broker(number, self._plan.brokers, addresses, data, self._plan.broker),
        )
        self._nodes[name] = self._node(name, self._commands.broker(properties, self._plan.mutants))

    async def _answering(self, name: NodeId, patience_s: float) -> None:
        node = self._nodes[name]
        port = self._first_port(name)

        async def answers() -> bool:
            if node.pid is None:
                raise NodeError(f"{name} ended at its start: {node.last_line()}")
            return await probe.answers(HOST, port, _protocol(name), PROBE_TIMEOUT_S)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await until(answers)

    def _first_port(self, name: NodeId) -> int:
        return next(iter(self._listening[name].values()))

    async def _is_silent(self, link: toxiproxy.Link) -> bool | None:
        """Is a probe through the link unanswered although one past it, sent later, was answered?

        A link that another fault slows is waited for as much longer; ``None`` when that is too long
        to wait.
        """
        slowness_s = self.mesh.slowness_s(link.opener, link.acceptor)
        if slowness_s > SLOWNESS_S_MAX:
            return None
        protocol = _protocol(link.acceptor)
        grace_s = GRACE_S + slowness_s
        through = asyncio.create_task(
            probe.answers(HOST, link.listens, protocol, PROBE_TIMEOUT_S + grace_s)
        )
        try:
            if not await probe.answers(HOST, link.upstream, protocol, PROBE_TIMEOUT_S):
                return None
            return not await asyncio.wait_for(through, grace_s)
        except TimeoutError:
            return True
        finally:
            through.cancel()

    async def _partition(self, key: str) -> Partition | None:
        try:
            return await self.view.partition(key)
        except Unseen:
            return None

    async def _is_whole(self) -> bool:
        try:
            if sorted(await self.view.live()) != sorted(self.brokers):
                return False
            if await self.view.controller() is None:
                return False
            return all(partition.is_whole for partition in await self.view.partitions())
        except Unseen:
            return False

    def _what_failed(self) -> str:
        return "; ".join(
            f"{end.node} ended with status {end.status}: {end.last_line}"
            for end in self.unexpected_exits
        )


def _protocol(name: NodeId) -> ProbeProtocol:
    return "zookeeper" if name == ZOOKEEPER else "kafka"
