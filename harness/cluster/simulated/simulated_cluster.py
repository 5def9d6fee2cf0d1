"""The target ``simulated``: brokers, ZooKeeper and clients in one process, on virtual time.

Every node is a host of a simulated world, with its own disk. The harness and all clients are one
process on the host ``clients``. Measurements use probes over connections, as on the other targets:
those that bypass all faults start on a host that no fault touches, and those through a link start
on the host at its end.
"""

import asyncio
import contextlib
import functools
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker_impl import failpoints, mutants
from broker_impl.errors import StorageError
from broker_impl.node.broker import Broker
from broker_impl.wire.messages.apis import APIS
from broker_impl.zookeeper import sessions
from broker_impl.zookeeper.program import Program as ZooKeeper
from broker_impl.zookeeper.store import SECRET
from harness.cluster import settings
from harness.cluster.address import Address
from harness.cluster.expected_exits import ExpectedExits
from harness.cluster.links import HARNESS, LinkSpec
from harness.cluster.mesh import link_proof
from harness.cluster.node import ClusterError, Exit
from harness.cluster.observe import probe, snapshots
from harness.cluster.observe.invariant_monitor import Watcher, rules_of
from harness.cluster.observe.metadata_view import MetadataView, ViewUnavailable
from harness.cluster.observe.probe import Sign, protocol_of
from harness.cluster.observe.readiness import until_writable
from harness.cluster.observe.snapshots import Snapshots
from harness.cluster.simulated import (
    aiokafka_patch,
    aiokafka_pauses,
    node_settings,
    session_expiry,
    simulated_node,
    simulated_options,
    uninvited,
)
from harness.cluster.simulated.breakpoints import Breakpoints
from harness.cluster.simulated.host_faults import HostFaultsCluster, Result
from harness.cluster.simulated.link_faults import LinkFaultInjector
from harness.cluster.simulated.message_faults import Messages
from harness.cluster.simulated.node_logs import NodeLogs, listening
from harness.cluster.simulated.node_settings import PORTS
from harness.cluster.simulated.point_waits import PointWaits
from harness.cluster.simulated.response_watch import ResponseWatch
from harness.cluster.simulated.simulated_node import Program, SimulatedNode, save_data
from harness.cluster.system import MakeView
from harness.simulation.disk import SimDisk
from harness.simulation.host import Host
from harness.simulation.process import Process, ProcessKilled
from harness.simulation.world import World
from model import racks, roles, violation
from model.capabilities.machines import Flip
from model.capabilities.network import Interception, Selection
from model.link_faults import LinkFaults
from model.plan import Plan
from model.roles import CLIENTS, ZOOKEEPER, NodeId

SETTLE_EVERY_S = 0.1
"""How often the end of a run checks whether the cluster has recovered."""


@dataclass(frozen=True, slots=True)
class SimulationContext:
    """The resources of a simulated cluster, which outlive it if it fails."""

    world: World
    logs: NodeLogs
    clients: Host
    """The host of the harness and of all clients."""
    harness: Host
    """The host of probes that no fault may touch."""
    breakpoints: Breakpoints
    """The breakpoints of the nodes."""
    watcher: Watcher
    """Takes snapshots between events until the cluster is stopped."""
    machines: dict[NodeId, SimulatedNode] = field(default_factory=dict)
    """The machines of the nodes; their disks hold the nodes' data."""


