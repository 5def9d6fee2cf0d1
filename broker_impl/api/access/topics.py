"""Guards of requests about topics and their records."""

from functools import partial
from typing import Any, Final

import msgspec

from broker_impl.api.access import fetch_rights
from broker_impl.api.access.guard import (
    Call,
    Check,
    Parts,
    all_denied,
    divided,
    extended,
    filtered,
    in_parts,
    then,
)
from broker_impl.api.registry import CloseConnection
from broker_impl.errors import ErrorCode
from broker_impl.replica import watermark
from broker_impl.security.acls import Operation
from broker_impl.wire.messages import (
    create_partitions_response,
    create_topics_response,
    delete_records_response,
    delete_topics_response,
    describe_producers_response,
    fetch_response,
    list_offsets_response,
    metadata_response,
    offset_for_leader_epoch_response,
    produce_response,
)

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_ATTRIBUTES: Final = slice(21, 23)
_TRANSACTIONAL: Final = 0x10
_BY_STATE_FROM: Final = 6
"""The version of DeleteTopics from which topics are named by their names or ids (KIP-516)."""


def _produced(topic: Any, error: ErrorCode) -> produce_response.TopicProduceResponse:
    return produce_response.TopicProduceResponse(
        name=topic.name,
        partition_responses=[
            produce_response.PartitionProduceResponse(
                index=each.index, error_code=error, base_offset=-1
            )
            for each in topic.partition_data
        ],
    )


def _produce_parts(error: ErrorCode) -> Parts:
    denied = partial(_produced, error=error)
    return Parts("topic_data", "name", "responses", produce_response.ProduceResponse, denied)


def produce(check: Check, request: Any, call: Call) -> Any:
    """WRITE on each topic; WRITE on the transactional id for records of a transaction.

    A client that expects no response learns of an error by the end of its connection.
    """
    name = request.transactional_id
    if name is None:
        is_denied = _is_transactional(request)
    else:
        is_denied = not check.transactional_id(Operation.WRITE, name)
    if is_denied:
        _close_without_response(request)
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return all_denied(request, _produce_parts(error))
    may = partial(check.topic, Operation.WRITE)
    if not all(may(topic.name) for topic in request.topic_data):
        _close_without_response(request)
    return in_parts(request, _produce_parts(_DENIED), may, call)


def _is_transactional(request: Any) -> bool:
    return any(
        int.from_bytes(partition.records[_ATTRIBUTES], "big") & _TRANSACTIONAL
        for topic in request.topic_data
        for partition in topic.partition_data
        if partition.records is not None
    )


def _close_without_response(request: Any) -> None:
    if request.acks == 0:
        raise CloseConnection("a client without the right to write expects no response")


def _fetched(topic: Any) -> fetch_response.FetchableTopicResponse:
    return fetch_response.FetchableTopicResponse(
        topic=topic.topic,
        partitions=[
            fetch_response.PartitionData(
                partition_index=each.partition,
                error_code=_DENIED,
                high_watermark=-1,
                records=[],  # librdkafka cannot read a null
            )
            for each in topic.partitions
        ],
    )


def fetch(check: Check, request: Any, call: Call) -> Any:
    """READ on each topic for consumers; CLUSTER_ACTION for followers and tools.

    Unlike in Kafka, a tool (replica -2) needs CLUSTER_ACTION too, because it reads to the end of
    the log. A consumer gets no fetch session: each of its requests names all partitions, so that a
    right that is taken away ends the access to a partition at once.
    """
    parts = Parts("topics", "topic", "responses", fetch_response.FetchResponse, _fetched)
    if request.replica_id == watermark.CONSUMER:
        request = fetch_rights.as_checked(request)
        return in_parts(request, parts, partial(check.topic, Operation.READ), call)
    if check.cluster(Operation.CLUSTER_ACTION):
        return call(request)
    return all_denied(request, parts)


def _listed(topic: Any) -> list_offsets_response.ListOffsetsTopicResponse:
    return list_offsets_response.ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            list_offsets_response.ListOffsetsPartitionResponse(
                partition_index=each.partition_index, error_code=_DENIED
            )
            for each in topic.partitions
        ],
    )


