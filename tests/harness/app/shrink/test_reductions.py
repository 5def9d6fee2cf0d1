"""Reductions: parts that can be left out of a plan."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.app import plan_resolution
from harness.app.refused import Refused
from harness.app.search import draw
from harness.app.shrink import reductions
from harness.app.shrink.reductions import Seen, without_parts
from model.plan import Plan, ScheduledFault


@given(st.lists(st.integers(), max_size=9))
def test_parts_are_left_out_the_boldest_first(items: list[int]) -> None:
    """The candidates omit all items, then halves, and so on down to each single one.

    Each of them omits at least one item.
    """
    left = list(without_parts(items))
    assert all(len(kept) < len(items) for kept in left)
    if items:
        assert left[0] == []
        assert left[-len(items) :] == [
            [*items[:number], *items[number + 1 :]] for number in range(len(items))
        ]
    else:
        assert left == []


def _weight(plan: Plan) -> tuple[float, ...]:
    """Return the quantities that a reduction may decrease."""
    faults = plan.schedule or ()
    standard = reductions._standard(plan)
    odd = sum(
        values.get(name) != value
        for part, values in standard.items()
        for name, value in getattr(plan, part).items()
    )
    return (
        plan.time_limit_s,
        len(faults),
        sum(fault.duration_s for fault in faults),
        sum(fault.at_s for fault in faults),
        sum(int(plan.options[name]) for name in ("topics", "late_topics", "partitions")),
        plan.brokers,
        plan.concurrency,
        plan.options["batch_max"],
        plan.rate_hz,
        odd,
    )


@given(st.integers(0, 1 << 31), st.floats(0, 40) | st.just(math.inf))
@settings(max_examples=5)
def test_every_reduction_is_smaller_and_most_can_be_run(seed: int, at_s: float) -> None:
    """Each reduction decreases a quantity and increases none, so that shrinking ends.

    Its plan resolves to itself.
    """
    plan = draw.plan_of(seed, {"workload": "idempotent"})
    for reduction in dict.fromkeys(reductions.REDUCTIONS):
        for smaller in reduction(plan, Seen(at_s, at_s)):
            before, after = _weight(plan), _weight(smaller)
            assert before != after, reduction
            assert all(b >= a for b, a in zip(before, after, strict=True)), (reduction, after)
            try:
                resolved = plan_resolution.resolve(smaller)
            except Refused:
                assert smaller.brokers < plan.brokers, "a fault may need a broker that has gone"
                continue
            assert resolved.schedule == smaller.schedule
            assert resolved.broker == smaller.broker


def test_no_kind_of_trouble_is_left_without_a_fault() -> None:
    """A reduced plan names only nemeses with a fault. Otherwise its verdict would be unknown."""
    plan = draw.plan_of(1, {"workload": "idempotent", "nemesis": ("kill", "pause")})
    [nothing, *others] = reductions.fewer_faults(plan, Seen())
    assert (nothing.nemesis, nothing.schedule) == ((), ())
    for left in others:
        kinds = {fault.fault.split("-")[0] for fault in left.schedule or ()}
        assert set(left.nemesis) == kinds


@pytest.mark.parametrize(("nemesis", "left"), [("directories", {2}), ("kill", {1, 2})])
def test_faults_of_directories_keep_several_of_them(nemesis: str, left: set[int]) -> None:
    """A plan with faults of data directories keeps the option that they need."""
    options = {"data_directories": 2, "security": "scram"}
    asked = {"workload": "idempotent", "options": options, "nemesis": (nemesis,)}
    plans = list(reductions.plainer_settings(draw.plan_of(1, asked), Seen()))
    assert {plan.options["data_directories"] for plan in plans} == left
    assert "none" in {plan.options["security"] for plan in plans}


@pytest.mark.parametrize(("nemesis", "left"), [("access", {"scram"}), ("kill", {"none", "scram"})])
def test_faults_of_access_keep_the_protection(nemesis: str, left: set[str]) -> None:
    """A fault that takes rights away needs a cluster with users; without one, the option goes."""
    asked = {"workload": "idempotent", "options": {"security": "scram"}, "nemesis": (nemesis,)}
    plans = list(reductions.plainer_settings(draw.plan_of(1, asked), Seen()))
    assert {plan.options["security"] for plan in plans} == left
    for plan in plans:
        plan_resolution.resolve(plan)


def test_leaders_of_topics_that_go_are_leaders_of_the_one_that_stays() -> None:
    """A fault aimed at a removed topic's leader is aimed at the remaining one's."""
    plan = draw.plan_of(3, {"workload": "idempotent", "options": {"topics": 3, "partitions": 3}})
    fault = ScheduledFault(id=1, at_s=5, duration_s=2, fault="kill", targets="leader:topic2-1")
    plan = msgspec.structs.replace(plan, schedule=(fault,), nemesis=("kill",))
    first = next(reductions.smaller_cluster(plan, Seen()))
    assert first.options["topics"] == first.options["partitions"] == 1
    assert first.schedule is not None
    assert first.schedule[0].targets == "leader:topic0-0"


def test_a_plan_that_cannot_be_smaller_has_no_reductions() -> None:
    """A minimal plan has no reductions, so shrinking ends."""
    plan = draw.plan_of(1, {"workload": "idempotent", "nemesis": ("kill",)})
    for _ in range(200):
        for reduction in reductions.REDUCTIONS:
            for smaller in reduction(plan, Seen(0.0, 0.0)):
                try:
                    plan = plan_resolution.resolve(smaller)
                except Refused:
                    continue
                break
    assert (plan.schedule, plan.time_limit_s, plan.concurrency) == ((), 3.0, 2)
    assert all(not list(reduction(plan, Seen())) for reduction in reductions.REDUCTIONS)


@pytest.mark.parametrize("limit_s", [5.0, 20.0])
def test_faults_after_the_end_go(limit_s: float) -> None:
    """Faults after the new end are removed from the schedule."""
    plan = draw.plan_of(8, {"workload": "idempotent"})
    first = next(reductions.shorter(plan, Seen(limit_s - 1, limit_s)))
    assert first.time_limit_s == limit_s
    assert first.schedule == tuple(f for f in plan.schedule or () if f.at_s < limit_s)
