"""All logs of a broker, and the data directories that hold them.

Each log is in one directory. While it moves to another (KIP-113), a future log there copies it; see
`moving` and `move_rules`.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

from broker_impl.errors import DirectoryFailed, StorageError
from broker_impl.log import directory as directories
from broker_impl.log import move_rules, moving, topic_identity
from broker_impl.log.config import LogConfig
from broker_impl.log.directory import FoundLog, LogDirectory
from broker_impl.log.disk import Disk
from broker_impl.log.move_rules import Fate
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire.types import NO_UUID, Offset, TopicPartition

logger = logging.getLogger(__name__)


class LogManager:
    """The logs in all data directories; usable after `open` and until `close`.

    disks: each directory by its name in `log.dirs`, in that order. config: the settings of a
    topic's logs. cluster_id: None if it is not known yet; then the one in the directories applies.
    retention_check_ms: the interval of retention; 0: at every tick. producer_check_ms: the interval
    at which producers that are silent for too long are removed.
    """

    def __init__(
        self,
        disks: Mapping[str, Disk],
        config: Callable[[str], LogConfig],
        *,
        broker_id: int,
        cluster_id: str | None,
        retention_check_ms: int = 0,
        producer_check_ms: int = 600_000,
    ) -> None:
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.futures: dict[TopicPartition, PartitionLog] = {}
        """The future logs, which copy the current logs of partitions that move."""
        self.high_watermarks: dict[TopicPartition, Offset] = {}
        """As last written to the checkpoint; a partition that is missing here has 0."""
        self.directories = tuple(
            LogDirectory(path, disk, self.high_watermarks, self._failed)
            for path, disk in disks.items()
        )
        self.cluster_id = cluster_id
        self.on_move: Callable[[], None] = lambda: None
        """Called when a partition begins to move."""
        self.on_failure: Callable[[LogDirectory], None] = lambda directory: None
        """Called when a data directory fails after `open`, in the operation that fails first."""
        self._broker_id = broker_id
        self._config = config
        self._now_ms = 0
        self._is_open = False
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self._producers_checked_ms = 0
        self._producer_check_ms = producer_check_ms
        self._retention_check_ms = retention_check_ms
        self._retained_ms = 0

    def open(self, now_ms: int) -> None:
        """Lock the data directories and load every log in them.

        ConfigError: one belongs to another broker or cluster. StorageError: another broker has
        locked one, a file is damaged, two directories have a log of the same partition, or all
        directories have failed. A directory that fails while another one works is given up.
        """
        self._now_ms = self._producers_checked_ms = self._retained_ms = now_ms
        for known in (self.logs, self.futures, self.high_watermarks):
            known.clear()  # of an earlier life
        for directory in self.directories:
            directory.disk.begin()
        self._each(LogDirectory.lock)
        self._identify()
        self._each(LogDirectory.read)
        futures: list[tuple[LogDirectory, FoundLog]] = []
        self._each(lambda directory: futures.extend(self._load_all(directory)))
        for directory, found in futures:
            with self._going_on():
                self._settle(directory, found.tp, found.name)
        self._each(LogDirectory.opened)  # before an append
        for directory in self.directories:
            if directory.failure is not None:
                logger.error("%s cannot be used: %s", directory.path, directory.failure)
                self.give_up(directory)
        self._is_open = True
        clean = all(directory.is_clean for directory in self.directories)
        logger.info(
            "%d logs loaded after %s shutdown", len(self.logs), "a clean" if clean else "an unclean"
        )

    def reconfigure(self, topic: str | None = None) -> None:
        """Apply the changed settings of a topic, or of all topics."""
        for tp, log in self.logs.items():
            if topic in (None, tp.topic):
                log.config = self._config(tp.topic)
                if log.future is not None:
                    log.future.config = log.config

    def create(self, tp: TopicPartition, topic_id: UUID = NO_UUID) -> PartitionLog:
        """Create an empty log for a partition that has none here. Durable on return.

        topic_id: the id of its topic; NO_UUID if it is not known. A directory that fails before it
        has anything of the log is replaced by another one; DirectoryFailed: it fails after that.
        """
        assert tp not in self.logs, f"{tp} already has a log"
        directory, name = self._make(tp)
        directory.sync_names()
        if topic_id != NO_UUID:
            topic_identity.write(directory.disk, name, topic_id)
        self.logs[tp] = directory.logs[tp] = self._open_log(directory, tp, name, clean=True)
        return self.logs[tp]

    def _make(self, tp: TopicPartition) -> tuple[LogDirectory, str]:
        """Create the directory of a log where that succeeds; return in what, and its name."""
        preferred = self._preferred.pop(tp, None)
        while True:
            if preferred is None or preferred.failure is not None:
                preferred = self._emptiest()
            with self._going_on():
                return preferred, preferred.make(tp, is_future=False)

    def delete(self, tp: TopicPartition) -> None:
        """Delete a log: at once for all callers, from the disk after `delete_delay_ms`.

        A future log is deleted first, because without a current log it would have no use.
        """
        if tp in self.futures:
            with self._going_on():
                self.cancel_move(tp)
        directory = self.directory_of(self.logs[tp])
        log = self.logs.pop(tp)
        self.high_watermarks.pop(tp, None)
        directory.forget(tp)
        log.abandon()
        directory.discard(str(tp), self._now_ms + log.config.delete_delay_ms)
        directory.remove_deleted(self._now_ms)

    # -- failed directories ----------------------------------------------------------------------

    @property
    def goes_on(self) -> bool:
        """Whether a data directory has failed, and another works (KIP-112)."""
        return self.lacks_directory and any(each.failure is None for each in self.directories)

    @property
    def lacks_directory(self) -> bool:
        """Whether a data directory has failed."""
        return any(each.failure is not None for each in self.directories)

    def _failed(self, directory: LogDirectory) -> None:
        if self._is_open:
            self.on_failure(directory)
        else:
            directory.disk.is_given_up = True  # without its lock, nothing in it may be read

    def give_up(self, failed: LogDirectory) -> list[TopicPartition]:
        """Stop using a directory that has failed, and return the partitions that have no log now.

        Their files stay as they are. A log that went offline elsewhere, because it was about to
        move to or from that directory, is lost as well.
        """
        for tp, log in failed.logs.items():
            if self.futures.get(tp) is log:
                del self.futures[tp]
                self.logs[tp].future = None
        lost = [
            tp
            for tp, log in self.logs.items()
            if log is failed.logs.get(tp) or log.offline is not None
        ]
        for tp in lost:
            del self.logs[tp]
            self.futures.pop(tp, None)
            for directory in self.directories:
                if tp in directory.logs:
                    directory.leave(tp)
            self.high_watermarks.pop(tp, None)
        failed.give_up()
        return lost

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Suppress the failure of one data directory while another one works."""
        try:
            yield
        except DirectoryFailed:
            if not self.goes_on:
                raise

    def _each(self, act: Callable[[LogDirectory], None]) -> None:
        """Do this in each directory that is in use; those that fail meanwhile do not stop it."""
        for directory in self.directories:
            if not directory.disk.is_given_up:
                with self._going_on():
                    act(directory)

    # -- moves between directories ---------------------------------------------------------------

    def directory_at(self, path: str) -> LogDirectory | None:
        """Return the data directory of this name in `log.dirs`, if there is one."""
        return next((each for each in self.directories if each.path == path), None)

    def directory_of(self, log: PartitionLog) -> LogDirectory:
        """Return the data directory that holds a log, current or future."""
        tp = log.topic_partition
        return next(each for each in self.directories if each.logs.get(tp) is log)

    def prefer(self, tp: TopicPartition, directory: LogDirectory) -> None:
        """Remember where to create the log of a partition that has none here."""
        self._preferred[tp] = directory

    def begin_move(self, tp: TopicPartition, target: LogDirectory) -> None:
        """Create an empty future log in a directory, which replaces any other one elsewhere.

        If the partition's current log is there, or its future log, no other one is created: the
        former ends a move, and the latter continues it.
        """
        current, future = self.logs[tp], self.futures.get(tp)
        if future is not None:
            if self.directory_of(future) is target:
                return
            self.cancel_move(tp)
        if self.directory_of(current) is target:
            return
        name = target.make(tp, is_future=True)
        target.sync_names()
        if current.topic_id != NO_UUID:
            topic_identity.write(target.disk, name, current.topic_id)
        future = self._open_log(target, tp, name, clean=True)
        self.futures[tp] = target.logs[tp] = current.future = future
        logger.info("%s moves to %s", tp, target.path)
        self.on_move()

    def cancel_move(self, tp: TopicPartition) -> None:
        """Delete the future log of a partition; its current log stays where it is."""
        future = self.futures.pop(tp)
        self.logs[tp].future = None
        directory = self.directory_of(future)
        directory.forget(tp)
        future.abandon()
        directory.discard(future.directory, self._now_ms + future.config.delete_delay_ms)

    def finish_move(self, tp: TopicPartition, high_watermark: Offset) -> PartitionLog:
        """Replace a current log by its complete copy, and return the log that is current now.

        A crash at any point leaves one of the two, with all records. A StorageError once the copy
        is complete takes the log offline: it cannot be known which of the directories has it.
        """
        current, future = self.logs[tp], self.futures[tp]
        source, target = self.directory_of(current), self.directory_of(future)
        self.high_watermarks[tp] = high_watermark
        moving.complete(current, future)
        target.write_checkpoints()
        target.mark_complete(future.directory)
        del self.futures[tp]
        with current.changing():
            source.discard(str(tp), self._now_ms + current.config.delete_delay_ms)
            target.promote(future.directory, tp)
            source.forget(tp)
            log = self._open_log(
                target,
                tp,
                str(tp),
                clean=True,
                recovery_point=future.recovery_point,
                start_offset=move_rules.start_after(
                    current.start_offset, future.segments[0].base_offset
                ),
                first_dirty=current.first_dirty,
            )
            moving.inherit(current, log)
        current.abandon()
        self.logs[tp] = target.logs[tp] = log
        logger.info("%s has moved to %s", tp, target.path)
        return log

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Write recovery points, start offsets and high watermarks to the checkpoints.

        A log that is missing in `high_watermarks` keeps the one written last (KAFKA-1647).
        """
        for tp, offset in high_watermarks.items():
            if tp in self.logs:
                self.high_watermarks[tp] = offset
        self._each(LogDirectory.write_checkpoints)

    def tick(
        self, now_ms: int, high_watermarks: Mapping[TopicPartition, Offset]
    ) -> list[TopicPartition]:
        """Run what is due: syncs, new segments by age, retention, removal of deleted files.

        Returns the partitions whose log now starts at a later offset.
        """
        moved = []
        self._now_ms = now_ms
        forget_producers = now_ms - self._producers_checked_ms >= self._producer_check_ms
        if forget_producers:
            self._producers_checked_ms = now_ms
        retain = now_ms - self._retained_ms >= self._retention_check_ms
        if retain:
            self._retained_ms = now_ms
        for tp, log in self.logs.items():
            start = log.start_offset
            high_watermark = high_watermarks.get(tp, self.high_watermarks.get(tp, 0))
            log.producers.settle(high_watermark)
            try:
                log.roll_if_due(now_ms)
                if log.due_flush(now_ms):
                    log.flush()
                log.flush_settled(now_ms)
                if retain:
                    log.retain(now_ms, high_watermark)
                log.remove_deleted(now_ms)
            except DirectoryFailed:
                if not self.goes_on:
                    raise
                continue
            if log.start_offset != start:
                moved.append(tp)
            if forget_producers:
                log.expire_producers(now_ms)
        for log in self.futures.values():
            with self._going_on():
                log.flush_settled(now_ms)  # so that little is left to sync at the end of the move
        self._each(lambda directory: directory.remove_deleted(now_ms))
        return moved

    def close(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Sync and close every log, write the checkpoints, and last the clean marker.

        The clean marker is not written if `open` did not finish (KAFKA-15375), nor if a log is
        offline or fails now, which raises StorageError if no directory works.
        """
        for directory in self.directories:
            if directory.failure is not None and self.goes_on:
                self.give_up(directory)  # without a clean marker
        if self._is_open:
            self._is_open = False
            self._each(LogDirectory.close_logs)
            self.checkpoint(high_watermarks)
            self._each(LogDirectory.close)
        for directory in self.directories:
            directory.disk.unlock()

    def write_starts(self, tp: TopicPartition) -> None:
        """Write the start offsets of logs to their checkpoints; that of this partition is durable.

        DirectoryFailed: it is not.
        """
        self._each(LogDirectory.write_starts)
        failure = self.directory_of(self.logs[tp]).failure
        if failure is not None:
            raise DirectoryFailed(str(failure))

    def write_cleaned(self) -> None:
        """Write the offsets up to which logs were compacted to their checkpoints."""
        self._each(LogDirectory.write_cleaned)

    def _identify(self) -> None:
        """Check that all directories belong to this broker and cluster; claim new ones."""
        written: list[tuple[LogDirectory, dict[str, str]]] = []
        self._each(lambda directory: written.append((directory, directory.owner())))
        for directory, properties in written:
            directories.check_owner(directory.path, properties, self._broker_id, self.cluster_id)
            self.cluster_id = properties.get("cluster.id", self.cluster_id)
        for directory, properties in written:
            with self._going_on():
                directory.claim(properties, self._broker_id, self.cluster_id)

    def _load_all(self, directory: LogDirectory) -> list[tuple[LogDirectory, FoundLog]]:
        """Load the current logs in a directory, and return the future ones."""
        found = [each for each in directory.scan() if not self._load(directory, each)]
        return [(directory, each) for each in found]

    def _load(self, directory: LogDirectory, found: FoundLog) -> bool:
        """Load a current log; False: it is a future one, which is settled after all others."""
        tp, name, is_future = found
        if is_future:
            return False
        if (other := self.logs.get(tp)) is not None:
            raise StorageError(
                f"{tp} has a log in {self.directory_of(other).path} and in {directory.path}: "
                "one of them must be removed"
            )
        log = self._open_found(directory, tp, name)
        self.logs[tp] = directory.logs[tp] = log
        if tp in directory.found_watermarks:
            self.high_watermarks[tp] = directory.found_watermarks[tp]
        return True

    def _settle(self, directory: LogDirectory, tp: TopicPartition, name: str) -> None:
        """Decide what happens to a future log that was found in a directory."""
        current, is_complete = self.logs.get(tp), directory.is_complete(name)
        if current is None and self.goes_on:
            directory.leave_found(tp)  # its current log may be in the directory that has failed
            return
        fate = move_rules.fate(has_current=current is not None, is_complete=is_complete)
        logger.info("the future log %s in %s is %s", name, directory.path, fate.value)
        if fate is Fate.PROMOTED:
            directory.promote(name, tp)
            self._load(directory, FoundLog(tp, str(tp), is_future=False))
        elif current is None or fate is Fate.DISCARDED or tp in directory.logs | self.futures:
            directory.discard(name, self._now_ms)
        else:
            if is_complete:
                directory.unmark(name)
            future = self._open_found(directory, tp, name)
            self.futures[tp] = directory.logs[tp] = future
            moving.start_over(current, future, self._now_ms)
            current.future = future

    def _open_found(self, directory: LogDirectory, tp: TopicPartition, name: str) -> PartitionLog:
        known = directory.checkpointed(tp)
        return self._open_log(directory, tp, name, clean=directory.is_clean, **known._asdict())

    def _open_log(
        self,
        directory: LogDirectory,
        tp: TopicPartition,
        name: str,
        *,
        clean: bool,
        recovery_point: Offset = 0,
        start_offset: Offset = 0,
        first_dirty: Offset = 0,
    ) -> PartitionLog:
        log = PartitionLog.open(
            directory.disk,
            name,
            tp,
            self._config(tp.topic),
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            now_ms=self._now_ms,
            write_recovery_point=directory.write_recovery_points,
            write_lowered=directory.write_lowered,
            first_dirty=first_dirty,
        )
        log.data_directory = directory.path
        return log

    def _emptiest(self) -> LogDirectory:
        working = [each for each in self.directories if each.failure is None] or self.directories
        return working[move_rules.fewest([len(directory.logs) for directory in working])]
