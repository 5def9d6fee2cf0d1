"""Measuring detection: which mutants are due, how a row is measured, and where it is written."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import catalogue, check, plan_resolution, versions
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.run import Interrupted
from harness.app.score import matrix, measure
from harness.app.score.measure import ScoreRequest
from harness.app.search import campaign, single_run
from harness.app.search.outcome import RunResult, Summary
from harness.cluster import mutants as mutants_
from harness.cluster.mutants import Mutant
from model.plan import Plan

PLAN = """
target = "simulated"
workload = "offsets"
nemesis = ["kill"]
time-limit = 12
mutants = ["other"]
"""


def mutant(name: str, kind: str = "historic") -> Mutant:
    return Mutant(
        name=name, kind=kind, source="A01", of="m:f", symptom="lost-write",
        schedule="It is killed.", tier=1, story="It loses.",
    )  # fmt: skip


KNOWN = {each.name: each for each in (mutant("a"), mutant("b"), mutant("c", "protocol"))}


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Replace single runs by fakes, red with ``a`` or ``b``, and return each plan's mutants."""
    plans: list[tuple[str, ...]] = []

    def carried_out(plan: Plan, folder: Path, each: Callable[..., RunResult]) -> RunResult:
        assert folder.is_dir()
        plans.append(tuple(plan.mutants))
        red = {"lost-write": 2} if plan.mutants[1:] else {}
        return RunResult(
            seed=1,
            status="invalid" if red else "valid",
            anomalies=red,
            faults=2,
            faults_effective=2,
            cpu_seconds=1.0,
        )

    monkeypatch.setattr(measure, "carried_out", carried_out)
    monkeypatch.setattr(plan_resolution, "resolve", lambda plan: plan)
    return plans


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replace searches by fakes, which find an anomaly in their third and fifth run.

    The bug ``a`` changes what happens in these two runs, ``b`` in none. Returns the list of
    requested searches with a bug.
    """
    asked: list[Any] = []
    of_seed = single_run.of_seed

    def traced(seed: int, pinned: Any, folder: Path) -> RunResult:
        differs = "a" in pinned["mutants"] and seed in (12, 14)
        return RunResult(seed=seed, status="valid", trace=f"{seed}{differs}")

    def run(what: Any, results: Path, screen: Screen, each: Any) -> Summary:
        if each is not of_seed:
            for seed in range(what.first, what.first + 5):
                each(seed, what.pinned, results)
        found: tuple[RunResult, ...] = ()
        if what.pinned["mutants"] != ("other",):
            asked.append(what)
            found = tuple(RunResult(seed=what.first + n, status="invalid") for n in (2, 4))
        return Summary(
            runs=5, simulated_seconds=200.0, acked=5000, faults_effective=20, unknown=0, failed=1,
            findings=found, doubtful=(), anomalies={"lost-write": 2}, allowed={}, least={},
            seconds=9.0, cpu_seconds=10.0, stopped="found", seed=what.first, pinned={},
            folder=str(results),
        )  # fmt: skip

    monkeypatch.setattr(single_run, "of_seed", traced)
    monkeypatch.setattr(campaign, "run", run)
    return asked


@pytest.fixture
def asked(tmp_path: Path) -> ScoreRequest:
    """Make a request with two plans and without earlier measurements."""
    plans = tmp_path / "examples" / "mutants"
    plans.mkdir(parents=True)
    for name in ("a", "b"):
        (plans / f"{name}.toml").write_text(PLAN)
    return ScoreRequest(
        examples=tmp_path / "examples", output=tmp_path / "docs", results=tmp_path / "results",
        seed=10, jobs=2,
    )  # fmt: skip


def score(asked: ScoreRequest) -> matrix.Matrix:
    return measure.run(asked, KNOWN, Screen(io.StringIO()))


def test_a_row_is_two_runs_and_a_search(
    asked: ScoreRequest, played: list[tuple[str, ...]], drawn: list[Any]
) -> None:
    """A row is measured by a run without the mutant, one with it, and a search.

    The plan's other mutants stay in all of them, and the search uses the plan's workload.
    """
    told = score(asked)
    assert list(told.rows) == ["a", "b"]
    assert played == [("other",), ("other", "a"), ("other",), ("other", "b")]
    assert [search.pinned for search in drawn] == [
        {"workload": "offsets", "mutants": ("other", "a")},
        {"workload": "offsets", "mutants": ("other", "b")},
    ]  # fmt: skip
    assert {(s.first, s.runs, s.enough, s.jobs) for s in drawn} == {(10, 200, 3, 2)}
    row = told.rows["a"]
    assert row.is_shown
    assert row.scripted is not None
    assert (row.scripted.faults, row.scripted.cpu_seconds) == (2, 2.0)
    assert row.drawn is not None
    assert (row.drawn.found, row.drawn.runs, row.drawn.first, row.drawn.failed) == (2, 5, 3, 1)
    assert row.drawn.workload == "offsets"
    assert row.drawn.reached == 2
    assert told.rows["b"].drawn is not None
    assert told.rows["b"].drawn.reached == 0
    assert matrix.read(asked.output) == told
    assert measure.missed(told) == []


def test_seeds_may_be_drawn_of_another_workload(
    asked: ScoreRequest,
    played: list[tuple[str, ...]],
    drawn: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutant in ELSEWHERE is searched with another workload than its schedule uses.

    All names in that table exist.
    """
    mutants, workloads = mutants_.catalogue(), catalogue.WORKLOADS
    assert mutants.keys() >= measure.ELSEWHERE.keys()
    assert workloads.keys() >= set(measure.ELSEWHERE.values())
    monkeypatch.setattr(measure, "ELSEWHERE", {"b": "fencing"})
    told = score(asked)
    assert [search.pinned["workload"] for search in drawn] == ["offsets", "fencing"]
    assert "| `b` | A01 | 1 | lost-write | yes | fencing | 2 of 5 (1 failed) |" in matrix.page(told)


