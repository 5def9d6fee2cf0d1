"""A cluster that exists only in memory, with every capability."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from model import roles
from model.capabilities.control_plane import Partition
from model.capabilities.network import Interception, Selection
from model.capabilities.processes import ResourceUsage
from model.layout import with_zookeeper
from model.link_faults import LinkFaults
from model.roles import Coordinated, NodeId
from nemesis import admin, clock, directories, disk, messages, power, session_expiry, verification
from nemesis.package import Applied, Package
from tests.nemesis.fake_disks import FakeDisks

APIS = ["Produce", "Fetch", "Metadata", "OffsetForLeaderEpoch", "WriteTxnMarkers"]
APIS += ["LeaderAndIsr", "UpdateMetadata", "StopReplica"]
POINTS = ("here", "there")


class FakeCluster(FakeDisks):
    """A cluster that carries out every request at once, and records it."""

    def __init__(self, brokers: int = 3) -> None:
        self.layout = with_zookeeper(brokers)
        self.brokers: tuple[NodeId, ...] = self.layout.brokers
        self.nodes: tuple[NodeId, ...] = self.layout.nodes
        super().__init__(self.nodes)
        self.down: set[NodeId] = set()
        self.paused: set[NodeId] = set()
        self.cuts: Counter[tuple[NodeId, NodeId]] = Counter()
        self.refused: Counter[tuple[NodeId, NodeId]] = Counter()
        self.latency: dict[tuple[NodeId, NodeId], list[float]] = {}
        """The latencies that faults add; the largest one applies."""
        self.lag_s = 0.0
        """The latency that every link has without faults."""
        self.probes: Counter[tuple[NodeId, NodeId]] = Counter()
        """How often each link was probed."""
        self.off: set[NodeId] = set()
        self.dumb: set[NodeId] = set()
        """Nodes that run and answer nothing, although no fault affects them."""
        self.limits = dict.fromkeys(self.nodes, (0.0, 0))
        self.throttled: Counter[NodeId] = Counter()
        self.used = dict.fromkeys(self.nodes, 40 << 20)
        self.oom_killed: set[NodeId] = set()
        self.met: Counter[NodeId] = Counter()
        self.wants = 8 << 20
        """How many bytes every node would use in addition to what it uses."""
        self.dropped: dict[NodeId, int] = {}
        self.unpowered: set[NodeId] = set()
        self.unsynced = dict.fromkeys(self.nodes, 100)
        self.registered: dict[NodeId, int | None] = dict.fromkeys(self.brokers, 1)
        self.isrs: dict[str, tuple[NodeId, ...]] = {"x-0": self.brokers}
        self.whole = True
        self.ahead_s = dict.fromkeys(self.nodes, 0.0)
        self.rates = dict.fromkeys(self.nodes, 1.0)
        self.rooted = False
        """No broker's session can be ended."""
        self.homeless = False
        """A broker that has lost its session gets no other."""
        self.traffic: set[tuple[NodeId, NodeId]] = set()
        """Links on which a message arrives as soon as a fault waits for one."""
        self.traps: list[tuple[str, NodeId, NodeId] | None] = []
        self.held: set[int] = set()
        self.namings: list[str] = []
        """The strings that selected messages had to contain."""
        self.halts: set[tuple[NodeId, str]] = set()
        self.comers: set[NodeId] = set()
        """Nodes whose code reaches every point at once."""
        self.log: list[str] = []
        self.immortal = False
        """Faults and orders have no effect on the cluster."""
        self.exit_status = 0
        self.leaders: dict[str, NodeId] = {"x-0": self.brokers[-1]}
        self.controls: NodeId | None = self.brokers[0]
        self.placed: dict[str, Partition] = {}
        """The partitions that operators see."""
        self.slow_moves = False
        """Partitions that move do not come to rest."""
        self.refusal = "NONE"
        """The controller's response to operators; unless it is ``NONE``, nothing is done."""

    def has_link(self, one: NodeId, other: NodeId) -> bool:
        return one != other

    def bootstrap(self, client: str | None = None) -> str:
        return ""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def recover(self, timeout_s: float) -> bool:
        self.log.append("recover")
        return True

    async def kill(self, node: NodeId) -> None:
        self.log.append(f"kill {node}")
        if not self.immortal:
            self.down.add(node)
            self.paused.discard(node)

    async def start_node(self, node: NodeId) -> None:
        assert node in self.down, f"{node} runs"
        assert node not in self.unpowered, f"{node} has no power"
        self.log.append(f"start {node}")
        self.down.discard(node)
        if node in self.registered:
            self.registered[node] = (self.registered[node] or 0) + 1

    async def stop_node(self, node: NodeId) -> int:
        self.log.append(f"stop {node}")
        self.down.add(node)
        self.paused.discard(node)
        return self.exit_status

    async def is_running(self, node: NodeId) -> bool:
        return node not in self.down

    async def pause(self, node: NodeId) -> None:
        assert node not in self.down, f"{node} does not run"
        if not self.immortal:
            self.paused.add(node)

    async def resume(self, node: NodeId) -> None:
        self.paused.discard(node)

    async def is_paused(self, node: NodeId) -> bool:
        return node in self.paused

    async def cut(self, source: NodeId, target: NodeId) -> None:
        self.cuts[source, target] += 1

    async def heal(self, source: NodeId, target: NodeId) -> None:
        self.cuts[source, target] -= 1

    async def heal_all(self) -> None:
        self.cuts.clear()
        self.refused.clear()

    def link_faults(self, one: NodeId, other: NodeId) -> LinkFaults:
        return LinkFaults(
            cut=any(self.cuts[way] > 0 for way in ((one, other), (other, one))),
            refused=self.refused[min(one, other), max(one, other)] > 0,
            disconnected=not self.off.isdisjoint((one, other)),
            lossy=not self.dropped.keys().isdisjoint((one, other)),
            slowness_s=self._slowness_s(one, other),
        )

    def _slowness_s(self, one: NodeId, other: NodeId) -> float:
        ways = ((one, other), (other, one))
        return sum(max(self.latency.get(way, ()), default=0.0) for way in ways)

    def _is_silent(self, node: NodeId) -> bool:
        return node in self.down | self.paused | self.off | self.dumb

    async def answers(self, node: NodeId) -> bool:
        return not self._is_silent(node)

    async def is_cut(self, source: NodeId, target: NodeId) -> bool | None:
        faults = self.link_faults(source, target)
        self.probes[source, target] += 1
        if self._is_silent(target) or faults.refused or faults.slowness_s > 6:
            return None
        return (faults.cut or faults.disconnected) and not self.immortal

    async def refuse(self, one: NodeId, other: NodeId) -> None:
        self.refused[one, other] += 1

    async def accept(self, one: NodeId, other: NodeId) -> None:
        self.refused[one, other] -= 1

    async def is_refused(self, one: NodeId, other: NodeId) -> bool:
        self.probes[one, other] += 1
        if self.link_faults(one, other).disconnected:
            return False
        return self.refused[one, other] > 0 and not self.immortal

    async def slow(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        self.latency.setdefault((source, target), []).append(latency_s)

    async def quicken(self, source: NodeId, target: NodeId, latency_s: float) -> None:
        latencies = self.latency[source, target]
        latencies.remove(latency_s)
        if not latencies:
            del self.latency[source, target]

    async def round_trip_s(self, source: NodeId, target: NodeId) -> float | None:
        self.probes[source, target] += 1
        if self._is_silent(target) or self.link_faults(source, target).is_silent:
            return None
        return 0.001 + self.lag_s + (0 if self.immortal else self._slowness_s(source, target))

    async def disconnect(self, node: NodeId) -> None:
        if not self.immortal:
            self.off.add(node)
        self._may_fail("disconnect")

    async def reconnect(self, node: NodeId) -> None:
        self._may_fail("reconnect")
        self.off.discard(node)

    async def is_disconnected(self, node: NodeId) -> bool:
        return node in self.off

    async def limit_cpu(self, node: NodeId, cpus: float) -> None:
        self.limits[node] = (cpus, self.limits[node][1])
        self._may_fail("limit_cpu")

    async def limit_memory(self, node: NodeId, bytes_: int) -> None:
        self.limits[node] = (self.limits[node][0], bytes_)
        self._may_fail("limit_memory")

    async def lift_limits(self, node: NodeId) -> None:
        self._may_fail("lift_limits")
        self.log.append(f"lift_limits {node}")
        self.limits[node] = (0.0, 0)

    async def resource_usage(self, node: NodeId) -> ResourceUsage:
        cpus, memory_bytes = self.limits[node]
        if cpus and not self.immortal:
            self.throttled[node] += 1
        if 0 < memory_bytes < self.used[node] + self.wants and not self.immortal:
            self.met[node] += 1
        return ResourceUsage(
            cpus=cpus,
            memory_bytes=memory_bytes,
            throttled_periods=self.throttled[node],
            memory_used_bytes=0 if node in self.down else self.used[node],
            memory_met=self.met[node],
            oom_killed=node in self.oom_killed,
        )

    async def drop_packets(self, node: NodeId, share: float) -> None:
        self.dropped[node] = 0
        self._may_fail("drop_packets")

    async def pass_packets(self, node: NodeId) -> None:
        self._may_fail("pass_packets")
        self.dropped.pop(node, None)

    async def packets_dropped(self, node: NodeId) -> int | None:
        if node in self.dropped and not self.immortal:
            self.dropped[node] += 3
        return self.dropped.get(node)

    async def power_off(self, node: NodeId, after: int = 0, renaming: str = "") -> None:
        when = f"renaming {renaming}" if renaming else f"after {after}"
        self.log.append(f"off {node} {when}")
        if not self.immortal:
            self.unpowered.add(node)
            self.down.add(node)
        self._may_fail("power_off")

    async def power_on(self, node: NodeId) -> None:
        self._may_fail("power_on")
        self.unpowered.discard(node)

    async def lost_bytes(self, node: NodeId) -> int | None:
        return self.unsynced[node] if node in self.unpowered else None

    async def jump_clock(self, node: NodeId, seconds: float) -> None:
        if not self.immortal:
            self.ahead_s[node] += seconds
        self._may_fail("jump_clock")

    async def drift_clock(self, node: NodeId, rate: float) -> None:
        if not self.immortal:
            self.rates[node] = rate
        self._may_fail("drift_clock")

    async def correct_clock(self, node: NodeId) -> None:
        self._may_fail("correct_clock")
        self.ahead_s[node], self.rates[node] = 0.0, 1.0

    async def clock_ahead_s(self, node: NodeId) -> float:
        """Return the clock's offset; half a second passes with each call."""
        now = self.ahead_s[node]
        self.ahead_s[node] += (self.rates[node] - 1) / 2
        return now

    async def expire_session(self, node: NodeId) -> bool:
        before = self.registered.get(node)
        if self.rooted or before is None:
            return False
        self.registered[node] = None if self.homeless else before + 1
        return True

    @classmethod
    def apis(cls) -> Sequence[str]:
        return APIS

    @classmethod
    def intercepts_brokers(cls) -> bool:
        return True

    async def intercept(
        self, links: Sequence[tuple[NodeId, NodeId]], selection: Selection, what: Interception
    ) -> int:
        apis = selection.apis
        if selection.naming is not None:
            self.namings.append(selection.naming)
        self.log.append(
            f"{what} {','.join(apis)} {' '.join(f'{one}>{other}' for one, other in links)}"
        )
        found = next((link for link in links if link in self.traffic), None)
        self.traps.append(None if found is None else (apis[-1], *found))
        if found is not None and what.startswith("hold"):
            self.held.add(len(self.traps) - 1)
        return len(self.traps) - 1

    async def caught(self, number: int) -> str | None:
        trap = self.traps[number]
        return None if trap is None else "{} of {} to {}".format(*trap)

    async def is_held(self, number: int) -> bool:
        return number in self.held

    async def release(self, number: int) -> None:
        self._may_fail("release")
        self.held.discard(number)

    async def release_all(self) -> None:
        self.held.clear()

    @classmethod
    def breakpoints(cls) -> Sequence[str]:
        return POINTS

    async def halt(self, node: NodeId, point: str) -> None:
        self.halts.add((node, point))
        self._may_fail("halt")

    async def halted(self, node: NodeId, point: str) -> int:
        return int((node, point) in self.halts and node in self.comers)

    async def go_on(self, node: NodeId, point: str) -> None:
        self._may_fail("go_on")
        self.halts.discard((node, point))

    async def all_go_on(self) -> None:
        self.halts.clear()

    def place(self, key: str, *numbers: int, isr: Sequence[int] | None = None) -> None:
        """Place a partition on these brokers, led by the first of them."""
        nodes = tuple(map(roles.broker, numbers))
        in_sync = nodes if isr is None else tuple(map(roles.broker, isr))
        self.placed[key] = Partition(key, nodes, nodes[0], 3, in_sync)

    async def partitions(self) -> Sequence[Partition]:
        return tuple(self.placed.values())

    async def reassign(self, wanted: Mapping[str, Sequence[NodeId] | None]) -> Mapping[str, str]:
        self.log.append(
            f"reassign { ({key: nodes and list(nodes) for key, nodes in wanted.items()}) }"
        )
        if self.controls is None:
            return {}
        if self.refusal == "NONE":
            for key, nodes in wanted.items():
                self._move(key, nodes)
        return dict.fromkeys(wanted, self.refusal)

    def _move(self, key: str, nodes: Sequence[NodeId] | None) -> None:
        old = self.placed[key]
        start = tuple(node for node in old.replicas if node not in old.adding)
        wanted = start if nodes is None else tuple(nodes)
        adding = tuple(node for node in wanted if node not in start)
        removing = tuple(node for node in start if node not in wanted)
        if not self.slow_moves or nodes is None:
            in_sync = tuple(node for node in wanted if node in old.isr or node in adding)
            self.placed[key] = replace(old, replicas=wanted, isr=in_sync, adding=(), removing=())
        else:
            together = (*wanted, *removing)
            self.placed[key] = replace(old, replicas=together, adding=adding, removing=removing)

    async def elect_preferred(self, keys: Sequence[str]) -> Mapping[str, str]:
        for key in keys:
            old = self.placed[key]
            if old.replicas[0] in old.isr and self.refusal == "NONE":
                self.placed[key] = replace(old, leader=old.replicas[0])
        return dict.fromkeys(keys, self.refusal)

    async def is_whole(self) -> bool:
        return self.whole and not self.down & set(self.brokers)

    async def registration(self, node: NodeId) -> int | None:
        return self.registered.get(node)

    async def in_sync_min(self, node: NodeId) -> int:
        return min((len(isr) for isr in self.isrs.values() if node in isr), default=0)

    async def controller(self) -> NodeId | None:
        return self.controls

    async def coordinator(self, of: Coordinated, name: str) -> NodeId | None:
        return self.leaders.get(f"{of}/{name}")

    async def leader(self, key: str) -> NodeId | None:
        return self.leaders.get(key)

    async def isr(self, key: str) -> tuple[NodeId, ...]:
        return self.isrs.get(key, ())


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes without an answer are repeated without a pause, and nothing has to settle."""
    monkeypatch.setattr(verification, "BETWEEN_S", 0.0)
    monkeypatch.setattr(disk, "SETTLE_S", 0.0)
    monkeypatch.setattr(directories, "WITHIN_S", 0.03)
    monkeypatch.setattr(directories, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(clock, "WATCHED_S", 0.5)
    monkeypatch.setattr(power, "WHOLE_WITHIN_S", 0.03)
    monkeypatch.setattr(power, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(session_expiry, "RETURN_S", 0.03)
    monkeypatch.setattr(session_expiry, "COME_S", 0.03)
    monkeypatch.setattr(messages, "CATCH_S", 0.03)
    monkeypatch.setattr(admin, "WITHIN_S", 0.2)
    monkeypatch.setattr(admin, "CHOICE_S", 0.03)
    monkeypatch.setattr(admin, "HEAL_S", 0.03)
    monkeypatch.setattr(admin, "LOOK_EVERY_S", 0.01)


@pytest.fixture
def rng() -> random.Random:
    return random.Random(7)


async def apply(
    module: Any,
    cluster: Any,
    fault: str,
    targets: Any,
    options: Mapping[str, Any],
    rng: random.Random,
) -> Applied:
    """Apply a fault of a module's package with options as in a schedule."""
    package: Package = module.PACKAGE
    return await package.apply(cluster, fault, targets, package.typed(fault, options), rng)
