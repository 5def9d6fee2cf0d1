"""All phases of a run in their order, on virtual time, against an in-memory log without faults."""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.engine.progress import Tally
from harness.engine.recorder import Recorder
from harness.engine.test_run import Ending, run_test
from model import history
from model.capabilities.cluster import Cluster
from model.layout import Layout
from model.op import Op
from model.plan import Plan, ScheduledFault
from workloads.idempotent import WORKLOAD

PLAN = Plan(
    time_limit_s=20.0,
    rate_hz=40.0,
    concurrency=5,
    options=dict(WORKLOAD.options),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
    schedule=(ScheduledFault(id=1, at_s=5.0, duration_s=6.0, fault="freeze", targets="kafka"),),
)


class FakeCluster:
    """A cluster that records each request to recover and has no faults."""

    nodes = brokers = ("broker-1",)
    layout = Layout(brokers)

    def __init__(self, recovers: bool = True) -> None:
        self.recovers = recovers
        self.log: list[str] = []

    def bootstrap(self, client: str | None = None) -> str:
        return "memory"

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def recover(self, timeout_s: float) -> bool:
        self.log.append("recover")
        return self.recovers


class Freezer:
    """A nemesis that freezes the processes of the first two threads while its fault is applied."""

    def __init__(self, kafka: Any, cluster: FakeCluster, lag_s: float) -> None:
        self.kafka = kafka
        self.cluster = cluster
        self.lag_s = lag_s

    async def invoke(self, op: Op, acted: Callable[[], None]) -> Op:
        await asyncio.sleep(self.lag_s)
        self.cluster.log.append(op.value["phase"])
        if op.value["phase"] == "apply":
            self.kafka.hanging = {*range(0, 500, 5), *range(1, 500, 5)}
        else:
            self.kafka.hanging = set()
        value = op.value | {"effect": {"proved": True, "how": "frozen"}}
        return msgspec.structs.replace(op, type="info", value=value)

    async def is_reached(self, once: Mapping[str, Any]) -> bool:
        return True

    async def heal_all(self) -> None:
        self.cluster.log.append("heal all")


def run(
    virtually: Any,
    kafka: Any,
    tmp_path: Path,
    cluster: FakeCluster,
    plan: Plan = PLAN,
    lag_s: float = 0.0,
) -> tuple[Ending, list[Op], Tally]:
    in_memory = dataclasses.replace(
        WORKLOAD, client=lambda plan, bootstrap, process: kafka.client(process)
    )
    tally = Tally()

    async def main() -> Ending:
        clock = asyncio.get_running_loop().time
        path = tmp_path / "history.jsonl"
        recorder = Recorder(path, lambda: int(clock() * 1e9), [tally])
        try:
            return await run_test(
                plan,
                in_memory,
                cluster,
                Freezer(kafka, cluster, lag_s),
                recorder,
                tally,
                tmp_path / "schedule.jsonl",
            )
        finally:
            recorder.close()

    ending = virtually(main())
    return ending, list(history.read(tmp_path / "history.jsonl")), tally


def test_main_phase_then_healing_then_final_reads(
    virtually: Any, kafka: Any, tmp_path: Path
) -> None:
    """The main phase under faults is followed by healing, recovery and the final reads.

    New processes read every partition to its end.
    """
    cluster = FakeCluster()
    assert isinstance(cluster, Cluster)
    ending, ops, tally = run(virtually, kafka, tmp_path, cluster)
    assert ending.recovered
    assert cluster.log == ["apply", "heal", "heal all", "recover"]
    caught_up = {op.value[0][1] for op in ops if op.f == "catch-up" and op.type == "ok"}
    assert caught_up == {key for key, log in kafka.logs.items() if log} == set(tally.keys)
    first = next(op.index for op in ops if op.f == "catch-up")
    last_send = max(op.index for op in ops if op.f == "send")
    assert last_send < first
    final = {op.process for op in ops if op.index > last_send and op.type == "invoke"}
    assert not final & {op.process for op in ops if op.index < last_send and op.f == "poll"}
    acked = {
        (key, done[1])
        for op in ops
        if op.f == "send" and op.type == "ok"
        for _, key, done in op.value
    }
    read = {
        (key, value)
        for op in ops
        if op.f == "poll" and op.type == "ok" and op.process in final
        for key, pairs in op.value[0][1].items()
        for _, value in pairs
    }
    assert len(acked) > 1000
    assert acked <= read


@pytest.mark.parametrize(
    ("lag_s", "applied", "until_s"),
    [
        (0.1, 2, 20.0),
        (5.0, 2, 33.0),  # applied at 10 s and 26 s, healed at 21 s and 33 s: in their order
        (20.0, 2, 80.0),  # the second is healed at once
        (45.0, 1, 80.0),
    ],
)
def test_clients_go_on_while_faults_are_late(
    virtually: Any, kafka: Any, tmp_path: Path, lag_s: float, applied: int, until_s: float
) -> None:
    """On a slow machine clients continue until late faults were applied, up to a limit."""
    second = ScheduledFault(id=2, at_s=16.0, duration_s=2.0, fault="freeze", targets="kafka")
    assert PLAN.schedule is not None
    plan = msgspec.structs.replace(PLAN, schedule=(*PLAN.schedule, second))
    cluster = FakeCluster()
    _, ops, _ = run(virtually, kafka, tmp_path, cluster, plan, lag_s)
    assert cluster.log.count("apply") == applied
    last_s = max(op.time_ns for op in ops if op.f == "send" and op.type == "invoke") / 1e9
    assert last_s == pytest.approx(until_s, abs=1.0)


