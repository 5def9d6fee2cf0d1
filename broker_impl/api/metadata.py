"""Metadata (API 3), v0-v11: brokers, topics and leaders, from the controller's latest update.

An unknown topic that may be created is created in the background and answered with
LEADER_NOT_AVAILABLE, which every client retries. Each broker is returned with its advertised
endpoint of the listener on which the request arrived.

Responses have topic ids from v10 on (KIP-516). As in Kafka 2.8, a request must name topics by
their names: a null name or an id is answered with INVALID_REQUEST for every topic. Left out: topics
by id (v12).
"""

from collections.abc import Mapping
from typing import Final

from broker_impl.api import operations
from broker_impl.api.cluster_view import PartitionView
from broker_impl.api.registry import RequestContext, api
from broker_impl.controller import topics as topic_rules
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from broker_impl.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker_impl.wire.types import NO_UUID
from broker_impl.wire.writing import SharedItems

LISTENER_ERROR_V: Final = 6
"""From this version on clients know LISTENER_NOT_FOUND (KIP-226)."""


@api(3, range(12))
def metadata(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """Return the cluster as seen from the client's listener."""
    view = context.services.view
    asked = request.topics or ()
    if not all(topic.name is not None and topic.topic_id == NO_UUID for topic in asked):
        return MetadataResponse(topics=[_invalid(topic) for topic in asked])
    names = _names(context, request)
    missing = [name for name in names if name not in view.topics]
    creatable = _creatable(context, request, missing)
    if creatable:
        context.services.create_in_background(creatable)
    reachable = {
        broker.id: broker.endpoints[context.listener]
        for broker in view.brokers.values()
        if context.listener in broker.endpoints
    }
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=number, host=host, port=port, rack=view.brokers[number].rack
            )
            for number, (host, port) in sorted(reachable.items())
        ],
        cluster_id=context.services.cluster_id,
        controller_id=view.controller_id if view.controller_id in reachable else -1,
        topics=[_topic(context, request, name, creatable) for name in names],
        **_on_the_cluster(request),
    )


def _invalid(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=asked.name or "")


def _on_the_cluster(request: MetadataRequest) -> dict[str, int]:
    """The field for the operations on the cluster, if the request asks for them (v8 to v10)."""
    if not request.include_cluster_authorized_operations:
        return {}
    return {"cluster_authorized_operations": operations.ON_THE_CLUSTER}


def _names(context: RequestContext, request: MetadataRequest) -> list[str]:
    asked = request.topics
    if asked is None or (context.version == 0 and not asked):
        return sorted(context.services.view.topics)
    return list(dict.fromkeys(topic.name for topic in asked if topic.name is not None))


def _creatable(
    context: RequestContext, request: MetadataRequest, missing: list[str]
) -> dict[str, None]:
    """The unknown topics that this request creates (an ordered set)."""
    allowed = context.version < 4 or request.allow_auto_topic_creation
    if not (allowed and context.services.config.auto_create_topics_enable):
        return {}
    return {name: None for name in missing if topic_rules.name_error(name) is None}


def _topic(
    context: RequestContext, request: MetadataRequest, name: str, creatable: dict[str, None]
) -> MetadataResponseTopic:
    partitions = context.services.view.topics.get(name)
    if partitions is None:
        if topic_rules.name_error(name) is not None:
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif name in creatable:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponseTopic(error_code=error, name=name)
    topic = MetadataResponseTopic(
        name=name,
        topic_id=context.services.view.topic_ids.get(name, NO_UUID),
        is_internal=name in topic_rules.INTERNAL,
        partitions=_partitions(context, name, partitions),
    )
    if request.include_topic_authorized_operations:
        topic.topic_authorized_operations = operations.ON_TOPICS
    return topic


def _partitions(
    context: RequestContext, topic: str, partitions: Mapping[int, PartitionView]
) -> list[MetadataResponsePartition]:
    """The rows of a topic, which all responses share until the next update of the view."""
    computed = context.services.view.computed
    key = (_partitions, topic, context.listener, context.version < LISTENER_ERROR_V)
    rows: SharedItems[MetadataResponsePartition] | None = computed.get(key)
    if rows is None:
        rows = computed[key] = SharedItems(
            _partition(context, number, partitions[number]) for number in sorted(partitions)
        )
    return rows


def _partition(
    context: RequestContext, number: int, partition: PartitionView
) -> MetadataResponsePartition:
    live = context.services.view.brokers
    error, leader = ErrorCode.NONE, partition.leader
    if leader not in live:
        error, leader = ErrorCode.LEADER_NOT_AVAILABLE, -1
    elif context.listener not in live[leader].endpoints:
        error = ErrorCode.LISTENER_NOT_FOUND
        if context.version < LISTENER_ERROR_V:
            error = ErrorCode.LEADER_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=context.services.view.offline_replicas(partition),
    )
