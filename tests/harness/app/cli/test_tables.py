"""The verb ``tables``, and ``sql --tables``: what they print, and their exit statuses."""

import json
from pathlib import Path

import pytest

from tests.harness.app.cli.conftest import Call
from tests.harness.app.lake import made_runs


def test_writing(tmp_path: Path, call: Call) -> None:
    """The result is a line, or JSON."""
    run = made_runs.make(tmp_path / made_runs.NAME, judged=False)
    root = tmp_path / "tables"
    status, out, _ = call("tables", str(run), "--to", str(root))
    assert (status, out) == (0, f"{root}: the tables of 1 run were written\n")
    status, out, _ = call("tables", str(run), "--to", str(root), "--json")
    assert status == 0
    assert json.loads(out) == {"tables": str(root), "runs": [made_runs.NAME]}


@pytest.mark.parametrize(
    "arguments",
    [
        ("tables", "none", "--to", "new"),
        ("tables", "bad.jsonl", "--to", "new"),
        ("tables", "good.jsonl", "--to", "."),
        ("tables", "good.jsonl", "--to", "bad.jsonl"),
        ("sql", "select 1", "--tables", "."),
    ],
)
def test_wrong_requests(
    arguments: tuple[str, ...], tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong request has status 64 and one line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAULTLINE_LAKE", raising=False)
    (tmp_path / "bad.jsonl").write_text("{}\n")
    run = made_runs.make(tmp_path / "run", judged=False)
    (run / "history.jsonl").rename(tmp_path / "good.jsonl")
    status, out, err = call(*arguments)
    assert (status, out, err.count("\n")) == (64, "", 1)
    assert err.startswith("faultline: ")
