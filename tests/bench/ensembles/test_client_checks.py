from typing import Any

import pytest

from bench.ensembles.client_checks import Final, judge
from bench.ensembles.clients import FORBIDDEN, Seen


def seen(what: str, value: Any, at: float = 0.0, outcome: str = "ok", client: int = 1) -> Seen:
    """An operation that took from ``at`` to half a second later."""
    return Seen(client, 1, what, at, at + 0.5, outcome, value)


def final(server: int = 1, **other: Any) -> Final:
    said: dict[str, Any] = {
        "register": (1, 5, b"a"),
        "pair": (6, 6, b"p", b"p"),
        "queue": {"/queue/n-0000000001": b"1.1"},
        "owned": [],
    }
    return Final(server, **said | other)


APPENDED = seen("append", ("/queue/n-0000000001", b"1.1"))
WRITTEN = seen("set", (1, 5, b"a"))


def names(operations: list[Seen], *finals: Final) -> list[str]:
    """The names of what is wrong."""
    found = judge([APPENDED, *operations], finals or [final()])
    return [violation.partition(":")[0] for violation in found]


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([WRITTEN], []),
        ([seen("append", ("/queue/n-0000000002", b"1.2"), 1.0)], ["lost-write"]),
        ([seen("append", b"1.2", 1.0, "unknown")], []),
        (
            [seen("append", ("/queue/n-0000000000", b"1.2"), 1.0)],
            ["lost-write", "number-went-back"],
        ),
        ([seen("append", ("/queue/n-0000000001", b"1.2"))], ["number-used-twice"]),
        ([seen("set", (2, 9, b"b"))], ["lost-write"]),
        ([WRITTEN, seen("get", (1, 5, b"b"), 1.0)], ["lost-write"]),
        ([seen("get", (0, 4, b"0"), 1.0), WRITTEN], []),
        ([WRITTEN, seen("get", (0, 4, b"0"), 1.0)], ["read-went-back"]),
        ([WRITTEN, seen("get", (0, 4, b"0"), 1.0, client=2)], []),
        ([seen("read-pair", (6, 6, b"p", b"p"))], []),
        ([seen("read-pair", (6, 7, b"p", b"q"))], []),
        ([seen("read-pair", (7, 6, b"q", b"p"))], ["torn-multi"]),
        ([seen("read-pair", (6, 7, b"p", FORBIDDEN))], ["torn-multi"]),
    ],
)
def test_what_clients_may_see(operations: list[Seen], expected: list[str]) -> None:
    """Each kind of wrong answer is found, and its neighbour that is allowed is not."""
    assert names(operations) == expected


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"owned": ["/owned/1"]}, ["ephemeral-left"]),
        ({"pair": (6, 7, b"p", b"q")}, ["torn-multi"]),
        (
            {"queue": {"/queue/n-0000000001": b"1.1", "/queue/n-0000000002": b"1.1"}},
            ["executed-twice"],
        ),
        ({"queue": {"/queue/n-0000000001": b"1.1", "/queue/n-0000000002": b"9.9"}}, ["phantom"]),
        ({"queue": {}}, ["lost-write"]),
    ],
)
def test_what_is_left_in_the_end(wrong: dict[str, Any], expected: list[str]) -> None:
    """The final state of each server has what was acknowledged, once, and nothing else."""
    assert names([WRITTEN], final(**wrong)) == expected


def test_servers_answer_alike() -> None:
    """All servers answer the same in the end."""
    assert names([], final(1), final(2)) == []
    assert names([], final(1), final(2, register=(2, 7, b"b"))) == ["servers-differ"]
