"""The figures of coverage, and their table."""

from pathlib import Path

import pytest

from harness.app.rules import figures
from harness.app.rules.probes import Branch, Function
from harness.app.rules.recorder import Rule

JOIN = Rule(
    "broker_impl.replica.isr",
    Function(
        "may_join", 9, 0, (Branch(10, "end >= start", "true"), Branch(10, "end >= start", "false"))
    ),
)
HELPER = Rule(
    "broker_impl.replica.isr", Function("helper", 20, 3, (Branch(21, "for x in y", "entered"),))
)
NEVER = Rule("broker_impl.replica.acks", Function("outcome", 5, 5, ()))
BUGS = {JOIN.name: ["joins-early"], NEVER.name: ["ack-early"]}


def _counts(*runs: tuple[int, list[int]]) -> figures.Counts:
    counts = figures.Counts((JOIN, HELPER, NEVER), 6)
    for seed, reached in runs:
        counts.add(seed, bytes(number in reached for number in range(6)))
    return counts


def test_runs_are_counted_by_branch() -> None:
    """Each branch has the number of runs that reached it, and the first seed, in any order."""
    runs = [(7, [0, 1, 3]), (4, [0, 1]), (9, [0, 2])]
    found = _counts(*runs).figures(BUGS)
    assert found == _counts(*reversed(runs)).figures(BUGS)
    assert found.runs == 3
    acks, helper, join = found.functions
    assert (join.name, join.mutants, join.runs, join.first_seed) == (
        JOIN.name,
        ("joins-early",),
        3,
        4,
    )
    assert [(each.outcome, each.runs, each.first_seed) for each in join.branches] == [
        ("true", 2, 4),
        ("false", 1, 9),
    ]
    assert (helper.runs, helper.first_seed, [each.outcome for each in helper.missing]) == (
        *(1, 7),
        ["entered"],
    )
    assert (acks.runs, acks.first_seed) == (0, None)
    rules = found.rules
    assert (rules.functions, rules.functions_reached, rules.branches_reached) == (2, 1, 2)
    assert (rules.share, found.modules.branches, found.modules.branches_reached) == (1.0, 3, 2)


def test_a_branch_that_no_run_reaches_is_reported() -> None:
    """The table begins with the rules that have missing branches; a full rule is not listed."""
    partly = figures.describe(_counts((1, [0, 1, 3])).figures(BUGS))
    headline, _, first, second, third = partly.splitlines()
    assert headline.startswith("rules: 1 of 2 functions and 1 of 2 branches reached (50.0 %);")
    assert "replica.acks:outcome*" in first
    assert first.endswith("never called")
    assert second.split()[:3] == ["replica.isr:may_join*", "1", "1/2"]
    assert second.endswith("10 end >= start: false")
    assert third.endswith("21 for x in y: entered")
    fully = figures.describe(_counts((1, [0, 1, 2, 3, 4, 5])).figures(BUGS))
    assert len(fully.splitlines()) == 1
    assert "(100.0 %)" in fully


def test_a_branch_that_cannot_be_reached_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a reason it does not count; reached all the same, it counts. Others stay missing."""
    reason = {JOIN.name: {"end >= start: false": "never so"}}
    monkeypatch.setattr(figures, "ARGUED", reason)
    found = _counts((1, [0, 1, 3])).figures(BUGS)
    assert (found.rules.branches_argued, found.rules.share, found.modules.share) == (1, 1.0, 0.5)
    assert "may_join" not in figures.describe(found)
    assert "21 for x in y: entered" in figures.describe(found)
    found = _counts((1, [0, 2, 3])).figures(BUGS)
    assert (found.rules.branches_argued, found.rules.share) == (0, 0.5)
    assert "10 end >= start: true" in figures.describe(found)


def test_a_long_table_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table says how many functions it leaves out."""
    monkeypatch.setattr(figures, "ROWS_MAX", 1)
    assert figures.describe(_counts().figures(BUGS)).endswith(
        "… and 2 more functions in coverage.json"
    )


def test_the_file_has_all_figures(tmp_path: Path) -> None:
    """What is written is read again."""
    found = _counts((1, [0, 1])).figures(BUGS)
    figures.write(found, tmp_path)
    assert (tmp_path / figures.FILE).exists()
    assert figures.read(tmp_path) == found
