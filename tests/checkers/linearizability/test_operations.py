"""Events become operations with the interval in which each may have taken effect."""

import pytest

from checkers.linearizability.operations import NEVER, Operation, of_events, parts
from model.history import BadHistory
from model.op import NEMESIS, Op, OpType


def event(index: int, process: int, kind: OpType, f: str, value: object = None) -> Op:
    return Op(index=index, time_ns=index, process=process, type=kind, f=f, value=value)


def test_operations_last_from_invocation_to_completion() -> None:
    """The value of a completion replaces that of the invocation; places are those of events, and
    not their indices."""
    found = of_events(
        [
            event(10, 1, "invoke", "read"),
            event(20, 2, "invoke", "write", 5),
            event(30, NEMESIS, "info", "kill"),
            event(40, 2, "ok", "write"),
            event(50, 1, "ok", "read", 5),
        ]
    )
    assert found == [
        Operation("read", 5, 0, 4, 1, 10, 50),
        Operation("write", 5, 1, 3, 2, 20, 40),
    ]
    assert [each.event for each in found] == [50, 40]


def test_what_failed_did_not_happen_and_what_is_in_doubt_may_have() -> None:
    """A failed operation is left out; one in doubt, or without a completion, never ends."""
    found = of_events(
        [
            event(0, 1, "invoke", "write", 1),
            event(1, 1, "fail", "write", 1),
            event(2, 1, "invoke", "write", 2),
            event(3, 1, "info", "write", 2),
            event(4, 1, "invoke", "write", 3),
        ]
    )
    assert [(each.value, each.end, each.is_pending) for each in found] == [
        (2, NEVER, True),
        (3, NEVER, True),
    ]


def test_a_completion_alone_is_an_operation() -> None:
    """A success without an invocation took effect at that event, and what is in doubt since then or
    never; a failure says nothing."""
    found = of_events(
        [
            event(0, 1, "ok", "write", 0),
            event(1, 2, "info", "write", 1),
            event(2, 3, "fail", "write", 2),
        ]
    )
    assert found == [
        Operation("write", 0, 0, 0, 1, -1, 0),
        Operation("write", 1, 1, NEVER, 2, -1, 1),
    ]


def test_a_process_does_one_thing_after_the_other() -> None:
    """Two open invocations of a process are refused."""
    events = [event(0, 1, "invoke", "read"), event(7, 1, "invoke", "read")]
    with pytest.raises(BadHistory, match="event 7: process 1 invokes an operation before"):
        of_events(events)


def test_parts_keep_the_order() -> None:
    """The operations of a key keep their order."""
    operations = [Operation("read", n, n, n) for n in range(4)]
    assert parts(operations, "abab") == {
        "a": [operations[0], operations[2]],
        "b": [operations[1], operations[3]],
    }
