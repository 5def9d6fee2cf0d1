"""The state of a partition's log, its invariants, and what every change of it obeys."""

import contextlib
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from broker_impl.errors import StorageError
from broker_impl.log import compaction, loading, topic_identity
from broker_impl.log.aborted_index import AbortedTransaction
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk
from broker_impl.log.epochs import LeaderEpochs
from broker_impl.log.producers import ProducerStates
from broker_impl.log.results import Deleted, Retained
from broker_impl.log.segment import Segment
from broker_impl.log.snapshots import Snapshots
from broker_impl.wire.types import NO_UUID, Offset, TopicPartition

_DELETED_KEPT: Final = 64


class LogState:
    """The state of one log; ``check`` holds between any two changes."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        tp: TopicPartition,
        config: LogConfig,
        loaded: loading.Loaded,
        write_recovery_point: Callable[[], None],
        write_lowered: Callable[[], None],
        first_dirty: Offset = 0,
    ) -> None:
        self.topic_partition = tp
        self.config = config
        self.epochs: LeaderEpochs = loaded.epochs
        self.producers: ProducerStates = loaded.producers
        self.start_offset: Offset = loaded.start_offset
        """The first offset that may be read."""
        self.recovery_point: Offset = loaded.recovery_point
        """Everything below is synced."""
        self.end_offset: Offset = loaded.segments[-1].next_offset
        """The offset of the next record (LEO)."""
        self.first_dirty: Offset = compaction.dirty_after_cut(first_dirty, self.end_offset)
        """The first offset that no compaction pass has read."""
        self.rewrites = 0
        """How often a compacted copy has replaced segments."""
        self.rewritten_age_ms = -1
        """How old the newest record was that the last pass has read; -1: there was no pass."""
        self.deletions = 0
        """How many segments retention has deleted."""
        self.latest_deleted: deque[Deleted] = deque(maxlen=_DELETED_KEPT)
        """The last of them."""
        self.retained: Retained | None = None
        """What retention has left when it ran last."""
        self.offline: StorageError | None = None
        """The error since which the log must not be changed any more."""
        self.cuts: list[Offset] = [loaded.start_offset] if loaded.was_emptied else []
        """The offset of each truncation: what was read from there on before is no longer in the
        log."""
        self.topic_id: UUID = NO_UUID
        """The id of the log's topic; NO_UUID: the log is of an earlier release, or just created."""
        self.directory = directory
        self.data_directory = ""
        """The name in ``log.dirs`` of the data directory that holds ``directory``."""
        self.disk = disk
        self.future: LogState | None = None
        """The log in another data directory that copies this one, while the partition moves."""
        self.identity = object()
        """The same object in the log that replaces this one at the end of a move."""
        self.segments = loaded.segments
        """In order; the last one is the active one."""
        self.snapshots = Snapshots(disk, directory)
        self.write_recovery_point = write_recovery_point
        self.write_lowered = write_lowered
        self.unsynced_since_ms: int | None = None
        """Since when the oldest record waits to be synced."""
        self.deleted: list[tuple[int, str]] = []
        """The files of deleted segments, each with the time (ms) at which it is removed."""
        self.check()

    def check(self) -> None:
        """Check the invariants L1 and L2, and that the log ends with its last segment."""
        assert 0 <= self.start_offset <= self.end_offset, (
            "the start offset of the log is above its end offset"
        )
        assert 0 <= self.recovery_point <= self.end_offset, (
            "the recovery point is above the end of the log"
        )
        assert self.segments[-1].next_offset == self.end_offset, (
            "the log must end where its last segment ends"
        )
        assert self.segments[0].base_offset <= self.start_offset, (
            "the log starts before its first segment"
        )

    def refuse_offline(self) -> None:
        """Raise StorageError, or DirectoryFailed if that was the cause, if the log is offline."""
        if self.offline is not None:
            raise type(self.offline)(f"{self.topic_partition} is offline: {self.offline}")

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Reject changes of an offline log; a failed change takes the log offline."""
        self.refuse_offline()
        try:
            yield
        except StorageError as error:
            self.offline = error
            raise
        self.check()

    def identify(self, topic_id: UUID) -> None:
        """Set and store the topic id of a log that has none; durable on return."""
        assert self.topic_id == NO_UUID, f"{self.topic_partition} has a topic id already"
        with self.changing():
            topic_identity.write(self.disk, self.directory, topic_id)
        self.topic_id = topic_id

    def segment_number(self, offset: Offset) -> int:
        """The number of the segment whose range holds this offset."""
        return bisect_right(self.segments, offset, key=_base_offset) - 1

    @property
    def first_unsynced(self) -> int:
        """The number of the first segment that is not synced to its end."""
        return max(0, self.segment_number(self.recovery_point))

    @property
    def size_bytes(self) -> int:
        """Bytes in all segments, without their indexes."""
        return sum(segment.size for segment in self.segments)

    @property
    def segment_offsets(self) -> list[Offset]:
        """The base offsets of the segments, in order."""
        return [segment.base_offset for segment in self.segments]

    @property
    def files(self) -> list[tuple[Offset, str, int]]:
        """Base offset, path and size in bytes of each segment's file of batches, in order.

        The path is one within ``data_directory``.
        """
        return [(segment.base_offset, segment.file_path, segment.size) for segment in self.segments]

    @property
    def closed_segments(self) -> list[Segment]:
        """All segments except the active one, in order; they are never appended to."""
        return self.segments[:-1]

    @property
    def all_aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions with a marker in the log, in the order of the markers."""
        return [each for segment in self.segments for each in segment.aborted.entries]

    def abandon(self) -> None:
        """Close all files without a sync: the log is about to be deleted, or is offline."""
        for segment in self.segments:
            with contextlib.suppress(StorageError):
                segment.close()


def _base_offset(segment: Segment) -> Offset:
    return segment.base_offset