@pytest.mark.parametrize(
    ("commit", "noted"),
    [("", None), ("0123456789abcdef", "012345678"), ("0123456789abcdef-dirty", "012345678-dirty")],
)
def test_what_was_measured_is_noted(
    asked: ScoreRequest,
    played: list[tuple[str, ...]],
    drawn: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    commit: str,
    noted: str | None,
) -> None:
    """A row records the abbreviated commit, if it is known."""
    monkeypatch.setattr(versions, "commit", lambda: commit)
    row = score(replace(asked, names=("a",))).rows["a"]
    assert row.scripted is not None
    assert row.drawn is not None
    assert (row.scripted.commit, row.drawn.commit) == (noted, noted)


def test_what_is_known_is_not_measured_again(
    asked: ScoreRequest, played: list[tuple[str, ...]], drawn: list[Any]
) -> None:
    """A measured row is measured again only if it is named. An interrupted score thus continues."""
    score(replace(asked, names=("b",)))
    assert played == [("other",), ("other", "b")]
    score(asked)
    assert played[2:] == [("other",), ("other", "a")]
    score(asked)
    assert len(played) == 4
    score(replace(asked, names=("a",)))
    assert len(played) == 6


def test_a_schedule_alone_keeps_what_was_drawn(
    asked: ScoreRequest, played: list[tuple[str, ...]], drawn: list[Any]
) -> None:
    """Measuring schedules alone keeps earlier searches; missing ones are due later."""
    first = score(replace(asked, names=("a",)))
    again = score(replace(asked, names=("a", "b"), draws=False))
    assert len(drawn) == 1
    assert again.rows["a"].drawn == first.rows["a"].drawn
    assert again.rows["b"].drawn is None
    score(asked)
    assert len(drawn) == 2


