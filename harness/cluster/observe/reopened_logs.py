"""Loads the logs of a running broker from a copy of its files, as after a kill or a power loss.

The run is not changed: the files are copied to a disk in memory, without an event, and loaded
there by the broker's own code, whose messages are not logged.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from broker_impl.log.directory import META_PROPERTIES
from broker_impl.log.log_state import LogState
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import topic_ids
from broker_impl.wire.types import NO_UUID, TopicPartition
from checkers.invariants.after_kill import (
    AbortedTransaction,
    Known,
    KnownLog,
    KnownProducer,
    StoredSegment,
)
from harness.simulation import disk_directory
from harness.simulation.disk import SimDisk
from harness.simulation.disk_inode import Inode
from harness.simulation.disk_names import Directory, Node
from model.snapshot import EpochStart, RememberedBatch

Logs = Callable[[], Mapping[TopicPartition, PartitionLog]]
Names = Callable[[Directory], Mapping[str, Node]]
"""Returns the names in a directory that there would be."""
Content = Callable[[Inode], bytes]
"""Returns the bytes that a file would have."""


class ReopenedLogs:
    """The logs of one life of a broker, loaded again from copies of their files.

    Args:
        logs: returns the current logs of the broker.
        directories: its data directories, as in ``log.dirs``.
        disk: the disk that has them.
    """

    def __init__(self, logs: Logs, directories: Sequence[str], disk: SimDisk) -> None:
        self._logs = logs
        self._places = disk_directory.prefixes(directories)
        self._disk = disk

    def known(self, key: str) -> Known | None:
        """Return a log as the broker has it, and as it would load it; see ``Reload``."""
        topic, _, partition = key.rpartition("-")
        log = self._logs().get(TopicPartition(topic, int(partition)))
        if log is None or log.offline is not None:
            return None
        return Known(
            _known(log, log),
            self._loaded(log, lambda directory: directory.names, lambda file: bytes(file.data)),
            self._loaded(log, lambda directory: directory.durable, lambda file: file.durable),
        )

    def _loaded(self, log: LogState, names: Names, content: Content) -> KnownLog | str:
        """Load the log from a copy of its data directory, with these names and contents.

        Returns why the broker would fail, or not find the log.
        """
        copy = MemoryDisk()
        root = self._disk.names.directory(self._places[log.data_directory])
        for name, node in names(root).items():
            if not isinstance(node, Directory):
                if name != META_PROPERTIES:  # whose log it is does not matter
                    copy.write(name, content(node))
            elif name == log.directory:
                copy.make_dir(name)
                for path, file in names(node).items():
                    if not isinstance(file, Directory):
                        copy.write(f"{name}/{path}", content(file))
        disks, config = {log.data_directory: copy}, log.config
        logs = LogManager(disks, lambda topic: config, broker_id=0, cluster_id=None)
        try:
            with _silence():
                logs.open(log.segments[-1].written_ms)
            found = logs.logs.get(log.topic_partition)
            return "there is no such log" if found is None else _known(found, log)
        except Exception as error:  # noqa: BLE001 - with whatever the broker would fail
            return f"{type(error).__name__}: {error}"


@contextmanager
def _silence() -> Iterator[None]:
    """Log nothing meanwhile."""
    former = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(former)


def _known(log: LogState, held: LogState) -> KnownLog:
    """Return what is known of a log, with the places that the broker remembers for the held one."""
    places: dict[int, int] = {}
    for segment in held.segments if log.offline is None else ():
        number = log.segment_number(segment.base_offset)
        for offset, position in segment.known_places.items():
            is_held = log is held
            places[offset] = position if is_held else log.segments[number].locate(offset)
    return KnownLog(
        log.start_offset,
        log.end_offset,
        log.recovery_point,
        log.first_dirty,
        "" if log.topic_id == NO_UUID else topic_ids.to_text(log.topic_id),
        tuple(EpochStart(*entry) for entry in log.epochs.entries),
        tuple(StoredSegment(each.base_offset, each.size, *each.largest) for each in log.segments),
        tuple(AbortedTransaction(*each) for each in log.all_aborted),
        {
            number: KnownProducer(
                entry.epoch,
                tuple(
                    RememberedBatch(batch.last_sequence, batch.last_offset, batch.offset_delta + 1)
                    for batch in entry.batches
                ),
                entry.transaction_start,
                entry.coordinator_epoch,
            )
            for number, entry in log.producers.entries.items()
        },
        places,
    )
