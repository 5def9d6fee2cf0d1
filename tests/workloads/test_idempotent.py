"""The operations of the workload: its generators with simulated clients."""

import itertools
import random

import msgspec
import pytest

from model.generator import Context, Generator, Invocation, Wait
from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import sends, simulate, yes
from workloads.client.aio import AioClient
from workloads.client.confluent import ConfluentClient
from workloads.deletion import AHEAD_MAX
from workloads.idempotent import WORKLOAD, Topics, first_keys

PLAN = Plan(
    time_limit_s=30.0,
    rate_hz=50.0,
    concurrency=5,
    options=dict(WORKLOAD.options),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)


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
    assert len(written - set(first_keys(PLAN))) >= 4
    readers = {op.process for op in history if op.f == "poll"}
    writers = {op.process for op in history if op.f == "send"}
    assert len({p % 5 for p in readers}) == 2
    assert not {p % 5 for p in readers} & {p % 5 for p in writers}
    last = {op.process: op.value for op in history if op.f == "assign" and op.type == "ok"}
    assert all(len(keys) == 12 for keys in last.values())
    assert first_keys(PLAN) == tuple(f"topic{t}-{p}" for t in range(3) for p in range(2))


@pytest.mark.parametrize("kind", ["fail", "info"])
def test_a_creation_that_did_not_succeed_is_asked_again(kind: str) -> None:
    """A topic is created again until that has succeeded, and not written before."""
    refusals = iter([kind] * 4)

    def answer(op: Op) -> Op:
        if op.f == "create-topic" and (refusal := next(refusals, None)):
            return msgspec.structs.replace(op, type=refusal)
        return yes(op)

    history = simulate(WORKLOAD.main(PLAN), answer)
    created: set[str] = set()
    for op in history:
        if op.f == "create-topic" and op.type == "ok":
            created.add(op.value[0][1])
        if op.f == "send":
            assert op.value[0][1].rpartition("-")[0] in created
    assert len(created) == 6


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


def test_a_topic_is_asked_for_once_at_a_time() -> None:
    """No process creates a topic while another one does."""
    topics: Generator = Topics(((0.0, "t"),), 2)
    asked, later = topics.op(Context(1.0, (0, 1), 2, random.Random(1)))
    assert isinstance(asked, Invocation)
    op = Op(index=0, time_ns=0, process=0, type="invoke", f="create-topic", value=asked.value)
    assert isinstance(later.update(op).op(Context(1.0, (1,), 2, random.Random(1)))[0], Wait)


def test_a_process_after_doubt_begins_anew() -> None:
    """A reader that replaces a retired one assigns before it polls."""
    count = itertools.count()

    def answer(op: Op) -> Op:
        if op.f in ("poll", "send") and next(count) % 20 == 0:
            return msgspec.structs.replace(op, type="info")
        return yes(op)

    first: dict[int, str] = {}
    for op in simulate(WORKLOAD.main(PLAN), answer):
        if op.type == "invoke":
            first.setdefault(op.process, op.f)
    readers = [p for p in first if p % 5 >= 3]
    assert len(readers) > 10
    assert {first[p] for p in readers} == {"assign"}


def test_records_are_deleted_up_to_what_is_known() -> None:
    """Records of every partition are deleted up to the known end, or a little beyond."""
    plan = msgspec.structs.replace(PLAN, options=PLAN.options | {"deletes_hz": 20.0})
    offsets: dict[str, int] = {}

    def answer(op: Op) -> Op:
        if op.f != "send":
            return yes(op)
        told = []
        for _, key, value in op.value:
            offsets[key] = offsets.get(key, -1) + 1
            told.append(["send", key, [offsets[key], value]])
        return msgspec.structs.replace(op, type="ok", value=told)

    known: dict[str, int] = {}
    asked: dict[str, int] = {}
    for op in simulate(WORKLOAD.main(plan), answer):
        if op.f == "send" and op.type == "ok":
            known |= {key: offset + 1 for _, key, (offset, _) in op.value}
        if op.f == "delete-records" and op.type == "invoke":
            [[_, key, offset]] = op.value
            assert 0 < offset <= known[key] + AHEAD_MAX
            asked[key] = max(offset - known[key], asked.get(key, offset - known[key]))
    assert set(asked) == set(offsets)
    assert max(asked.values()) == AHEAD_MAX