def list_offsets(check: Check, request: Any, call: Call) -> Any:
    """DESCRIBE on each topic."""
    response = list_offsets_response.ListOffsetsResponse
    parts = Parts("topics", "name", "topics", response, _listed)
    return in_parts(request, parts, partial(check.topic, Operation.DESCRIBE), call)


def metadata(check: Check, request: Any, call: Call) -> Any:
    """DESCRIBE on each topic; CREATE on the cluster or the topic for one that is created.

    Of the operations that the response lists, only those stay that the client may perform.
    """
    return then(_metadata(check, request, call), partial(_permitted, check))


def _permitted(check: Check, answer: Any) -> Any:
    answer.cluster_authorized_operations = check.permitted_of_cluster(
        answer.cluster_authorized_operations
    )
    for topic in answer.topics:
        topic.topic_authorized_operations = check.permitted(
            topic.topic_authorized_operations,
            lambda each, name=topic.name: check.topic(each, name),  # type: ignore[misc]
        )
    return answer


def _metadata(check: Check, request: Any, call: Call) -> Any:
    if request.topics is None or (check.context.version == 0 and not request.topics):
        return then(
            call(request),
            lambda answer: filtered(
                answer, "topics", lambda topic: check.topic(Operation.DESCRIBE, topic.name)
            ),
        )
    services = check.context.services
    creates = services.config.auto_create_topics_enable and (
        check.context.version < 4 or request.allow_auto_topic_creation
    )

    def may(name: str) -> bool:
        if not check.topic(Operation.DESCRIBE, name):
            return False
        return not creates or name in services.view.topics or _may_create(check, name)

    allowed, others = divided(request.topics, lambda topic: topic.name is None or may(topic.name))
    refused = [
        metadata_response.MetadataResponseTopic(error_code=_DENIED, name=name)
        for name in dict.fromkeys(topic.name for topic in others)
    ]
    if not allowed and refused and check.context.version == 0:
        # In v0, an empty list means all topics.
        rest = msgspec.structs.replace(request, topics=None)
        none = then(call(rest), lambda answer: filtered(answer, "topics", lambda _: False))
        return then(none, lambda answer: extended(answer, "topics", refused))
    rest = msgspec.structs.replace(request, topics=allowed)
    return then(call(rest), lambda answer: extended(answer, "topics", refused))


def _may_create(check: Check, name: str) -> bool:
    return check.cluster(Operation.CREATE) or check.topic(Operation.CREATE, name)


def create_topics(check: Check, request: Any, call: Call) -> Any:
    """CREATE on the cluster or on each topic; DESCRIBE_CONFIGS to see the settings."""

    def denied(topic: Any) -> create_topics_response.CreatableTopicResult:
        return create_topics_response.CreatableTopicResult(
            name=topic.name,
            error_code=_DENIED,
            error_message="Authorization failed.",
            configs=[],
        )

    def hidden(answer: Any) -> Any:
        for topic in answer.topics:
            if not topic.error_code and not check.topic(Operation.DESCRIBE_CONFIGS, topic.name):
                topic.topic_config_error_code = _DENIED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = None
        return answer

    response = create_topics_response.CreateTopicsResponse
    parts = Parts("topics", "name", "topics", response, denied)
    return then(in_parts(request, parts, partial(_may_create, check), call), hidden)


def delete_topics(check: Check, request: Any, call: Call) -> Any:
    """DELETE on each topic; the name of one that is named by its id needs DESCRIBE."""
    response = delete_topics_response.DeleteTopicsResponse
    if check.context.version >= _BY_STATE_FROM:
        return _delete_by_state(check, request, call)

    def denied(name: str) -> delete_topics_response.DeletableTopicResult:
        return delete_topics_response.DeletableTopicResult(name=name, error_code=_DENIED)

    parts = Parts("topic_names", "", "responses", response, denied)
    return in_parts(request, parts, partial(check.topic, Operation.DELETE), call)


