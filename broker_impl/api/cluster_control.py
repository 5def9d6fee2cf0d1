"""LeaderAndIsr (4), StopReplica (5), UpdateMetadata (6), ControlledShutdown (7): between brokers.

These are the controller's orders and the request of a broker that shuts down; they are served on
the inter-broker listener only. Each order is checked for controller epoch and broker epoch
(KIP-380) where it is applied.
"""

from typing import Any

from broker_impl.api.registry import CloseConnection, RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.controlled_shutdown_response import ControlledShutdownResponse
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leader_and_isr_response import (
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.stop_replica_response import StopReplicaResponse
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.messages.update_metadata_response import UpdateMetadataResponse
from broker_impl.wire.types import TopicPartition

_BY_TOPIC_ID = 5
"""From this version on, LeaderAndIsr has topic ids (KIP-516)."""


@api(4, range(4, 6), between_brokers=True)
async def leader_and_isr(
    context: RequestContext, request: LeaderAndIsrRequest
) -> LeaderAndIsrResponse:
    """Apply roles in partitions; a new topic's settings are read before its log is created."""
    await context.services.settle_topics(
        {topic.topic_name: topic.topic_id for topic in request.topic_states}
    )
    replicas = context.services.replicas
    late = replicas.late_error(request.controller_epoch, context.connection)
    response = replicas.leader_and_isr(request, late=late)
    if response.error_code:
        _refuse_late(ErrorCode(response.error_code))
    return response if context.version < _BY_TOPIC_ID else by_topic_id(request, response)


def by_topic_id(
    request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
) -> LeaderAndIsrResponse:
    """Return a response whose errors are listed by topic id, as from version 5 on."""
    topics = {
        topic.topic_name: LeaderAndIsrTopicError(topic_id=topic.topic_id)
        for topic in request.topic_states
    }
    for row in response.partition_errors:
        topics[row.topic_name].partition_errors.append(row)
    return LeaderAndIsrResponse(error_code=response.error_code, topics=list(topics.values()))


@api(5, range(3, 4), between_brokers=True)
def stop_replica(context: RequestContext, request: StopReplicaRequest) -> Any:
    """Stop replicas, and delete those that the order says to delete.

    A deletion is answered once no write of the partition's ISR is under way. The znode of a later
    topic of this name can have the version on which such a write depends.
    """
    replicas = context.services.replicas
    _refuse_late(replicas.late_error(request.controller_epoch, context.connection))
    response = replicas.stop_replica(request)
    context.services.forget_topics(topic.topic_name for topic in request.topic_states)
    deleted = [
        TopicPartition(topic.topic_name, row.partition_index)
        for topic in request.topic_states
        for row in topic.partition_states
        if row.delete_partition
    ]

    def attempt(expired: bool) -> StopReplicaResponse | None:
        if any(tp in replicas.isr_writes for tp in deleted):
            late = StopReplicaResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
            return late if expired else None
        return response

    patience_s = context.services.config.controller_socket_timeout_ms / 1000
    return attempt(False) or context.services.waiting.park(deleted, attempt, patience_s)


@api(6, range(7, 8), between_brokers=True)
def update_metadata(
    context: RequestContext, request: UpdateMetadataRequest
) -> UpdateMetadataResponse:
    """Apply the controller's update to this broker's view of the cluster."""
    services = context.services
    error = services.replicas.order_error(request.broker_epoch, request.controller_epoch)
    if error is ErrorCode.NONE:
        _refuse_late(services.replicas.late_error(request.controller_epoch, context.connection))
        gone = services.view.update(request)
        services.view_changed()
        services.groups.topics_gone(gone)
    return UpdateMetadataResponse(error_code=error)


def _refuse_late(late: ErrorCode) -> None:
    """Close an outdated connection of the controller instead of answering its order.

    Connections are numbered as they are accepted, which packet loss can make another order than
    that in which the controller has opened them. So an outdated one may be the one that it uses. It
    opens another one then, and sends the order again; an error would be an answer.
    """
    if late is ErrorCode.REQUEST_TIMED_OUT:
        raise CloseConnection("the controller has sent orders over a newer connection")


@api(7, range(3, 4), between_brokers=True)
async def controlled_shutdown(
    context: RequestContext, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    """Move leadership off a broker that shuts down, and shrink its ISRs."""
    return await context.services.controller.controlled_shutdown(request)
