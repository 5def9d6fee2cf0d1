"""The operations of the workload: its generators with simulated clients."""

import random
from typing import Any

import msgspec
import pytest

from model.connection import Connection
from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import simulate, yes
from workloads.client.aio_transform import TransformingAioClient
from workloads.client.confluent_transform import TransformingConfluentClient
from workloads.exactly_once import WORKLOAD, client, op_timeout_s, refuse, topics, vary

PLAN = Plan(
    workload="exactly-once",
    time_limit_s=60.0,
    rate_hz=40.0,
    concurrency=5,
    broker=dict(WORKLOAD.broker),
    options=dict(WORKLOAD.options),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)
INPUTS = tuple(f"input-{number}" for number in range(3))


def asked(history: list[Op], f: str) -> list[Op]:
    return [op for op in history if op.f == f and op.type == "invoke"]


def plan(**options: Any) -> Plan:
    return msgspec.structs.replace(PLAN, options={**PLAN.options, **options})


def answer(op: Op) -> Op:
    """Answer like ``yes``, but end the process of a leave, as the interpreter does."""
    return msgspec.structs.replace(op, type="info") if op.f == "leave" else yes(op)


def test_inputs_are_unique_in_the_whole_topic() -> None:
    """Inputs are unique in the whole topic, and each send has one partition."""
    values = []
    for op in asked(simulate(WORKLOAD.main(PLAN), answer), "send"):
        assert len({key for _, key, _ in op.value}) == 1
        values += [value for _, _, value in op.value]
    assert values == list(range(len(values)))
    assert len(values) > 1000


def test_members_poll_send_on_and_commit_in_one() -> None:
    """Each transaction polls, transforms and commits; some abort, some pause; members leave."""
    history = simulate(WORKLOAD.main(PLAN), answer)
    rows = [op.value for op in asked(history, "txn")]
    whole = [["poll"], ["transform", "output", 3], ["commit", "eos", None]]
    plain = [row for row in rows if row == whole]
    assert len(plain) / len(rows) == pytest.approx(0.81, abs=0.05)
    kinds = {tuple(micro_op[0] for micro_op in row) for row in rows}
    assert kinds == {
        ("poll", "transform", *delay_and_commit, *end)
        for delay_and_commit in (("commit",), ("delay", "commit"), ("commit", "delay"))
        for end in ((), ("abort",))
    }
    left = len(asked(history, "leave"))
    assert left / (left + len(rows)) == pytest.approx(1 / 64, rel=0.5)


@pytest.mark.parametrize(
    ("name", "first"),
    [("librdkafka", ["init", "subscribe"]), ("aiokafka", ["subscribe"])],
)
def test_a_process_begins_as_its_client_needs_it(name: str, first: list[str]) -> None:
    """A process begins with ``init``, if needed, and ``subscribe``, after both topics exist."""
    history = simulate(WORKLOAD.main(plan(client=name)), answer)
    created = [op.index for op in history if op.f == "create-topic" and op.type == "ok"]
    for process in {op.process for op in asked(history, "txn")}:
        mine = [op for op in history if op.process == process and op.type == "invoke"]
        work = [op.f for op in mine if op.f != "crash"]
        assert work[: len(first)] == first
        assert set(work[len(first) :]) <= {"txn", "leave"}
        assert mine[0].index > max(created)


def test_faults_may_aim_at_coordinators() -> None:
    """Faults may target the coordinators of the group and of the inherited transactional ids."""
    group, *of_ids = WORKLOAD.coordinators(PLAN)
    assert group == "group-coordinator:eos"
    inits = asked(simulate(WORKLOAD.main(plan(new_id_p=0.0)), answer), "init")
    assert {f"transaction-coordinator:{op.value[0][1]}" for op in inits} == set(of_ids)
    _, *of_partitions = WORKLOAD.coordinators(plan(client="aiokafka"))
    assert of_partitions == [f"transaction-coordinator:eos-input-{n}" for n in range(3)]