def test_final_reads_end_when_all_keys_are_caught_up() -> None:
    """Final readers assign all partitions, poll, and check whether they have caught up.

    They check after a poll without records, and end with the last partition.
    """
    left = {"a-0": 3, "a-1": 1, "b-0": 2}
    batches = iter(range(4))

    def answer(op: Op) -> Op:
        if op.f == "poll" and next(batches, None) is not None:
            return msgspec.structs.replace(op, type="ok", value=[["poll", {"a-0": [[0, 0]]}]])
        if op.f == "catch-up":
            key = op.value[0][1]
            left[key] -= 1
            return msgspec.structs.replace(op, type="ok" if left[key] <= 0 else "fail")
        return yes(op)

    history = simulate(WORKLOAD.final(PLAN, tuple(left), 60.0), answer)
    assert {op.process for op in history} == {3, 4}
    for process in (3, 4):
        asked = [op for op in history if op.process == process and op.type == "invoke"]
        assert [op.f for op in asked[:2]] == ["assign", "poll"]
        for before, op in itertools.pairwise(asked):
            if op.f == "catch-up":
                assert before.f in ("poll", "catch-up")
    caught_up = {op.value[0][1] for op in history if op.f == "catch-up" and op.type == "ok"}
    assert caught_up == set(left)
    assert history[-1].time_ns < 1e9


def test_final_reads_end_with_their_time() -> None:
    """Readers that never catch up read until the time is over."""

    def answer(op: Op) -> Op:
        return msgspec.structs.replace(op, type="fail") if op.f == "catch-up" else yes(op)

    history = simulate(WORKLOAD.final(PLAN, ("a-0",), 2.0), answer)
    assert history[-1].time_ns == pytest.approx(2e9, abs=2e7)


def test_final_reads_survive_a_reader_that_dies() -> None:
    """A final reader that replaces a dead one assigns first, so that everything is read."""
    polls = itertools.count()

    def answer(op: Op) -> Op:
        if op.f == "poll" and next(polls) < 3:
            return msgspec.structs.replace(op, type="info")
        return yes(op)

    history = simulate(WORKLOAD.final(PLAN, ("a-0", "a-1"), 60.0), answer)
    first: dict[int, str] = {}
    for op in history:
        first.setdefault(op.process, op.f)
    assert len(first) > 2
    assert set(first.values()) == {"assign"}
    assert {op.value[0][1] for op in history if op.f == "catch-up"} == {"a-0", "a-1"}


def test_nothing_written_nothing_to_read() -> None:
    """A run without a single write has no final reads."""
    assert simulate(WORKLOAD.final(PLAN, (), 60.0)) == []


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
    assert isinstance(WORKLOAD.client(plan, "127.0.0.1:9", 3), made)
    grouped = msgspec.structs.replace(plan, consumer={**plan.consumer, "debug": "broker"})
    assert (WORKLOAD.refuse(grouped) is None) is (name == "librdkafka")


def test_without_acknowledgement_by_all_no_number_is_too_many() -> None:
    """With ``acks=1`` any ``min.insync.replicas`` is accepted."""
    loose = msgspec.structs.replace(
        PLAN,
        broker={"min.insync.replicas": "4"},
        producer=PLAN.producer | {"acks": "1", "enable.idempotence": "false"},
    )
    assert WORKLOAD.refuse(loose) is None


def test_an_operation_may_take_longer_than_a_delivery() -> None:
    """The time limit of an operation is longer than the delivery timeout.

    The client gives a record up first, so the history shows which one.
    """
    slow = msgspec.structs.replace(PLAN, producer={"delivery.timeout.ms": "30000"})
    assert WORKLOAD.op_timeout_s(slow) > 30.0
