"""The operations of the workload: its generator with simulated clients."""

import random
from typing import Any

import msgspec
import pytest

from model.connection import Connection
from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import simulate, yes
from workloads.client.aio_txn import TransactionalAioClient
from workloads.client.confluent_transform import SubscribedConfluentClient
from workloads.client.confluent_txn import TransactionalConfluentClient
from workloads.client.raw_txn import RawClient
from workloads.common.transactional import client
from workloads.transactions import WORKLOAD, op_timeout_s, refuse, vary

PLAN = Plan(
    workload="transactions",
    time_limit_s=60.0,
    rate_hz=40.0,
    concurrency=5,
    broker=dict(WORKLOAD.broker),
    options=dict(WORKLOAD.options),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)


def asked(history: list[Op], f: str) -> list[Op]:
    return [op for op in history if op.f == f and op.type == "invoke"]


def plan(**options: Any) -> Plan:
    return msgspec.structs.replace(PLAN, options={**PLAN.options, **options})


def test_transactions_are_rows_of_sends_and_polls() -> None:
    """A transaction has one to four sends and polls, at least one of them a send.

    Each number of a partition is sent once, in order; some transactions are aborted, some pause.
    """
    rows = [op.value for op in asked(simulate(WORKLOAD.main(PLAN)), "txn")]
    values: dict[str, list[int]] = {}
    kinds = [[micro_op[0] for micro_op in row] for row in rows]
    for row in rows:
        for micro_op in row:
            if micro_op[0] == "send":
                values.setdefault(micro_op[1], []).append(micro_op[2])
    assert len(values) == 8
    assert all(numbers == list(range(len(numbers))) for numbers in values.values())
    assert all("send" in row for row in kinds)
    lengths = {len([kind for kind in row if kind in ("send", "poll")]) for row in kinds}
    assert lengths == {1, 2, 3, 4}
    aborted = [row for row in kinds if "abort" in row]
    assert len(aborted) / len(rows) == pytest.approx(0.1, rel=0.3)
    assert all(row[-1] == "abort" for row in aborted)
    assert len([row for row in kinds if "delay" in row]) / len(rows) == pytest.approx(0.1, rel=0.3)


def test_ends_are_asked_for_all_the_while() -> None:
    """With ``watches_hz`` watermarks of every partition are requested, otherwise none."""
    told = asked(simulate(WORKLOAD.main(plan(watches_hz=4.0))), "watermarks")
    assert len(told) == pytest.approx(4 * 60, rel=0.2)
    assert len({op.value[0][1] for op in told}) == 8
    assert not asked(simulate(WORKLOAD.main(PLAN)), "watermarks")


def test_a_plan_may_write_rows_down() -> None:
    """Transactions that a plan lists are used one after the other, by any process."""
    written = plan(rows=[[["send", 0], ["poll"]], [["send", 9], ["delay", 20], ["abort"]]])
    first, second, third = [op.value for op in asked(simulate(WORKLOAD.main(written)), "txn")][:3]
    assert [micro_op[0] for micro_op in first] == ["send", "poll"]
    assert second == [["send", second[0][1], 0], ["delay", None, 20], ["abort"]]
    assert third[0] == ["send", first[0][1], 1]


def test_a_process_begins_with_its_id_and_its_keys() -> None:
    """A process begins with one ``init`` and an ``assign``."""
    history = simulate(WORKLOAD.main(PLAN))
    for process in {op.process for op in asked(history, "txn")}:
        mine = [op.f for op in history if op.process == process and op.type == "invoke"]
        work = [f for f in mine if f not in ("create-topic", "crash")]
        assert work[:2] == ["init", "assign"]
        assert work.count("init") == 1


def test_most_processes_take_over_an_id() -> None:
    """Most processes take over their thread's transactional id; the others have new ones."""
    inits = asked(simulate(WORKLOAD.main(plan(process_life_s=2.0))), "init")
    names = {op.process: op.value[0][1] for op in inits}
    assert len(names) > 60
    taken = {p: name for p, name in names.items() if name == f"thread-{p % 5}"}
    own = {p: name for p, name in names.items() if name == f"process-{p}"}
    assert taken.keys() | own.keys() == names.keys()
    assert len(own) / len(names) == pytest.approx(0.25, abs=0.12)


@pytest.mark.parametrize("kind", ["fail", "info"])
def test_nobody_works_without_an_id(kind: str) -> None:
    """A failed ``init`` is repeated; after one in doubt the next process requests it."""

    def answer(op: Op) -> Op:
        return msgspec.structs.replace(op, type=kind) if op.f == "init" else yes(op)

    history = simulate(WORKLOAD.main(PLAN), answer)
    assert asked(history, "txn") == []
    assert len(asked(history, "init")) > 100


def test_members_of_a_group_commit_their_positions() -> None:
    """Every transaction with a poll commits its positions; members subscribe to all topics."""
    history = simulate(WORKLOAD.main(plan(subscribe=True)))
    assert asked(history, "assign") == asked(history, "poll") == []
    for op in asked(history, "txn"):
        kinds = [micro_op[0] for micro_op in op.value if micro_op != ["abort"]]
        assert ("poll" in kinds) == ("commit" in kinds)
        work = [kind for kind in kinds if kind != "delay"]
        assert "commit" not in work[:-1]
    joined = [op.value[0] for op in asked(history, "subscribe")]
    assert {group for _, group, _, _ in joined} == {"transactions"}
    assert {len(topics) for _, _, topics, _ in joined} == {2, 3, 4}


