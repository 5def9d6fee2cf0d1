"""The comparison with judges that try every order finds a checker that is wrong."""

import sys

import pytest

from bench.oracles import __main__ as oracles
from bench.oracles import isolation_kinds
from checkers import objects, transaction_models
from checkers.linearizability import judging
from checkers.linearizability.judging import Judgement
from checkers.object_verdict import ObjectVerdict, Valid

Out = pytest.CaptureFixture[str]


def test_every_model_is_compared() -> None:
    """Each kind has a name of its own, and all models of transactions have one."""
    names = [name for name, _ in oracles.comparisons()]
    assert len(names) == len({*names})
    for model in (*transaction_models.NAMES, "cas-register", "zookeeper", "sequential"):
        assert any(name.startswith(model) for name in names), model


def test_no_disagreement(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    """A few histories of each kind are judged alike."""
    monkeypatch.setattr(sys, "argv", ["oracles", "--count", "20", "--seed", "3"])
    assert oracles.main() == 0
    assert capsys.readouterr().out.endswith("0 disagreements\n")


def test_a_wrong_checker_is_found(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    """A checker that takes everything for valid is reported, with the number of the history."""
    monkeypatch.setattr(sys, "argv", ["oracles", "--count", "30", "--only", "mutex"])
    monkeypatch.setattr(judging, "judge", lambda *asked: Judgement(True, ()))
    assert oracles.main() == 1
    assert "mutex, number 1: True, and trying every order says False" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("verdict", "found_by"),
    [
        (
            True,
            {
                "list-append, complete",
                "set-append",
                "rw-register, reads first",
                *(f"sessions, {level}" for level in ("serializable", "prefix")),
                "sessions, snapshot-isolation",
                *(
                    f"{model}, planted anomalies"
                    for model in ("list-append", "set-append", "rw-register", "closed-predicate")
                ),
            },
        ),
        (
            False,
            {
                "list-append",
                "list-append, complete",
                "set-append",
                "rw-register",
                "rw-register, reads first",
                "closed-predicate",
                *(f"sessions, {level}" for level in ("serializable", "prefix")),
                "sessions, snapshot-isolation",
                *(
                    f"{model}, planted anomalies"
                    for model in ("list-append", "set-append", "rw-register", "closed-predicate")
                ),
            },
        ),
    ],
)
def test_wrong_checkers_of_isolation_are_found(
    monkeypatch: pytest.MonkeyPatch, capsys: Out, verdict: Valid, found_by: set[str]
) -> None:
    """A checker that takes everything for valid is found where completeness is promised, and one
    that takes everything for invalid is found everywhere."""
    wrong = ObjectVerdict(valid=verdict, model="", operations=1)
    monkeypatch.setattr(objects, "check", lambda *asked, **how: wrong)
    monkeypatch.setattr(oracles, "comparisons", isolation_kinds.comparisons)
    monkeypatch.setattr(sys, "argv", ["oracles", "--count", "40"])
    assert oracles.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(", number")[0] for line in lines if ", number" in line} == found_by


def test_only_some_kinds(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    """``--only`` selects the kinds whose names have a text."""
    monkeypatch.setattr(sys, "argv", ["oracles", "--count", "2", "--only", "sessions, pre"])
    assert oracles.main() == 0
    begin, end = capsys.readouterr().out.splitlines()
    assert begin.startswith("sessions, prefix: ")
    assert end == "0 disagreements"
