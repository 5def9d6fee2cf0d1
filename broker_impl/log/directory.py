"""One data directory: its lock, its owner, its checkpoints, and the logs that it holds.

A broker may have several (KIP-112, KIP-113). Each has all of these files for its own logs, so that
it can be read without the others.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

from broker_impl.errors import ConfigError, StorageError
from broker_impl.log import checkpoints
from broker_impl.log.disk import Disk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.watched_disk import WatchedDisk
from broker_impl.wire.types import Offset, TopicPartition

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
META_PROPERTIES: Final = "meta.properties"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
START_OFFSETS: Final = "log-start-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"
COMPLETE_COPY: Final = "copy-is-complete"
"""A file in the directory of a future log that is about to replace the current one."""

Key = TypeVar("Key")
Value = TypeVar("Value")

_LOG: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9]\d{0,9})")
_FUTURE: Final = re.compile(rf"{_LOG.pattern}\.[0-9a-f]{{32}}-future")
_DELETED: Final = re.compile(r".+\.[0-9a-f]{32}-delete")
_FILE_NAME_BYTES_MAX: Final = 255
_FUTURE_ENDING_BYTES: Final = len(f".{0:032x}-future")


class FoundLog(NamedTuple):
    """The directory of a log, as found when a data directory is opened."""

    tp: TopicPartition
    name: str
    is_future: bool


class Checkpointed(NamedTuple):
    """What the checkpoints of a data directory say about one log; 0 where they say nothing."""

    recovery_point: Offset
    start_offset: Offset
    first_dirty: Offset


class LogDirectory:
    """One data directory; usable after ``open`` and until ``unlock``.

    path: its name in ``log.dirs``. high_watermarks: those of all partitions of the broker, which
    its owner keeps up to date. on_failure: called in the first operation of its disk that fails.
    """

    def __init__(
        self,
        path: str,
        disk: Disk,
        high_watermarks: Mapping[TopicPartition, Offset],
        on_failure: Callable[["LogDirectory"], None],
    ) -> None:
        self.path = path
        self.disk = WatchedDisk(disk, lambda: on_failure(self))
        self.logs: dict[TopicPartition, PartitionLog] = {}
        """The logs in this directory: of a partition that moves to it, the future log."""
        self.is_clean = False
        """Did the broker that used this directory last shut down cleanly?"""
        self.found_watermarks: dict[TopicPartition, Offset] = {}
        """The high watermarks in the checkpoint when the directory was opened."""
        self._high_watermarks = high_watermarks
        self._found: dict[str, dict[TopicPartition, Offset]] = {}
        self._left: dict[str, dict[TopicPartition, Offset]] = {}
        """The entries of logs that are in this directory, and not loaded."""
        self._written: dict[str, bytes] = {}  # the checkpoints as they are on the disk
        self._renamed = 0
        self._deleted: list[tuple[int, str]] = []  # when to remove, which directory

    @property
    def failure(self) -> StorageError | None:
        """The first failure of an operation in this directory; None: it works."""
        return self.disk.failure

    def give_up(self) -> None:
        """Close the logs of a directory that has failed, and let nothing use its disk any more."""
        self.disk.is_given_up = True
        for log in self.logs.values():
            log.abandon()
        self.logs.clear()
        with suppress(StorageError):
            self.disk.unlock()

    # -- opening ---------------------------------------------------------------------------------

    def lock(self) -> None:
        """Lock the directory; DirectoryInUse: another broker has locked it."""
        self.disk.lock()
        self.disk.fsync_dir("")  # always: the last broker may have been killed after a rename

    def owner(self) -> dict[str, str]:
        """Return the content of ``meta.properties``; it is empty if the directory is new."""
        return self._content(META_PROPERTIES, checkpoints.parse_properties)

    def claim(self, written: Mapping[str, str], broker_id: int, cluster_id: str | None) -> None:
        """Write the owner to ``meta.properties``, unless that is what is ``written``."""
        properties = {"version": "0", "broker.id": str(broker_id)}
        if cluster_id is not None:
            properties["cluster.id"] = cluster_id
        if properties != written:
            self.disk.write(META_PROPERTIES, checkpoints.format_properties(properties))

    def read(self) -> None:
        """Read the checkpoints, and consume the clean marker."""
        self.logs.clear()
        self._left.clear()
        self.is_clean = consume_clean_marker(self.disk)
        self._written.clear()
        for name in (RECOVERY_POINTS, START_OFFSETS, HIGH_WATERMARKS, CLEANED_OFFSETS):
            self._found[name] = self._content(name, checkpoints.parse_offsets)
            if self.disk.exists(name):
                self._written[name] = checkpoints.format_offsets(self._found[name])
        self.found_watermarks = self._found[HIGH_WATERMARKS]

    def scan(self) -> Iterator[FoundLog]:
        """Yield the logs, future ones included, and remove what was deleted.

        Unknown files and directories are left alone.
        """
        for name in self.disk.list(""):
            if not self.disk.is_dir(name):
                continue
            if _DELETED.fullmatch(name):
                self.disk.remove_dir(name)
            elif match := _LOG.fullmatch(name) or _FUTURE.fullmatch(name):
                tp = TopicPartition(match["topic"], int(match["partition"]))
                yield FoundLog(tp, name, is_future=match.re is _FUTURE)

    def checkpointed(self, tp: TopicPartition) -> Checkpointed:
        """Return what the checkpoints said about a log when the directory was opened."""
        return Checkpointed(
            self._found[RECOVERY_POINTS].get(tp, 0),
            self._found[START_OFFSETS].get(tp, 0),
            self._found[CLEANED_OFFSETS].get(tp, 0),
        )

    def leave_found(self, tp: TopicPartition) -> None:
        """Leave a log as it is, and its entries in the checkpoints; it is not loaded."""
        for name, found in self._found.items():
            if tp in found:
                self._left.setdefault(name, {})[tp] = found[tp]

    def leave(self, tp: TopicPartition) -> None:
        """Close a log without a sync, and keep its entries in the checkpoints as they are now."""
        log = self.logs.pop(tp)
        for name, offset in (
            (RECOVERY_POINTS, log.recovery_point),
            (START_OFFSETS, log.start_offset),
            (HIGH_WATERMARKS, self._high_watermarks.get(tp, 0)),
            (CLEANED_OFFSETS, log.first_dirty),
        ):
            self._left.setdefault(name, {})[tp] = offset
        log.abandon()

    def opened(self) -> None:
        """Write the checkpoints as they are now that all logs are loaded.

        A log may end below what they say, or be elsewhere: a broker that was killed while it
        replaced a log by its copy has left its entries, and a later log of that name must not
        inherit them.
        """
        self.write_checkpoints()
        self._found.clear()

    def _content(self, name: str, parse: Callable[[bytes], dict[Key, Value]]) -> dict[Key, Value]:
        if not self.disk.exists(name):
            return {}
        try:
            return parse(self.disk.read(name))
        except checkpoints.MalformedCheckpoint as damage:
            raise StorageError(f"{name}: {damage}") from None

    # -- checkpoints -----------------------------------------------------------------------------

    def write_checkpoints(self) -> None:
        """Write recovery points, start offsets, high watermarks, and the cleaner's offsets."""
        self.write_recovery_points()
        self.write_starts()
        marks = {tp: mark for tp, mark in self._high_watermarks.items() if tp in self.logs}
        self._write_offsets(HIGH_WATERMARKS, marks)
        self.write_cleaned()

    def write_recovery_points(self) -> None:
        """Write the offsets up to which logs are synced to their checkpoint."""
        points = {tp: log.recovery_point for tp, log in self.logs.items()}
        self._write_offsets(RECOVERY_POINTS, points)

    def write_starts(self) -> None:
        """Write the start offsets of logs to their checkpoint."""
        starts = {tp: log.start_offset for tp, log in self.logs.items() if log.start_offset}
        self._write_offsets(START_OFFSETS, starts)

    def write_cleaned(self) -> None:
        """Write the offsets up to which logs were compacted to their checkpoint."""
        cleaned = {tp: log.first_dirty for tp, log in self.logs.items() if log.first_dirty}
        if cleaned or CLEANED_OFFSETS in self._written:
            self._write_offsets(CLEANED_OFFSETS, cleaned)

    def write_lowered(self) -> None:
        """Write what a log starts with, and how far it is compacted, after it has lost its end."""
        self.write_starts()
        self.write_cleaned()

    def _write_offsets(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Write a checkpoint, if it changed: a write is two syncs, which block the broker."""
        text = checkpoints.format_offsets({**self._left.get(name, {}), **offsets})
        if self._written.get(name) != text:
            self.disk.write(name, text)
            self._written[name] = text

    # -- logs ------------------------------------------------------------------------------------

    def make(self, tp: TopicPartition, *, is_future: bool) -> str:
        """Create the directory of a log, and return its name; durable after `sync_names`."""
        name = str(tp)
        if is_future:
            name += self._ending("future")
        self.disk.make_dir(name)
        return name

    def sync_names(self) -> None:
        """Let the directories of logs that were created survive a crash."""
        self.disk.fsync_dir("")

    def forget(self, tp: TopicPartition) -> PartitionLog:
        """Remove a log from the checkpoints, and return it.

        This comes before its directory is renamed: a later log of the same name must not inherit
        its entries.
        """
        log = self.logs.pop(tp)
        self.write_checkpoints()
        return log

    def discard(self, name: str, due_ms: int) -> None:
        """Rename a log's directory to one that is removed at ``due_ms``. Durable on return."""
        ending = self._ending("delete")
        stem = name if _LOG.fullmatch(name) else name.rpartition(".")[0]
        deleted = stem[: _FILE_NAME_BYTES_MAX - len(ending)] + ending
        self.disk.rename(name, deleted)
        self.disk.fsync_dir("")
        self._deleted.append((due_ms, deleted))

    def mark_complete(self, name: str) -> None:
        """Record that a future log has all of the current one. Durable on return."""
        self.disk.write(f"{name}/{COMPLETE_COPY}", b"")

    def is_complete(self, name: str) -> bool:
        """Return whether a future log had all of the current one before the broker ended."""
        return self.disk.exists(f"{name}/{COMPLETE_COPY}")

    def unmark(self, name: str) -> None:
        """Remove the mark of a complete copy; durable on return, before the log changes."""
        self.disk.remove(f"{name}/{COMPLETE_COPY}")
        self.disk.fsync_dir(name)

    def promote(self, name: str, tp: TopicPartition) -> None:
        """Give the directory of a complete future log the name of a current one; durable."""
        self.disk.rename(name, str(tp))
        self.disk.fsync_dir("")
        self.unmark(str(tp))

    def remove_deleted(self, now_ms: int) -> None:
        """Remove the directories of deleted logs whose delay has passed."""
        while self._deleted and self._deleted[0][0] <= now_ms:
            self.disk.remove_dir(self._deleted.pop(0)[1])

    def close_logs(self) -> None:
        """Sync and close all logs; StorageError: one is offline or fails now."""
        for log in self.logs.values():
            log.close()

    def close(self) -> None:
        """Write the clean marker: all logs are closed, and the checkpoints are written."""
        self.disk.write(CLEAN_SHUTDOWN, b"")

    def _ending(self, kind: str) -> str:
        self._renamed += 1
        return f".{self._renamed:032x}-{kind}"


def consume_clean_marker(disk: Disk) -> bool:
    """Remove the clean marker, and return whether there was one.

    It stands for one shutdown only, because loading may fail (KAFKA-10471).
    """
    if not disk.exists(CLEAN_SHUTDOWN):
        return False
    disk.remove(CLEAN_SHUTDOWN)
    disk.fsync_dir("")
    return True


def check_owner(path: str, written: Mapping[str, str], broker_id: int, cluster: str | None) -> None:
    """Raise ConfigError if a data directory belongs to another broker or cluster.

    cluster: the id of the cluster; None if it is not known.
    """
    place = f"the data directory {path}".rstrip()
    owner = written.get("broker.id", str(broker_id))
    if owner != str(broker_id):
        raise ConfigError(f"{place} belongs to broker {owner}, not to broker {broker_id}")
    found = written.get("cluster.id", cluster)
    if cluster not in (None, found):
        raise ConfigError(f"{place} belongs to cluster {found}, not to cluster {cluster}")


def fits_a_future_name(tp: TopicPartition) -> bool:
    """Return whether a future log of the partition can have a directory (KAFKA-4893)."""
    return len(str(tp)) + _FUTURE_ENDING_BYTES <= _FILE_NAME_BYTES_MAX
