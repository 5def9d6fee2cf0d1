"""``faultline run`` chooses where the history is judged."""

from pathlib import Path

import msgspec
import pytest

from harness.app import exits
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
