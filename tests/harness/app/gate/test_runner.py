"""A gate from its first case to its page, with fake runs."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from harness.app import catalogue
from harness.app.gate import figures, outcome
from harness.app.gate.outcome import exit_status
from harness.app.run import Done, Failed
from harness.systems.apache_kafka.system import ApacheKafka
from model.history import BadHistory
from model.plan import Plan
from tests.harness.app.gate.fake_runs import (
    LOST,
    UNKNOWN,
    VALID,
    FakeRun,
    Outcome,
    asked,
    carried_out,
    names,
    statuses,
)


def test_all_is_well(tmp_path: Path) -> None:
    """Each case runs once, in order.

    Its figures and all files for a CI system are in the folder.
    """
    run = FakeRun()
    gate, folder, told = carried_out(tmp_path, run, junit_to=tmp_path / "deep" / "junit.xml")
    assert statuses(gate) == ["valid"] * 3
    assert (gate.valid, exit_status(gate), gate.seconds) == (True, 0, 15.0)
    assert [plan.seed for plan in run.plans] == [1, 2, 3]
    assert run.inline == [True] * 3
    assert folder.parent == tmp_path / "gates"
    assert folder.name.endswith("Z-quick")
    assert names(folder) == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}
    assert outcome.read(folder) == gate
    case = gate.cases[1]
    assert (case.began_s, case.seconds, case.throughput_hz) == (5.0, 5.0, 100.0)
    assert (case.recovery_s, case.evidence) == (1.0, {"acked": 400})
    (xml,) = JUnitXml.fromfile(str(tmp_path / "deep" / "junit.xml"))
    assert (xml.tests, xml.failures, xml.errors) == (3, 0, 0)
    assert [line[:14] for line in told.splitlines()[1:]] == [
        f"[{number}/3] VALID   " for number in (1, 2, 3)
    ]


def test_nothing_is_tried_twice_and_nothing_stops_the_rest(tmp_path: Path) -> None:
    """An invalid, failed or unknown case, or an exception, is reported and the next case begins."""
    run = FakeRun(LOST, Failed("OSError: no room (crash.txt)"), RuntimeError("oops"), UNKNOWN)
    gate, folder, _ = carried_out(tmp_path, run, asked(5))
    assert statuses(gate) == ["invalid", "failed", "failed", "unknown", "valid"]
    assert len(run.plans) == 5
    assert (gate.valid, exit_status(gate)) == (False, 1)
    why = [case.why for case in gate.cases]
    assert why[0] == ("lost-write 3 · partition x-0, offset 118: it was acknowledged",)
    assert why[1] == ("OSError: no room (crash.txt)",)
    assert why[2] == ("RuntimeError: oops",)
    assert why[3] == ("nothing was acknowledged",)
    assert [case.folder for case in gate.cases] == [
        "runs/run-0", "runs/run-1", None, "runs/run-3", "runs/run-4",
    ]  # fmt: skip
    xml = (folder / "junit.xml").read_text()
    assert "lost-write 3 · partition x-0, offset 118" in xml
    assert "lost-write" in (folder / "summary.md").read_text()
    assert "lost-write" in (folder / "index.html").read_text()


def test_figures_that_cannot_be_computed_lose_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case without figures has its verdict, and the reason is one line; the others are as usual.

    An error of the run itself is a failed case.
    """
    real = figures.of_run
    torn = iter([BadHistory("torn"), None])

    def of_run(*arguments: Any) -> dict[str, Any]:
        if (error := next(torn)) is not None:
            raise error
        return real(*arguments)

    monkeypatch.setattr(figures, "of_run", of_run)
    gate, folder, told = carried_out(tmp_path, FakeRun(LOST, LOST, BadHistory("torn")))
    assert statuses(gate) == ["invalid", "invalid", "failed"]
    assert [case.throughput_hz for case in gate.cases] == [None, 100.0, None]
    assert f"{folder / 'runs' / 'run-0'}: no figures (BadHistory: torn)" in told
    assert told.count("no figures") == 1


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [([VALID, Failed("x"), UNKNOWN], 70), ([VALID, UNKNOWN], 2), ([LOST, Failed("x")], 1)],
)
def test_the_exit_status_is_the_contracts(
    outcomes: Sequence[Outcome], status: int, tmp_path: Path
) -> None:
    """Exit status 1 outranks 70, and 70 outranks 2."""
    gate, _, _ = carried_out(tmp_path, FakeRun(*outcomes))
    assert exit_status(gate) == status


