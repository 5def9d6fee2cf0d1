"""Hostile inputs are answered by the rules, and an answer that breaks a rule is noticed."""

import random
from pathlib import Path

import pytest

from bench.hostile import inputs, runner
from bench.hostile.case import ANY, READS, Answer, Case, complaints, file
from bench.hostile.histories import TEXT, check

SEED = 20261122
IN_PROCESS = tuple(kind for kind in inputs.KINDS if kind != "processes")


@pytest.mark.parametrize("kind", IN_PROCESS)
def test_a_sample_is_answered_by_the_rules(kind: str) -> None:
    """A hostile input causes no traceback, no status 1 without an anomaly, and no silent
    acceptance."""
    for case in inputs.sample(SEED, 3, [kind]):
        assert complaints(case, runner.answer(case)) == [], case.name


def test_a_sample_has_all_kinds_and_follows_from_its_seed() -> None:
    """A sample has inputs of all kinds, and follows from its seed so that a complaint can be
    examined."""
    kinds = ("special", "suites", "doubled")
    names = [case.name for case in inputs.sample(SEED, 30, kinds)]
    assert names == [case.name for case in inputs.sample(SEED, 30, kinds)]
    assert names != [case.name for case in inputs.sample(SEED + 1, 30, kinds)]
    assert len(names) == 30
    every = {case.name for case in inputs.POOLS["doubled"](random.Random(SEED))}
    assert len(every & set(names)) == 10


REFUSAL = "faultline: history.jsonl, line 3: it is no event\n"
CASE = check("refused", b"{")


@pytest.mark.parametrize(
    ("case", "answer", "complaint"),
    [
        (CASE, Answer(None, "", ""), "the program did not end in time"),
        (CASE, Answer(0, "VALID    all\n", ""), "the exit status is 0, not one of [64]"),
        (CASE, Answer(64, "", "Traceback (most recent call last)\n"), "the output has a traceback"),
        (
            CASE,
            Answer(64, "", "faultline: \x1b[2J is no event\n"),
            "the output has the control character '\\x1b'",
        ),
        (CASE, Answer(64, "", REFUSAL + "more\n"), "the refusal is not one line on standard error"),
        (CASE, Answer(64, "VALID\n", REFUSAL), "a refusal also wrote to standard output"),
        (CASE, Answer(64, "", "faultline: wrong\n"), "the refusal does not say what is wrong"),
        (
            CASE,
            Answer(64, "", f"faultline: it is {'x' * 2000}\n"),
            "the output has a line of more than 1,100",
        ),
        (
            check("any", b"", may=ANY),
            Answer(1, "INVALID\n", ""),
            "the exit status is 1, but no anomaly",
        ),
        (
            check("any", b"", may=ANY),
            Answer(1, "INVALID  lost-write 1 · key x\n", "", witnesses_exist=False),
            "a finding names events that the history does not have",
        ),
        (
            check("mentioned", b"", may=READS, mentions="errror"),
            Answer(0, "VALID    all\n", ""),
            "the output does not mention 'errror'",
        ),
    ],
)
def test_what_breaks_a_rule_is_noticed(case: Case, answer: Answer, complaint: str) -> None:
    """For each rule, an answer that breaks it is noticed."""
    assert any(found.startswith(complaint) for found in complaints(case, answer))


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        (CASE, Answer(64, "", "reading …\n" + REFUSAL)),
        (check("any", b"", may=ANY), Answer(1, "INVALID  lost-write 1 · key x\n", "")),
        (check("mentioned", b"", may=READS, mentions="node"), Answer(0, "VALID  node\n", "")),
        (Case("help", (), shows_help=True), Answer(64, "", "Usage: faultline\n\nCommands:\n")),
    ],
)
def test_what_follows_the_rules_is_no_complaint(case: Case, answer: Answer) -> None:
    """An answer that follows the rules is no complaint, even with progress before a refusal."""
    assert complaints(case, answer) == []


def test_the_history_that_is_changed_is_valid() -> None:
    """The history is valid before it is changed, so that a refusal is due to the change."""
    answer = runner.answer(check("unchanged", TEXT))
    assert (answer.status, answer.out[:5]) == (0, "VALID")


def test_an_input_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """An input is run in a folder of its own, which is removed, and the working folder stays the
    same."""
    here = Path.cwd()
    prepare = file("plan.toml", "workload = 7\n")
    case = Case("a plan", ("run", "plan.toml", "--results", str(tmp_path)), prepare)
    assert runner.answer(case).status == 64
    assert Path.cwd() == here
    assert list(tmp_path.iterdir()) == []
