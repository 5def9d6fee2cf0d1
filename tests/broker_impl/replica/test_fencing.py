import pytest

from broker_impl.errors import ErrorCode
from broker_impl.replica import fencing

NONE = ErrorCode.NONE
FENCED = ErrorCode.FENCED_LEADER_EPOCH
UNKNOWN = ErrorCode.UNKNOWN_LEADER_EPOCH
STALE = ErrorCode.STALE_CONTROLLER_EPOCH


@pytest.mark.parametrize(("epoch", "expected"), [(4, STALE), (5, NONE), (6, NONE)])
def test_controller(epoch: int, expected: ErrorCode) -> None:
    """Orders of a former controller are refused."""
    assert fencing.controller(epoch, 5) is expected


@pytest.mark.parametrize(
    ("epoch", "expected"), [(4, ErrorCode.STALE_BROKER_EPOCH), (5, NONE), (6, NONE), (-1, NONE)]
)
def test_broker(epoch: int, expected: ErrorCode) -> None:
    """An order to a former incarnation is refused; a later broker epoch is this broker's own."""
    assert fencing.broker(epoch, 5) is expected


@pytest.mark.parametrize(
    ("number", "expected"), [(4, ErrorCode.REQUEST_TIMED_OUT), (5, NONE), (6, NONE)]
)
def test_connection(number: int, expected: ErrorCode) -> None:
    """An order over a connection that the controller has given up is late, and refused."""
    assert fencing.connection(number, 5) is expected


@pytest.mark.parametrize(("epoch", "expected"), [(4, STALE), (5, STALE), (6, NONE)])
def test_leader_and_isr(epoch: int, expected: ErrorCode) -> None:
    """LeaderAndIsr is applied only if its leader epoch is newer."""
    assert fencing.leader_and_isr(epoch, 5) is expected


@pytest.mark.parametrize(
    ("epoch", "delete", "expected"),
    [
        (4, True, FENCED),
        (4, False, FENCED),
        (5, False, FENCED),
        (5, True, NONE),  # a cancelled reassignment (KAFKA-13972)
        (6, False, NONE),
        (fencing.EPOCH_DURING_DELETE, True, NONE),
        (fencing.NO_EPOCH, False, NONE),
    ],
)
def test_stop(epoch: int, delete: bool, expected: ErrorCode) -> None:
    """StopReplica must have the present leader epoch or a later one."""
    assert fencing.stop(epoch, 5, delete) is expected


@pytest.mark.parametrize(
    ("epoch", "client", "follower"),
    [
        (4, FENCED, FENCED),
        (5, NONE, NONE),
        (6, UNKNOWN, UNKNOWN),
        (-1, NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_leader_epoch(epoch: int, client: ErrorCode, follower: ErrorCode) -> None:
    """A request that names an epoch must name the leader's own; a follower must name one."""
    assert fencing.current_leader_epoch(epoch, 5) is client
    assert fencing.follower_fetch(epoch, 5) is follower
