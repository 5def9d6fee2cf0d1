"""``faultline soak`` is a watched run of many hours, with defaults of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkers import engine
from harness.app.cli import main
from harness.app.run import Failed
from model.plan import Plan


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Plan, dict[str, Any]]]:
    """Replace the run itself, and remember what was asked of it."""
    asked: list[tuple[Plan, dict[str, Any]]] = []

    def run(plan: Plan, results: Path, **how: Any) -> None:
        asked.append((plan, how))
        raise Failed("enough")

    monkeypatch.setattr("harness.app.run.run", run)
    return asked


def _soak(*arguments: str) -> None:
    with pytest.raises(SystemExit):
        main(["soak", "--nemesis", "none", *arguments])


def test_a_soak_is_watched_and_reported_on(
    runs: list[tuple[Plan, dict[str, Any]]], tmp_path: Path
) -> None:
    """By default for a day, with a report every hour."""
    _soak("--results", str(tmp_path))
    [(plan, how)] = runs
    assert (plan.time_limit_s, plan.rate_hz) == (86_400.0, 5.0)
    assert plan.options["final_time_limit_s"] == 1800.0
    assert plan.options["late_topics"] == 0
    assert (how["watch"], how["report_s"]) == (True, 3600.0)


def test_a_plan_file_and_options_come_before_the_defaults(
    runs: list[tuple[Plan, dict[str, Any]]], tmp_path: Path
) -> None:
    """The hours are those of the option, else of the plan's time limit, else of the default."""
    file = tmp_path / "plan.toml"
    file.write_text("rate = 7\ntime-limit = 60\n[options]\nfinal_time_limit_s = 90.0\n")
    _soak(str(file), "--hours", "0.5", "--report-every", "5", "--results", str(tmp_path))
    _soak(str(file), "--rate", "9", "--inline", "--results", str(tmp_path))
    (plan, how), (other, other_how) = runs
    assert (plan.time_limit_s, plan.rate_hz) == (1800.0, 7.0)
    assert plan.options["final_time_limit_s"] == 90.0
    assert how["report_s"] == 300.0
    assert (other.rate_hz, other_how["inline"]) == (9.0, True)
    assert other.time_limit_s == 60.0


def test_a_soak_sets_only_options_that_its_workload_has(
    runs: list[tuple[Plan, dict[str, Any]]], tmp_path: Path
) -> None:
    """A workload without topics that are created later keeps its options."""
    _soak("--workload", "recreated", "--results", str(tmp_path))
    [(plan, _)] = runs
    assert "late_topics" not in plan.options
    assert plan.options["final_time_limit_s"] == 1800.0


@pytest.fixture
def _local_engine() -> Iterator[None]:
    yield
    engine.select(engine.LOCAL)


@pytest.mark.usefixtures("_local_engine")
def test_a_server_of_spark_connect_cannot_watch(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The request is refused before anything starts."""
    with pytest.raises(SystemExit) as ended:
        main(["soak", "--spark-remote", "sc://localhost:1", "--results", str(tmp_path)])
    assert ended.value.code == 64
    assert "cannot watch a run" in capsys.readouterr().err
