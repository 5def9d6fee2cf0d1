"""The operations of the workload: its generators with simulated clients."""

import itertools

import msgspec
import pytest

from model.connection import Connection
from model.op import Op
from tests.workloads.conftest import PLAN, sends, simulate, yes
from workloads.client.aio import AioClient
from workloads.client.confluent import ConfluentClient
from workloads.common.topics import first_partitions
from workloads.idempotent import WORKLOAD


def test_values_are_unique_and_increase_per_key() -> None:
    """Each number of a partition is sent once, in order, without a gap."""
    values: dict[str, list[int]] = {}
    for op in sends(simulate(WORKLOAD.main(PLAN))):
        for _, key, value in op.value:
            values.setdefault(key, []).append(value)
    assert len(values) > 6
    assert all(numbers == list(range(len(numbers))) for numbers in values.values())


def test_a_process_writes_one_key_all_its_life() -> None:
    """A process writes one partition for its whole life, which a failure then concerns."""
    keys: dict[int, set[str]] = {}
    for op in sends(simulate(WORKLOAD.main(PLAN))):
        keys.setdefault(op.process, set()).update(key for _, key, _ in op.value)
        assert 1 <= len(op.value) <= PLAN.options["batch_max"]
    assert all(len(written) == 1 for written in keys.values())
    assert len(keys) > 5


def test_rate_and_time_limit_are_kept() -> None:
    """Writes come at the plan's rate and end at its time limit."""
    history = simulate(WORKLOAD.main(PLAN))
    assert len(sends(history)) == pytest.approx(50 * 30, rel=0.15)
    assert max(op.time_ns for op in history if op.type == "invoke") <= 30e9


def test_topics_appear_during_the_run_and_are_written_and_read() -> None:
    """Some topics are created at the start and others later; all are written and read."""
    history = simulate(WORKLOAD.main(PLAN))
    created = [op for op in history if op.f == "create-topic" and op.type == "ok"]
    assert [op.value[0][1] for op in created] == [f"topic{number}" for number in range(6)]
    times = [op.time_ns / 1e9 for op in created]
    assert times[3:] == pytest.approx([7.5, 15.0, 22.5], abs=0.5)
    assert max(times[:3]) < 0.5
    written = {key for op in sends(history) for _, key, _ in op.value}
    assert len(written - set(first_partitions(PLAN))) >= 4
    readers = {op.process for op in history if op.f == "poll"}
    writers = {op.process for op in history if op.f == "send"}
    assert len({p % 5 for p in readers}) == 2
    assert not {p % 5 for p in readers} & {p % 5 for p in writers}
    last = {op.process: op.value for op in history if op.f == "assign" and op.type == "ok"}
    assert all(len(keys) == 12 for keys in last.values())
    assert first_partitions(PLAN) == tuple(f"topic{t}-{p}" for t in range(3) for p in range(2))


def test_a_process_whose_creation_failed_keeps_its_key() -> None:
    """A failed creation of a topic does not end its process."""
    creations = itertools.count()

    def answer(op: Op) -> Op:
        if op.f == "create-topic" and next(creations) % 4:
            return msgspec.structs.replace(op, type="fail")
        return yes(op)

    often = msgspec.structs.replace(PLAN, options=PLAN.options | {"late_topics": 20})
    keys: dict[int, set[str]] = {}
    for op in sends(simulate(WORKLOAD.main(often), answer)):
        keys.setdefault(op.process, set()).update(key for _, key, _ in op.value)
    assert all(len(written) == 1 for written in keys.values())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"concurrency": 1}, "--concurrency"),
        ({"brokers": 2}, "--brokers"),
        ({"producer": {"acks": "most"}}, "--set producer"),
        ({"broker": {"min.insync.replicas": "4"}}, "--set broker.min.insync.replicas=4: "),
        ({"options": {**PLAN.options, "topics": 0}}, "options: topics=0: must be"),
        ({"options": {**PLAN.options, "partitions": 0}}, "options: partitions=0: must be"),
        ({"options": {**PLAN.options, "batch_max": "x"}}, "options: batch_max=x: must be"),
        ({"options": {**PLAN.options, "process_life_s": -1.0}}, "options: process_life_s=-1.0: "),
        ({"options": {**PLAN.options, "deletes_hz": -1.0}}, "options: deletes_hz=-1.0: must be"),
        ({"options": {**PLAN.options, "replicas": [1, 2]}}, "options: replicas=[1, 2]: "),
        ({"options": {**PLAN.options, "replicas": [1, 2, 2]}}, "options: replicas=[1, 2, 2]: "),
        ({"options": {**PLAN.options, "replicas": [1, 2, 4]}}, "options: replicas=[1, 2, 4]: "),
        (
            {"options": {**PLAN.options, "client": "kafkacat"}},
            "options: client=kafkacat: must be one of librdkafka, aiokafka",
        ),
    ],
)
def test_impossible_plans_are_refused(changes: dict[str, object], told: str) -> None:
    """A plan that cannot be run is rejected in one line that names the option."""
    refusal = WORKLOAD.refuse(msgspec.structs.replace(PLAN, **changes))
    assert refusal is not None
    assert refusal.startswith(told)
    assert WORKLOAD.refuse(PLAN) is None


@pytest.mark.parametrize(
    ("name", "made"), [("librdkafka", ConfluentClient), ("aiokafka", AioClient)]
)
async def test_the_plan_names_the_client(name: str, made: type) -> None:
    """The client's own module decides which settings it rejects."""
    plan = msgspec.structs.replace(PLAN, options=PLAN.options | {"client": name})
    assert WORKLOAD.refuse(plan) is None
    assert isinstance(WORKLOAD.client(plan, Connection("127.0.0.1:9"), 3), made)
    grouped = msgspec.structs.replace(plan, consumer={**plan.consumer, "debug": "broker"})
    assert (WORKLOAD.refuse(grouped) is None) is (name == "librdkafka")