def test_what_no_longer_fits_is_not_begun(tmp_path: Path) -> None:
    """A case is begun only if its time limit and the usual overhead fit into the budget.

    The overhead is what earlier cases took beyond their time limits. A gate without all of its
    cases is unknown, and says why.
    """
    run = FakeRun(took_s=6.0)
    wanted = asked(4, budget_minutes=0.3)
    gate, _, _ = carried_out(tmp_path, run, wanted)
    assert statuses(gate) == ["valid", "valid", "valid", "skipped"]
    assert gate.cases[3].why == ("the rest of the budget of 0.3 min is too short",)
    assert (gate.valid, exit_status(gate), gate.budget_s) == ("unknown", 2, 18.0)
    run = FakeRun(took_s=6.0)
    wanted = asked(4, budget_minutes=17.9 / 60)
    gate, _, _ = carried_out(tmp_path / "less", run, wanted)
    assert len(run.plans) == 2


def test_each_system_has_an_overhead_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that starts slowly does not keep the cases of another one from being begun."""
    monkeypatch.setattr(ApacheKafka, "missing", lambda self: None)

    class Slow(FakeRun):
        """A run that takes 4 s with this project's broker, and 10 s with another system."""

        def __call__(self, plan: Plan, *args: Any, **options: Any) -> Done:
            self.took_s = 4.0 if plan.system == "kafka" else 10.0
            return super().__call__(plan, *args, **options)

    matrix = {"nemesis": [["none"]], "system": ["kafka", "apache-kafka:3.9.1"], "seed": [1, 2]}
    wanted = asked(budget_minutes=0.3, matrix=[matrix])
    gate, _, _ = carried_out(tmp_path, Slow(), wanted)
    assert [case.system for case in gate.cases] == ["kafka", "apache-kafka:3.9.1"] * 2
    assert statuses(gate) == ["valid", "valid", "valid", "skipped"]
    assert gate.seconds == 18.0


def test_a_shorter_case_may_still_fit(tmp_path: Path) -> None:
    """After a case that does not fit into the budget, a shorter one still runs."""
    seeds: list[dict[str, Any]] = [{"seed": [1]}, {"seed": [2], "time-limit": 9}, {"seed": [3]}]
    matrices = [{**matrix, "nemesis": [["none"]]} for matrix in seeds]
    wanted = asked(budget_minutes=0.2, matrix=matrices)
    gate, _, _ = carried_out(tmp_path, FakeRun(took_s=4.0), wanted)
    assert statuses(gate) == ["valid", "skipped", "valid"]


def test_an_optional_target_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases of a missing optional target are skipped with the reason, and the gate is valid."""
    missing = dataclasses.replace(catalogue.TARGETS["containers"], refusal=lambda: "no engine")
    monkeypatch.setitem(catalogue.TARGETS, "containers", missing)
    matrix = {"target": ["processes", "containers"]}
    wanted = asked(optional_targets=["containers"], matrix=[matrix])
    gate, _, _ = carried_out(tmp_path, FakeRun(), wanted)
    assert statuses(gate) == ["valid", "skipped"]
    assert gate.cases[1].excused
    assert exit_status(gate) == 0


@pytest.mark.parametrize(
    ("keep", "unlucky", "kept"),
    [
        (0, (), []),
        (1, (), [0]),
        (2, (), [0, 3]),
        (2, (0, 3), [1, 4]),
        (3, (), [0, 2, 4]),
        (9, (), [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_sample_of_passes_is_kept(
    keep: int, unlucky: Sequence[int], kept: Sequence[int], tmp_path: Path
) -> None:
    """The folders of a sample of valid cases are kept, spread evenly and the same every time.

    If a case of the sample is kept anyway because it was not valid, the next valid one replaces it.
    The folders of all other valid cases are removed.
    """
    run = FakeRun(*(UNKNOWN if place in unlucky else VALID for place in range(6)))
    gate, folder, _ = carried_out(tmp_path, run, asked(6, keep=keep))
    passed = [place for place, case in enumerate(gate.cases) if case.status == "valid"]
    assert [place for place in passed if gate.cases[place].kept] == list(kept)
    there = names(folder / "runs")
    assert there == {Path(case.folder).name for case in gate.cases if case.folder}
    assert len(there) == len(kept) + len(unlucky)
