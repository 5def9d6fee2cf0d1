"""``faultline mutants``: its list, one mutant, and an interrupted score."""

import json

import pytest

from harness.app.run import Interrupted
from tests.harness.app.cli.conftest import Call


def test_mutants(call: Call) -> None:
    """``mutants list`` names all mutants and ``mutants show`` describes one, both also as JSON."""
    _, out, _ = call("mutants", "list", "--json")
    names = [mutant["name"] for mutant in json.loads(out)]
    _, out, _ = call("mutants", "list")
    assert [line.split()[0] for line in out.splitlines()] == names
    _, out, _ = call("mutants", "show", names[0])
    assert out.startswith(names[0])
    assert "shows as" in out
    _, out, _ = call("mutants", "show", names[0], "--json")
    assert json.loads(out)["name"] == names[0]


def test_a_score_that_is_broken_off_is_one_line_and_70(
    monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    """An interrupted score has one line and status 70, and no traceback."""

    def interrupted(*_: object) -> None:
        raise Interrupted("interrupted; rows are in docs")

    monkeypatch.setattr("harness.app.score.measure.run", interrupted)
    status, out, err = call("mutants", "score")
    assert (status, out, err) == (70, "", "faultline failed: interrupted; rows are in docs\n")
