"""A gate with Spark: without it nothing begins, and its end costs one case."""

from pathlib import Path
from typing import Any

import pytest

from harness.app.gate.outcome import exit_status
from harness.app.run import Done, Failed
from model.plan import Plan
from tests.harness.app.gate.fake_runs import LOST, FakeRun, asked, carried_out, names, statuses


def test_without_spark_nothing_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If Spark cannot start, no case begins, because no run could be judged."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("There is no Java here")

    monkeypatch.setattr("checkers.session.start", fail)
    run = FakeRun()
    with pytest.raises(Failed, match="There is no Java here"):
        carried_out(tmp_path, run, asked(inline=False))
    assert not run.plans


class FakeSession:
    """A Spark session with its JVM."""

    def __init__(self, home: Path, *, is_steady: bool) -> None:
        self.home = home
        self.alive = True


def test_a_jvm_that_dies_costs_no_more_than_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the JVM ends during a case, a new Spark session judges the next cases.

    Each session is stopped once.
    """
    started: list[FakeSession] = []
    stopped: list[FakeSession] = []
    judges: list[Any] = []

    def start(home: Path, *, is_steady: bool) -> FakeSession:
        started.append(FakeSession(home, is_steady=is_steady))
        return started[-1]

    class Judging(FakeRun):
        def __call__(self, plan: Plan, results: Path, **options: Any) -> Done:
            options["spark"].start()
            judges.append(options["spark"].session())
            judges[-1].alive = plan.seed == 1
            return super().__call__(plan, results, **options)

    monkeypatch.setattr("checkers.session.start", start)
    monkeypatch.setattr("checkers.session.stop", stopped.append)
    monkeypatch.setattr("checkers.session.is_alive", lambda session: session.alive)
    gate, folder, _ = carried_out(tmp_path, Judging(LOST), asked(3, inline=False))
    assert (statuses(gate), exit_status(gate)) == (["invalid", "valid", "valid"], 1)
    assert [started.index(judge) for judge in judges] == [0, 0, 1]
    assert stopped == started
    assert names(folder) == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}


def test_a_gate_is_told_before_spark_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are written before Spark is stopped, so that an error there cannot lose them."""

    there: set[str] = set()

    def stop(session: FakeSession) -> None:
        there.update(names(session.home))
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("checkers.session.start", FakeSession)
    monkeypatch.setattr("checkers.session.stop", stop)
    monkeypatch.setattr("checkers.session.is_alive", lambda session: session.alive)
    gate, _, _ = carried_out(tmp_path, FakeRun(LOST), asked(3, inline=False))
    assert exit_status(gate) == 1
    assert there == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}
