"""The rules for replicas in failed log directories of brokers that are alive (KIP-112).

A broker answers a LeaderAndIsr request with KAFKA_STORAGE_ERROR for each partition whose replica is
in a failed log directory. Other errors do not show in which state the replica is.
"""

from collections.abc import Iterable, Mapping

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leader_and_isr_response import LeaderAndIsrResponse
from broker_impl.wire.types import TopicPartition


def errors(
    request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
) -> dict[TopicPartition, int]:
    """The error of each partition in a response, which lists the topics by their ids.

    There are none if the broker rejected the request as a whole.
    """
    if response.error_code:
        return {}
    names = {topic.topic_id: topic.topic_name for topic in request.topic_states}
    return {
        TopicPartition(names[topic.topic_id], row.partition_index): row.error_code
        for topic in response.topics
        if topic.topic_id in names
        for row in topic.partition_errors
    }


def after(
    offline: Iterable[TopicPartition], answered: Mapping[TopicPartition, int]
) -> dict[TopicPartition, None]:
    """The partitions whose replica on a broker is offline after the broker's answer."""
    still = [tp for tp in offline if answered.get(tp) != ErrorCode.NONE]
    failed = [tp for tp, error in answered.items() if error == ErrorCode.KAFKA_STORAGE_ERROR]
    return dict.fromkeys([*still, *failed])
