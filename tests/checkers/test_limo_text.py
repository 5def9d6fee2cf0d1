"""LiMo's texts become the events of a stack or of a queue, or are refused with a line."""

import pytest

from checkers import limo_text, objects, recorded
from checkers.linearizability.models import EMPTY
from model.history import BadHistory

STACK = """# A comment.

# @object atomic-stack
[1] call push(7)
  [2] call pop()
[1] return
  [2] return 7
[1] call push a
[1] return
[2] call remove
[2] return -1
[3] call pop
[3] return
[4] call add(b)
"""


def test_a_stack() -> None:
    """The methods have the names of the model's operations, and a removal of nothing its result."""
    found = recorded.parse(STACK, "x").events
    assert [(each.process, each.type, each.f, each.value) for each in found] == [
        (1, "invoke", "push", 7),
        (2, "invoke", "pop", None),
        (1, "ok", "push", None),
        (2, "ok", "pop", 7),
        (1, "invoke", "push", "a"),
        (1, "ok", "push", None),
        (2, "invoke", "pop", None),
        (2, "ok", "pop", -1),
        (3, "invoke", "pop", None),
        (3, "ok", "pop", EMPTY),
        (4, "invoke", "push", "b"),
    ]


@pytest.mark.parametrize(("first", "valid"), [(1, True), (2, False)])
def test_a_queue_is_judged(first: int, valid: bool) -> None:
    """A queue gives the element that was added first."""
    calls = ["enq(1)", "add(2)", "deq", "remove"]
    returns = ["", "", str(first), "empty"]
    lines = [
        line
        for call, value in zip(calls, returns, strict=True)
        for line in (f"[3] call {call}", f"[3] return {value}")
    ]
    if valid:
        lines[-1] = "[3] return 2"
    events = recorded.parse("\n".join(["# @object atomic-queue", *lines]), "x").events
    assert objects.check(events, "fifo-queue").valid is valid


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[1] call enq(3)"], "x, line 2: the method enq is not one of push, add, pop, remove"),
        (["[1] call push"], "x, line 2: push needs a value"),
        (["[1] call pop(3)"], "x, line 2: pop takes no value"),
        (["[1] return 3"], "x, line 2: thread 1 returns without a call"),
        (["[1] call pop", "[1] call pop"], "x, line 3: thread 1 calls before its last call"),
        (["", "1 call pop"], r"x, line 3: '1 call pop' is neither '\[thread\] call method"),
        (["[1] call push(?<0,1>)"], r"x, line 2: '\[1\] call push\(\?<0,1>\)' is neither"),
        (["# @object atomic-list"], "x, line 2: the object atomic-list is not one of atomic-stack"),
        ([], "x has no events"),
    ],
)
def test_bad_lines(lines: list[str], message: str) -> None:
    """One sentence names the file, the line and what is wrong."""
    with pytest.raises(BadHistory, match=message):
        recorded.parse("\n".join(["# @object atomic-stack", *lines]), "x")


@pytest.mark.parametrize(
    "text", ["", "# only a comment", "#jepsen.history.Op{:type :ok}", "[1] call pop"]
)
def test_other_texts(text: str) -> None:
    """A text that names no object before its first event is left to other readers."""
    assert not limo_text.is_limo(text)
