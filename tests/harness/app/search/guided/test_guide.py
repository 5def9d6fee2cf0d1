"""A guided search chooses from what earlier generations have reached, in any order of jobs."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_impl.replica import isr
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.search import campaign, single_run
from harness.app.search.campaign import SearchRequest
from harness.app.search.coverage import Coverage
from harness.app.search.guided.guide import GENERATION, Guide, RunPlan
from harness.app.search.guided.phases import Phases
from harness.app.search.outcome import RunResult, Summary
from model.op import NEMESIS, Op
from model.plan import Plan

PINNED = {"workload": "idempotent"}


def _run(plan: Plan, folder: Path, observe: Phases) -> RunResult:
    """A run whose faults are those of its plan; each is followed by the call of a rule."""
    for fault in plan.schedule or ():
        value = {"phase": "apply", "targets": fault.targets}
        at_ns = int(fault.at_s * 1e9)
        observe(
            Op(index=0, time_ns=at_ns, process=NEMESIS, type="invoke", f=fault.fault, value=value)
        )
        isr.enough_in_sync(1 + fault.id % 2, 2)
    return RunResult(seed=plan.seed, status="valid", workload=plan.workload)


def _of_its_own(coverage: Coverage) -> RunPlan:
    """Return a function for runs, each of which has its own record, as in a process of its own."""

    def run(plan: Plan, folder: Path, observe: Phases) -> RunResult:
        coverage.recorder.begin()
        return _run(plan, folder, observe)

    return run


@contextlib.contextmanager
def _guide(place: Path) -> Iterator[Guide]:
    place.mkdir(exist_ok=True)
    coverage = Coverage(PINNED, place)
    try:
        yield Guide(PINNED, 100, coverage, place, _of_its_own(coverage))
    finally:
        coverage.close()


@pytest.fixture
def guide(tmp_path: Path) -> Iterator[Guide]:
    with _guide(tmp_path) as made:
        yield made


def _of_generation(guide: Guide, first: int, tmp_path: Path, *, backwards: bool = False) -> Any:
    seeds = list(range(first, first + GENERATION))
    chosen = [guide.choose(seed) for seed in seeds]
    for seed in reversed(seeds) if backwards else seeds:
        guide.each(seed, PINNED, tmp_path)
        guide.take(seed)
    return chosen


def test_a_generation_waits_for_the_one_before(guide: Guide, tmp_path: Path) -> None:
    """Its plans depend on all earlier runs, also on those that have crashed without a trace."""
    seeds = range(100, 100 + GENERATION)
    assert all(guide.may_begin(seed) for seed in seeds)
    for seed in seeds:
        assert not guide.may_begin(100 + GENERATION)
        if seed != 103:
            guide.each(seed, PINNED, tmp_path)
        guide.take(seed)
    assert guide.may_begin(100 + GENERATION)
    assert not guide.may_begin(100 + 2 * GENERATION)
    assert 103 not in guide.corpus.entries


def test_later_runs_change_the_plans_of_earlier_ones(guide: Guide, tmp_path: Path) -> None:
    """The first generation is drawn; of the next, most are changes, with the parent's seed."""
    first = _of_generation(guide, 100, tmp_path)
    assert all(chosen.parent is None for chosen in first)
    second = _of_generation(guide, 108, tmp_path)
    changed = [chosen for chosen in second if chosen.parent is not None]
    assert len(changed) >= GENERATION // 2
    for chosen in changed:
        parent = first[chosen.parent - 100].plan
        assert chosen.how in ("strike", "continue", "reseed")
        assert (chosen.plan.seed == parent.seed) == (chosen.how != "reseed")
        assert chosen.plan.options == parent.options
    assert sum(entry.changes for entry in guide.corpus.entries.values()) == len(changed)


def test_the_order_in_which_runs_end_changes_nothing(tmp_path: Path) -> None:
    """Any number of jobs gives the same runs."""
    found = []
    for backwards in (False, True):
        with _guide(tmp_path / str(backwards)) as guide:
            found += [
                _of_generation(guide, first, tmp_path, backwards=backwards) for first in (100, 108)
            ]
    assert found[:2] == found[2:]


def _search(tmp_path: Path, jobs: int) -> Summary:
    asked = SearchRequest(runs=20, jobs=jobs, enough=None, guided=True, pinned=PINNED)
    return campaign.run(asked, tmp_path, Screen(io.StringIO()))


def test_a_search_says_what_it_has_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary has the numbers of changed runs, of plans and of states, for any jobs."""
    monkeypatch.setattr(single_run, "of_plan", _run)
    one = _search(tmp_path / "one", 1)
    three = _search(tmp_path / "three", 3)
    assert one.guidance is not None
    assert one.guidance == three.guidance
    assert one.runs == 20
    assert 0 < one.guidance.changed < 20
    assert one.guidance.plans > 0


def test_a_schedule_of_the_user_leaves_nothing_to_change(tmp_path: Path) -> None:
    """Guidance changes schedules, and a user's own is the same in all runs."""
    asked = SearchRequest(runs=2, guided=True, pinned={**PINNED, "schedule": ()})
    with pytest.raises(Refused, match="nothing to change"):
        campaign.run(asked, tmp_path, Screen(io.StringIO()))
