"""Checks of epochs that reject requests of a former controller, leader or broker incarnation."""

from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Epoch

NO_EPOCH = -1
"""The epoch of a request that carries none; it is not checked."""
EPOCH_DURING_DELETE = -2
"""The leader epoch in StopReplica for a topic under deletion: newer than any other (KIP-570)."""


def controller(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """The error for a controller's request: a replaced controller's is rejected (KAFKA-1188)."""
    if request_epoch < known_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.NONE


def broker(request_epoch: Epoch, own_epoch: Epoch) -> ErrorCode:
    """The error for an order: one to a former incarnation of this broker is rejected (KIP-380).

    An epoch newer than this broker's own is accepted: the controller may see a registration before
    the broker does (KAFKA-9839).
    """
    if NO_EPOCH < request_epoch < own_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def connection(number: int, newest: int) -> ErrorCode:
    """The error for an order over a connection that the controller has since replaced: it is late.

    Connection numbers increase. The controller has sent the order again over a later connection,
    and may have sent others after it. A list of live brokers or a deletion has no epoch of its own
    that would show the delay.
    """
    if number < newest:
        return ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NONE


def late_roles(late: ErrorCode) -> ErrorCode:
    """The error for the roles in a late order: they are rejected despite their leader epochs.

    Where the replica still exists, its leader epoch shows that the order is old. A replica that was
    deleted in the meantime would be created again, as the leader of an empty log; and a topic that
    was created again counts its leader epochs from the beginning.
    """
    return late


def leader_and_isr(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """The error for a role in LeaderAndIsr: only a newer leader epoch changes the role."""
    if request_epoch <= known_epoch:
        return ErrorCode.STALE_CONTROLLER_EPOCH
    return ErrorCode.NONE


def stop(request_epoch: Epoch, known_epoch: Epoch, delete: bool) -> ErrorCode:
    """The error for StopReplica: an order with an older leader epoch is rejected (KIP-570).

    With an equal epoch, the order is accepted if it deletes: cancelling a reassignment does not
    increment the leader epoch (KAFKA-13972).
    """
    if request_epoch in (NO_EPOCH, EPOCH_DURING_DELETE) or request_epoch > known_epoch:
        return ErrorCode.NONE
    if request_epoch == known_epoch and delete:
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH


def current_leader_epoch(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """The error for a request whose leader epoch differs from the replica's (KIP-320)."""
    if request_epoch in (NO_EPOCH, known_epoch):
        return ErrorCode.NONE
    if request_epoch < known_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def of_listing(refusal: ErrorCode) -> ErrorCode:
    """The error for ListOffsets, where this replica refuses to answer as the leader."""
    return refusal


def of_epoch_end(refusal: ErrorCode) -> ErrorCode:
    """The error for OffsetForLeaderEpoch, where this replica refuses to answer as the leader."""
    return refusal


def follower_fetch(request_epoch: Epoch, known_epoch: Epoch) -> ErrorCode:
    """The error for a follower's fetch, which must name exactly the leader's current epoch.

    Without this check, a replaced leader would count followers that are going to truncate the
    records that it acknowledges (KAFKA-7395).
    """
    if request_epoch == NO_EPOCH:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return current_leader_epoch(request_epoch, known_epoch)
