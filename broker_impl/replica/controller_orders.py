"""LeaderAndIsr and StopReplica: the controller's orders, fenced by epochs and connections."""

import logging
from uuid import UUID

from broker_impl.errors import DirectoryFailed, ErrorCode
from broker_impl.replica import fencing, topic_identity
from broker_impl.replica.events import BecomeFollower, BecomeLeader, PartitionState, Stop
from broker_impl.replica.hosted import HostedReplicas
from broker_impl.replica.partition import Partition
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
)
from broker_impl.wire.messages.leader_and_isr_response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
)
from broker_impl.wire.messages.stop_replica_request import (
    StopReplicaPartitionState,
    StopReplicaRequest,
)
from broker_impl.wire.messages.stop_replica_response import (
    StopReplicaPartitionError,
    StopReplicaResponse,
)
from broker_impl.wire.types import NO_UUID, Epoch, TopicPartition

LOG = logging.getLogger(__name__)


def order_error(hosted: HostedReplicas, broker_epoch: Epoch, controller_epoch: Epoch) -> ErrorCode:
    """Return the error with which a request of a controller is rejected, or NONE.

    With NONE, the controller epoch of the request becomes this broker's controller epoch.
    """
    error = hosted.broker_epoch_error(broker_epoch)
    if error is ErrorCode.NONE:
        error = fencing.controller(controller_epoch, hosted.controller_epoch)
    if error is ErrorCode.NONE:
        hosted.controller_epoch = controller_epoch
    return error


def late_error(hosted: HostedReplicas, controller_epoch: Epoch, connection: int) -> ErrorCode:
    """Return the error for a controller request on an outdated connection, or NONE.

    A connection is outdated once the same controller has sent a request over a newer one. The
    epochs of the request do not matter.
    """
    known_epoch, newest = hosted.ordered_by
    if controller_epoch == known_epoch:
        error = fencing.connection(connection, newest)
        if error is not ErrorCode.NONE:
            return error
    hosted.ordered_by = max(hosted.ordered_by, (controller_epoch, connection))
    return ErrorCode.NONE


def leader_and_isr(
    hosted: HostedReplicas, request: LeaderAndIsrRequest, *, late: ErrorCode = ErrorCode.NONE
) -> LeaderAndIsrResponse:
    """Make this broker's replicas leaders or followers, as a LeaderAndIsr request specifies.

    A partition rejects a state whose leader epoch is not newer than its own. But a replica and a
    log of another topic id belong to a deleted topic, whose leader epochs have no meaning for this
    one: they are deleted first. ``late`` is the result of ``late_error`` for this request.
    """
    error = order_error(hosted, request.broker_epoch, request.controller_epoch)
    if error is ErrorCode.NONE:
        error = fencing.late_roles(late)
    if error is not ErrorCode.NONE:
        return LeaderAndIsrResponse(error_code=error)
    return LeaderAndIsrResponse(
        partition_errors=[
            LeaderAndIsrPartitionError(
                topic_name=topic.topic_name,
                partition_index=row.partition_index,
                error_code=_obeyed(
                    hosted,
                    TopicPartition(topic.topic_name, row.partition_index),
                    topic.topic_id,
                    row,
                ),
            )
            for topic in request.topic_states
            for row in topic.partition_states
        ]
    )


def may_create(*, is_new: bool, any_failed: bool) -> bool:
    """Return whether a replica that has no log here may begin with an empty one.

    is_new: no replica of the partition has had a log before. any_failed: a data directory of this
    broker has failed; the log may be there, and the controller may count on its records.
    """
    return is_new or not any_failed


def _obeyed(
    hosted: HostedReplicas, tp: TopicPartition, topic_id: UUID, row: LeaderAndIsrPartitionState
) -> ErrorCode:
    try:
        return _lead_or_follow(hosted, tp, topic_id, row)
    except DirectoryFailed as error:
        return _lost(hosted, tp, error)


