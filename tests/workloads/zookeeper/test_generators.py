"""Random choices at a rate, and final reads that are tried until they succeed."""

import random

import msgspec

from model.generator import Context, Invocation, Wait
from model.op import Op
from model.plan import Plan
from tests.workloads.conftest import simulate
from workloads.zookeeper import generators
from workloads.zookeeper.generators import Choice, Later, Mixed, Readings


def yes(op: Op) -> Op:
    return msgspec.structs.replace(op, type="ok")


def test_choices_have_numbers_of_their_own() -> None:
    """Every choice has another number, and knows what the events so far were noted as."""

    def choose(ctx: Context, process: int, number: int, notes: int) -> Choice:
        return "set", {"path": "/a", "data": str(number), "seen": notes}

    mixed = Mixed(choose, lambda notes, event: notes + (event.type == "ok"), 0)
    history = simulate(generators.main(_plan(), mixed), yes)
    asked = [op.value for op in history if op.type == "invoke"]
    assert len(asked) > 20
    assert len({value["data"] for value in asked}) == len(asked)
    assert [value["seen"] for value in asked] == sorted(value["seen"] for value in asked)


def test_without_a_choice_nothing_is_asked() -> None:
    """The generator waits, and chooses later."""
    ctx = Context(1.0, (0,), 1, random.Random(1))
    answer, _ = Mixed(lambda *given: None).op(ctx)
    assert answer == Wait(1.0 + generators.RETRY_S)


def test_final_reads_are_tried_until_they_succeed() -> None:
    """A failed read is tried again, also by the next process; each succeeds once."""
    asked = [("get", {"path": path}) for path in ("/a", "/b", "/c")]
    failures = ["fail", "info", "fail"]

    def answer(op: Op) -> Op:
        kind = failures.pop() if failures else "ok"
        return msgspec.structs.replace(op, type=kind)

    history = simulate(generators.final(60.0, list(asked)), answer)
    done = [op.value["path"] for op in history if op.type == "ok"]
    assert sorted(done) == ["/a", "/b", "/c"]
    assert len([op for op in history if op.type == "invoke"]) == 6


def test_final_reads_end_in_time() -> None:
    """Reads that never succeed end with the time."""
    history = simulate(
        generators.final(5.0, [generators.synced("/a")]),
        lambda op: msgspec.structs.replace(op, type="fail"),
    )
    assert 5 < len([op for op in history if op.type == "invoke"]) < 12


def test_a_delay_counts_from_the_first_question() -> None:
    """Nothing is asked before the delay is over."""
    later = Later(10.0, Readings((("get", {"path": "/a"}),)))
    answer, later = _asked(later, 5.0)
    assert answer == Wait(15.0)
    answer, later = _asked(later, 14.0)
    assert answer == Wait(15.0)
    answer, _ = _asked(later, 15.0)
    assert isinstance(answer, Invocation)


def _asked(later: Later, now_s: float) -> tuple[object, Later]:
    answer, after = later.op(Context(now_s, (0,), 1, random.Random(1)))
    assert isinstance(after, Later)
    return answer, after


def _plan() -> Plan:
    from tests.workloads.zookeeper import lab

    return lab.plan_of("zk-register", time_limit_s=3.0)