def test_keys_that_appear_are_assigned() -> None:
    """Every process assigns new partitions; later assignments may have only some partitions."""
    history = simulate(WORKLOAD.main(plan(assign_p=0.0)))
    last = {op.process: op.value for op in history if op.f == "assign" and op.type == "ok"}
    assert {len(keys) for process, keys in last.items() if process >= 5} >= {8}
    some = simulate(WORKLOAD.main(plan(assign_p=0.5)))
    assert {len(op.value) for op in asked(some, "assign")} == set(range(1, 9))


def test_some_runs_forget_producers_while_transactions_are_open() -> None:
    """Searches draw an expiration of producers that is shorter than transactions may last, or
    none."""
    for seed in range(20):
        expiration_ms = vary(random.Random(seed))["broker"].get("producer.id.expiration.ms", "0")
        assert int(expiration_ms) <= 1000
    drawn = [vary(random.Random(seed))["broker"] for seed in range(20)]
    assert {} in drawn
    assert {"producer.id.expiration.ms": "500"} in drawn


def test_a_search_varies_who_gives_up() -> None:
    """A search draws the raw client for some seeds, also with sequence numbers near the wrap."""
    drawn = [vary(random.Random(seed))["options"] for seed in range(40)]
    raw = [options for options in drawn if options["client"] == "raw"]
    assert 3 <= len(raw) <= 20
    assert {bool(options["first_sequence"]) for options in raw} == {False, True}
    assert all(refuse(plan(**options)) is None for options in drawn)


def test_rate_and_time_limit_are_kept() -> None:
    """Operations come at the plan's rate and end at its time limit."""
    history = simulate(WORKLOAD.main(PLAN))
    paced = [op for f in ("init", "assign", "txn", "poll") for op in asked(history, f)]
    assert len(paced) == pytest.approx(40 * 60, rel=0.15)
    assert max(op.time_ns for op in history) <= 60.1e9


def test_the_end_is_read_by_everybody() -> None:
    """Every thread reads to the end; if one partition hangs, its watermarks are requested."""

    def answer(op: Op) -> Op:
        if op.f == "catch-up" and op.value[0][1] == "b-0":
            return msgspec.structs.replace(op, type="fail")
        return yes(op)

    keys = ("a-0", "b-0")
    history = simulate(WORKLOAD.final(PLAN, keys, 20.0), answer)
    assert {op.process for op in asked(history, "poll")} == set(range(5))
    assert asked(history, "watermarks")[-1].value == [["watermarks", "b-0"]]
    assert history[-1].time_ns == pytest.approx(20e9, rel=0.01)
    done = simulate(WORKLOAD.final(PLAN, keys, 20.0))
    assert done[-1].time_ns < 2e9


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aiokafka", TransactionalAioClient),
        ("librdkafka", TransactionalConfluentClient),
        ("raw", RawClient),
    ],
)
async def test_the_client_is_the_one_that_the_plan_names(name: str, kind: type) -> None:
    """All clients are supported."""
    made = client(plan(client=name, doubt_ends=False), Connection("127.0.0.1:9"), 3)
    assert isinstance(made, kind)
    await made.close()
    member = client(plan(client="librdkafka", subscribe=True), Connection("127.0.0.1:9"), 3)
    assert isinstance(member, SubscribedConfluentClient)
    await member.close()


@pytest.mark.parametrize("name", ["aiokafka", "librdkafka", "raw"])
def test_the_defaults_are_taken(name: str) -> None:
    """All clients accept the default settings."""
    assert refuse(plan(client=name)) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"options": {"abort_p": 1.5}}, "abort_p=1.5"),
        ({"options": {"abort_p": -0.1}}, "abort_p=-0.1"),
        ({"options": {"txn_length_max": 0}}, "txn_length_max=0"),
        ({"options": {"client": "java"}}, "client=java"),
        ({"options": {"subscribe": "yes"}}, "subscribe=yes"),
        ({"options": {"doubt_ends": 1}}, "doubt_ends=1"),
        ({"options": {"first_sequence": 7}}, "first_sequence=7"),
        ({"options": {"client": "raw", "first_sequence": 2**31}}, "first_sequence=2147483648"),
        ({"options": {"client": "raw", "subscribe": True}}, "subscribe=true: raw"),
        ({"options": {"rows": "send 0"}}, "rows: send 0"),
        ({"options": {"rows": [[]]}}, "rows: []"),
        ({"options": {"rows": [[["send"]]]}}, "rows: [['send']]"),
        ({"options": {"rows": [[["abort"], ["poll"]]]}}, "abort only at the end"),
        ({"options": {"subscribe": True, "client": "aiokafka"}}, "subscribe=true: aiokafka"),
        ({"consumer": {"session.timeout.ms": "400"}}, "session.timeout.ms=400"),
        ({"producer": {"acks": "1"}}, "producer.acks=1"),
        ({"producer": {"enable.idempotence": "false"}}, "enable.idempotence"),
        ({"producer": {"transactional.id": "mine"}}, "transactional.id"),
        ({"producer": {"transaction.timeout.ms": "900000000"}}, "transaction.timeout.ms"),
        ({"broker": {"transaction.max.timeout.ms": "500"}}, "transaction.max.timeout.ms"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], why: str) -> None:
    """A plan that cannot be run is rejected with the name of its setting."""
    fields = {part: {**getattr(PLAN, part), **given} for part, given in changes.items()}
    assert why in (refuse(msgspec.structs.replace(PLAN, **fields)) or "")


def test_an_operation_ends_before_it_is_given_up() -> None:
    """The time limit of an operation is longer than the time limits of its steps together."""
    longest = 4 * 1.0 + 1.5 + 3 * 0.81
    assert op_timeout_s(PLAN) > longest + 10
    row = [["send", 0]] * 6 + [["delay", 3000]] * 2
    assert op_timeout_s(plan(rows=[[["poll"]], row], doubt_ends=False)) > 6 + 6 + 3 * 4.5 + 10
