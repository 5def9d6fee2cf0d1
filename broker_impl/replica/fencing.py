"""Epochs keep the past out: orders and requests of a former controller, leader or incarnation."""

from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Epoch

NO_EPOCH = -1
"""A request that carries no epoch is not checked against one."""
EPOCH_DURING_DELETE = -2
"""The leader epoch in StopReplica for a topic that is being deleted: beyond any other (KIP-570)."""


def controller(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """An order of a controller that has been replaced is ignored as a whole (KAFKA-1188)."""
    if request_epoch < known_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.NONE


def broker(request_epoch: Epoch, own_epoch: Epoch) -> ErrorCode:
    """An order to a former incarnation of this broker is ignored (KIP-380).

    A newer epoch than our own is accepted: the controller sees a registration before we do
    (KAFKA-9839).
    """
    if NO_EPOCH < request_epoch < own_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def connection(number: int, newest: int) -> ErrorCode:
    """An order by a connection that its controller has given up since is late, and is ignored.

    Connections count up. The order was sent again by a later one, and others behind it. A list of
    brokers or a deletion has no epoch of its own by which that would be seen.
    """
    if number < newest:
        return ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NONE


def late_roles(late: ErrorCode) -> ErrorCode:
    """An order that is late gives no roles, either, though each role has its leader epoch.

    The epoch tells it from newer ones where the replica is still there. One that was deleted since
    would be made anew, as the leader of an empty log; and one of a topic that was made anew since
    counts its epochs anew.
    """
    return late


def leader_and_isr(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """Only a newer leader epoch changes a replica's role; the same one says nothing new."""
    if request_epoch <= known_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.NONE


def stop(request_epoch: Epoch, known_epoch: Epoch, delete: bool) -> ErrorCode:
    """StopReplica of a former leader epoch is ignored (KIP-570).

    An equal one is obeyed where it deletes: a cancelled reassignment does not raise the epoch
    (KAFKA-13972).
    """
    if request_epoch in (NO_EPOCH, EPOCH_DURING_DELETE) or request_epoch > known_epoch:
        return ErrorCode.NONE
    if request_epoch == known_epoch and delete:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH


def current_leader_epoch(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """Does the asker believe in the same leader epoch (KIP-320)?"""
    if request_epoch in (NO_EPOCH, known_epoch):
        return ErrorCode.NONE
    if request_epoch < known_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def follower_fetch(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """A follower's fetch counts only in the leader's own epoch, which it therefore must name.

    Otherwise a leader that has been replaced counts followers that will truncate what it
    acknowledges (KAFKA-7395).
    """
    if request_epoch == NO_EPOCH:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return current_leader_epoch(request_epoch, known_epoch)
