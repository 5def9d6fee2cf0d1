"""The operations of the workload: its generator with simulated clients."""

import random
from typing import Any

import msgspec
import pytest

from model import record_keys
from model.connection import Connection
from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import simulate, yes
from workloads.compacted import WORKLOAD, client, op_timeout_s, refuse, vary

PLAN = Plan(
    workload="compacted",
    time_limit_s=60.0,
    rate_hz=20.0,
    concurrency=6,
    broker=dict(WORKLOAD.broker),
    options=dict(WORKLOAD.options),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)


def asked(history: list[Op], f: str) -> list[Op]:
    return [op for op in history if op.f == f and op.type == "invoke"]


def with_options(**changed: Any) -> Plan:
    return msgspec.structs.replace(PLAN, options={**PLAN.options, **changed})


def test_every_key_is_written_and_deleted() -> None:
    """Every record key is written and deleted, alone and in transactions, in order."""
    history = simulate(WORKLOAD.main(PLAN), threads=6)
    values: dict[str, list[int]] = {}
    for op in sorted(asked(history, "send") + asked(history, "txn"), key=lambda op: op.index):
        for micro_op in op.value:
            if micro_op[0] == "send":
                values.setdefault(micro_op[1], []).append(micro_op[2])
    assert sorted(values) == ["topic0-0", "topic0-1", "topic1-0", "topic1-1"]
    for written in values.values():
        assert written == sorted(set(written))
        assert {record_keys.key_of(value) for value in written} == set(range(8))
        share = sum(map(record_keys.deletes, written)) / len(written)
        assert share == pytest.approx(0.2, abs=0.1)
    rows = [[micro_op[0] for micro_op in op.value] for op in asked(history, "txn")]
    aborted = sum(row[-1] == "abort" for row in rows) / len(rows)
    assert aborted == pytest.approx(0.3, abs=0.1)
    assert any("delay" in row for row in rows)


def test_topics_are_asked_for_as_compacted() -> None:
    """The history and the broker's settings show that topics are compacted."""
    history = simulate(WORKLOAD.main(PLAN), threads=6)
    assert [op.value for op in asked(history, "create-topic")] == [
        [["create-compacted", "topic0", 2]],
        [["create-compacted", "topic1", 2]],
    ]
    made: Any = client(with_options(client="aiokafka"), Connection("localhost:1"), 0)
    assert made._topic_config == {
        "cleanup.policy": "compact",
        "segment.bytes": "4096",
        "segment.ms": "5000",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "86400000",
    }


def test_some_have_no_key() -> None:
    """A record without a key is sent alone, because a broker rejects the whole batch with it."""
    history = simulate(WORKLOAD.main(with_options(keyless_p=0.5, txn_p=0.0)), threads=6)
    rows = [[record_keys.key_of(send[2]) for send in op.value] for op in asked(history, "send")]
    keyless = [row for row in rows if record_keys.NO_KEY in row]
    assert all(row == [record_keys.NO_KEY] for row in keyless)
    assert len(keyless) / len(rows) == pytest.approx(0.5, abs=0.1)


def test_no_transaction_without_an_id() -> None:
    """A process requests a transactional id before its first transaction."""
    history = simulate(WORKLOAD.main(PLAN), threads=6)
    for process in {op.process for op in asked(history, "txn")}:
        mine = [op for op in history if op.process == process and op.f in ("init", "txn")]
        assert [(op.f, op.type) for op in mine[:2]] == [("init", "invoke"), ("init", "ok")]


class Reading:
    """The first poll of a process returns a record; each catch-up succeeds when repeated."""

    def __init__(self) -> None:
        self.polled: dict[int, int] = {}
        self.tried: dict[tuple[int, str], int] = {}

    def __call__(self, op: Op) -> Op:
        if op.f == "poll":
            count = self.polled[op.process] = self.polled.get(op.process, 0) + 1
            records = {"topic0-0": [[0, 1000]]} if count == 1 else {}
            return msgspec.structs.replace(op, type="ok", value=[["poll", records]])
        if op.f == "catch-up":
            place = op.process, op.value[0][1]
            self.tried[place] = self.tried.get(place, 0) + 1
            if self.tried[place] == 1:
                return msgspec.structs.replace(op, type="fail")
        return yes(op)


