"""Compacted logs for tests: helpers that fill, compact and read them as a client does."""

import itertools
from typing import NamedTuple

from broker_impl.log import cleaner
from broker_impl.log.aborted_index import Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)
CONFIG = LogConfig(
    segment_bytes=1200,
    index_interval_bytes=100,
    cleanup_policy=("compact",),
    delete_retention_ms=100,
    delete_delay_ms=0,
)
MANY = 1_000
CHECKPOINT = "recovery-point"
_AGES = itertools.count(CONFIG.segment_ms + 1, CONFIG.segment_ms + 1)


def new_disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir("t-0")
    disk.fsync_dir("")
    return disk


def opened(
    disk: MemoryDisk, config: LogConfig = CONFIG, *, clean: bool = True, first_dirty: int = 0
) -> PartitionLog:
    """Open the log; it writes its recovery point to a file of the same disk."""

    def write() -> None:
        disk.write(CHECKPOINT, b"%d" % log.recovery_point)

    log = PartitionLog.open(
        disk,
        "t-0",
        TP,
        config,
        clean=clean,
        recovery_point=int(disk.read(CHECKPOINT)) if disk.exists(CHECKPOINT) else 0,
        start_offset=0,
        now_ms=0,
        write_recovery_point=write,
        first_dirty=first_dirty,
    )
    return log


def put(
    log: PartitionLog,
    *pairs: tuple[bytes, bytes | None],
    producer: int = -1,
    epoch: int = 0,
    transactional: bool = False,
    compression: int = batch.NONE,
    at_ms: int = 0,
) -> int:
    """Append records in one batch, and return the offset of the first."""
    sequence = -1
    if producer >= 0:
        entry = log.producers.entries.get(producer)
        known = entry.last_sequence if entry is not None and entry.epoch == epoch else -1
        sequence = known + 1
    data = batch.encode_batch(
        [Record(key, value, at_ms) for key, value in pairs],
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence,
        transactional=transactional,
        compression=compression,
    )
    guard = log.producers.guard(producer) if transactional else None
    return log.append_as_leader(data, leader_epoch=0, now_ms=at_ms, guard=guard).base_offset


def end(log: PartitionLog, producer: int, *, commit: bool, epoch: int = 0) -> int:
    """Append a transaction marker, and return its offset."""
    marker = Marker(producer, epoch, commit, 0)
    return log.append_marker(marker, leader_epoch=0, now_ms=0).base_offset


def roll(log: PartitionLog) -> None:
    """Close the active segment, if it has any records."""
    log.roll_if_due(next(_AGES))


def clean(
    log: PartitionLog, *, limit: int | None = None, now_ms: int = 0, keys_max: int = MANY
) -> bool:
    """Run one pass of the cleaner without a pause, and return its result."""
    bound = stable_end(log) if limit is None else limit
    running = cleaner.clean(log, bound, now_ms, keys_max)
    while True:
        try:
            next(running)
        except StopIteration as over:
            return bool(over.value)


def stable_end(log: PartitionLog) -> int:
    unstable = log.producers.first_unstable(log.end_offset)
    return log.end_offset if unstable is None else unstable


class Row(NamedTuple):
    """A record as a consumer reads it."""

    offset: int
    key: bytes | None
    value: bytes | None
    producer: int


def all_rows(log: PartitionLog) -> list[Row]:
    """Every record in the log, without markers."""
    return [row for row, _ in _rows(log)]


def committed_rows(log: PartitionLog) -> list[Row]:
    """The records that a read_committed consumer keeps.

    As in Kafka's clients, it drops the batches of an aborted transaction from the transaction's
    first offset to its marker.
    """
    return [row for row, is_aborted in _rows(log) if not is_aborted]


def _rows(log: PartitionLog) -> list[tuple[Row, bool]]:
    rows: list[tuple[Row, bool]] = []
    offset, stop = log.start_offset, log.end_offset
    while data := log.read(offset, bytes_max=150, limit=stop):
        coming = log.aborted_transactions(offset, data)
        aborted: set[int] = set()
        for at, header in batch.batches(data[0]):
            while coming and coming[0].first_offset <= header.last_offset:
                aborted.add(coming.pop(0).producer_id)
            offset = header.next_offset
            if header.is_control:
                aborted.discard(header.producer_id)
                continue
            is_aborted = header.is_transactional and header.producer_id in aborted
            rows += [
                (Row(each.offset, each.key, each.value, header.producer_id), is_aborted)
                for each in batch.records(data[0][at : at + header.size])
            ]
    assert offset == stop, "a reader comes to the end"
    return rows


def latest(rows: list[Row]) -> dict[bytes, bytes]:
    """The last value of each key, as a consumer would keep them; tombstones remove keys."""
    values: dict[bytes, bytes] = {}
    for row in rows:
        assert row.key is not None
        if row.value is None:
            values.pop(row.key, None)
        else:
            values[row.key] = row.value
    return values


def filled(disk: MemoryDisk) -> PartitionLog:
    """A log of three closed segments with equal keys and aborted records, and an active one."""
    log = opened(disk)
    for number in range(3):
        put(log, (b"a", b"%d" % number * 30), (b"b", b"x" * 30))
        put(log, (b"c", b"aborted"), producer=3, transactional=True)
        end(log, 3, commit=False)
        roll(log)
    put(log, (b"d", b"active"))
    log.flush()
    return log
