"""``faultline run`` chooses where the history is judged."""

from pathlib import Path

import msgspec
import pytest

from checkers.expectations import STRICT
from harness.app import exits
from harness.app.cli import main
from harness.app.cli.run import run_plan
from harness.app.run import Failed
from model.plan import Plan


@pytest.mark.parametrize(
    ("target", "asked", "inline"),
    [("simulated", None, True), ("processes", None, False), ("simulated", False, False),
     ("processes", True, True)],
)  # fmt: skip
def test_a_small_history_does_not_wait_for_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: str, asked: bool | None, inline: bool
) -> None:
    """Simulated runs are judged inline unless the command line asks for Spark."""
    told = []

    def run(plan: Plan, results: Path, *, inline: bool, screen: object) -> None:
        told.append(inline)
        raise Failed("enough")

    monkeypatch.setattr("harness.app.run.run", run)
    assert (
        run_plan(msgspec.convert({"target": target}, Plan), tmp_path, inline=asked, as_json=False)
        == exits.FAILED
    )
    assert told == [inline]


def test_strict_becomes_the_plan_s_expectation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``--strict`` is part of the plan, so that a later check judges in the same way."""
    plans = []

    def run(plan: Plan, results: Path, *, inline: bool, screen: object) -> None:
        plans.append(plan)
        raise Failed("enough")

    monkeypatch.setattr("harness.app.run.run", run)
    for options in ([], ["--strict"]):
        with pytest.raises(SystemExit):
            main(["run", "--nemesis", "none", "--results", str(tmp_path), *options])
    assert [plan.expect for plan in plans] == [{}, dict(STRICT)]
