"""The simulated cluster's faults take effect, are measured, and are healed, on virtual time."""

import asyncio
import contextlib
import importlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from broker_impl import mutants
from broker_impl.node.exit_status import STORAGE_FAILED
from broker_impl.zookeeper.store import SNAPSHOTS_KEPT
from harness.cluster import ensembles
from harness.cluster.node import ClusterError, NodeError
from harness.cluster.observe.invariant_monitor import RECOVERY_S
from harness.cluster.simulated.host_faults import LEFT_BYTES, HostFaultsCluster
from harness.cluster.simulated.simulated_cluster import Simulated, SimulationContext, staged
from harness.cluster.simulated.simulated_node import SimulatedNode
from model import violation
from model.capabilities.cluster import HasData, HasTrace
from model.capabilities.control_plane import HasRoles
from model.capabilities.machines import CanFillDisk
from model.capabilities.network import CanCut, CanDisconnect, CanDropPackets, CanRefuse, CanSlow
from model.capabilities.processes import CanKill, CanLimitResources, CanPause, CanRestart
from model.plan import Plan
from model.roles import ZOOKEEPER
from model.snapshot import ClusterState
from tests.harness.cluster.simulated.lab import KEY, ONE, THREE, TWO, Lab


def test_it_offers_all_but_limits() -> None:
    """The simulated target offers all faults except an engine's limits of CPU and memory."""
    offers: tuple[type, ...] = (CanKill, CanRestart, CanPause, CanCut, CanRefuse, CanSlow)
    offers += (CanDisconnect, CanFillDisk, CanDropPackets, HasRoles, HasData, HasTrace)
    assert all(issubclass(Simulated, offer) for offer in offers)
    assert not issubclass(Simulated, CanLimitResources)


def test_it_starts_ready_and_leaves_logs_and_data(lab: Lab) -> None:
    """After start a replicated topic is writable; logs have virtual time; data are kept at will."""

    async def work(cluster: Simulated) -> Simulated:
        assert await cluster.controller() in cluster.brokers
        assert await cluster.leader(KEY) in cluster.brokers
        assert sorted(await cluster.isr(KEY)) == list(cluster.brokers)
        assert cluster.bootstrap() == "broker-1:9092,broker-2:9092,broker-3:9092"
        assert await cluster.recover(5.0)
        assert cluster.unexpected_exits == []
        return cluster

    cluster: Simulated = lab(work)
    assert lab.log_of(ONE).startswith("2023-11-14 22:13:2")
    assert "broker 1 started" in lab.log_of(ONE)
    assert "broker 1 started" not in lab.log_of(TWO)
    cluster.settle_data(keep=False)
    assert not (lab.folder / "nodes" / ONE / "data").exists()
    cluster.settle_data(keep=True)
    for node in (*cluster.brokers, ZOOKEEPER):
        assert any((lab.folder / "nodes" / node / "data").rglob("*"))


def test_a_test_that_fails_leaves_the_data(lab: Lab) -> None:
    """An error ends the test before anything has judged it; the nodes' data are kept."""

    async def work(cluster: Simulated) -> None:
        raise TimeoutError("as of a workload")

    with pytest.raises(TimeoutError, match="as of a workload"):
        lab(work)
    assert any((lab.folder / "nodes" / ONE / "data").rglob("*"))
    assert lab.log_of(ONE)


def test_clients_with_another_time(lab: Lab) -> None:
    """The clients' clock alone is wrong; a node's clock is measured against a correct one."""

    async def work(cluster: Simulated, stage: SimulationContext) -> tuple[float, float]:
        assert await cluster.clock_ahead_s(ONE) == pytest.approx(0, abs=1)
        await cluster.jump_clock(ONE, 60)
        assert await cluster.clock_ahead_s(ONE) == pytest.approx(60, abs=1)
        await cluster.correct_clock(ONE)
        assert await cluster.clock_ahead_s(ONE) == pytest.approx(0, abs=1)
        return stage.clients.clock.wall(), stage.harness.clock.wall()

    clients_s, right_s = lab.on_stage(work, options={"clients_clock_s": -200_000})
    assert right_s - clients_s == pytest.approx(200_000)


