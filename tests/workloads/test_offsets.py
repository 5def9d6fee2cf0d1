"""The operations of the workload, simulated."""

import itertools

import msgspec
import pytest

from model.connection import Connection
from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import simulate, yes
from workloads.client.aio_group import GroupAioClient
from workloads.client.confluent_group import GroupConfluentClient
from workloads.client.raw_group import RawGroupClient
from workloads.offsets import WORKLOAD

PLAN = Plan(
    workload=WORKLOAD.name,
    time_limit_s=30.0,
    rate_hz=50.0,
    concurrency=5,
    options=dict(WORKLOAD.options),
    broker=dict(WORKLOAD.broker),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)


def test_what_is_committed_says_by_whom() -> None:
    """Every offset of a group and partition is committed once, in order.

    Most offsets have metadata of their own.
    """
    history = simulate(WORKLOAD.main(PLAN))
    commits = [op for op in history if op.f == "commit" and op.type == "invoke"]
    registers: dict[tuple[str, str], list[int]] = {}
    beside: dict[int | None, list[tuple[str, str, int]]] = {}
    for op in commits:
        [[_, group, offsets, mode]] = op.value
        assert mode == "sync"
        assert 1 <= len(offsets) <= PLAN.options["committed_max"]
        for key, place in offsets.items():
            offset, metadata = place if isinstance(place, list) else (place, None)
            registers.setdefault((group, key), []).append(offset)
            beside.setdefault(metadata, []).append((group, key, offset))
    assert len(registers) == 3 * 6
    assert all(seen == list(range(1, len(seen) + 1)) for seen in registers.values())
    assert len(commits) == pytest.approx(50 * 30, rel=0.15)
    without = beside.pop(None)
    assert len(without) == pytest.approx(sum(map(len, registers.values())) / 8, rel=0.25)
    assert all(len(places) == 1 for places in beside.values())


def test_some_are_deleted() -> None:
    """With ``delete_p`` offsets are deleted, and later commits continue with larger ones."""
    plan = msgspec.structs.replace(PLAN, options=PLAN.options | {"delete_p": 0.2})
    commits = [op for op in simulate(WORKLOAD.main(plan)) if op.f == "commit"]
    deletions = [op for op in commits if op.type == "invoke" and op.value[0][3] == "delete"]
    others = [op for op in commits if op.type == "invoke" and op.value[0][3] == "sync"]
    assert len(deletions) == pytest.approx(0.2 * 50 * 30, rel=0.3)
    assert {offset for op in deletions for offset in op.value[0][2].values()} == {None}
    registers: dict[tuple[str, str], list[int]] = {}
    for op in others:
        for key, place in op.value[0][2].items():
            offset = place[0] if isinstance(place, list) else place
            registers.setdefault((op.value[0][1], key), []).append(offset)
    assert all(seen == list(range(1, len(seen) + 1)) for seen in registers.values())


def test_some_are_made_in_transactions() -> None:
    """Processes with transactions have their thread's transactional id.

    A plain commit in the middle of a transaction has some of its partitions, and larger offsets.
    """
    plan = msgspec.structs.replace(PLAN, options=PLAN.options | {"txn_p": 0.5})
    asked = [op for op in simulate(WORKLOAD.main(plan)) if op.type == "invoke"]
    ids = {op.process: op.value[0][1] for op in asked if op.f == "init"}
    assert all(name == f"thread-{process % 5}" for process, name in ids.items())
    rows = [op.value for op in asked if op.f == "txn"]
    assert {op.process for op in asked if op.f == "txn"} <= ids.keys()
    assert len(rows) == pytest.approx(0.5 * 50 * 30, rel=0.3)
    shapes = {tuple(micro_op[0] for micro_op in row) for row in rows}
    assert shapes == {("commit",), ("commit", "commit-plainly")}
    registers: dict[tuple[str, str], list[int]] = {}
    for op in (op for op in asked if op.f in ("commit", "txn")):
        for _, group, places, *_ in op.value:
            assert places.keys() <= op.value[0][2].keys()
            for key, place in places.items():
                offset = place[0] if isinstance(place, list) else place
                registers.setdefault((group, key), []).append(offset)
    assert all(seen == list(range(1, len(seen) + 1)) for seen in registers.values())


