"""The operations of the workload, simulated, and what a search varies."""

import itertools
import random

import msgspec
import pytest

from checkers.expectations import Contract
from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import sends, simulate, yes
from workloads.send_poll import WORKLOAD, vary

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


def test_every_thread_sends_and_polls() -> None:
    """Every thread sends and polls; a send has records of several partitions, each number once."""
    history = simulate(WORKLOAD.main(PLAN))
    values: dict[str, list[int]] = {}
    for op in sends(history):
        for _, key, value in op.value:
            values.setdefault(key, []).append(value)
    assert len(values) > 6
    assert all(numbers == list(range(len(numbers))) for numbers in values.values())
    assert any(len({key for _, key, _ in op.value}) > 2 for op in sends(history))
    for f in ("send", "poll", "watermarks"):
        assert {op.process % 5 for op in history if op.f == f} == set(range(5))
    assert len(sends(history)) == pytest.approx(50 * 30, rel=0.15)


def test_whoever_polls_has_chosen_keys_and_now_and_then_others() -> None:
    """A process assigns existing partitions before its first poll, and later others."""
    history = simulate(WORKLOAD.main(PLAN))
    created: set[str] = set()
    chosen: dict[int, list[tuple[str, ...]]] = {}
    for op in history:
        if op.f == "create-topic" and op.type == "ok":
            created.add(op.value[0][1])
        if op.f == "assign" and op.type == "ok":
            assert {key.rpartition("-")[0] for key in op.value} <= created
            assert 1 <= len(set(op.value)) == len(op.value) <= PLAN.options["followed_max"]
            chosen.setdefault(op.process, []).append(tuple(op.value))
        if op.f == "poll":
            assert op.process in chosen
    assert max(len(set(keys)) for keys in chosen.values()) > 2


def test_a_refused_assignment_is_asked_again() -> None:
    """A process without a successful assignment does not poll."""
    refusals = itertools.count()

    def answer(op: Op) -> Op:
        if op.f == "assign" and next(refusals) < 20:
            return msgspec.structs.replace(op, type="fail")
        return yes(op)

    ready: set[int] = set()
    for op in simulate(WORKLOAD.main(PLAN), answer):
        if op.f == "assign" and op.type == "ok":
            ready.add(op.process)
        assert op.f != "poll" or op.process in ready


def test_every_thread_reads_to_the_end() -> None:
    """The final reads use ``assign``, and end when every partition was read to its end."""
    history = simulate(WORKLOAD.final(PLAN, ("a-0", "b-1"), 60.0))
    assert {op.value[0][1] for op in history if op.f == "catch-up"} == {"a-0", "b-1"}
    assert history[-1].time_ns < 1e9


def test_a_search_varies_the_contract() -> None:
    """A search draws all acks, with and without idempotence, subscriptions and deletions.

    Every plan that is drawn can be run.
    """
    contracts = set()
    deletes = set()
    for seed in range(60):
        parts = vary(random.Random(seed))
        plan = msgspec.structs.replace(
            PLAN,
            producer=PLAN.producer | parts["producer"],
            options=PLAN.options | {"client": "aiokafka"} | parts["options"],
        )
        assert WORKLOAD.refuse(plan) is None
        contract = Contract.of(plan)
        deletes.add(plan.options["deletes_hz"] > 0)
        contracts.add((contract.acks, contract.idempotent, contract.subscribes))
    acks = {("all", True), ("all", False), ("1", False), ("0", False)}
    assert contracts == {(*each, subscribes) for each in acks for subscribes in (True, False)}
    assert deletes == {True, False}


def test_members_subscribe_to_every_topic() -> None:
    """With ``subscribe`` members subscribe to every topic, and none assigns.

    Faults may target the group's coordinator.
    """
    plan = msgspec.structs.replace(PLAN, options=PLAN.options | {"subscribe": True})
    history = simulate(WORKLOAD.main(plan))
    members: dict[int, int] = {}
    for op in history:
        assert op.f != "assign"
        if op.f == "subscribe" and op.type == "ok":
            [[_, group, topics, how]] = op.value
            assert (group, how["commit"]) == ("send-poll", "auto")
            assert len(topics) > members.get(op.process, 0)
            members[op.process] = len(topics)
        if op.f == "poll":
            assert op.process in members
    assert max(members.values()) == 6
    assert WORKLOAD.coordinators(plan) == ("group-coordinator:send-poll",)
    assert WORKLOAD.coordinators(PLAN) == ()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"options": {**PLAN.options, "followed_max": 0}}, "options: followed_max=0: must be"),
        (
            {"options": {**PLAN.options, "subscribe": 1}},
            "options: subscribe=1: must be true or false",
        ),
        (
            {"options": {**PLAN.options, "subscribe": True, "deletes_hz": 1.0}},
            "options: deletes_hz: must be 0 with subscribe",
        ),
        ({"brokers": 2}, "--brokers"),
        ({"producer": {"acks": "most"}}, "--set producer"),
    ],
)
def test_impossible_plans_are_refused(changes: dict[str, object], told: str) -> None:
    """A plan that cannot be run is rejected in one line that names the option.

    One process is enough for this workload.
    """
    refusal = WORKLOAD.refuse(msgspec.structs.replace(PLAN, **changes))
    assert refusal is not None
    assert refusal.startswith(told)
    assert WORKLOAD.refuse(msgspec.structs.replace(PLAN, concurrency=1)) is None
