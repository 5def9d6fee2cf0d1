"""A log of real batches in a list: what a replica needs of ``PartitionLog``, and no disk."""

from collections.abc import Sequence
from typing import NamedTuple

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.log import producers
from broker_impl.log.epochs import LeaderEpochs
from broker_impl.log.producers import ProducerStates
from broker_impl.wire import batch
from broker_impl.wire.types import Buffer, Epoch, Offset


class FakeAppended(NamedTuple):
    base_offset: Offset
    last_offset: Offset
    log_append_time: int = -1
    duplicate: bool = False


class FakeFound(NamedTuple):
    timestamp: int
    offset: Offset
    leader_epoch: Epoch


class FakeLog:
    """Batches in offset order; epochs and producers are the real ones."""

    def __init__(self) -> None:
        self.batches: list[tuple[batch.BatchHeader, bytes]] = []
        self.start_offset: Offset = 0
        self.end_offset: Offset = 0
        self.epochs = LeaderEpochs()
        self.producers = ProducerStates()

    def append_as_leader(
        self, records: Buffer, *, leader_epoch: Epoch, now_ms: int
    ) -> FakeAppended:
        data = bytearray(records)
        base = self.end_offset
        for at, header in list(batch.batches(data)):
            if header.producer_id >= 0:
                entry = self.producers.entries.get(header.producer_id)
                known = producers.check_sequence(entry, header)
                if known is not None:
                    return FakeAppended(known.first_offset, known.last_offset, duplicate=True)
            batch.patch(memoryview(data), at, self.end_offset, leader_epoch)
            self._take(data, at, now_ms)
        return FakeAppended(base, self.end_offset - 1)

    def append_as_follower(self, records: Buffer, *, now_ms: int) -> FakeAppended:
        data = bytearray(records)
        base = self.end_offset
        for at, header in batch.batches(data):
            if header.base_offset != self.end_offset:
                raise ApiError(ErrorCode.CORRUPT_MESSAGE, "a gap in the offsets")
            if self.epochs.latest != header.partition_leader_epoch:
                self.epochs.assign(header.partition_leader_epoch, header.base_offset)
            self._take(data, at, now_ms, replicated=True)
        return FakeAppended(base, self.end_offset - 1)

    def _take(self, data: bytearray, at: int, now_ms: int, *, replicated: bool = False) -> None:
        header = batch.parse_header(data, at)
        self.batches.append((header, bytes(data[at : at + header.size])))
        self.end_offset = header.next_offset
        if header.producer_id >= 0 and (not replicated or producers.folds_replicated_batches()):
            self.producers.fold(header, now_ms)

    def read(
        self, offset: Offset, *, bytes_max: int, limit: Offset, at_least_one: bool = True
    ) -> Sequence[memoryview]:
        found: list[memoryview] = []
        for header, data in self.batches:
            if header.last_offset >= offset and header.next_offset <= limit:
                if bytes_max < header.size and (found or not at_least_one):
                    break
                found.append(memoryview(data))
                bytes_max -= header.size
        return found

    def assign_epoch(self, epoch: Epoch, start: Offset) -> None:
        self.epochs.assign(epoch, start)

    def truncate_to(self, offset: Offset) -> None:
        self.batches = [row for row in self.batches if row[0].next_offset <= offset]
        self.end_offset = min(self.end_offset, offset)
        self.epochs.truncate_from_end(offset)
        self.producers.clear()
        for header, _ in self.batches:
            if header.producer_id >= 0:
                self.producers.fold(header, 0)

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        self.batches = []
        self.start_offset = self.end_offset = offset
        self.epochs.clear()
        self.producers.clear()

    def advance_start(self, offset: Offset) -> None:
        self.start_offset = offset
        self.batches = [row for row in self.batches if row[0].next_offset > offset]
        self.epochs.truncate_from_start(offset)

    def offset_for_timestamp(self, timestamp_ms: int, *, limit: Offset) -> FakeFound | None:
        for header, _ in self.batches:
            if header.max_timestamp >= timestamp_ms and header.base_offset < limit:
                return FakeFound(
                    header.max_timestamp, header.base_offset, header.partition_leader_epoch
                )
        return None

    def offset_of_max_timestamp(self, *, limit: Offset) -> FakeFound | None:
        headers = [header for header, _ in self.batches if header.base_offset < limit]
        if not headers:
            return None
        newest = max(headers, key=lambda header: header.max_timestamp)
        return FakeFound(newest.max_timestamp, newest.base_offset, newest.partition_leader_epoch)
