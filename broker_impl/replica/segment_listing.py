"""ListOffsets v0: a list of the offsets at which a leader's segments start, newest first.

Clients from before Kafka 0.10.1 look for a time in this way. For the start or the end of a log they
take the first offset.
"""

from broker_impl.errors import ErrorCode
from broker_impl.log import timestamps
from broker_impl.replica import fencing, watermark
from broker_impl.replica.hosted import HostedReplicas
from broker_impl.replica.results import EARLIEST, LATEST
from broker_impl.wire.types import BrokerId, Offset, TopicPartition


def listed(
    hosted: HostedReplicas, tp: TopicPartition, timestamp: int, count: int, replica_id: BrokerId
) -> list[Offset] | ErrorCode:
    """Return up to ``count`` offsets, newest first: of segments written at ``timestamp`` or before.

    EARLIEST means the start of the log alone, and LATEST all segments, after the end of the log. A
    consumer receives the high watermark in place of the offsets above it. Until that has reached
    the start of the leader's epoch the request is refused, as in later versions (KIP-207).
    """
    partition = hosted.partitions.get(tp)
    if partition is None:
        return hosted.missing(tp)
    error = fencing.of_listing(partition.refusal(fencing.NO_EPOCH))
    if error is not ErrorCode.NONE:
        return error
    log, mark = partition.log, partition.high_watermark
    until = None if timestamp in (EARLIEST, LATEST) else timestamp
    offsets = timestamps.segments_before(log, until, hosted.wall_ms())
    if timestamp == EARLIEST:
        offsets = offsets[-1:]
    if replica_id == watermark.CONSUMER and timestamp != EARLIEST:
        if offsets and offsets[0] > mark:
            if not watermark.may_list_end(mark, partition.epoch_start):
                return ErrorCode.OFFSET_NOT_AVAILABLE
            offsets = [mark, *(offset for offset in offsets if offset <= mark)]
        partition.exposed = max([partition.exposed, *offsets[:1]])
    return offsets[: max(count, 0)]