def test_everything_is_asked_for_all_the_while() -> None:
    """Every thread commits, fetches offsets, sends, polls, requests watermarks and crashes."""
    history = simulate(WORKLOAD.main(PLAN))
    for f in ("commit", "committed", "send", "poll", "watermarks", "crash"):
        assert {op.process % 5 for op in history if op.f == f} == set(range(5)), f
    asked = [op.value[0] for op in history if op.f == "committed" and op.type == "invoke"]
    assert {group for _, group, _ in asked} == {"group0", "group1", "group2"}
    assert {key for _, _, keys in asked for key in keys} == {
        f"topic{topic}-{partition}" for topic in range(3) for partition in range(2)
    }
    created = {op.value[0][1]: op.index for op in history if op.f == "create-topic"}
    for op in history:
        if op.f == "watermarks":
            assert op.index > created[op.value[0][1].rpartition("-")[0]]


def test_at_the_end_each_group_says_all_that_it_has() -> None:
    """At the end each group's offsets are fetched until that succeeds, and every log is read."""
    tries = itertools.count()

    def answer(op: Op) -> Op:
        if op.f == "committed" and next(tries) < 4:
            return msgspec.structs.replace(op, type="info" if next(tries) % 3 else "fail")
        return yes(op)

    history = simulate(WORKLOAD.final(PLAN, ("topic0-0",), 60.0), answer)
    told = [op for op in history if op.f == "committed" and op.type == "ok"]
    assert sorted(op.value[0][1] for op in told) == ["group0", "group1", "group2"]
    assert all(len(op.value[0][2]) == 6 for op in told)
    assert any(op.f == "committed" and op.type == "fail" for op in history)
    assert any(op.f == "catch-up" and op.type == "ok" for op in history)


def test_at_the_end_nobody_is_asked_too_early() -> None:
    """With ``settle_s`` the final fetches wait until no former coordinator can answer."""
    plan = msgspec.structs.replace(PLAN, options=PLAN.options | {"settle_s": 16.0})
    history = simulate(WORKLOAD.final(plan, ("topic0-0",), 60.0))
    asked = [op for op in history if op.f == "committed" and op.type == "invoke"]
    assert min(op.time_ns for op in asked) >= 16e9
    assert min(op.time_ns for op in history if op.f == "catch-up") < 1e9
    assert sorted(op.value[0][1] for op in asked) == ["group0", "group1", "group2"]


@pytest.mark.parametrize(
    ("name", "made"), [("librdkafka", GroupConfluentClient), ("aiokafka", GroupAioClient)]
)
async def test_the_plan_names_the_client(name: str, made: type) -> None:
    """Both clients are supported and accept the settings of members."""
    plan = msgspec.structs.replace(PLAN, options=PLAN.options | {"client": name})
    assert WORKLOAD.refuse(plan) is None
    assert isinstance(WORKLOAD.client(plan, Connection("127.0.0.1:9"), 3), made)


async def test_who_commits_in_transactions_does_so_plainly_too() -> None:
    """With ``txn_p`` the client commits in both ways, and faults may target both coordinators."""
    plan = msgspec.structs.replace(
        PLAN, options=PLAN.options | {"client": "aiokafka", "txn_p": 0.1}
    )
    assert WORKLOAD.refuse(plan) is None
    assert isinstance(WORKLOAD.client(plan, Connection("127.0.0.1:9"), 3), RawGroupClient)
    both = {"group-coordinator:group0", "transaction-coordinator:thread-0"}
    assert both <= set(WORKLOAD.coordinators(plan))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"options": {**PLAN.options, "groups": 0}}, "options: groups=0: must be"),
        ({"options": {**PLAN.options, "sends_hz": 0}}, "options: sends_hz=0: must be"),
        ({"options": {**PLAN.options, "delete_p": 0.1}}, "options: delete_p: confluent-kafka"),
        ({"options": {**PLAN.options, "txn_p": 0.1}}, "options: txn_p: no client of librdkafka"),
        ({"options": {**PLAN.options, "settle_s": 60}}, "options: settle_s=60: must be less"),
        (
            {"broker": {**PLAN.broker, "offsets.topic.replication.factor": "4"}},
            "--set broker.offsets.topic.replication.factor=4: ",
        ),
        ({"producer": {"acks": "most"}}, "--set producer"),
    ],
)
def test_impossible_plans_are_refused(changes: dict[str, object], told: str) -> None:
    """A plan that cannot be run is rejected in one line that names the option."""
    refusal = WORKLOAD.refuse(msgspec.structs.replace(PLAN, **changes))
    assert refusal is not None
    assert refusal.startswith(told)
