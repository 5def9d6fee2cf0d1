"""Texts of testers of isolation become transactions of sessions, or are refused with a line."""

from typing import Any

import pytest

from checkers import objects, recorded, session_texts
from model.history import BadHistory

PLUME = """w(1,7,5,10)
r(2,0,5,10)
w(2,8,9,-1)
r(1,0,9,-1)
w(2,9,9,11)
r(1,7,9,12)
w(1,8,5,13)
w(3,0,9,12)
r(3,0,9,12)
"""
AWDIT = """
w 1 7
r 2 0
-----
w 1 8

=====
w 2 9
-----
-----
r 1 7
w 3 0
"""


def test_plume() -> None:
    """Sessions are numbered as they appear. Only a write of an aborted transaction counts, and 0 is
    the initial state of the keys to which nothing writes 0."""
    found = recorded.parse(PLUME, "x").events
    assert [(each.process, each.type, each.value) for each in found] == [
        (0, "ok", [["w", 1, 7], ["r", 2, None]]),
        (1, "fail", [["w", 2, 8]]),
        (1, "ok", [["w", 2, 9]]),
        (1, "ok", [["r", 1, 7], ["w", 3, 0], ["r", 3, 0]]),
        (0, "ok", [["w", 1, 8]]),
    ]
    assert [each.index for each in found] == [0, 1, 2, 3, 4]


def test_transactions_that_each_session_numbers() -> None:
    """Equal numbers in two sessions are two transactions."""
    found = session_texts.plume("w(1,1,0,0)\nw(1,2,1,0)\nw(2,1,0,0)", "x")
    assert [each.value for each in found] == [[["w", 1, 1], ["w", 2, 1]], [["w", 1, 2]]]


def test_awdit() -> None:
    """Lines of hyphens end transactions, lines of equals signs end sessions, and 0 is a value like
    any other."""
    found = recorded.parse(AWDIT, "x").events
    assert [(each.process, each.type, each.value) for each in found] == [
        (0, "ok", [["w", 1, 7], ["r", 2, 0]]),
        (0, "ok", [["w", 1, 8]]),
        (1, "ok", [["w", 2, 9]]),
        (1, "ok", [["r", 1, 7], ["w", 3, 0]]),
    ]


@pytest.mark.parametrize(
    ("text", "level", "valid"),
    [
        ("w(1,1,0,0)\nr(1,1,1,1)\nr(2,0,1,1)", "serializable", True),
        ("w(1,1,0,0)\nw(2,1,0,0)\nr(1,1,1,1)\nr(2,0,1,1)", "read-atomic", False),
        ("w(1,1,0,-1)\nr(1,1,1,1)", "read-committed", False),
        ("w(1,0,0,-1)\nr(1,0,1,1)", "read-committed", True),
        ("r 1 0\nw 2 1\n=====\nr 2 1\nw 1 0", "read-committed", False),
        ("w 1 1\n-----\nw 2 1\n=====\nr 2 1\nr 1 1", "causal", True),
    ],
)
def test_they_are_judged(text: str, level: str, valid: bool) -> None:
    """The transactions are judged as sessions."""
    events = recorded.parse(text, "x").events
    assert objects.check(events, "sessions", consistency=level).valid is valid


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("r(1,0,0,1)\nw(1,0,0,2)\nr(1,0,1,3)\nr(1,5,1,3)", [[], [["w", 1, 0]], [["r", 1, 5]]]),
        ("r(1,0,0,1)\nw(1,0,0,1)\nr(1,0,0,1)", [[["w", 1, 0], ["r", 1, 0]]]),
        ("w(1,5,0,1)\nr(1,0,0,1)\nw(1,0,1,1)", None),
        ("w(1,0,0,1)\nr(2,0,0,1)", None),
        ("w(1,0,0,-1)\nr(1,0,1,1)", None),
        ("[x:=0 y==1] [x==0]", [[["w", "x", 0], ["r", "y", 1]], []]),
        ("w 1 0\n-----\nr 1 0", None),
    ],
)
def test_what_is_certain(text: str, reads: list[Any] | None) -> None:
    """Where a committed transaction wrote 0, a read of 0 shows nothing, unless it follows an own
    write. In AWDIT's format, 0 is a value like any other."""
    certain = recorded.parse(text, "x").certain
    assert (None if certain is None else [each.value for each in certain]) == reads


def test_they_have_no_real_time() -> None:
    """The order of lines is none in time: only that of the sessions counts for registers as well.

    The reader of the initial state comes last in the text; as a later transaction of the writer's
    session, it contradicts the order of the process.
    """
    asked = {"model": "rw-register", "assume": ["wfr-keys"]}
    text = "w(1,1,0,0)\nr(1,1,1,1)\nw(1,2,1,1)\nr(1,0,{},2)"
    other = recorded.parse(text.format(2), "x").events
    same = recorded.parse(text.format(1), "x").events
    assert objects.check(other, **asked).valid is True  # type: ignore[arg-type]
    found = objects.check(same, **asked)  # type: ignore[arg-type]
    assert (found.valid, *found.anomalies) == (False, "G-single-item-process")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("w(1,7,5,10)\nw(1,7,5)", r"x, line 2: 'w\(1,7,5\)' is not r\(key,value,session,trans"),
        ("w(1,a,5,10)", r"x, line 1: 'w\(1,a,5,10\)' is not"),
        ("\nr(1,2,3,4)\n\nend", "x, line 4: 'end' is not"),
        ("w 1 7\n-----\nw 1 a", "x, line 3: 'w 1 a' is not 'r key value' or 'w key value'"),
        ("w 1 7\n--", "x, line 2: '--' is not"),
        ("r 1", "x, line 1: 'r' is not an operation"),
        ("-----\n", "x has no events"),
    ],
)
def test_bad_lines(text: str, message: str) -> None:
    """One sentence names the file, the line and what should be there."""
    with pytest.raises(BadHistory, match=message):
        recorded.parse(text, "x")


@pytest.mark.parametrize("text", ['{"type": "ok"}', "{:type :ok}", "[]", "", "rw 1 2", "w"])
def test_other_texts(text: str) -> None:
    """Other texts are left to other readers."""
    assert session_texts.reader(text) is None