def test_readers_begin_anew_once_they_have_read_everything() -> None:
    """A reader ends after it has read every assigned partition to its end.

    It checks whether it has caught up after a poll without records.
    """
    reading = Reading()
    history = simulate(WORKLOAD.main(PLAN), reading, threads=6)
    ended = [op for op in asked(history, "crash") if op.process in reading.polled]
    assert len(ended) > 20
    for op in ended:
        mine = [other for other in history if other.process == op.process]
        (assigned,) = [other.value for other in mine if (other.f, other.type) == ("assign", "ok")]
        reached = [o.value[0][1] for o in mine if (o.f, o.type) == ("catch-up", "ok")]
        assert sorted(reached) == sorted(assigned)
        order = [other.f for other in mine if other.type == "invoke"]
        assert order[:4] == ["assign", "poll", "poll", "catch-up"]
        failed = order.index("catch-up")
        assert order[failed + 1] == "poll"


def test_topics_lose_their_policy_and_get_it_again() -> None:
    """``policies_s`` changes the policies of all existing topics at these times."""
    history = simulate(WORKLOAD.main(with_options(policies_s=[10.0, 40.0])), threads=6)
    told = [(round(op.time_ns / 1e9), *op.value[0]) for op in asked(history, "alter-topic")]
    assert sorted(told) == [
        (10, "uncompacted", "topic0"),
        (40, "compacted", "topic0"),
        (40, "compacted", "topic1"),
    ]


def test_at_the_end_everything_is_read() -> None:
    """The final reads reach the end of every partition."""
    history = simulate(WORKLOAD.final(PLAN, ("topic0-0", "topic0-1"), 30.0), threads=6)
    reached = {op.value[0][1] for op in history if (op.f, op.type) == ("catch-up", "ok")}
    assert reached == {"topic0-0", "topic0-1"}


@pytest.mark.parametrize("name", ["aiokafka", "librdkafka"])
def test_the_defaults_are_taken(name: str) -> None:
    """Both clients accept the default settings."""
    assert refuse(with_options(client=name)) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"options": {**PLAN.options, "delete_p": 2}}, "delete_p=2"),
        ({"options": {**PLAN.options, "abort_p": 2}}, "abort_p=2"),
        ({"options": {**PLAN.options, "dirty_ratio": "x"}}, "dirty_ratio=x"),
        ({"options": {**PLAN.options, "keys": 100}}, "keys=100"),
        ({"options": {**PLAN.options, "policies_s": ["x"]}}, "policies_s=['x']"),
        (
            {"options": {**PLAN.options, "policies_s": [1], "keyless_p": 0.1}},
            "policies_s: must be empty with keyless_p",
        ),
        ({"concurrency": 1}, "--concurrency"),
        ({"producer": {**PLAN.producer, "acks": "0"}}, "producer.acks=0"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], why: str) -> None:
    """A plan that cannot be run is rejected with the name of its setting."""
    assert why in (refuse(msgspec.structs.replace(PLAN, **changes)) or "")


def test_markers_stay_where_there_are_transactions() -> None:
    """Tombstones are kept for a short time in some runs, but only without transactions."""
    drawn = [vary(random.Random(seed))["options"] for seed in range(80)]
    kept = {each["delete_retention_ms"] for each in drawn if each["txn_p"]}
    assert kept == {86_400_000}
    assert {each["delete_retention_ms"] for each in drawn} == {86_400_000, 2000}


def test_an_operation_ends_before_it_is_given_up() -> None:
    """The time limit of an operation includes the longest pause of a transaction."""
    assert op_timeout_s(with_options(delay_max_ms=7000)) == pytest.approx(
        op_timeout_s(with_options(delay_max_ms=1000)) + 6.0
    )
