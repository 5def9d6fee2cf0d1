"""Replies to writes have the bodies of ZooKeeper's protocol."""

import pytest

from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.jute import Reader
from broker_impl.zookeeper.records import (
    Create2Response,
    MultiHeader,
    MultiRequest,
    Nothing,
    Number,
    Op,
    PathResponse,
    PathVersion,
    Stat,
    StatResponse,
)
from broker_impl.zookeeper.responses import response
from broker_impl.zookeeper.tree import Outcome

STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
CREATED = Outcome(path="/a", stat=STAT)


@pytest.mark.parametrize(
    ("op", "outcome", "expected"),
    [
        (Op.CREATE, CREATED, PathResponse("/a")),
        (Op.CREATE2, CREATED, Create2Response("/a", STAT)),
        (Op.CREATE_CONTAINER, CREATED, Create2Response("/a", STAT)),
        (Op.CREATE_TTL, CREATED, Create2Response("/a", STAT)),
        (Op.SET_DATA, Outcome(stat=STAT), StatResponse(STAT)),
        (Op.SET_ACL, Outcome(stat=STAT), StatResponse(STAT)),
        (Op.DELETE, Outcome(), Nothing()),
        (Op.CLOSE_SESSION, Outcome(), Nothing()),
    ],
)
def test_a_single_write(op: Op, outcome: Outcome, expected: object) -> None:
    """Each operation has its body: a path, a Stat, both, or nothing."""
    assert response(op, None, outcome) == expected


def test_a_multi_has_a_result_per_operation() -> None:
    """A multi that was executed lists the results with their operations."""
    ops = (Op.CREATE, Op.CREATE2, Op.CHECK, Op.DELETE)
    request = MultiRequest(tuple((op, PathVersion("/a", 0)) for op in ops))
    outcome = Outcome(parts=(CREATED, CREATED, Outcome(), Outcome()))
    reader = Reader(response(Op.MULTI, request, outcome).encode())
    for op in ops:
        assert MultiHeader.read(reader) == MultiHeader(op, False, 0)
        if op == Op.CREATE:
            assert PathResponse.read(reader) == PathResponse("/a")
        elif op == Op.CREATE2:
            assert Create2Response.read(reader).stat == STAT, "ZOOKEEPER-4026"
    assert MultiHeader.read(reader).done
    assert reader.remaining == 0


def test_a_failed_multi_has_an_error_per_operation() -> None:
    """Operations before the failing one have 0, those after it -2; none has a result."""
    request = MultiRequest(tuple((Op.CREATE, PathVersion("/a", 0)) for _ in range(3)))
    errors = [Code.OK, Code.NO_NODE, Code.RUNTIME_INCONSISTENCY]
    outcome = Outcome(parts=tuple(Outcome(error=error) for error in errors))
    reader = Reader(response(Op.MULTI, request, outcome).encode())
    for error in errors:
        assert MultiHeader.read(reader) == MultiHeader(Op.ERROR, False, error)
        assert Number.read(reader).value == error
    assert MultiHeader.read(reader).done
