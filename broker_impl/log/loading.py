"""Load a log's segments, epochs and producers from its directory, after any kind of shutdown.

After a clean shutdown all files are trusted. After a crash, only segments that are wholly below the
recovery point are; the others are checked batch by batch (`recovery`) and stay unsynced, so that
the recovery point stays where it was (KAFKA-10101). But the names found and the last segment are
synced: a broker may have been killed just after it changed them, before it could sync them, and a
later power loss would bring back what was removed.
"""

import logging
import re
from dataclasses import dataclass

from broker_impl.errors import StorageError, WireError
from broker_impl.log import aborted_index, checkpoints, producers, recovery, segment_swap
from broker_impl.log.aborted_index import AbortedTransaction, Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk
from broker_impl.log.epochs import EpochStart, LeaderEpochs
from broker_impl.log.producers import ProducerStates
from broker_impl.log.segment import SUFFIXES, Segment, file_name
from broker_impl.log.snapshots import Snapshots
from broker_impl.wire.batch import BatchHeader
from broker_impl.wire.types import Buffer, Offset

logger = logging.getLogger(__name__)

EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
DELETED_SUFFIX = ".deleted"
_LOG_NAME = re.compile(r"(\d{20})\.log")


@dataclass(slots=True)
class Loaded:
    """The state of a loaded log; there is at least one segment."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: ProducerStates
    start_offset: Offset
    recovery_point: Offset
    was_emptied: bool = False
    """Were all segments dropped, because they end before the checkpointed start offset?"""


def load(
    disk: Disk,
    directory: str,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: Offset,
    start_offset: Offset,
    now_ms: int,
) -> Loaded:
    """Load a log from its directory, which exists.

    clean: the last broker that used this directory shut down cleanly. recovery_point, start_offset:
    as checkpointed; 0 if unknown.
    """
    if not clean:
        disk.fsync_dir(directory)
    _remove_deleted(disk, directory)
    segment_swap.settle(disk, directory)
    snapshots = Snapshots(disk, directory)
    segments, found = _load_segments(disk, directory, config, clean, recovery_point, now_ms)
    if segments and not clean:
        segments[-1].fsync()
    was_emptied = bool(segments) and segments[-1].next_offset < start_offset
    if was_emptied:
        logger.warning(
            "%s: the log ends at %d, before its start offset %d; it is replaced by an empty "
            "log that begins there",
            *(directory, segments[-1].next_offset, start_offset),
        )
        while segments:
            remove_segment(disk, directory, segments.pop())
        snapshots.remove_above(-1)
        write_epochs(disk, directory, LeaderEpochs())
        found = []
    if not segments:
        segments = [new_segment(disk, directory, start_offset, config, now_ms)]
    start_offset = max(start_offset, segments[0].base_offset)
    end_offset = segments[-1].next_offset
    snapshots.remove_above(end_offset)
    snapshots.remove_below(segments[0].base_offset)
    return Loaded(
        segments,
        _load_epochs(disk, directory, segments, found, start_offset),
        replay(snapshots, segments, now_ms),
        start_offset,
        still_synced(recovery_point, end_offset),
        was_emptied,
    )


def new_segment(
    disk: Disk, directory: str, base_offset: Offset, config: LogConfig, now_ms: int
) -> Segment:
    """Create an empty segment whose name survives a crash (KAFKA-3968)."""
    segment = Segment(disk, directory, base_offset, config, now_ms)
    segment.begin()
    disk.fsync_dir(directory)
    return segment


def remove_segment(disk: Disk, directory: str, segment: Segment) -> None:
    """Remove a segment's files.

    Durable on return, so that a crash never leaves a gap before a later segment.
    """
    segment.close()
    for suffix in SUFFIXES:
        path = f"{directory}/{file_name(segment.base_offset, suffix)}"
        if disk.exists(path):
            disk.remove(path)
    disk.fsync_dir(directory)


def replay(snapshots: Snapshots, segments: list[Segment], now_ms: int) -> ProducerStates:
    """The producer state at the end of the log: the newest snapshot plus the batches after it.

    An index of aborted transactions that was dropped is rebuilt on the way, so the snapshot must be
    old enough for that.
    """
    stale = (segment.base_offset for segment in segments if segment.aborted.is_stale)
    offset, states = snapshots.newest(now_ms, not_above=next(stale, None))
    if producers.folds_replicated_batches():
        for segment in segments:
            if segment.next_offset > offset:
                for position, header in segment.headers(segment.locate(offset)):
                    if header.producer_id >= 0:
                        aborted = _fold(states, segment, position, header, now_ms)
                        if aborted is not None and segment.aborted.is_stale:
                            segment.aborted.append(aborted)
            segment.aborted.is_stale = False
    return states


def _fold(
    states: ProducerStates, segment: Segment, position: int, header: BatchHeader, now_ms: int
) -> AbortedTransaction | None:
    if not header.is_control:
        return states.fold(header, now_ms)
    return states.fold(header, now_ms, marker_in(segment.file.pread(position, header.size)))


def marker_in(data: Buffer) -> Marker | None:
    """The marker in a control batch of the log; StorageError: the batch cannot be decoded."""
    try:
        return aborted_index.decode_marker(data)
    except WireError as error:
        raise StorageError(f"invalid control batch: {error}") from None


def write_epochs(disk: Disk, directory: str, epochs: LeaderEpochs) -> None:
    """Write the epoch checkpoint, durable on return and never partially (KAFKA-16541)."""
    disk.write(f"{directory}/{EPOCH_CHECKPOINT}", checkpoints.format_epochs(epochs.entries))


def _remove_deleted(disk: Disk, directory: str) -> None:
    for name in disk.list(directory):
        if name.endswith(DELETED_SUFFIX):
            disk.remove(f"{directory}/{name}")


def _load_segments(
    disk: Disk,
    directory: str,
    config: LogConfig,
    clean: bool,
    recovery_point: Offset,
    now_ms: int,
) -> tuple[list[Segment], list[EpochStart]]:
    """Load the segments up to the first gap, and the epochs found in those that were checked."""
    names = map(_LOG_NAME.fullmatch, disk.list(directory))
    bases = [int(name[1]) for name in names if name]
    segments = [Segment(disk, directory, base, config, now_ms) for base in bases]
    found: list[EpochStart] = []
    for number, segment in enumerate(segments):
        end = bases[number + 1] if number + 1 < len(bases) else None
        if segment.is_indexed() and is_trusted(clean, end, recovery_point):
            segment.load(end)
            continue
        size = segment.size
        found += recovery.recover(segment)
        if end is not None and may_end_in_a_gap(
            was_cut=segment.size < size, is_synced=is_trusted(clean, end, recovery_point)
        ):
            segment.next_offset = end
        if segment.next_offset != end:  # its end was lost: the next segment does not continue it
            while len(segments) > number + 1:
                remove_segment(disk, directory, segments.pop())
        if segment is not segments[-1]:
            segment.finish()
    return segments, found


def is_trusted(clean: bool, end: Offset | None, recovery_point: Offset) -> bool:
    """May a segment be used without checking each of its batches and its indexes?

    clean: was it closed by a clean shutdown? end: where the next segment begins; None for the last
    one. recovery_point: everything below is synced.
    """
    return clean or (end is not None and end <= recovery_point)


def may_end_in_a_gap(*, was_cut: bool, is_synced: bool) -> bool:
    """May a segment reach to the start of the next one, though its last batch ends before?

    Compaction leaves such gaps, but only in what is synced (`PartitionLog.flush_closed`). Elsewhere
    the end of the segment was lost in a crash, and so it was if a damaged batch had to be
    truncated.
    """
    return is_synced and not was_cut


def still_synced(recovery_point: Offset, end_offset: Offset) -> Offset:
    """The recovery point of a loaded log: the checkpointed one, as nothing was synced since.

    A log may end below it; then it is the log's end.
    """
    return min(recovery_point, end_offset)


def _add(epochs: LeaderEpochs, found: list[EpochStart]) -> None:
    """Add the epochs of batches, in the order of the log; some of them may be known."""
    for epoch, start in found:
        if recovery.begins_epoch(epoch, epochs.latest):
            epochs.assign(epoch, start)


def _epochs_of(segments: list[Segment]) -> list[EpochStart]:
    """The epoch of every batch of these segments."""
    return [
        EpochStart(header.partition_leader_epoch, header.base_offset)
        for segment in segments
        for _, header in segment.headers()
    ]


def _load_epochs(
    disk: Disk,
    directory: str,
    segments: list[Segment],
    found: list[EpochStart],
    start_offset: Offset,
) -> LeaderEpochs:
    path = f"{directory}/{EPOCH_CHECKPOINT}"
    before: tuple[EpochStart, ...] = ()
    if disk.exists(path):
        try:
            before = LeaderEpochs(checkpoints.parse_epochs(disk.read(path))).entries
        except checkpoints.MalformedCheckpoint as damage:
            logger.warning("%s: %s; the file is rebuilt from the log", path, damage)
    epochs = LeaderEpochs()
    first = before[0].start if before else segments[-1].next_offset
    if start_offset < first:  # no file, or truncated to a start offset that was not stored
        _add(epochs, [entry for entry in _epochs_of(segments) if entry.start < first])
    for entry in before:
        epochs.assign(*entry)
    _add(epochs, found)
    epochs.truncate_from_end(segments[-1].next_offset)
    epochs.truncate_from_start(start_offset)
    if epochs.entries != before:
        write_epochs(disk, directory, epochs)
    return epochs
