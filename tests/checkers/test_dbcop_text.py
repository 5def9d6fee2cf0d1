"""Histories of dbcop, as text and as JSON, become transactions of sessions."""

import json

import pytest

from checkers import objects, recorded
from model.history import BadHistory

TEXT = """// the first session
[x:=1 y:=2] [y==2 x:=3]!
[z==? w==0]
---
// the second one

[x==1 y:=4]
"""
SESSIONS = [
    [
        {
            "events": [
                {"Write": {"variable": 0, "version": 1}},
                {"Read": {"variable": 7, "version": None}},
            ],
            "committed": True,
        },
        {"events": [["w", 0, 3], ["r", 1, 2]], "committed": False},
    ],
    [],
    [{"events": [["r", 0, 1], ["r", 2, 0], ["r", 1, None]], "committed": True}],
]
OLD = [
    [{"events": [{"write": True, "variable": 0, "value": 1, "success": True}], "success": True}],
    [
        {
            "events": [
                {"write": False, "variable": 0, "value": 0, "success": True},
                {"write": True, "variable": 0, "value": 2, "success": False},
            ],
            "success": True,
        },
        {
            "events": [{"write": False, "variable": 0, "value": 1, "success": True}],
            "success": False,
        },
    ],
]


def _shown(text: str) -> list[tuple[int, str, object]]:
    return [(each.process, each.type, each.value) for each in recorded.parse(text, "x").events]


def test_text() -> None:
    """A session is a process, an uncommitted transaction failed, and 0 is the initial state."""
    assert _shown(TEXT) == [
        (0, "ok", [["w", "x", 1], ["w", "y", 2]]),
        (0, "fail", [["w", "x", 3]]),
        (0, "ok", [["r", "z", None], ["r", "w", None]]),
        (1, "ok", [["r", "x", 1], ["w", "y", 4]]),
    ]


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
def test_json(is_wrapped: bool, indent: int | None) -> None:
    """Sessions are a list, or the data of a map; events are maps or lists."""
    whole = {"params": {"id": 0}, "info": "x", "data": SESSIONS} if is_wrapped else SESSIONS
    assert _shown(json.dumps(whole, indent=indent)) == [
        (0, "ok", [["w", 0, 1], ["r", 7, None]]),
        (0, "fail", [["w", 0, 3]]),
        (2, "ok", [["r", 0, 1], ["r", 2, None], ["r", 1, None]]),
    ]


def test_the_older_form() -> None:
    """Events and transactions have a success, and what has none does not count."""
    assert _shown(json.dumps({"data": OLD})) == [
        (0, "ok", [["w", 0, 1]]),
        (1, "ok", [["r", 0, None]]),
    ]


@pytest.mark.parametrize(
    ("text", "consistency", "is_valid"),
    [
        ("[x==0 x:=1]\n---\n[x==0 x:=2]\n", "causal", True),
        ("[x==0 x:=1]\n---\n[x==0 x:=2]\n", "snapshot-isolation", False),
        ("[x:=0]\n[x==0 x:=1]\n", "serializable", True),
        ("[x==? y:=1]\n---\n[y==? x:=1]\n", "snapshot-isolation", True),
        ("[x==? y:=1]\n---\n[y==? x:=1]\n", "serializable", False),
        ("[x:=1]!\n---\n[x==1]\n", "read-committed", False),
    ],
)
def test_verdicts(text: str, consistency: str, is_valid: bool) -> None:
    """The histories are judged by the levels of sessions."""
    events = recorded.parse(text, "x").events
    assert objects.check(events, "sessions", consistency=consistency).valid is is_valid


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[x:=1]\n[y=1]\n", "x, line 2: 'y=1' is not x:=1, x==1 or x==?"),
        ("[x:=1] y\n", "x, line 1: ' y' is not"),
        ('{"data": [[{"events": [["x", 1, 2]], "committed": true}]]}', "is not an event of dbcop"),
        ('{"data": [[{"events": []}]]}', "x, session 1, transaction 1: it needs a list of events"),
        ('{"data": [1]}', "is not an operation with a type"),
    ],
)
def test_refusals(text: str, why: str) -> None:
    """What is not of a format is refused with its place."""
    with pytest.raises(BadHistory, match=r".") as refused:
        recorded.parse(text, "x")
    assert why in str(refused.value)
