"""All logs of a broker, and the data directory that they share."""

import logging
import re
from collections.abc import Callable, Mapping
from uuid import UUID

from broker_impl.errors import ConfigError, StorageError
from broker_impl.log import checkpoints, topic_identity
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire.types import NO_UUID, Offset, TopicPartition

logger = logging.getLogger(__name__)

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"

_LOG_DIRECTORY = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9]\d{0,9})")
_DELETED_DIRECTORY = re.compile(r".+\.[0-9a-f]{32}-delete")
_FILE_NAME_BYTES_MAX = 255


class LogManager:
    """The logs in one data directory; usable after `open` and until `close`.

    config: the settings of a topic's logs. cluster_id: None if it is not known yet; then the one in
    the directory applies. retention_check_ms: the interval of retention; 0: at every tick.
    producer_check_ms: the interval at which producers that are silent for too long are removed.
    """

    def __init__(
        self,
        disk: Disk,
        config: Callable[[str], LogConfig],
        *,
        broker_id: int,
        cluster_id: str | None,
        retention_check_ms: int = 0,
        producer_check_ms: int = 600_000,
    ) -> None:
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.high_watermarks: dict[TopicPartition, Offset] = {}
        """As last written to the checkpoint; a partition that is missing here has 0."""
        self.cluster_id = cluster_id
        self._broker_id = broker_id
        self._disk = disk
        self._config = config
        self._now_ms = 0
        self._is_open = False
        self._written: dict[str, bytes] = {}  # the checkpoints that this object wrote
        self._deletions = 0
        self._deleted: list[tuple[int, str]] = []  # when to remove, which directory
        self._producers_checked_ms = 0
        self._producer_check_ms = producer_check_ms
        self._retention_check_ms = retention_check_ms
        self._retained_ms = 0

    def open(self, now_ms: int) -> None:
        """Lock the data directory and load every log in it.

        ConfigError: it belongs to another broker or cluster. StorageError: another broker has
        locked it, or a file in it cannot be read. Unknown files and directories are left alone.
        """
        self._now_ms = self._producers_checked_ms = self._retained_ms = now_ms
        self._disk.lock()
        self._disk.fsync_dir("")  # always: the last broker may have been killed after a rename
        self._identify()
        clean = consume_clean_marker(self._disk)
        recovery_points = self._read_offsets(RECOVERY_POINTS)
        start_offsets = self._read_offsets(START_OFFSETS)
        self.high_watermarks = self._read_offsets(HIGH_WATERMARKS)
        cleaned = self._read_offsets(CLEANED_OFFSETS)
        for name in self._disk.list(""):
            if not self._disk.is_dir(name):
                continue
            if _DELETED_DIRECTORY.fullmatch(name):
                self._disk.remove_dir(name)
            elif match := _LOG_DIRECTORY.fullmatch(name):
                tp = TopicPartition(match["topic"], int(match["partition"]))
                self.logs[tp] = self._open_log(
                    tp,
                    clean=clean,
                    recovery_point=recovery_points.get(tp, 0),
                    start_offset=start_offsets.get(tp, 0),
                    first_dirty=cleaned.get(tp, 0),
                )
        for tp in [tp for tp in self.high_watermarks if tp not in self.logs]:
            del self.high_watermarks[tp]
        self._write_recovery_points()  # before an append: a log may end below its old one
        self._is_open = True
        logger.info(
            "%d logs loaded after %s shutdown", len(self.logs), "a clean" if clean else "an unclean"
        )

    def reconfigure(self, topic: str | None = None) -> None:
        """Apply the changed settings of a topic, or of all topics."""
        for tp, log in self.logs.items():
            if topic in (None, tp.topic):
                log.config = self._config(tp.topic)

    def create(self, tp: TopicPartition, topic_id: UUID = NO_UUID) -> PartitionLog:
        """Create an empty log for a partition that has none here. Durable on return.

        topic_id: the id of its topic; NO_UUID if it is not known.
        """
        assert tp not in self.logs, f"{tp} already has a log"
        self._disk.make_dir(str(tp))
        self._disk.fsync_dir("")
        if topic_id != NO_UUID:
            topic_identity.write(self._disk, str(tp), topic_id)
        self.logs[tp] = self._open_log(tp, clean=True, recovery_point=0, start_offset=0)
        return self.logs[tp]

    def delete(self, tp: TopicPartition) -> None:
        """Delete a log: at once for all callers, from the disk after `delete_delay_ms`.

        The checkpoints are written first: a later log of the same name must not inherit their
        entries.
        """
        log = self.logs.pop(tp)
        self.high_watermarks.pop(tp, None)
        self._write_checkpoints()
        log.abandon()
        self._deletions += 1
        ending = f".{self._deletions:032x}-delete"
        name = str(tp)[: _FILE_NAME_BYTES_MAX - len(ending)] + ending
        self._disk.rename(str(tp), name)
        self._disk.fsync_dir("")
        self._deleted.append((self._now_ms + log.config.delete_delay_ms, name))
        self._remove_deleted()

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Write recovery points, start offsets and high watermarks to the checkpoints.

        A log that is missing in `high_watermarks` keeps the one written last (KAFKA-1647).
        """
        for tp, offset in high_watermarks.items():
            if tp in self.logs:
                self.high_watermarks[tp] = offset
        self._write_checkpoints()

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
            log.roll_if_due(now_ms)
            if log.due_flush(now_ms):
                log.flush()
            log.flush_settled(now_ms)
            if retain:
                known, start = self.high_watermarks.get(tp, 0), log.start_offset
                log.retain(now_ms, high_watermarks.get(tp, known))
                if log.start_offset != start:
                    moved.append(tp)
            log.remove_deleted(now_ms)
            if forget_producers:
                log.expire_producers(now_ms)
        self._remove_deleted()
        return moved

    def close(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Sync and close every log, write the checkpoints, and last the clean marker.

        The clean marker is not written if `open` did not finish (KAFKA-15375), nor if a log is
        offline or fails now, which raises StorageError.
        """
        if self._is_open:
            self._is_open = False
            for log in self.logs.values():
                log.close()
            self.checkpoint(high_watermarks)
            self._disk.write(CLEAN_SHUTDOWN, b"")
        self._disk.unlock()

    def _open_log(
        self,
        tp: TopicPartition,
        *,
        clean: bool,
        recovery_point: Offset,
        start_offset: Offset,
        first_dirty: Offset = 0,
    ) -> PartitionLog:
        return PartitionLog.open(
            self._disk,
            str(tp),
            tp,
            self._config(tp.topic),
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            now_ms=self._now_ms,
            write_recovery_point=self._write_recovery_points,
            first_dirty=first_dirty,
        )

    def _identify(self) -> None:
        """Check that the directory belongs to this broker and cluster; claim it if it is new."""
        written: dict[str, str] = {}
        if self._disk.exists(META_PROPERTIES):
            try:
                written = checkpoints.parse_properties(self._disk.read(META_PROPERTIES))
            except checkpoints.MalformedCheckpoint as damage:
                raise StorageError(f"{META_PROPERTIES}: {damage}") from None
        broker = str(self._broker_id)
        if (owner := written.get("broker.id", broker)) != broker:
            raise ConfigError(
                f"the data directory belongs to broker {owner}, not to broker {broker}"
            )
        cluster = written.get("cluster.id", self.cluster_id)
        if self.cluster_id not in (None, cluster):
            raise ConfigError(
                f"the data directory belongs to cluster {cluster}, not to cluster {self.cluster_id}"
            )
        self.cluster_id = cluster
        properties = {"version": "0", "broker.id": broker}
        if cluster is not None:
            properties["cluster.id"] = cluster
        if properties != written:
            self._disk.write(META_PROPERTIES, checkpoints.format_properties(properties))

    def _read_offsets(self, name: str) -> dict[TopicPartition, Offset]:
        if not self._disk.exists(name):
            return {}
        try:
            return checkpoints.parse_offsets(self._disk.read(name))
        except checkpoints.MalformedCheckpoint as damage:
            raise StorageError(f"{name}: {damage}") from None

    def _write_checkpoints(self) -> None:
        self._write_recovery_points()
        self.write_starts()
        self._write_offsets(HIGH_WATERMARKS, self.high_watermarks)
        self.write_cleaned()

    def write_starts(self) -> None:
        """Write the start offsets of logs to their checkpoint."""
        starts = {tp: log.start_offset for tp, log in self.logs.items() if log.start_offset}
        self._write_offsets(START_OFFSETS, starts)

    def write_cleaned(self) -> None:
        """Write the offsets up to which logs were compacted to their checkpoint."""
        cleaned = {tp: log.first_dirty for tp, log in self.logs.items() if log.first_dirty}
        if cleaned or CLEANED_OFFSETS in self._written:
            self._write_offsets(CLEANED_OFFSETS, cleaned)

    def _write_recovery_points(self) -> None:
        points = {tp: log.recovery_point for tp, log in self.logs.items()}
        self._write_offsets(RECOVERY_POINTS, points)

    def _write_offsets(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Write a checkpoint, if it changed: a write is two syncs, which block the broker."""
        text = checkpoints.format_offsets(offsets)
        if self._written.get(name) != text:
            self._disk.write(name, text)
            self._written[name] = text

    def _remove_deleted(self) -> None:
        while self._deleted and self._deleted[0][0] <= self._now_ms:
            self._disk.remove_dir(self._deleted.pop(0)[1])


def consume_clean_marker(disk: Disk) -> bool:
    """Remove the clean marker, and return whether there was one.

    It stands for one shutdown only, because loading may fail (KAFKA-10471).
    """
    if not disk.exists(CLEAN_SHUTDOWN):
        return False
    disk.remove(CLEAN_SHUTDOWN)
    disk.fsync_dir("")
    return True