def _delete_by_state(check: Check, request: Any, call: Call) -> Any:
    """From v6 on, a topic is named by its name or by its id.

    An id whose topic is not known here is not passed on: the controller may know it by the time
    that it handles the request, and no right would have been checked.
    """
    services = check.context.services
    cluster = services.controller.cluster
    ids = (
        services.view.topic_ids if cluster is None else services.view.topic_ids | cluster.topic_ids
    )
    names = {each: name for name, each in ids.items()}

    def name_of(topic: Any) -> str | None:
        return names.get(topic.topic_id) if topic.name is None else topic.name

    def may(topic: Any) -> bool:
        name = name_of(topic)
        return name is not None and check.topic(Operation.DELETE, name)

    def refused(topic: Any) -> delete_topics_response.DeletableTopicResult:
        name, error = name_of(topic), _DENIED
        if name is None:
            error = ErrorCode.NOT_CONTROLLER if cluster is None else ErrorCode.UNKNOWN_TOPIC_ID
        elif not topic.name and not check.topic(Operation.DESCRIBE, name):
            name = None
        return delete_topics_response.DeletableTopicResult(
            name=name, topic_id=topic.topic_id, error_code=error
        )

    allowed, others = divided(request.topics, may)
    denied = [refused(topic) for topic in others]
    if not allowed:
        return delete_topics_response.DeleteTopicsResponse(responses=denied)
    rest = msgspec.structs.replace(request, topics=allowed)
    return then(call(rest), lambda answer: extended(answer, "responses", denied))


def delete_records(check: Check, request: Any, call: Call) -> Any:
    """DELETE on each topic."""

    def denied(topic: Any) -> delete_records_response.DeleteRecordsTopicResult:
        return delete_records_response.DeleteRecordsTopicResult(
            name=topic.name,
            partitions=[
                delete_records_response.DeleteRecordsPartitionResult(
                    partition_index=each.partition_index, low_watermark=-1, error_code=_DENIED
                )
                for each in topic.partitions
            ],
        )

    response = delete_records_response.DeleteRecordsResponse
    parts = Parts("topics", "name", "topics", response, denied)
    return in_parts(request, parts, partial(check.topic, Operation.DELETE), call)


def offset_for_leader_epoch(check: Check, request: Any, call: Call) -> Any:
    """CLUSTER_ACTION, or DESCRIBE on each topic."""

    def denied(topic: Any) -> offset_for_leader_epoch_response.OffsetForLeaderTopicResult:
        return offset_for_leader_epoch_response.OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=[
                offset_for_leader_epoch_response.EpochEndOffset(
                    error_code=_DENIED, partition=each.partition
                )
                for each in topic.partitions
            ],
        )

    if check.cluster(Operation.CLUSTER_ACTION):
        return call(request)
    response = offset_for_leader_epoch_response.OffsetForLeaderEpochResponse
    parts = Parts("topics", "topic", "topics", response, denied)
    return in_parts(request, parts, partial(check.topic, Operation.DESCRIBE), call)


def create_partitions(check: Check, request: Any, call: Call) -> Any:
    """ALTER on each topic."""

    def denied(topic: Any) -> create_partitions_response.CreatePartitionsTopicResult:
        return create_partitions_response.CreatePartitionsTopicResult(
            name=topic.name, error_code=_DENIED
        )

    response = create_partitions_response.CreatePartitionsResponse
    parts = Parts("topics", "name", "results", response, denied)
    return in_parts(request, parts, partial(check.topic, Operation.ALTER), call)


def describe_producers(check: Check, request: Any, call: Call) -> Any:
    """READ on each topic."""

    def denied(topic: Any) -> describe_producers_response.TopicResponse:
        return describe_producers_response.TopicResponse(
            name=topic.name,
            partitions=[
                describe_producers_response.PartitionResponse(
                    partition_index=number, error_code=_DENIED
                )
                for number in topic.partition_indexes
            ],
        )

    response = describe_producers_response.DescribeProducersResponse
    parts = Parts("topics", "name", "topics", response, denied)
    return in_parts(request, parts, partial(check.topic, Operation.READ), call)
