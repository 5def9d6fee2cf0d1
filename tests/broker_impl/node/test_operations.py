"""Authorized operations (KIP-430) of a broker without an authorizer."""

from typing import Any

import pytest

from broker_impl.api.operations import bit_field
from broker_impl.security.acls import Operation
from broker_impl.wire.messages.describe_cluster_request import DescribeClusterRequest
from broker_impl.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.broker_impl.node.broker_calls import create

NOT_REQUESTED = -(2**31)
ON_A_TOPIC = 0b1101_1111_1000
"""As Kafka 2.8 returns it for a topic: READ to DESCRIBE, DESCRIBE_CONFIGS, and ALTER_CONFIGS."""
ON_THE_CLUSTER = 0b1_1111_1010_0000


def test_a_bit_for_each_operation() -> None:
    """The bit of an operation is its number."""
    assert bit_field() == 0
    assert bit_field(Operation.READ, Operation.DESCRIBE) == 8 + 256


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_operations_are_returned_on_request(three: Any, version: int) -> None:
    """Metadata v8 to v10 returns the operations on topics and the cluster if it is asked to."""
    await create(three)
    topics = [MetadataRequestTopic(name="t")]
    for of_topics, of_cluster in ((False, False), (True, False), (False, True)):
        request = MetadataRequest(
            topics=topics,
            include_topic_authorized_operations=of_topics,
            include_cluster_authorized_operations=of_cluster,
        )
        answer = await three.ask(1, request, version)
        shown = answer.topics[0].topic_authorized_operations, answer.cluster_authorized_operations
        assert shown == (
            ON_A_TOPIC if of_topics else NOT_REQUESTED,
            ON_THE_CLUSTER if of_cluster else NOT_REQUESTED,
        )


async def test_the_clusters_operations(three: Any) -> None:
    """Metadata v11 leaves the cluster's operations to DescribeCluster."""
    request = MetadataRequest(topics=None, include_topic_authorized_operations=True)
    answer = await three.ask(1, request, 11)
    assert answer.cluster_authorized_operations == NOT_REQUESTED
    for included, expected in ((False, NOT_REQUESTED), (True, ON_THE_CLUSTER)):
        answer = await three.ask(1, DescribeClusterRequest(included), 0)
        assert answer.cluster_authorized_operations == expected
