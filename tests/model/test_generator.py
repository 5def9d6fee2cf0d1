"""Generators: the next operation, as a pure function of the operations before it."""

import math
import random

import msgspec
import pytest

from model.generator import (
    PENDING,
    Answer,
    AnyOf,
    Context,
    Generator,
    Invocation,
    Repeat,
    Reserve,
    Stagger,
    Until,
    Wait,
)
from model.op import Op


class Idle:
    """Has no operation until an event that never comes."""

    def op(self, ctx: Context) -> Answer:
        return PENDING, self

    def update(self, event: Op) -> Generator:
        return self


def at(now_s: float, free: tuple[int, ...] = (0, 1, 2), seed: int = 1) -> Context:
    return Context(now_s, free, 3, random.Random(seed))


class Once:
    """Has one operation at a given time, and then ends."""

    def __init__(self, f: str, at_s: float = 0.0) -> None:
        self.f, self.at_s = f, at_s

    def op(self, ctx: Context) -> Answer:
        if not ctx.free:
            return PENDING, self
        return Invocation(process=ctx.free[0], f=self.f, at_s=self.at_s), Nothing()

    def update(self, event: Op) -> Generator:
        return Once(f"{self.f}+{event.f}", self.at_s)


class Nothing:
    def op(self, ctx: Context) -> Answer:
        return None, self

    def update(self, event: Op) -> Generator:
        return self


EVENT = Op(index=0, time_ns=0, process=0, type="ok", f="seen")


def test_repeat_waits_for_a_free_process() -> None:
    """Repeat has no operation without a free process, and otherwise one for a free process."""
    assert Repeat("x").op(at(0, free=()))[0] == PENDING
    answer, later = Repeat("x", [1]).op(at(0, free=(4,)))
    assert answer == Invocation(process=4, f="x", value=[1])
    assert later == Repeat("x", [1]).update(EVENT)


def test_stagger_spreads_operations() -> None:
    """Over many operations the mean gap is the requested one, and no gap is more than twice as
    long."""
    rng = random.Random(3)
    generator: Generator = Stagger(0.5, Repeat("x"))
    now, gaps = 0.0, []
    for _ in range(400):
        answer, generator = generator.op(Context(now, (0,), 1, rng))
        assert isinstance(answer, Invocation)
        gaps.append(answer.at_s - now)
        now = answer.at_s
    assert 0.45 < sum(gaps) / len(gaps) < 0.55
    assert max(gaps) <= 1.0


def test_stagger_does_not_make_up_for_lost_time() -> None:
    """After a long wait one operation is due, and not all that were missed."""
    _, generator = Stagger(1.0, Repeat("x")).op(at(0))
    first, generator = generator.op(at(100))
    second, _ = generator.op(at(100, seed=2))
    assert isinstance(first, Invocation)
    assert first.at_s == 100
    assert isinstance(second, Invocation)
    assert second.at_s > 100


@pytest.mark.parametrize(
    ("now_s", "of", "answer"),
    [
        (5.0, Repeat("x"), None),
        (4.0, Once("x", at_s=5.0), Wait(5.0)),
        (4.0, Once("x", at_s=4.5), Invocation(process=0, f="x", at_s=4.5)),
        (4.0, Nothing(), None),
    ],
)
def test_until(now_s: float, of: Generator, answer: object) -> None:
    """Until ends at its time, and does not wait beyond it."""
    assert Until(5.0, of).op(at(now_s))[0] == answer
    assert Until(5.0, Repeat("x")).op(at(4.0, free=()))[0] == Wait(5.0)


@pytest.mark.parametrize(
    ("now_s", "overtime_s", "of", "answer"),
    [
        (5.0, 30.0, Once("x", at_s=5.2), Invocation(process=0, f="x", at_s=5.2)),
        (4.9, 30.0, Once("x", at_s=5.2), Wait(5.0)),  # it may not be needed
        (6.0, 30.0, Once("x", at_s=9.0), Wait(6.5)),  # it may not be needed for so long
        (6.0, 30.0, Idle(), Wait(6.5)),
        (6.0, 0.0, Repeat("x"), None),
        (35.0, 30.0, Repeat("x"), None),
    ],
)
def test_overtime(now_s: float, overtime_s: float, of: Generator, answer: object) -> None:
    """Work continues beyond its end while it is needed, and often checks whether it still is."""
    ctx = msgspec.structs.replace(at(now_s), overtime_s=overtime_s)
    assert Until(5.0, of).op(ctx)[0] == answer


def test_any_of_takes_the_soonest_and_keeps_the_others() -> None:
    """Only the part whose operation is taken moves on; ties go to the first."""
    generator: Generator = AnyOf((Once("late", 9.0), Once("soon", 2.0), Once("too", 2.0)))
    order = []
    for _ in range(3):
        answer, generator = generator.op(at(1.0))
        assert isinstance(answer, Invocation)
        order.append(answer.f)
    assert order == ["soon", "too", "late"]
    assert generator.op(at(1.0))[0] is None


def test_any_of_waits_as_long_as_somebody_might_act() -> None:
    """AnyOf ends when all of its parts have ended, and otherwise waits for the earliest of them."""
    assert AnyOf((Nothing(), Repeat("x"))).op(at(0, free=()))[0] == Wait(math.inf)
    busy = Until(7.0, Repeat("x"))
    assert AnyOf((busy, Repeat("y"))).op(at(0, free=()))[0] == Wait(7.0)


def test_reserve_gives_each_part_its_threads() -> None:
    """A part gets only the processes of its own threads, whatever their process ids."""
    generator = Reserve(((1, Repeat("a")), (2, Repeat("b"))))
    assert generator.op(at(0, free=(4, 5)))[0] == Invocation(process=4, f="b")
    assert generator.op(at(0, free=(3, 5)))[0] == Invocation(process=3, f="a")


def test_every_part_hears_of_every_event() -> None:
    """Every part receives every event, so that it may react to the other parts."""
    both = Reserve(((1, AnyOf((Once("a"),))), (2, Until(9, Stagger(1.0, Once("b"))))))
    updated = both.update(EVENT)
    assert updated.op(at(0, free=(0,)))[0] == Invocation(process=0, f="a+seen")
    answer, _ = updated.op(at(0, free=(1,)))
    assert answer == Invocation(process=1, f="b+seen")


def test_an_answer_may_be_thrown_away() -> None:
    """Asking changes nothing: the same question to the same generator has the same answer."""
    generator = Until(9, Reserve(((3, AnyOf((Stagger(1.0, Repeat("x")),))),)))
    assert generator.op(at(1.0)) == generator.op(at(1.0))
