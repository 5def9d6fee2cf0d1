"""DescribeLogDirs (API 35), v0-v4, and AlterReplicaLogDirs (API 34), v0-v2 (KIP-113).

A replica moves in the background: a response without an error means that its future log exists in
the requested directory, or that the replica is there already.

Left out: the size of the volume (v4: unknown).
"""

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ErrorCode
from broker_impl.replica import log_directories
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
    """Return the logs in each of this broker's data directories, future ones included.

    A directory that has failed has the error KAFKA_STORAGE_ERROR.
    """
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, number)
            for topic in request.topics
            for number in topic.partitions
        }
    hosted = context.services.replicas
    results = []
    for directory in hosted.logs.directories:
        if directory.failure is not None:
            error = ErrorCode.KAFKA_STORAGE_ERROR
            results.append(DescribeLogDirsResult(error_code=error, log_dir=directory.path))
            continue
        topics: dict[str, DescribeLogDirsTopic] = {}
        for log in log_directories.stored(hosted, directory):
            if wanted is None or log.tp in wanted:
                topic = topics.setdefault(log.tp.topic, DescribeLogDirsTopic(name=log.tp.topic))
                topic.partitions.append(
                    DescribeLogDirsPartition(
                        partition_index=log.tp.partition,
                        partition_size=log.size_bytes,
                        offset_lag=log.offset_lag,
                        is_future_key=log.is_future,
                    )
                )
        results.append(DescribeLogDirsResult(log_dir=directory.path, topics=list(topics.values())))
    return DescribeLogDirsResponse(results=results)


@api(34, range(3))
def alter_replica_log_dirs(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin to move replicas to other data directories of this broker."""
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            result = topics.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic.name))
            for number in topic.partitions:
                tp = TopicPartition(topic.name, number)
                error = log_directories.alter(context.services.replicas, tp, wanted.path)
                result.partitions.append(AlterReplicaLogDirPartitionResult(number, error))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