def test_frozen_clients_cost_their_processes_only(
    virtually: Any, kafka: Any, tmp_path: Path
) -> None:
    """Operations that a fault delays for too long end in info; new processes replace theirs."""
    _, ops, tally = run(virtually, kafka, tmp_path, FakeCluster())
    timed_out = [op for op in ops if op.type == "info" and op.error == "timeout"]
    assert {op.process % 5 for op in timed_out} == {0, 1}
    assert tally.faults == 1
    assert tally.active == {}


def test_a_cluster_that_does_not_recover_is_read_all_the_same(
    virtually: Any, kafka: Any, tmp_path: Path
) -> None:
    """A cluster that does not recover is read nevertheless, and the ending says so."""
    ending, ops, _ = run(virtually, kafka, tmp_path, FakeCluster(recovers=False))
    assert not ending.recovered
    assert any(op.f == "catch-up" for op in ops)


@pytest.mark.parametrize("recovers", [True, False])
def test_recovery_stands_in_the_history(
    virtually: Any, kafka: Any, tmp_path: Path, recovers: bool
) -> None:
    """The recovery and its result are in the history before the first final read.

    A verdict needs them to judge how much that read proves.
    """
    _, ops, _ = run(virtually, kafka, tmp_path, FakeCluster(recovers=recovers))
    asked, told = (op for op in ops if op.f == "recover")
    assert (asked.type, told.type) == ("invoke", "info")
    assert told.value == {"recovered": recovers}
    assert told.index < next(op.index for op in ops if op.f == "catch-up")


class ProbedCluster(FakeCluster):
    """A cluster of which one node answers nothing."""

    async def unresponsive(self, within_s: float) -> tuple[str, ...]:
        assert self.log[-1] == "recover"
        await asyncio.sleep(within_s)
        return ("broker-1",)


def test_silent_nodes_stand_in_the_history(virtually: Any, kafka: Any, tmp_path: Path) -> None:
    """Nodes are probed when the cluster has recovered, for as long as a checker counts on."""
    _, ops, tally = run(virtually, kafka, tmp_path, ProbedCluster())
    (recovered,) = (op for op in ops if op.f == "recover" and op.type == "info")
    (found,) = (op for op in ops if op.f == "unresponsive")
    assert recovered.value == {"recovered": True}
    assert found.value == {"node": "broker-1", "for_s": 30.0}
    assert found.time_ns - recovered.time_ns >= 30 * 10**9
    assert found.index < next(op.index for op in ops if op.f == "catch-up")
    assert tally.faults == 1


@dataclasses.dataclass(frozen=True)
class End:
    """An unexpected end of a process."""

    node: str
    status: int = 1
    last_line: str = "storage failed"


class Mortal(FakeCluster):
    """A broker ends in the main phase, and a helper process (toxiproxy) in the final one."""

    def __init__(self) -> None:
        super().__init__()
        self.unexpected_exits: list[End] = []

    async def start_dying(self) -> None:
        await asyncio.sleep(3.0)
        self.unexpected_exits.append(End("broker-1"))

    async def recover(self, timeout_s: float) -> bool:
        self.unexpected_exits.append(End("toxiproxy"))
        return True

    def bootstrap(self, client: str | None = None) -> str:
        if not self.unexpected_exits and not hasattr(self, "_dying"):
            self._dying = asyncio.create_task(self.start_dying())
        return "memory"


def test_what_ends_by_itself_stands_in_the_history(
    virtually: Any, kafka: Any, tmp_path: Path
) -> None:
    """Each unexpected end is recorded once, soon after it, with whether it was a broker's."""
    _, ops, tally = run(virtually, kafka, tmp_path, Mortal())
    ends = [op for op in ops if op.f == "crash" and op.process == -1]
    assert [(op.type, op.value["node"], op.value["serves"]) for op in ends] == [
        ("info", "broker-1", True),
        ("info", "toxiproxy", False),
    ]
    assert ends[0].value["last_line"] == "storage failed"
    assert 3.0 <= ends[0].time_ns / 1e9 <= 4.5
    assert tally.faults == 1


def test_a_failing_recovery_closes_the_clients(virtually: Any, kafka: Any, tmp_path: Path) -> None:
    """If the recovery raises, no client stays open, and the history is written."""

    class Broken(FakeCluster):
        async def recover(self, timeout_s: float) -> bool:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        run(virtually, kafka, tmp_path, Broken())
    assert all(client.closed for client in kafka.clients if client.opened)
    assert (tmp_path / "history.jsonl").stat().st_size > 0