def test_brokers_that_start_one_by_one(lab: Lab) -> None:
    """If brokers start one by one, the first is the controller, whatever the seed."""

    async def work(cluster: Simulated) -> str | None:
        return await cluster.controller()

    controllers = [lab(work, seed, options={"start_gap_ms": 100}) for seed in range(4)]
    assert controllers == [ONE] * 4


def test_kill_and_start(lab: Lab) -> None:
    """A killed broker does not run and refuses connections; after a start it has its data."""

    async def work(cluster: Simulated) -> None:
        leader = await cluster.leader(KEY)
        assert leader is not None
        await cluster.kill(leader)
        assert not await cluster.is_running(leader)
        await asyncio.sleep(4.0)
        assert leader not in await cluster.isr(KEY)
        await cluster.start_node(leader)
        assert await cluster.is_running(leader)
        with pytest.raises(NodeError, match="already runs"):
            await cluster.start_node(leader)
        assert await cluster.recover(10.0)
        assert cluster.unexpected_exits == []

    lab(work)


def test_restart(lab: Lab) -> None:
    """A clean stop is a controlled shutdown with exit status 0, also of a paused broker.

    A broker that cannot end is killed.
    """

    async def work(cluster: Simulated) -> None:
        assert await cluster.stop_node(ONE) == 0
        assert not await cluster.is_running(ONE)
        await cluster.start_node(ONE)
        assert await cluster.recover(10.0)
        await cluster.pause(ONE)
        assert await cluster.stop_node(ONE) == 0
        assert cluster.unexpected_exits == []

    lab(work)
    assert lab.log_of(ONE).count("node.broker: controlled shutdown") == 2


def test_pause(lab: Lab) -> None:
    """A paused broker runs but does not answer; it loses its session and comes back."""

    async def work(cluster: Simulated) -> None:
        await cluster.pause(TWO)
        assert await cluster.is_running(TWO)
        assert await cluster.is_paused(TWO)
        await asyncio.sleep(5.0)
        assert TWO not in await cluster.view.live()
        await cluster.resume(TWO)
        assert not await cluster.is_paused(TWO)
        assert await cluster.recover(10.0)
        await cluster.kill(TWO)
        with pytest.raises(NodeError, match="does not run"):
            await cluster.pause(TWO)

    lab(work)


def test_fill_disk(lab: Lab) -> None:
    """A broker with a full disk ends, which is no crash.

    After a start with a free disk it recovers.
    """

    async def work(cluster: Simulated) -> None:
        before = await cluster.disk_free_bytes(ONE)
        await cluster.free_disk(ONE)
        await cluster.fill_disk(ONE)
        assert await cluster.disk_free_bytes(ONE) == LEFT_BYTES < before
        await asyncio.sleep(8.0)
        assert not await cluster.is_running(ONE)
        await cluster.free_disk(ONE)
        assert await cluster.disk_free_bytes(ONE) == before
        await cluster.start_node(ONE)
        assert await cluster.recover(10.0)
        assert cluster.unexpected_exits == []

    lab(work)
    assert "its disk failed" in lab.log_of(ONE)


def test_fail_directory(lab: Lab) -> None:
    """A broker one of whose directories fails may end, which is no crash, also when it starts.

    After a start with the repaired directory it recovers.
    """

    async def work(cluster: Simulated) -> None:
        assert (cluster.directory_count(ONE), cluster.directory_count(ZOOKEEPER)) == (2, 1)
        assert await cluster.failed_operations(ONE, 2) is None
        assert await cluster.probe_directory(ONE, 2)
        await cluster.fail_directory(ONE, 2)
        assert not await cluster.probe_directory(ONE, 2)
        assert await cluster.probe_directory(ONE, 1)
        await asyncio.sleep(12.0)
        assert await cluster.failed_operations(ONE, 2)
        assert await cluster.failed_operations(ONE, 1) is None
        await cluster.kill(ONE)
        with contextlib.suppress(NodeError):
            await cluster.start_node(ONE)
        await cluster.repair_directory(ONE, 2)
        await cluster.repair_directory(ONE, 2)
        assert await cluster.failed_operations(ONE, 2) is None
        await cluster.kill(ONE)
        await cluster.start_node(ONE)
        assert await cluster.recover(10.0)
        assert cluster.unexpected_exits == []

    lab(work, options={"data_directories": 2})
    assert "dir-2" in lab.log_of(ONE)


