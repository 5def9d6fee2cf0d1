"""The comparison with judges that try every order finds a checker that is wrong."""

import sys

import pytest

from bench.oracles import __main__ as oracles
from bench.oracles import kinds, session_kinds
from checkers.linearizability import judging
from checkers.linearizability.judging import Judgement


def test_every_model_is_compared() -> None:
    """Each kind has a name of its own."""
    names = [name for name, _ in oracles.comparisons()]
    assert len(names) == len(set(names))
    assert len(names) == len(kinds.KINDS) + len(kinds.UNIQUE) + len(session_kinds.PROMISES)


def test_no_disagreement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A few histories of each kind are judged alike."""
    monkeypatch.setattr(sys, "argv", ["oracles", "--count", "20", "--seed", "3"])
    assert oracles.main() == 0
    assert capsys.readouterr().out.endswith("0 disagreements\n")


def test_a_wrong_checker_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checker that takes everything for valid is reported, with the number of the history."""
    monkeypatch.setattr(sys, "argv", ["oracles", "--count", "30"])
    monkeypatch.setattr(judging, "judge", lambda *asked: Judgement(True, ()))
    assert oracles.main() == 1
    assert "mutex, number 1: True, and trying every order says False" in capsys.readouterr().out
