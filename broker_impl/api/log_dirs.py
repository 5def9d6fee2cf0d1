"""DescribeLogDirs (API 35), v0-v4, and AlterReplicaLogDirs (API 34), v0-v2 (KIP-113).

A broker has one data directory. A replica can be assigned to it, which changes nothing; for any
other directory the response is LOG_DIR_NOT_FOUND.

Left out: the size of the volume (v4: unknown), several directories.
"""

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.alter_replica_log_dirs_request import AlterReplicaLogDirsRequest
from broker_impl.wire.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from broker_impl.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from broker_impl.wire.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from broker_impl.wire.types import TopicPartition


@api(35, range(5))
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


@api(34, range(3))
def alter_replica_log_dirs(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Accept this broker's only data directory for the replicas that it has."""
    here = context.services.replicas.sizes()
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            result = topics.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic.name))
            for number in topic.partitions:
                error = ErrorCode.NONE
                if wanted.path != context.services.config.log_dirs:
                    error = ErrorCode.LOG_DIR_NOT_FOUND
                elif TopicPartition(topic.name, number) not in here:
                    error = ErrorCode.REPLICA_NOT_AVAILABLE
                result.partitions.append(AlterReplicaLogDirPartitionResult(number, error))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
