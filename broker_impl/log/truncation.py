"""Move the ends of a log: truncate it, start it over, or advance its start."""

from contextlib import suppress

from broker_impl.errors import ApiError, DirectoryFailed, ErrorCode
from broker_impl.log import compaction, loading, move_rules
from broker_impl.log.log_state import LogState
from broker_impl.wire.types import Epoch, Offset


def assign_epoch(log: LogState, epoch: Epoch, start: Offset) -> None:
    """Record that the leader of `epoch` starts to write at `start`. Durable on return."""
    with log.changing():
        if log.epochs.assign(epoch, start):
            loading.write_epochs(log.disk, log.directory, log.epochs)


def truncate_to(log: LogState, offset: Offset) -> None:
    """Remove the batch that holds `offset` and all after it. Durable on return.

    Epochs that start there or later are dropped, even if the log ends before (KAFKA-10706). The
    segments are truncated first: loading the log drops an epoch too many, but does not restore
    a missing one.
    """
    if offset < log.segments[0].base_offset:
        truncate_fully_and_start_at(log, offset)
        return
    if log.future is not None:
        with suppress(DirectoryFailed):  # the copy is given up with its directory
            _truncate_copy(log.future, offset)
    with log.changing():
        cut = offset
        if offset < log.end_offset:
            _cut_segments(log, offset)
            cut = log.end_offset
        if log.epochs.truncate_from_end(cut):
            loading.write_epochs(log.disk, log.directory, log.epochs)


def _cut_segments(log: LogState, offset: Offset) -> None:
    """Remove batches from the end, and restore the producer state that was before them."""
    while log.segments[-1].base_offset > offset:
        loading.remove_segment(log.disk, log.directory, log.segments.pop())
    log.segments[-1].truncate(offset)
    _end_moved_back(log, log.start_offset)
    log.cuts.append(log.end_offset)
    log.snapshots.remove_above(log.end_offset)
    former = log.producers
    log.producers = loading.replay(log.snapshots, log.segments, log.segments[-1].written_ms)
    log.producers.follow(former)


def truncate_fully_and_start_at(log: LogState, offset: Offset) -> None:
    """Remove all segments; the log is empty then, and its next record gets `offset`."""
    if log.future is not None:
        with suppress(DirectoryFailed):  # the copy is given up with its directory
            truncate_fully_and_start_at(log.future, offset)
    with log.changing():
        log.cuts.append(offset if log.start_offset < log.end_offset else log.end_offset)
        now_ms = log.segments[-1].written_ms
        while log.segments:
            loading.remove_segment(log.disk, log.directory, log.segments.pop())
        log.snapshots.remove_above(-1)
        log.segments = [loading.new_segment(log.disk, log.directory, offset, log.config, now_ms)]
        log.producers.clear()
        if log.epochs.clear():
            loading.write_epochs(log.disk, log.directory, log.epochs)
        start, log.start_offset = log.start_offset, offset
        _end_moved_back(log, start)


def advance_start(log: LogState, offset: Offset) -> None:
    """Hide the records below `offset`; `retain` deletes segments that hold no others."""
    if offset > log.end_offset:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"the log of {log.topic_partition} ends at {log.end_offset}, before {offset}",
        )
    if offset > log.start_offset:
        with log.changing():
            log.start_offset = offset
            if log.epochs.truncate_from_start(offset):
                loading.write_epochs(log.disk, log.directory, log.epochs)


def _truncate_copy(future: LogState, offset: Offset) -> None:
    """Truncate the copy of a log first: it never has a batch that the log has lost (KIP-113)."""
    cut = move_rules.cut_of_copy(offset, future.end_offset)
    if cut is not None:
        truncate_to(future, cut)


def _end_moved_back(log: LogState, start: Offset) -> None:
    """Adapt the offsets of a log that started at ``start``, and has lost its end.

    The checkpoints must not say more than is true of what is appended next (KAFKA-3330).
    """
    dirty = log.first_dirty
    log.end_offset = log.segments[-1].next_offset
    log.start_offset = min(log.start_offset, log.end_offset)
    log.first_dirty = compaction.dirty_after_cut(dirty, log.end_offset)
    if log.first_dirty < dirty or log.start_offset < start:
        log.write_lowered()
    if log.recovery_point > log.end_offset:
        log.recovery_point = log.end_offset
        log.write_recovery_point()
