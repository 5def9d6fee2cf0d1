"""Changed plans repeat the beginning of the old one, and have no faults that exclude each other."""

import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.app.search import draw
from harness.app.search.guided import changes
from model.plan import Plan, ScheduledFault


def _fault(fault: str, at_s: float, targets: Any = "broker-1", **more: Any) -> ScheduledFault:
    number, duration_s = more.pop("id", 1), more.pop("duration_s", 2.0)
    return ScheduledFault(
        id=number, at_s=at_s, duration_s=duration_s, fault=fault, targets=targets, options=more
    )


def _plan(*faults: ScheduledFault) -> Plan:
    return Plan(time_limit_s=40.0, schedule=faults)


def test_a_strike_is_added_at_its_moment() -> None:
    """Earlier faults stay; the ids are those of a new schedule."""
    plan = _plan(_fault("kill", 6.0), _fault("pause", 20.0))
    struck = changes.strike(plan, _fault("partition-one", 30.0, when="send"), 6.5)
    assert struck.schedule == (
        _fault("kill", 6.0),
        _fault("partition-one", 6.5, id=2),
        _fault("pause", 20.0, id=3),
    )


def test_a_strike_waits_for_faults_that_exclude_it() -> None:
    """Two faults on processes do not overlap, and later ones give way to the strike."""
    plan = _plan(_fault("kill", 6.0), _fault("pause", 11.0), _fault("kill", 25.0))
    struck = changes.strike(plan, _fault("pause", 30.0, "broker-2"), 6.5)
    assert [(each.fault, each.at_s) for each in struck.schedule or ()] == [
        ("kill", 6.0),
        ("pause", 10.0),
        ("kill", 25.0),
    ]


def test_a_strike_as_soon_as_an_earlier_fault_permits_it() -> None:
    """It may begin in the millisecond in which the earlier one is over (5.0 + 1.437 + 8.0 s)."""
    both = _fault("kill", 5.0, ["broker-1", "broker-2"], duration_s=1.437)
    struck = changes.strike(_plan(both), _fault("restart", 3.0), 6.0).schedule or ()
    assert [each.at_s for each in struck] == [5.0, 14.437]
    assert changes.excludes(*struck)
    assert not changes.overlap(*struck)


def test_a_strike_too_late_for_the_run_changes_nothing() -> None:
    """The end of a run stays without faults, so that the cluster recovers."""
    plan = _plan(_fault("kill", 6.0))
    assert changes.strike(plan, _fault("pause", 9.0), 34.0) == plan


def test_a_continuation_follows_the_beginning() -> None:
    """What came after the moment is replaced by another schedule, moved to that moment."""
    plan = _plan(_fault("kill", 6.0), _fault("pause", 12.0), _fault("kill", 20.0))
    fresh = (_fault("partition-one", 5.0), _fault("kill", 9.0))
    found = changes.continued(plan, fresh, 8.5).schedule or ()
    assert [(each.fault, each.at_s) for each in found] == [
        ("kill", 6.0),
        ("partition-one", 8.5),
        ("kill", 12.5),
    ]


@pytest.mark.parametrize(
    ("one", "other", "excluded"),
    [
        (_fault("kill", 1.0), _fault("partition-one", 1.0), False),
        (_fault("kill", 1.0), _fault("pause", 1.0), True),
        (_fault("kill", 1.0, ["broker-1", "broker-2"]), _fault("partition-one", 1.0), True),
        (_fault("power-loss", 1.0), _fault("partition-one", 1.0), True),
    ],
)
def test_which_faults_exclude_each_other(
    one: ScheduledFault, other: ScheduledFault, excluded: bool
) -> None:
    """Those of one lane do, and those that a draw may leave alone."""
    assert changes.excludes(one, other) is excluded
    assert changes.excludes(other, one) is excluded


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 39.0))
def test_a_change_is_a_plan_that_a_draw_could_have(seed: int, moment_s: float) -> None:
    """It begins like the old plan, or has another seed; no added fault overlaps one it excludes."""
    plan = draw.plan_of(seed, {"workload": "idempotent"})
    fresh = draw.plan_of(seed + 1, {"workload": "idempotent"}).schedule or ()
    how, changed = changes.draw(plan, moment_s, fresh, random.Random(seed))

    old, new = plan.schedule or (), changed.schedule or ()
    assert len({each.id for each in new}) == len(new)
    assert list(new) == sorted(new, key=lambda each: each.at_s)
    if how == "reseed":
        assert (new, changed.seed == plan.seed) == (old, False)
        return
    assert changed.seed == plan.seed
    before = [each for each in old if each.at_s <= moment_s]
    assert [each.at_s for each in new[: len(before)]] == [each.at_s for each in before]
    added = [each for each in new if each.at_s not in {one.at_s for one in old}]
    for one, other in combinations(new, 2):
        if one in added or other in added:
            assert not (changes.excludes(one, other) and changes.overlap(one, other))
