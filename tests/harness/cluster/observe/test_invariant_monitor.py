import asyncio

import msgspec
import pytest

from checkers.invariants.step import Rules
from harness.cluster.observe.invariant_monitor import Watcher, rules_of
from harness.cluster.observe.snapshots import Snapshots
from harness.simulation.deadlock import Deadlock
from harness.simulation.world import World
from model.plan import Plan
from model.snapshot import (
    NOBODY,
    Batches,
    BrokerState,
    ClusterState,
    PartitionState,
    ReplicaState,
    ZooKeeperState,
)
from model.violation import Row, Violation, Watched


def rows(lines: list[bytes]) -> list[Row]:
    """Decode the recorded rows."""
    return [msgspec.json.decode(line, type=Row) for line in lines]


def slept(seed: int, lines: list[bytes] | None) -> str:
    """Return the trace of two processes that sleep for a second, watched if ``lines`` is given."""
    with World(seed) as world:

        async def main() -> None:
            for _ in range(100):
                await asyncio.sleep(0.01)

        if lines is not None:
            watcher = Watcher(world, Rules(), lines.append, now_s=lambda: world.now)
        world.host("one").spawn(main)
        world.run(world.host("two").spawn(main))
        if lines is not None:
            watcher.end()
            watcher.end()
        return world.trace.digest()


def test_watching_changes_nothing() -> None:
    """Watching adds no step and no time, and draws no random number."""
    lines: list[bytes] = []
    assert slept(7, lines) == slept(7, None) != slept(8, None)
    (end,) = rows(lines)
    assert isinstance(end, Watched)
    assert end.snapshots > 45
    assert end.until_ns >= 1_000_000_000


def test_violations_are_recorded_as_they_are_seen() -> None:
    """Violations are recorded at once, with the history's time, before the row of the end."""
    lines: list[bytes] = []
    broken = ReplicaState(role="follower", high_watermark=3, log_end=0, batches=Batches.of())
    with World(1) as world:
        watcher = Watcher(world, Rules(), lines.append, now_s=lambda: world.now - 5)
        watcher.snapshots = _Always(broken)

        async def main() -> None:
            await asyncio.sleep(6)

        world.run(world.host("one").spawn(main))
        (violation,) = rows(lines)
        assert isinstance(violation, Violation)
        assert (violation.invariant, violation.key) == ("offsets-in-order", "t-0")
        assert -5_000_000_000 < violation.time_ns < -4_999_000_000, "before the history began"
        watcher.end()
    assert isinstance(rows(lines)[-1], Watched)


def test_who_looks_on_keeps_no_world_alive() -> None:
    """A world in which only the watcher could still act is deadlocked."""
    with World(1) as world:
        Watcher(world, Rules(), list[bytes]().append, now_s=lambda: world.now)

        async def main() -> None:
            await asyncio.sleep(1)
            await asyncio.get_running_loop().create_future()

        with pytest.raises(Deadlock, match=r"at 1\.0\d+ s"):
            world.run(world.host("one").spawn(main))


@pytest.mark.parametrize(("calm_since_s", "stuck"), [(None, False), (3, True), (9, False)])
def test_calm_begins_the_time_to_recover(calm_since_s: int | None, stuck: bool) -> None:
    """A partition without a leader is stuck once all faults have been over for `recovery_s`."""
    lines: list[bytes] = []
    with World(1) as world:
        since_ns = None if calm_since_s is None else calm_since_s * 1_000_000_000
        rules = Rules(recovery_s=2.0)
        watcher = Watcher(
            world, rules, lines.append, now_s=lambda: world.now, calm_since_ns=lambda: since_ns
        )
        watcher.snapshots = _Always(None)

        async def main() -> None:
            for _ in range(100):
                await asyncio.sleep(0.1)

        world.run(world.host("one").spawn(main))
    found = [row.invariant for row in rows(lines) if isinstance(row, Violation)]
    assert found == (["stuck"] if stuck else [])


def test_it_tells_whether_the_cluster_has_settled() -> None:
    """A cluster is not settled while a leaderless partition has time left to recover.

    After `end` no row is written.
    """
    lines: list[bytes] = []
    with World(1) as world:
        calm: list[int] = []
        watcher = Watcher(
            world,
            Rules(recovery_s=2.0),
            lines.append,
            now_s=lambda: world.now,
            calm_since_ns=lambda: calm[0] if calm else None,
        )
        watcher.snapshots = _Always(None)

        async def main() -> float:
            assert watcher.is_settled()
            calm.append(0)
            while not watcher.is_settled():  # noqa: ASYNC110 - no event announces it
                await asyncio.sleep(0.1)
            watcher.end()
            return world.now

        assert 2.0 <= world.run(world.host("one").spawn(main)) < 2.2
    stuck, end = rows(lines)
    assert isinstance(stuck, Violation)
    assert isinstance(end, Watched)
    assert watcher.is_settled()
    assert len(lines) == 2


class _Always(Snapshots):
    """Snapshots of one broker with a fixed replica, or none, of a leaderless partition."""

    def __init__(self, replica: ReplicaState | None) -> None:
        super().__init__()
        replicas = {} if replica is None else {"t-0": replica}
        self._broker = BrokerState(life=1, replicas=replicas)
        partition = PartitionState(
            leader=NOBODY,
            leader_epoch=1,
            isr=(1,),
            replicas=(1,),
            controller_epoch=1,
            version=1,
            birth=1,
        )
        self._told = ZooKeeperState(partitions={"t-0": partition}, controller_epoch=1)

    def take(self, time_ns: int, *, producers: bool) -> ClusterState:
        return ClusterState(
            time_ns=time_ns,
            brokers={1: self._broker},
            zookeeper=self._told,
            calm_since_ns=self.calm_since_ns,
        )


def test_the_rules_are_the_plans() -> None:
    """The rules follow the plan, whose expectations override its settings, as for the contract."""
    transactions = {"__transaction_state": 2}
    assert rules_of(Plan(brokers=3)) == Rules(
        isr_min=2, isr_min_of=transactions, recovery_s=60.0, lag_max_s=1.5
    )
    plan = Plan(
        broker={
            "min.insync.replicas": "1",
            "transaction.state.log.min.isr": "3",
            "producer.id.expiration.ms": "5000",
            "replica.lag.time.max.ms": "3000",
        },
        expect={"broker.unclean.leader.election.enable": "true"},
    )
    assert rules_of(plan) == Rules(
        unclean_elections=True,
        isr_min=1,
        isr_min_of={"__transaction_state": 3},
        producer_expiration_s=5.0,
        recovery_s=60.0,
        lag_max_s=3.0,
    )
