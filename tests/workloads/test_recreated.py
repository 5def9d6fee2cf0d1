"""The operations of the workload: its generator with simulated clients."""

from typing import Any

import msgspec
import pytest

from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import simulate, yes
from workloads.recreated import WORKLOAD, first_partitions, refuse

PLAN = Plan(
    workload="recreated",
    time_limit_s=30.0,
    rate_hz=20.0,
    concurrency=5,
    options={**WORKLOAD.options, "life_s": 5.0},
    broker=dict(WORKLOAD.broker),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)


def topics_of(history: list[Op], f: str) -> list[str]:
    return [op.value[0][1] for op in history if op.f == f and op.type == "ok"]


def test_one_life_follows_another() -> None:
    """Topics are recreated after ``life_s``; the last incarnation is not deleted."""
    history = simulate(WORKLOAD.main(PLAN))
    lives = ["topic0", "topic1"]
    for number in range(1, 6):
        lives += [f"topic0~{number}", f"topic1~{number}"]
    assert topics_of(history, "create-topic") == lives[:10]
    assert topics_of(history, "delete-topic") == lives[:8]


def test_nobody_outlives_a_topic() -> None:
    """Every process acts in one incarnation only."""
    lives: dict[int, set[str]] = {}
    for op in simulate(WORKLOAD.main(PLAN)):
        if op.f == "send" and op.type == "invoke":
            lives.setdefault(op.process, set()).update(
                key.rpartition("-")[0].partition("~")[2] for _, key, _ in op.value
            )
        if op.f == "assign" and op.type == "invoke":
            lives.setdefault(op.process, set()).update(
                key.rpartition("-")[0].partition("~")[2] for key in op.value
            )
    assert len(lives) > 10
    assert all(len(numbers) == 1 for numbers in lives.values())


def test_in_doubt_a_topic_stays() -> None:
    """A topic with a send in doubt is not deleted, because the send could reach the next topic."""
    asked = 0

    def answer(op: Op) -> Op:
        nonlocal asked
        asked += op.f == "send"
        doubt = op.f == "send" and asked == 30
        return msgspec.structs.replace(op, type="info") if doubt else yes(op)

    history = simulate(WORKLOAD.main(PLAN), answer)
    assert topics_of(history, "delete-topic") == []
    assert history[-1].time_ns > 29e9
    assert any(op.f == "send" and op.type == "ok" for op in history[-100:])


def test_what_was_perhaps_sent_twice_may_arrive_later() -> None:
    """Topics are not deleted after a send that took longer than ``request.timeout.ms``.

    The client has perhaps sent it twice.
    """
    assert topics_of(simulate(WORKLOAD.main(PLAN)), "delete-topic")
    slow = msgspec.structs.replace(PLAN, producer={**PLAN.producer, "request.timeout.ms": "5"})
    assert topics_of(simulate(WORKLOAD.main(slow)), "delete-topic") == []


@pytest.mark.parametrize("f", ["create-topic", "delete-topic"])
def test_what_did_not_succeed_is_asked_for_again(f: str) -> None:
    """A creation or deletion is repeated until it has succeeded."""
    left = 3

    def answer(op: Op) -> Op:
        nonlocal left
        left -= op.f == f
        fails = op.f == f and left >= 0
        return msgspec.structs.replace(op, type="info") if fails else yes(op)

    history = simulate(WORKLOAD.main(PLAN), answer)
    asked = [op for op in history if op.f == f and op.type == "invoke"]
    assert [op.value[0][1] for op in asked[:4]] == ["topic0"] * 4
    assert asked[3].time_ns - asked[0].time_ns > 1.4e9
    assert topics_of(history, f)[:2] == ["topic0", "topic1"]


def test_the_last_life_is_read_to_its_end() -> None:
    """The final reads cover only the last incarnation."""
    keys = ("topic0-0", "topic0-1", "topic0~9-0", "topic0~10-0", "topic1~10-1")
    history = simulate(WORKLOAD.final(PLAN, keys, 30.0))
    reached = {op.value[0][1] for op in history if (op.f, op.type) == ("catch-up", "ok")}
    assert reached == {"topic0~10-0", "topic1~10-1"}
    assert simulate(WORKLOAD.final(PLAN, (), 30.0)) == []


def test_faults_aim_at_names_that_brokers_know() -> None:
    """Faults target the partition names that brokers know."""
    assert first_partitions(PLAN) == ("topic0-0", "topic0-1", "topic1-0", "topic1-1")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"options": {**PLAN.options, "life_s": 0}}, "life_s=0"),
        ({"options": {**PLAN.options, "topics": 0}}, "topics=0"),
        ({"concurrency": 1}, "--concurrency"),
        ({"brokers": 2}, "--brokers"),
    ],
)
def test_what_cannot_be_run_is_refused(changes: dict[str, Any], why: str) -> None:
    """A plan that cannot be run is rejected with the name of its setting."""
    assert why in (refuse(msgspec.structs.replace(PLAN, **changes)) or "")
    assert refuse(PLAN) is None
