"""Replace segments of a log by their compacted copies."""

from collections.abc import Sequence

from broker_impl.log import segment_swap
from broker_impl.log.log_state import LogState
from broker_impl.log.segment import Segment


def begin_copy(log: LogState, segment: Segment, now_ms: int) -> Segment:
    """Create an empty segment to copy into; readers see it once it replaces others."""
    copy = Segment(
        log.disk,
        log.directory,
        segment.base_offset,
        log.config,
        now_ms,
        suffix=segment_swap.COPY_SUFFIX,
    )
    copy.file.truncate(0)
    copy.forget()
    copy.aborted.begin()
    return copy


def replace(log: LogState, old: Sequence[Segment], copy: Segment) -> None:
    """Replace adjacent closed segments by their copy. Durable on return."""
    base, end = old[0].base_offset, old[-1].next_offset
    assert copy.next_offset <= end, (
        f"the compacted segment ends at {copy.next_offset}, after the segments that it "
        f"replaces: {end}"
    )
    assert end <= log.recovery_point, (
        f"the compacted segment replaces segments up to {end}, but only those up to "
        f"{log.recovery_point} are synced"
    )
    first = log.segments.index(old[0])
    assert log.segments[first : first + len(old)] == list(old), (
        "the replaced segments must be consecutive"
    )
    newest_ms = max(segment.largest.timestamp_ms for segment in old)
    begun_ms = copy.written_ms
    with log.changing():
        copy.finish()
        copy.fsync()
        copy.fsync_indexes()
        for segment in old:
            segment.close()
        log.rewrites += 1  # also if the disk fails during the swap: the next start completes it
        segment_swap.swap(log.disk, log.directory, base, end)
        renewed = Segment(log.disk, log.directory, base, log.config, old[-1].written_ms)
        renewed.load(end)
        log.segments[first : first + len(old)] = [renewed]
        log.rewritten_age_ms = max(0, begun_ms - newest_ms)


def drop_copy(log: LogState, copy: Segment) -> None:
    """Close a copy, and remove its files unless it has replaced segments."""
    copy.close()
    if log.offline is None:
        with log.changing():
            segment_swap.discard(log.disk, log.directory, copy.base_offset)
