"""Producer snapshots: a file `<offset>.snapshot` holds the producer state at that offset."""

import logging
import re

from broker_impl.log.disk import Disk
from broker_impl.log.producers import MalformedSnapshot, ProducerStates
from broker_impl.log.segment import file_name
from broker_impl.wire.types import Offset

logger = logging.getLogger(__name__)

SNAPSHOT_SUFFIX = ".snapshot"
_NAME = re.compile(r"(\d{20})\.snapshot")


def store(disk: Disk, path: str, data: bytes) -> None:
    """Write a snapshot, durable on return.

    It may be the only source for producers whose records are deleted later (KAFKA-9892).
    """
    disk.write(path, data)


class Snapshots:
    """The producer snapshots in one log's directory."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk, self._directory = disk, directory

    def offsets(self) -> list[Offset]:
        """The offsets of all snapshots, oldest first."""
        names = map(_NAME.fullmatch, self._disk.list(self._directory))
        return [int(name[1]) for name in names if name]

    def take(self, offset: Offset, states: ProducerStates) -> None:
        """Write the state at `offset`. Durable on return."""
        store(self._disk, self._path(offset), states.encode())

    def newest(self, now_ms: int, not_above: Offset | None = None) -> tuple[Offset, ProducerStates]:
        """The newest intact snapshot; without one, the empty state at offset 0."""
        for offset in reversed(self.offsets()):
            if not_above is not None and offset > not_above:
                continue
            try:
                return offset, ProducerStates.decode(self._disk.read(self._path(offset)), now_ms)
            except MalformedSnapshot as damage:
                logger.warning("%s: %s; an older snapshot is read", self._path(offset), damage)
                self.remove(offset)
        return 0, ProducerStates()

    def remove_above(self, offset: Offset) -> None:
        """Remove the snapshots after the log's end. Durable on return."""
        above = [taken for taken in self.offsets() if taken > offset]
        for taken in above:
            self.remove(taken)
        if above:
            self._disk.fsync_dir(self._directory)

    def remove_below(self, offset: Offset) -> None:
        """Remove snapshots before the log's first segment, but never the newest of all."""
        for taken in self.offsets()[:-1]:
            if taken < offset:
                self.remove(taken)

    def remove(self, offset: Offset) -> None:
        """Remove one snapshot."""
        self._disk.remove(self._path(offset))

    def _path(self, offset: Offset) -> str:
        return f"{self._directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"
