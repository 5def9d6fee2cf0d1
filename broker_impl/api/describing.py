"""DescribeCluster (API 60), v0, and DescribeLogDirs (API 35), v1-v4.

Left out: the size of the volume (v4: unknown).
"""

from broker_impl.api import operations
from broker_impl.api.registry import RequestContext, api
from broker_impl.wire.messages.describe_cluster_request import DescribeClusterRequest
from broker_impl.wire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from broker_impl.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from broker_impl.wire.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from broker_impl.wire.types import TopicPartition


@api(60, range(1))
def describe_cluster(
    context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Return the controller and the brokers, with their endpoints for this listener's clients."""
    view = context.services.view
    reachable = {
        broker.id: broker
        for broker in view.brokers.values()
        if context.listener in broker.endpoints
    }
    response = DescribeClusterResponse(
        cluster_id=context.services.cluster_id,
        controller_id=view.controller_id if view.controller_id in reachable else -1,
        brokers=[
            DescribeClusterBroker(
                number, *reachable[number].endpoints[context.listener], reachable[number].rack
            )
            for number in sorted(reachable)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = operations.ON_THE_CLUSTER
    return response


@api(35, range(1, 5))
def describe_log_dirs(
    context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Return the sizes of the logs in this broker's only data directory."""
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, number)
            for topic in request.topics
            for number in topic.partitions
        }
    topics: dict[str, DescribeLogDirsTopic] = {}
    for tp, size in sorted(context.services.replicas.sizes().items()):
        if wanted is None or tp in wanted:
            topic = topics.setdefault(tp.topic, DescribeLogDirsTopic(name=tp.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(partition_index=tp.partition, partition_size=size)
            )
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=context.services.config.log_dirs, topics=list(topics.values())
            )
        ]
    )