def test_zookeeper_recovers_from_snapshots(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed ZooKeeper has its data again, though the beginning of its log was purged."""
    monkeypatch.setattr(ensembles, "SETTINGS", {**ensembles.SETTINGS, ensembles.SNAP_COUNT: 3})

    async def work(cluster: Simulated) -> Simulated:
        for _ in range(3):
            await cluster.kill(ONE)
            await asyncio.sleep(4.0)
            await cluster.start_node(ONE)
            assert await cluster.recover(10.0)
        await cluster.kill(ZOOKEEPER)
        await cluster.start_node(ZOOKEEPER)
        assert await cluster.recover(20.0)
        assert sorted(await cluster.isr(KEY)) == [ONE, TWO, THREE]
        return cluster

    lab(work).settle_data(keep=True)
    names = [path.name for path in (lab.folder / "nodes" / ZOOKEEPER / "data").rglob("*.*")]
    assert sum(name.startswith("snapshot.") for name in names) == SNAPSHOTS_KEPT
    assert "log.1" not in names


def test_an_end_that_nobody_asked_for_is_told(lab: Lab) -> None:
    """An unexpected end is reported with the status of a real broker and its last line."""

    async def work(cluster: Simulated, stage: SimulationContext) -> None:
        node = cluster._nodes[TWO]
        assert isinstance(node, SimulatedNode)
        node.disk.fill()  # not by a fault of the schedule
        await asyncio.sleep(8.0)
        (end,) = cluster.unexpected_exits
        assert (end.node, end.status) == (TWO, STORAGE_FAILED)
        assert "its disk failed" in end.last_line

    lab.on_stage(work)


def test_settings_that_cannot_be_obeyed_are_told(lab: Lab) -> None:
    """If a broker rejects a setting, the start of the cluster fails with the broker's message."""

    async def work(cluster: Simulated) -> None:
        raise AssertionError("it has started")

    with pytest.raises(
        ClusterError, match=r"broker-1 exited while it started: .*faultline\.no\.such"
    ):
        lab(work, broker={"faultline.no.such": "1"})


def test_mutants_are_planted_once_and_removed_with_the_world(tmp_path: Path) -> None:
    """Mutants are removed after a world, also after a failed one: the next has correct brokers."""
    mutant = mutants.get("ack-on-local-append")
    module, function = mutant.of.split(":")
    rules = importlib.import_module(module)
    correct = getattr(rules, function)
    plan = Plan(target="simulated", mutants=(mutant.name,))

    def come_to_a_bad_end() -> None:
        with staged(plan, tmp_path):
            assert getattr(rules, function) is mutant.rule
            raise OSError("bad")

    with pytest.raises(OSError, match="bad"):
        come_to_a_bad_end()
    assert getattr(rules, function) is correct


def test_a_seed_is_a_run(tmp_path: Path) -> None:
    """The same seed gives the same trace, and another seed another one."""

    def digest(seed: int, name: str) -> str:
        async def work(cluster: Simulated, stage: SimulationContext) -> str:
            await cluster.kill(ONE)
            await asyncio.sleep(1.0)
            await cluster.start_node(ONE)
            await cluster.recover(10.0)
            return stage.world.trace.digest()

        found: str = Lab(tmp_path / name).on_stage(work, seed)
        return found

    assert digest(1, "a") == digest(1, "b") != digest(2, "c")


def test_whoever_looks_on_changes_nothing(tmp_path: Path) -> None:
    """Snapshots, frequent, rare or none, do not change the trace."""

    def digest(name: str, snapshot_ms: float | None) -> str:
        async def work(cluster: Simulated, stage: SimulationContext) -> str:
            if snapshot_ms is None:
                stage.world.on_idle = lambda: None
            await cluster.kill(ONE)
            await asyncio.sleep(1.0)
            await cluster.start_node(ONE)
            await cluster.recover(10.0)
            return stage.world.trace.digest()

        options = {} if snapshot_ms is None else {"snapshot_ms": snapshot_ms}
        found: str = Lab(tmp_path / name).on_stage(work, options=options)
        return found

    assert digest("a", 0) == digest("b", 20) == digest("c", None)
    records = [violation.read(tmp_path / name / violation.FILE) for name in "abc"]
    assert all(record.violations == () for record in records)
    closely, now_and_then, hardly = (
        record.end.snapshots for record in records if record.end is not None
    )
    assert closely > 2 * now_and_then > 4 * hardly


def test_white_box_checks_see_every_life(lab: Lab) -> None:
    """White-box checks count each start of a broker and each damage to a disk.

    They do not see a broker whose data was falsified.
    """

    async def work(cluster: Simulated, stage: SimulationContext) -> None:
        def look() -> ClusterState:
            return stage.watcher.snapshots.take(0, producers=False)

        state = look()
        assert [broker.life for broker in state.brokers.values()] == [1, 1, 1]
        assert all(KEY in broker.replicas for broker in state.brokers.values())
        assert state.zookeeper is not None
        assert sorted(state.zookeeper.partitions[KEY].isr) == [1, 2, 3]
        await cluster.kill(ONE)
        await cluster.power_off(TWO)
        assert list(look().brokers) == [3]
        assert look().damages == {1: 0, 2: 1, 3: 0}
        await cluster.start_node(ONE)
        assert [broker.life for broker in look().brokers.values()] == [2, 1]
        assert await cluster.flip_bit(THREE, KEY) is not None
        assert list(look().brokers) == [1]
        assert look().damages == {1: 0, 2: 1, 3: 1}

    lab.on_stage(work)


@pytest.mark.parametrize(("starts", "stuck"), [(True, set()), (False, {"stuck"})])
def test_the_cluster_is_given_time_to_become_whole(lab: Lab, starts: bool, stuck: set[str]) -> None:
    """A simulation continues until the cluster has recovered or the time to recover is over.

    A run that ends earlier proves nothing.
    """

    async def work(cluster: Simulated, stage: SimulationContext) -> None:
        await cluster.kill(ONE)
        await asyncio.sleep(5.0)  # until its session has expired
        if starts:
            await cluster.start_node(ONE)

    lab.on_stage(work, calm_since_ns=0)
    record = violation.read(lab.folder / violation.FILE)
    assert {each.invariant for each in record.violations} == stuck
    assert record.end is not None
    assert (record.end.until_ns >= RECOVERY_S * 1e9) is not starts


@pytest.mark.parametrize(
    ("flip", "seen"),
    [(Simulated.flip_bit, set()), (HostFaultsCluster.flip_bit, {"candidate-completeness"})],
    ids=["told", "untold"],
)
def test_violations_are_in_the_folder(
    lab: Lab, flip: Callable[[Simulated, str, str], Awaitable[Any]], seen: set[str]
) -> None:
    """Committed data that an ISR member loses is a violation unless the damage was reported.

    A bit is flipped in its log, and the white-box checks are informed of it or not.
    """

    async def work(cluster: Simulated) -> None:
        leader = await cluster.leader(KEY)
        follower = next(broker for broker in cluster.brokers if broker != leader)
        await cluster.kill(follower)
        assert await flip(cluster, follower, KEY) is not None
        await cluster.start_node(follower)

    lab(work)
    record = violation.read(lab.folder / violation.FILE)
    assert {each.invariant for each in record.violations} == seen
    assert record.end is not None


def test_brokers_have_several_data_directories(lab: Lab) -> None:
    """The option ``data_directories`` spreads the logs of each broker; a bit is flipped in any."""

    async def work(cluster: Simulated) -> Simulated:
        assert await cluster.flip_bit(THREE, KEY) is not None
        return cluster

    lab(work, options={"data_directories": 2}).settle_data(keep=True)
    data = lab.folder / "nodes" / THREE / "data"
    assert [path.name for path in sorted(data.iterdir())] == ["dir-1", "dir-2"]
    assert all((data / name / "meta.properties").exists() for name in ("dir-1", "dir-2"))
    assert [path.parent.name for path in data.glob(f"*/{KEY}")] == ["dir-1"]
