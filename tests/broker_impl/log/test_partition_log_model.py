"""A log against a list: any order of appends, truncations, rolls, crashes and look-ups."""

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from broker_impl.errors import ApiError
from broker_impl.log.config import LogConfig
from broker_impl.log.epochs import LeaderEpochs
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.producers import ProducerStates
from broker_impl.log.results import TimestampOffset
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import TopicPartition

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=150, delete_delay_ms=0, retention_ms=-1)
TP = TopicPartition("t", 0)


class Batch:
    """One appended batch, as the model keeps it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.header: BatchHeader = batch.parse_header(data)
        self.records = batch.records(data)


class LogAgainstList(RuleBasedStateMachine):
    """The model keeps the batches in the log, its recovery checkpoint, and its start offset."""

    @initialize()
    def begin(self) -> None:
        self.disk = MemoryDisk()
        self.disk.make_dir("t-0")
        self.disk.fsync_dir("")
        self.batches: list[Batch] = []
        self.forgotten: list[BatchHeader] = []
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.checkpoint = self.start = 0
        self.log = self.open(clean=True)

    def open(self, *, clean: bool) -> PartitionLog:
        def lowered() -> None:
            self.checkpoint = self.log.recovery_point

        return PartitionLog.open(
            self.disk,
            "t-0",
            TP,
            CONFIG,
            clean=clean,
            recovery_point=self.checkpoint,
            start_offset=self.start,
            now_ms=0,
            write_recovery_point=lowered,
        )

    @rule(
        sizes=st.lists(st.integers(0, 60), min_size=1, max_size=4),
        times=st.integers(0, 100),
        producer=st.sampled_from([-1, 1, 2]),
    )
    def append(self, sizes: list[int], times: int, producer: int) -> None:
        sequence = self.sequences.get(producer, 0) if producer >= 0 else -1
        sent = batch.encode_batch(
            [
                Record(value=bytes(size), timestamp_ms=(times * (n + 3)) % 101)
                for n, size in enumerate(sizes)
            ],
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence,
        )
        end = self.log.end_offset
        appended = self.log.append_as_leader(sent, leader_epoch=self.epoch, now_ms=0)
        assert appended == (end, end + len(sizes) - 1, -1, False)
        if producer >= 0:
            self.sequences[producer] = sequence + len(sizes)
        (stored,) = self.log.read(end, bytes_max=1, limit=self.log.end_offset)
        self.batches.append(Batch(bytes(stored)))

    @precondition(lambda self: self.batches)
    @rule(back=st.integers(0, 4))
    def retry(self, back: int) -> None:
        """A batch among a producer's last five is a duplicate, and changes nothing."""
        chosen = self.batches[-1 - back % len(self.batches)]
        header = chosen.header
        entry = self.log.producers.entries.get(header.producer_id)
        if entry is None or header.last_offset not in [b.last_offset for b in entry.batches]:
            return
        appended = self.log.append_as_leader(chosen.data, leader_epoch=self.epoch, now_ms=0)
        assert appended == (header.base_offset, header.last_offset, -1, True)

    @rule(steps=st.integers(1, 2))
    def elect(self, steps: int) -> None:
        self.epoch += steps
        self.log.assign_epoch(self.epoch, self.log.end_offset)

    @rule(back=st.integers(0, 12), empty_epoch=st.booleans())
    def truncate(self, back: int, empty_epoch: bool) -> None:
        offset = max(self.log.start_offset, self.log.end_offset - back) + empty_epoch
        self.log.truncate_to(offset)
        self.start = self.log.start_offset
        self.cut(offset)

    def cut(self, offset: int) -> None:
        while self.batches and self.batches[-1].header.last_offset >= offset:
            self.batches.pop()
        self.sequences = {
            producer: entry.last_sequence + 1
            for producer, entry in self.log.producers.entries.items()
        }

    @rule(ahead=st.integers(0, 5))
    def advance_start(self, ahead: int) -> None:
        """Flush, then advance the start: a log that loses records below its start is emptied."""
        self.flush()
        self.log.advance_start(min(self.log.start_offset + ahead, self.log.end_offset))
        self.start = self.log.start_offset

    @rule()
    def delete_old_segments(self) -> None:
        first = self.log.segment_offsets[0]
        self.log.retain(0, self.log.end_offset)
        self.log.remove_deleted(0)
        assert self.log.segment_offsets[0] >= first
        kept = self.log.segment_offsets[0]
        gone = [b for b in self.batches if b.header.last_offset < kept]
        self.forgotten += [b.header for b in gone]
        self.batches = self.batches[len(gone) :]

    @rule()
    def roll(self) -> None:
        before = self.log.segment_offsets
        rolled = self.log.roll_if_due(CONFIG.segment_ms + 1)
        assert self.log.segment_offsets == before + [self.log.end_offset] * rolled

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.checkpoint = self.log.recovery_point

    @rule()
    def restart(self) -> None:
        before = self.log
        before.close()
        self.checkpoint = before.recovery_point
        self.log = self.open(clean=True)
        assert self.log.segment_offsets == before.segment_offsets

    @rule()
    def kill(self) -> None:
        """Kill the process: all writes are kept, but the log is not closed."""
        self.log = self.open(clean=False)

    @rule(seed=st.none() | st.integers(0, 2**32))
    def lose_power(self, seed: int | None) -> None:
        """Lose power: synced batches stay, and the unsynced ones are lost from the end."""
        synced = self.log.recovery_point
        self.disk.crash(None if seed is None else random.Random(seed))
        self.log = self.open(clean=False)
        assert self.log.end_offset >= synced
        self.cut(self.log.end_offset)

    @invariant()
    def the_log_is_the_list(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        log.check()
        if self.batches:
            assert log.end_offset == self.batches[-1].header.next_offset
        offset = log.start_offset
        found = b""
        while data := log.read(offset, bytes_max=300, limit=log.end_offset):
            found += data[0]
            *_, (_, last) = batch.batches(data[0])
            offset = last.next_offset
        assert offset == log.end_offset
        assert found == b"".join(
            b.data for b in self.batches if b.header.last_offset >= log.start_offset
        )

    @invariant()
    def producers_are_a_fold(self) -> None:
        """P3: producer states equal a fold over all batches ever in the log and not truncated."""
        if not hasattr(self, "log"):
            return
        fold = ProducerStates()
        for header in [*self.forgotten, *(b.header for b in self.batches)]:
            if header.producer_id >= 0:
                fold.fold(header, now_ms=0)
        assert self.log.producers.entries == fold.entries

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        """E5 for each epoch that has a record equals a scan of the records."""
        if not hasattr(self, "log"):
            return
        readable = [b.header for b in self.batches if b.header.last_offset >= self.log.start_offset]
        epochs = LeaderEpochs(self.log.epochs.entries)
        for header in readable:
            known, end = epochs.end_offset_for(header.partition_leader_epoch, self.log.end_offset)
            assert known == header.partition_leader_epoch
            same = [h for h in readable if h.partition_leader_epoch == known]
            assert same[-1].next_offset == end

    @rule(time=st.integers(-1, 101), back=st.integers(0, 6))
    def look_up_by_time(self, time: int, back: int) -> None:
        """L3: a look-up by time finds the same record as a linear scan."""
        limit = self.log.end_offset - back
        readable = self.readable(limit)
        expected = next((r for r in readable if r.timestamp >= time), None)
        assert self.log.offset_for_timestamp(time, limit=limit) == expected
        newest = max(readable, key=lambda r: r.timestamp, default=None)
        assert self.log.offset_of_max_timestamp(limit=limit) == newest

    def readable(self, limit: int) -> list[TimestampOffset]:
        return [
            TimestampOffset(r.timestamp_ms, r.offset, b.header.partition_leader_epoch)
            for b in self.batches
            for r in b.records
            if self.log.start_offset <= r.offset < limit
        ]

    @rule(at=st.integers(0, 40), bytes_max=st.integers(0, 400), back=st.integers(0, 6))
    def read_anywhere(self, at: int, bytes_max: int, back: int) -> None:
        """L3 and KIP-74: a read returns whole batches below the limit, from its offset on."""
        offset = self.log.start_offset + at
        limit = self.log.end_offset - back
        try:
            data = self.log.read(offset, bytes_max=bytes_max, limit=limit)
        except ApiError:
            assert offset > self.log.end_offset
            return
        wanted = [
            b.data
            for b in self.batches
            if b.header.last_offset >= offset and b.header.last_offset < limit
        ]
        found = b"".join(data)
        assert b"".join(wanted).startswith(found)
        assert (found == b"") == (wanted == [])
        assert len(found) <= max(bytes_max, len(wanted[0]) if wanted else 0)


TestLogAgainstList = LogAgainstList.TestCase
TestLogAgainstList.settings = settings(max_examples=60, stateful_step_count=40)
