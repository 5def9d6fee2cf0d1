"""Which replicas of a broker are offline, by its answers."""

from uuid import UUID

import pytest

from broker_impl.controller import offline_replicas
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.messages.leader_and_isr_response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from broker_impl.wire.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FAILED, NONE = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE
OTHER = ErrorCode.STALE_CONTROLLER_EPOCH


def test_errors_are_listed_by_topic_id() -> None:
    """Each error belongs to the topic with this id in the request; unknown ids are skipped."""
    topics = [
        LeaderAndIsrTopicState(topic_name=name, topic_id=UUID(int=ord(name))) for name in "tu"
    ]
    response = LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                UUID(int=ord("t")),
                [
                    LeaderAndIsrPartitionError(partition_index=0, error_code=FAILED),
                    LeaderAndIsrPartitionError(partition_index=1, error_code=NONE),
                ],
            ),
            LeaderAndIsrTopicError(
                UUID(int=7), [LeaderAndIsrPartitionError(partition_index=0, error_code=FAILED)]
            ),
        ]
    )
    request = LeaderAndIsrRequest(topic_states=topics)
    assert offline_replicas.errors(request, response) == {T0: FAILED, T1: NONE}
    response.error_code = ErrorCode.STALE_BROKER_EPOCH
    assert offline_replicas.errors(request, response) == {}, "the request was rejected"


@pytest.mark.parametrize(
    ("before", "answered", "after"),
    [
        ([], {T0: FAILED, T1: NONE}, [T0]),
        ([T0], {T0: FAILED}, [T0]),
        ([T0], {T0: NONE}, []),
        ([T0, T1], {T1: NONE}, [T0]),
        ([T0], {}, [T0]),
        # another error shows nothing
        ([T0], {T0: OTHER}, [T0]),
        ([], {T0: OTHER}, []),
    ],
)
def test_after(
    before: list[TopicPartition], answered: dict[TopicPartition, int], after: list[TopicPartition]
) -> None:
    """KAFKA_STORAGE_ERROR takes a replica offline; only NONE shows that it is online again."""
    assert list(offline_replicas.after(before, answered)) == after
