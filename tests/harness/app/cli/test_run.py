"""``faultline run`` chooses where the history is judged."""

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from checkers import engine
from checkers.expectations import STRICT
from harness.app import exits, options
from harness.app.cli import main
from harness.app.cli.run import run_plan
from harness.app.refused import Refused
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
    calls = []

    def run(plan: Plan, results: Path, *, inline: bool, **how: object) -> None:
        calls.append(inline)
        raise Failed("enough")

    monkeypatch.setattr("harness.app.run.run", run)
    assert (
        run_plan(msgspec.convert({"target": target}, Plan), tmp_path, inline=asked, as_json=False)
        == exits.FAILED
    )
    assert calls == [inline]


def test_strict_becomes_the_plan_s_expectation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``--strict`` is part of the plan, so that a later check judges in the same way."""
    plans = []

    def run(plan: Plan, results: Path, *, inline: bool, **how: object) -> None:
        plans.append(plan)
        raise Failed("enough")

    monkeypatch.setattr("harness.app.run.run", run)
    for flags in ([], ["--strict"]):
        with pytest.raises(SystemExit):
            main(["run", "--nemesis", "none", "--results", str(tmp_path), *flags])
    assert [plan.expect for plan in plans] == [{}, dict(STRICT)]


@pytest.fixture
def _local_engine() -> Iterator[None]:
    yield
    engine.select(engine.LOCAL)


@pytest.mark.usefixtures("_local_engine")
def test_an_engine_is_selected_before_the_command() -> None:
    """A command that names a Spark judges with it, also where it would judge inline by default."""
    calls: list[tuple[bool | None, str | None]] = []

    @click.command()
    @options.judged_by
    @options.spark_engine
    def judge(inline: bool | None) -> None:
        calls.append((inline, engine.selected().master))

    cli = CliRunner()
    assert cli.invoke(judge, []).exit_code == 0
    assert cli.invoke(judge, ["--inline"]).exit_code == 0
    assert (
        cli.invoke(judge, ["--spark-master", "spark://h:1", "--conf", "spark.a=1"]).exit_code == 0
    )
    assert calls == [(None, None), (True, None), (False, "spark://h:1")]
    assert engine.selected().conf == {"spark.a": "1"}
    assert cli.invoke(judge, ["--spark-remote", "sc://h"]).exit_code == 0
    assert engine.selected().remote == "sc://h"
    assert calls.pop() == (False, None)
    for wrong in (["--inline", "--conf", "spark.a=1"], ["--spark-master", "http://h"]):
        assert isinstance(cli.invoke(judge, wrong).exception, Refused)
    assert len(calls) == 3
