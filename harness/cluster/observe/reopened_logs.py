"""Loads the logs of a running broker from a copy of its files, as after a kill or a power loss.

The run is not changed: the files are copied to a disk in memory, without an event, and loaded
there by the broker's own code, whose messages are not logged.
"""

from collections.abc import Callable, Mapping, Sequence

from broker_impl.log.directory import CLEANED_OFFSETS, RECOVERY_POINTS, START_OFFSETS
from broker_impl.log.log_state import LogState
from broker_impl.log.manager import LogManager
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
from harness.cluster.observe.disk_copies import Loss, copied, silence
from harness.cluster.observe.snapshots import remembered
from harness.simulation import disk_directory
from harness.simulation.disk import SimDisk
from model.snapshot import EpochStart

Logs = Callable[[], Mapping[TopicPartition, PartitionLog]]


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
            _known(log, _remembered(log)),
            self._loaded(log, Loss.KILL),
            self._loaded(log, Loss.POWER),
        )

    def _loaded(self, log: LogState, loss: Loss) -> KnownLog | str:
        """Load the log from a copy of its data directory.

        Returns why the broker would fail, or not find the log.
        """
        wanted = {log.directory, RECOVERY_POINTS, START_OFFSETS, CLEANED_OFFSETS}
        config = log.config
        try:
            root = self._disk.names.directory(self._places[log.data_directory])
            disks = {log.data_directory: copied(root, loss, lambda name: name in wanted)}
            logs = LogManager(disks, lambda topic: config, broker_id=0, cluster_id=None)
            with silence():
                logs.open(log.segments[-1].written_ms)
            found = logs.logs.get(log.topic_partition)
            if found is None:
                return "there is no such log"
            return _known(found, _located(found, log) if loss is Loss.KILL else {})
        except Exception as error:  # noqa: BLE001 - with whatever the broker would fail
            return f"{type(error).__name__}: {error}"


def _remembered(log: LogState) -> dict[int, int]:
    """Return the positions of offsets that a log remembers; see ``KnownLog.places``."""
    return {
        offset: position
        for segment in log.segments
        for offset, position in segment.known_places.items()
    }


def _located(loaded: LogState, held: LogState) -> dict[int, int]:
    """Return where a loaded log finds the offsets that the held one remembers."""
    found = {}
    for segment in held.segments:
        number = loaded.segment_number(segment.base_offset)
        if number >= 0:
            for offset in segment.known_places:
                found[offset] = loaded.segments[number].locate(offset)
    return found


def _known(log: LogState, places: Mapping[int, int]) -> KnownLog:
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
                remembered(entry.batches),
                entry.transaction_start,
                entry.coordinator_epoch,
            )
            for number, entry in log.producers.entries.items()
        },
        places,
    )
