"""The data directories of a broker's replicas: which one each is in, and orders to move them."""

from collections.abc import Iterator

import msgspec

from broker_impl.errors import DirectoryFailed, ErrorCode
from broker_impl.log import move_rules
from broker_impl.log.directory import LogDirectory, fits_a_future_name
from broker_impl.log.partition_log import PartitionLog
from broker_impl.replica.hosted import HostedReplicas
from broker_impl.wire.types import TopicPartition

UNKNOWN_LAG = -1
"""The lag of a log whose partition has no replica here yet."""


class StoredLog(msgspec.Struct, frozen=True):
    """One log in a data directory, as DescribeLogDirs shows it."""

    tp: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


def alter(hosted: HostedReplicas, tp: TopicPartition, path: str) -> ErrorCode:
    """Begin to move a replica to the data directory ``path``, or end a move to another one.

    LOG_DIR_NOT_FOUND: ``log.dirs`` does not name the directory. REPLICA_NOT_AVAILABLE: there is no
    replica here; a later one is created in that directory. KAFKA_STORAGE_ERROR: the log is offline,
    or one of the directories has failed. INVALID_TOPIC_EXCEPTION: the name of a future log would be
    too long (KAFKA-4893).
    """
    logs = hosted.logs
    if not fits_a_future_name(tp):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    target = logs.directory_at(path)
    if target is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if target.failure is not None or tp in hosted.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if tp not in hosted.partitions:
        if tp not in target.logs:
            logs.prefer(tp, target)
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if logs.logs[tp].offline is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        logs.begin_move(tp, target)
    except DirectoryFailed as error:
        return hosted.refused(error)
    return ErrorCode.NONE


def stored(hosted: HostedReplicas, directory: LogDirectory) -> Iterator[StoredLog]:
    """Yield the logs in a data directory, in the order of their partitions."""
    for tp, log in sorted(directory.logs.items()):
        is_future = log is hosted.logs.futures.get(tp)
        yield StoredLog(tp, log.size_bytes, _lag(hosted, tp, log, is_future), is_future)


def _lag(hosted: HostedReplicas, tp: TopicPartition, log: PartitionLog, is_future: bool) -> int:
    partition = hosted.partitions.get(tp)
    if partition is None:
        return UNKNOWN_LAG
    copy_end = log.end_offset if is_future else None
    return move_rules.lag(partition.log.end_offset, copy_end, partition.high_watermark)


def replace(hosted: HostedReplicas, tp: TopicPartition) -> None:
    """Let a partition's future log, which is complete, replace its current one."""
    partition = hosted.partitions.get(tp)
    mark = hosted.logs.high_watermarks.get(tp, 0) if partition is None else partition.high_watermark
    log = hosted.logs.finish_move(tp, mark)
    if partition is not None:
        partition.log = log