@contextlib.contextmanager
def staged(
    plan: Plan,
    folder: Path,
    now_s: Callable[[], float] | None = None,
    calm_since_ns: Callable[[], int | None] = lambda: None,
) -> Iterator[SimulationContext]:
    """Create a world with the plan's seed; the plan's mutants are planted while it exists.

    White-box checks write to a file in ``folder``. ``now_s`` is the history's clock (by default the
    world's); ``calm_since_ns`` returns the time on that clock since which all faults are over for
    good.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = {**simulated_options.OPTIONS, **plan.options}
    with World(plan.seed) as world:
        world.network.latency_s = float(options["latency_ms"]) / 1000
        world.network.jitter_s = float(options["jitter_ms"]) / 1000
        logs = NodeLogs(folder / "nodes", world)
        waits = PointWaits(
            plan.seed, options, lambda: world.now, lambda: calm_since_ns() is not None
        )
        breakpoints = Breakpoints(world, waits)
        clock = now_s or (lambda: world.now)
        try:
            failpoints.hold_by(breakpoints.hold)
            mutants.plant(plan.mutants)
            with listening(logs), (folder / violation.FILE).open("wb", buffering=0) as seen:
                watcher = Watcher(
                    world,
                    rules_of(plan),
                    seen.write,
                    now_s=clock,
                    calm_since_ns=calm_since_ns,
                    interval_s=float(options["snapshot_ms"]) / 1000,
                )
                logs.on_error = watcher.unexpected_error
                world.network.watch = ResponseWatch(watcher.answered_out_of_order)
                clients, harness = world.host(CLIENTS), world.host(HARNESS)
                clients.clock.jump(float(options["clients_clock_s"]))
                stage = SimulationContext(world, logs, clients, harness, breakpoints, watcher)
                try:
                    yield stage
                except BaseException:
                    save_data(folder, stage.machines)
                    raise
        finally:
            mutants.removed()
            failpoints.hold_by(None)


class Simulated(HostFaultsCluster):
    """A cluster of simulated hosts. Call it from the host ``clients``."""

    START_TIMEOUT_S = 20.0

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        rng: random.Random,
        *,
        stage: SimulationContext,
        make_view: MakeView | None = None,
        ready: Callable[[MetadataView, Mapping[NodeId, Address]], Awaitable[None]] = until_writable,
    ) -> None:
        super().__init__(plan, folder, rng, make_view=make_view, ready=ready)
        aiokafka_patch.use_for_reading()
        aiokafka_pauses.use_pauses()
        self._stage = stage
        self._expected_exits = ExpectedExits(lambda: stage.world.now)
        self._machines = stage.machines
        self._hosts: dict[NodeId, Host] = {CLIENTS: stage.clients, HARNESS: stage.harness}
        self._link_faults = LinkFaultInjector(stage.world.network, (*self.nodes, CLIENTS, HARNESS))
        self._messages = Messages(stage.world.network)
        self._breakpoints = stage.breakpoints
        self._uninvited: list[Process] = []

    # --- Cluster

    def bootstrap(self, client: str | None = None) -> str:
        assert client is None, "simulated clients have no separate listeners"
        return ",".join(str(self._guarded(node)) for node in self.layout.members)

    def direct(self, node: NodeId) -> Address:
        return node_settings.open_address(self.layout, self._plan, node)

    async def is_running(self, node: NodeId) -> bool:
        """Measure whether the node's process runs, or its port accepts connections."""
        if await super().is_running(node):
            return True
        address = self.direct(node)
        return await self._on(HARNESS, lambda: probe.accepts(address), f"probe of {node}")

    # --- CanCut

    async def cut(self, source: NodeId, target: NodeId) -> None:
        self._link_faults.cut(source, target)

    async def heal(self, source: NodeId, target: NodeId) -> None:
        self._link_faults.heal(source, target)

    async def heal_all(self) -> None:
        self._link_faults.heal_all()

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        return self._link_faults.faults(one, other)

    def has_link(self, one: NodeId, other: NodeId) -> bool:
        return bool(self._links_between(one, other))

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        verdicts = await asyncio.gather(
            *(self._is_cut(link) for link in self._links(source, target))
        )
        known = [verdict for verdict in verdicts if verdict is not None]
        return all(known) if known else None

    # --- CanRefuse

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        self._link_faults.refuse(one, other)

    async def accept(self, one: NodeId, other: NodeId) -> None:
        self._link_faults.accept(one, other)

    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        refused = await asyncio.gather(
            *(self._is_refused(link) for link in self._links(one, other))
        )
        return all(refused)

    # --- CanSlow

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        self._link_faults.slow(source, target, latency_s)

    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        self._link_faults.quicken(source, target, latency_s)

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        took = await asyncio.gather(*(self._took_s(link) for link in self._links(source, target)))
        return min((seconds for seconds in took if seconds is not None), default=None)

    # --- CanDisconnect

    async def disconnect(self, node: NodeId) -> None:
        self._link_faults.disconnect(node)

    async def reconnect(self, node: NodeId) -> None:
        self._link_faults.reconnect(node)

    async def is_disconnected(self, node: NodeId) -> bool:
        return self._link_faults.is_off(node) and not await self._answers(node)

    # --- CanDropPackets

    async def drop_packets(self, node: NodeId, share: float) -> None:
        self._link_faults.leak(node, share)

    async def pass_packets(self, node: NodeId) -> None:
        self._link_faults.seal(node)

    async def packets_dropped(self, node: NodeId) -> int | None:
        return self._link_faults.dropped(node)

    # --- CanInterceptMessages

    @classmethod
    def apis(cls) -> Sequence[str]:
        return [api.name for api in APIS.values()]

    @classmethod
    def intercepts_brokers(cls) -> bool:
        return True

    async def intercept(
        self, links: Sequence[tuple[NodeId, NodeId]], selection: Selection, what: Interception
    ) -> int:
        return self._messages.trap(links, selection, what)

    async def caught(self, number: int) -> str | None:
        return self._messages[number].caught

    async def is_held(self, number: int) -> bool:
        return self._messages[number].is_holding

    async def release(self, number: int) -> None:
        self._messages[number].open()

    async def release_all(self) -> None:
        self._messages.open_all()

    # --- CanBreakAtPoint

    @classmethod
    def breakpoints(cls) -> Sequence[str]:
        return failpoints.POINTS

    async def halt(self, node: NodeId, point: str) -> None:
        self._breakpoints.halt(node, point)

    async def halted(self, node: NodeId, point: str) -> int:
        return self._breakpoints.waiting(node, point)

    async def go_on(self, node: NodeId, point: str) -> None:
        self._breakpoints.release(node, point)

    async def all_go_on(self) -> None:
        self._breakpoints.release_all()

    # --- CanFlipBits

    async def flip_bit(self, node: NodeId, key: str) -> Flip | None:
        flip = await super().flip_bit(node, key)
        if flip is not None:
            self._snapshots.disk_changed(roles.number(node))
        return flip

    # --- CanExpire

    async def expire_session(self, node: NodeId) -> bool:
        try:
            found = await self.view.registration(node)
        except ViewUnavailable:
            return False
        if found is None:
            return False
        timeout_ms = int(settings.session_timeout_s(self._plan.broker) * 1000)
        if self.layout.is_ensemble:
            password = sessions.shared_password(found.session_id)
        else:
            password = sessions.password(self._disk(ZOOKEEPER).peek(SECRET), found.session_id)
        for server in await self._serving():
            work = functools.partial(
                session_expiry.end, self.direct(server), found.session_id, password, timeout_ms
            )
            if await self._on(HARNESS, work, f"usurper of {node}"):
                return True
        return False

    async def _serving(self) -> Sequence[NodeId]:
        """Return the ZooKeeper servers that serve clients."""
        return [*await self.zookeepers()] if self.layout.is_ensemble else self.layout.zookeepers

    # --- implementation

    async def _past_faults(
        self, work: Callable[[], Coroutine[Any, Any, Result]], name: str
    ) -> Result:
        return await self._on(HARNESS, work, name)

    async def _prepare(self) -> None:
        """Do nothing: nothing has to be prepared."""

    async def _make_nodes(self) -> None:
        for name in self.layout.zookeepers:
            on_start = functools.partial(self._zookeeper_lives, name)
            program = simulated_node.zookeeper(
                node_settings.of_zookeeper(self.layout, self._plan, name), on_start
            )
            self._make(name, program)
        for name in self.brokers:
            number = roles.number(name)
            broker_settings = node_settings.of_broker(self.layout, self._plan, number)
            on_life = functools.partial(self._broker_lives, number)
            self._make(name, simulated_node.broker(broker_settings, on_life))
            settings.write(self._folder_of(name) / "server.properties", broker_settings)

    async def _start_brokers(self, names: Sequence[NodeId]) -> None:
        gap_s = float({**simulated_options.OPTIONS, **self._plan.options}["start_gap_ms"]) / 1000
        for broker in names:
            await self._nodes[broker].start()
            await asyncio.sleep(gap_s)
        stage = self._stage
        self._uninvited = uninvited.begin(
            stage.harness, self._plan, self.layout, stage.watcher, self._hosts
        )

    def _broker_lives(self, number: int, broker: Broker) -> None:
        """Register a new life of a broker for snapshots; called in the broker's process."""
        process = self._stage.world.current
        assert process is not None, "a broker is created in a simulated process"
        disk = self._disk(roles.broker(number))
        look, rewritten = snapshots.looking_at(broker, disk)
        self._snapshots.broker_started(
            number, look, lambda: not process.is_done, lambda: disk.boots, rewritten
        )
        racks_of = racks.of_brokers(self._plan.brokers, self._plan.options, self._plan.broker)
        watcher = self._stage.watcher
        witness = watcher.witness(number, broker, disk, racks_of)
        broker.show(witness, lambda tp: watcher.groups_loaded(number, tp))

    def _zookeeper_lives(self, name: NodeId, program: ZooKeeper) -> None:
        """Register a new life of a ZooKeeper server, in that server's process."""
        process = self._stage.world.current
        assert process is not None, "a server is created in a simulated process"
        disk = self._disk(name)
        self._stage.watcher.server_started(
            program.settings.me, program.history, disk, lambda: not process.is_done
        )
        if self.layout.is_ensemble:
            self._snapshots.server_started(program, disk, lambda: not process.is_done)
        else:
            self._snapshots.zookeeper_started(program.history)

    @property
    def _snapshots(self) -> Snapshots:
        return self._stage.watcher.snapshots

    def _make(self, name: NodeId, program: Program) -> None:
        world = self._stage.world
        host = self._hosts[name] = world.host(name)
        disk = SimDisk(random.Random(f"{world.seed} disk of {name}"), StorageError)
        self._stage.logs.open(name)
        node = SimulatedNode(host, program, disk, self._stage.logs, self._ended)
        self._nodes[name] = self._machines[name] = node

    def _ended(self, end: Exit) -> None:
        if not self._expected_exits.cover(end, oom_killed=False):
            self.unexpected_exits.append(end)

    async def _end(self) -> None:
        # The clients have ended; give the cluster time for the recovery that is still pending.
        while not self._stage.watcher.is_settled():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(SETTLE_EVERY_S)
        self._stage.watcher.end()
        await asyncio.gather(*(node.kill() for node in self._nodes.values()))
        uninvited.end(self._uninvited)

    # --- measurements

    async def _answers(self, node: NodeId) -> bool:
        return await self._sign(HARNESS, self._past(node), link_proof.PROBE_TIMEOUT_S) == "answer"

    def _past(self, node: NodeId) -> LinkSpec:
        return LinkSpec(HARNESS, node, node_settings.listener(self.layout, node))

    def _links(self, one: NodeId, other: NodeId) -> list[LinkSpec]:
        """All links between the two nodes, in either direction."""
        if not (found := self._links_between(one, other)):
            raise ClusterError(f"there is no link between {one} and {other}")
        return found

    def _links_between(self, one: NodeId, other: NodeId) -> list[LinkSpec]:
        return [link for link in self._every_link if {*link[:2]} == {one, other}]

    @functools.cached_property
    def _every_link(self) -> list[LinkSpec]:
        return node_settings.links_of(self.layout)

    async def _is_cut(self, link: LinkSpec) -> bool | None:
        """Return whether a probe through the link was lost, but a later one past it was answered.

        ``None`` if this cannot be decided.
        """
        slowness_s = self._link_faults.slowness_s(link.opener, link.acceptor)
        if slowness_s > link_proof.SLOWNESS_S_MAX:
            return None
        grace_s = link_proof.GRACE_S + 2 * slowness_s  # a connection takes another round trip
        lost = self._link_faults.lost(link.opener, link.acceptor)
        through = asyncio.create_task(
            self._sign(link.opener, link, link_proof.PROBE_TIMEOUT_S + grace_s)
        )
        try:
            if not await self._answers(link.acceptor):
                return None
            if await asyncio.wait_for(through, grace_s) == "answer":
                return False
        except TimeoutError:
            pass
        finally:
            through.cancel()
        return True if self._link_faults.lost(link.opener, link.acceptor) > lost else None

    async def _is_refused(self, link: LinkSpec) -> bool:
        sign = await self._sign(link.opener, link, link_proof.PROBE_TIMEOUT_S)
        return sign == "end" and self._link_faults.is_refused(link.opener, link.acceptor)

    async def _took_s(self, link: LinkSpec) -> float | None:
        """The time from a probe's request to its answer; connecting takes another round trip."""
        world = self._stage.world
        asked_s: list[float] = []
        slowness_s = self._link_faults.slowness_s(link.opener, link.acceptor)
        sign = await self._sign(
            link.opener,
            link,
            link_proof.round_trip_patience_s(slowness_s),
            lambda: asked_s.append(world.now),
        )
        return world.now - asked_s[0] if sign == "answer" else None

    async def _sign(
        self,
        source: NodeId,
        link: LinkSpec,
        timeout_s: float,
        on_connect: Callable[[], object] = lambda: None,
    ) -> Sign:
        """The outcome of a probe from a host to the acceptor of a link."""
        address = Address(link.acceptor, PORTS[link.listener])
        protocol = protocol_of(link.acceptor)
        work = functools.partial(probe.sign, address, protocol, timeout_s, on_connect)
        try:
            return await self._on(source, work, f"probe of {source}")
        except ProcessKilled:
            return "silence"