def test_searches_by_chance_and_guided_ones_are_compared(
    asked: ScoreRequest, played: list[tuple[str, ...]], drawn: list[Any]
) -> None:
    """Both begin with the same seed and end at the first finding; the rest of the row stays."""
    before = score(replace(asked, names=("a",))).rows["a"]
    after = score(replace(asked, names=("a", "b"), compares=True, runs=50)).rows
    assert len(played) == 2
    assert [(s.guided, s.first, s.runs, s.enough) for s in drawn[1:]] == [
        (False, 10, 50, 1),
        (True, 10, 50, 1),
    ] * 2
    assert drawn[1].pinned == drawn[2].pinned == drawn[0].pinned
    compared = after["a"].compared
    assert isinstance(compared, matrix.Compared)
    assert after["a"] == msgspec.structs.replace(before, compared=compared)
    assert (compared.guided.first, after["b"].scripted) == (3, None)
    assert isinstance(score(replace(asked, names=("a",))).rows["a"].compared, matrix.Compared)


def test_a_search_that_was_broken_off_is_no_measurement(
    asked: ScoreRequest,
    played: list[tuple[str, ...]],
    drawn: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interrupted search ends the score; its row stays unchanged, and no other is begun."""
    first = score(replace(asked, names=("b",)))
    whole = campaign.run

    def run(*what: Any) -> Summary:
        return msgspec.structs.replace(whole(*what), stopped="interrupted")

    monkeypatch.setattr(campaign, "run", run)
    with pytest.raises(Interrupted, match="interrupted; the rows measured until then are in"):
        score(replace(asked, names=("a", "b"), runs=7))
    assert len(drawn) == 2
    assert matrix.read(asked.output) == first


def test_a_plan_that_shows_nothing_is_missed(
    asked: ScoreRequest,
    drawn: list[Any],
    played: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan that does not show its bug is missed, as is one whose run without it is not valid."""

    def carried_out(plan: Plan, folder: Path, each: Any) -> RunResult:
        return RunResult(seed=1, status="valid", faults=2, faults_effective=1)

    monkeypatch.setattr(measure, "carried_out", carried_out)
    told = score(asked)
    assert measure.missed(told) == ["a", "b"]
    seen = told.rows["a"].scripted
    assert seen is not None
    assert seen.without == "unknown"


def test_names_and_plans_that_there_are_not(
    asked: ScoreRequest, played: list[tuple[str, ...]], drawn: list[Any]
) -> None:
    """An unknown name, a protocol mutant and a missing plan are each refused in one line."""
    with pytest.raises(Refused, match="mutants score: there is no c; available: a, b"):
        score(replace(asked, names=("c",)))
    (asked.examples / "mutants" / "b.toml").unlink()
    with pytest.raises(Refused, match=r"b\.toml"):
        score(asked)
    assert list(matrix.read(asked.output).rows) == ["a"]


def test_a_control_is_judged_twice(asked: ScoreRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A control is judged by its own contract and by the strictest one."""
    plans = asked.examples / "plans"
    plans.mkdir()
    (plans / "acks-1-loss.toml").write_text(PLAN)
    monkeypatch.setattr(plan_resolution, "resolve", lambda plan: plan)
    monkeypatch.setattr(measure, "carried_out", lambda plan, folder, each: each(plan, folder))
    monkeypatch.setattr(
        single_run,
        "of_plan",
        lambda plan, folder: RunResult(seed=1, status="valid", allowed={"lost-write": 1}),
    )
    strict: list[Any] = []

    def examine(folder: Path, *, inline: bool, settings: Any) -> Any:
        strict.append(settings)
        verdict = msgspec.defstruct("Verdict", [("anomalies", dict)])({"lost-write": 1})
        return msgspec.defstruct("Judged", [("verdict", Any)])(verdict)

    monkeypatch.setattr(check, "examine", examine)
    told = score(replace(asked, names=("acks-1-loss",)))
    assert told.controls["acks-1-loss"].is_distinguished
    assert strict == [measure.STRICTEST]
    assert not told.rows