def _lead_or_follow(
    hosted: HostedReplicas, tp: TopicPartition, topic_id: UUID, row: LeaderAndIsrPartitionState
) -> ErrorCode:
    if hosted.broker_id not in row.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    log = hosted.logs.logs.get(tp)
    if log is None and not may_create(is_new=row.is_new, any_failed=hosted.logs.goes_on):
        hosted.offline[tp] = None
    if tp in hosted.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if log is not None and topic_identity.is_of_deleted_topic(log.topic_id, topic_id, row.is_new):
        LOG.warning("%s: the log belongs to a deleted topic of this name; it is deleted", tp)
        _delete(hosted, tp)
    partition = hosted.partitions.get(tp)
    if partition is not None:
        error = fencing.leader_and_isr(row.leader_epoch, partition.leader_epoch)
        if error is not ErrorCode.NONE:
            return error
    else:
        partition = hosted.partitions[tp] = hosted.host(tp, topic_id)
    if topic_id != NO_UUID and partition.log.topic_id == NO_UUID:
        partition.log.identify(topic_id)  # a log of an earlier release
    state = _state(row)
    hosted.targets.unfollow(partition)
    if row.leader == hosted.broker_id:
        hosted.handle_event(partition, BecomeLeader(state))
        return ErrorCode.NONE
    if row.leader >= 0:
        hosted.targets.follow(row.leader, partition)
    hosted.handle_event(partition, BecomeFollower(state))
    return ErrorCode.NONE


def _state(row: LeaderAndIsrPartitionState) -> PartitionState:
    return PartitionState(
        controller_epoch=row.controller_epoch,
        leader=row.leader,
        leader_epoch=row.leader_epoch,
        isr=tuple(row.isr),
        zk_version=row.partition_epoch,
        replicas=tuple(row.replicas),
    )


def stop_replica(hosted: HostedReplicas, request: StopReplicaRequest) -> StopReplicaResponse:
    """Stop the replicas in a StopReplica request, and delete those that it says to delete."""
    error = order_error(hosted, request.broker_epoch, request.controller_epoch)
    if error is not ErrorCode.NONE:
        return StopReplicaResponse(error_code=error)
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=topic.topic_name,
                partition_index=row.partition_index,
                error_code=_stop(
                    hosted, TopicPartition(topic.topic_name, row.partition_index), row
                ),
            )
            for topic in request.topic_states
            for row in topic.partition_states
        ]
    )


def _stop(hosted: HostedReplicas, tp: TopicPartition, row: StopReplicaPartitionState) -> ErrorCode:
    partition = hosted.partitions.get(tp)
    if tp in hosted.offline or (row.delete_partition and _may_be_lost(hosted, tp)):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition is not None:
        error = fencing.stop(row.leader_epoch, partition.leader_epoch, row.delete_partition)
        if error is not ErrorCode.NONE:
            return error
    try:
        if row.delete_partition:
            _delete(hosted, tp)
        elif partition is not None:
            end(hosted, partition)
    except DirectoryFailed as error:
        return _lost(hosted, tp, error)
    return ErrorCode.NONE


def _lost(hosted: HostedReplicas, tp: TopicPartition, error: DirectoryFailed) -> ErrorCode:
    """Return the error of an order that met a failed directory, in which files of a log may be."""
    code = hosted.refused(error)
    hosted.offline[tp] = None
    return code


def _may_be_lost(hosted: HostedReplicas, tp: TopicPartition) -> bool:
    """Return whether a log that is not here may be in a failed directory."""
    return hosted.logs.goes_on and tp not in hosted.logs.logs and tp not in hosted.deleted_here


def _delete(hosted: HostedReplicas, tp: TopicPartition) -> None:
    """Stop and remove the replica of a partition, and delete its log."""
    partition = hosted.partitions.get(tp)
    if partition is not None:
        end(hosted, partition)
        del hosted.partitions[tp]
    # A broker that was down while its topic was deleted holds a log without a replica.
    if tp in hosted.logs.logs:
        hosted.logs.delete(tp)
        if hosted.logs.goes_on:
            hosted.deleted_here[tp] = None


def end(hosted: HostedReplicas, partition: Partition) -> None:
    """Let a replica neither lead nor follow any more."""
    hosted.targets.unfollow(partition)
    hosted.handle_event(partition, Stop())