def committed(*offsets: int) -> Any:
    """Answer for an input with 10 records per partition and, one after the other, these commits."""
    left = list(offsets)

    def answer(op: Op) -> Op:
        match op.f:
            case "watermarks":
                places = {"start": 0, "stable": 10, "high": 10}
                told = [["watermarks", op.value[0][1], places]]
                return msgspec.structs.replace(op, type="ok", value=told)
            case "committed":
                now = left.pop(0) if len(left) > 1 else left[0]
                told = [["committed", "eos", dict.fromkeys(INPUTS, now)]]
                return msgspec.structs.replace(op, type="ok", value=told)
            case _:
                return yes(op)

    return answer


def test_at_the_end_the_input_is_worked_off_before_anything_is_read() -> None:
    """Members continue until the input is committed; then other processes read both topics."""
    history = simulate(WORKLOAD.final(PLAN, INPUTS, 60.0), committed(None, 4, 9, 10))  # type: ignore[arg-type]
    assert len(asked(history, "committed")) == 4
    done = max(op.index for op in history if op.f == "committed")
    assert {op.f for op in history if op.index > done and op.type == "invoke"} <= {
        "assign", "poll", "catch-up", "watermarks",
    }  # fmt: skip
    assert all(op.index > done for op in history if op.f == "assign")
    rows = {tuple(micro_op[0] for micro_op in op.value) for op in asked(history, "txn")}
    assert rows == {("poll", "transform", "commit")}
    members = {op.process % 5 for op in asked(history, "txn")}
    readers = {op.process % 5 for op in asked(history, "assign")}
    assert not members & readers
    assert {op.value[0][1] for op in asked(history, "catch-up")} == set(topics(PLAN))
    assert history[-1].time_ns < 10e9


def test_an_input_that_nobody_works_off_ends_with_the_time() -> None:
    """If the input is never committed completely, the final phase ends without reads."""
    history = simulate(WORKLOAD.final(PLAN, INPUTS, 20.0), committed(9))
    assert history[-1].time_ns == pytest.approx(20e9, rel=0.01)
    assert asked(history, "catch-up") == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [("aiokafka", TransformingAioClient), ("librdkafka", TransformingConfluentClient)],
)
async def test_the_client_is_the_one_that_the_plan_names(name: str, kind: type) -> None:
    """Both clients are supported and accept the default settings."""
    assert refuse(plan(client=name)) is None
    made = client(plan(client=name), Connection("127.0.0.1:9"), 3)
    assert isinstance(made, kind)
    await made.close()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"options": {"leave_p": -1}}, "leave_p=-1"),
        ({"options": {"leave_p": 2}}, "leave_p=2"),
        ({"options": {"batch_max": 0}}, "batch_max=0"),
        ({"consumer": {"isolation.level": "read_uncommitted"}}, "isolation.level"),
        ({"producer": {"acks": "1"}}, "producer.acks=1"),
        ({"consumer": {"session.timeout.ms": "400"}}, "session.timeout.ms=400"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], why: str) -> None:
    """A plan that cannot be run is rejected with the name of its setting."""
    fields = {part: {**getattr(PLAN, part), **given} for part, given in changes.items()}
    assert why in (refuse(msgspec.structs.replace(PLAN, **fields)) or "")
    assert "--concurrency" in (refuse(msgspec.structs.replace(PLAN, concurrency=1)) or "")


def test_an_operation_ends_before_it_is_given_up() -> None:
    """The time limit of an operation is longer than the time limits of its steps together."""
    taking_over = 3 * (10.0 + 5.0)
    assert op_timeout_s(PLAN) > taking_over + 1.0 + 1.5 + 4 * 0.81 + 10


def test_brokers_remember_the_producer_of_the_inputs() -> None:
    """It sends without transactions: what it sends again must be recognized (seed 60170)."""
    drawn = [vary(random.Random(seed)) for seed in range(50)]
    assert not any("producer.id.expiration.ms" in each.get("broker", {}) for each in drawn)
    assert len({each["options"]["leave_p"] for each in drawn}) > 1
