"""Transactions at a replica: what read_committed consumers see, and how markers are appended."""

from broker_impl.errors import ErrorCode
from broker_impl.log import aborted_index
from broker_impl.log.aborted_index import AbortedTransaction, Marker
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.replica import appending, serving
from broker_impl.replica.events import (
    Append,
    AppendDone,
    AppendResult,
    BecomeLeader,
    EndTransaction,
    FollowerFetched,
    HighWatermarkAdvanced,
    LogEndAdvanced,
    PartitionState,
    Stop,
)
from broker_impl.replica.partition import Partition
from broker_impl.replica.results import LATEST
from broker_impl.wire import batch
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)
CONSUMER = -1


def leader(*, isr_min: int = 1, isr: tuple[int, ...] = (1, 2)) -> Partition:
    disk = MemoryDisk()
    disk.make_dir("t-0")
    log = PartitionLog.open(
        disk, "t-0", TP, LogConfig(), clean=True, recovery_point=0, start_offset=0, now_ms=0
    )
    partition = Partition(
        1, TP, log, high_watermark=0, isr_min=isr_min, lag_max=10.0, fetch_backoff=1.0
    )
    partition.handle(BecomeLeader(PartitionState(1, 1, 0, isr, 0, (1, 2))), 0.0)
    return partition


def send(partition: Partition, sequence: int = 0) -> AppendResult:
    data = batch.encode_batch(
        [batch.Record(value=b"v")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    guard = partition.log.producers.guard(7)
    done = partition.handle(Append(data, -1, 0, guard), 0.0)[0]
    assert isinstance(done, AppendDone)
    return done.result


def end(partition: Partition, *, commit: bool) -> AppendResult:
    done = partition.handle(EndTransaction(Marker(7, 0, commit, 0), 0), 0.0)[0]
    assert isinstance(done, AppendDone)
    return done.result


def replicated(partition: Partition) -> None:
    partition.handle(FollowerFetched(2, 0, partition.log.end_offset, 0, True), 0.0)


def shown(partition: Partition, replica_id: int, isolation: int) -> int:
    """The end offset of what this reader gets."""
    result = serving.read(
        partition,
        0,
        replica_id=replica_id,
        isolation=isolation,
        bytes_max=1 << 20,
        last_fetched_epoch=-1,
        at_least_one=True,
    )
    return aborted_index.end_of(result.records) or 0


def test_an_open_transaction_is_not_shown_to_readers_of_committed_records() -> None:
    """R10, T1: read_committed consumers read up to the last stable offset.

    Other consumers read up to the high watermark.
    """
    partition = leader()
    assert send(partition).error is ErrorCode.NONE
    replicated(partition)
    assert (shown(partition, CONSUMER, 0), shown(partition, CONSUMER, 1)) == (1, 0)
    end(partition, commit=True)
    assert shown(partition, CONSUMER, 1) == 0  # the marker is not committed yet
    assert shown(partition, 2, 0) == shown(partition, 2, 1) == 2
    replicated(partition)
    assert shown(partition, CONSUMER, 1) == 2


def test_the_end_for_readers_of_committed_records_is_the_last_stable_offset() -> None:
    """KAFKA-5522: ListOffsets for read_committed returns the last stable offset.

    This offset does not count as an exposed end of the log.
    """
    partition = leader()
    replicated(partition)
    send(partition)
    end(partition, commit=True)
    replicated(partition)
    assert serving.list_offset(partition, LATEST, isolation=1, replica_id=CONSUMER).offset == 2
    assert partition.exposed == 0


def test_what_others_were_told_stays_told() -> None:
    """A ListOffsets for read_committed does not lower the exposed end of the log."""
    partition = leader()
    send(partition)
    replicated(partition)
    assert serving.list_offset(partition, LATEST, isolation=0, replica_id=CONSUMER).offset == 1
    assert serving.list_offset(partition, LATEST, isolation=1, replica_id=CONSUMER).offset == 0
    assert partition.exposed == 1


def test_a_read_names_what_was_aborted() -> None:
    """T2: aborted records are returned with a list of transactions, so that readers skip them."""
    partition = leader()
    send(partition)
    end(partition, commit=False)
    replicated(partition)
    result = serving.read(
        partition,
        0,
        replica_id=CONSUMER,
        isolation=1,
        bytes_max=1 << 20,
        last_fetched_epoch=-1,
        at_least_one=True,
    )
    assert result.last_stable_offset == 2
    assert serving.with_aborted(partition, 0, result).aborted == [AbortedTransaction(7, 0, 1, 2)]


def test_a_marker_is_an_append_for_all_in_sync_replicas() -> None:
    """A marker wakes followers, and is acknowledged by the watermark, as an append with acks=all.

    Below min.insync.replicas it is refused.
    """
    partition = leader()
    send(partition)
    effects = partition.handle(EndTransaction(Marker(7, 0, True, 0), 0), 0.0)
    assert LogEndAdvanced(TP, 2) in effects
    assert isinstance(effects[0], AppendDone)
    assert appending.acknowledged(partition, effects[0].result) is None
    effects = partition.handle(FollowerFetched(2, 0, 2, 0, True), 0.0)
    assert HighWatermarkAdvanced(TP, 2) in effects
    lonely = leader(isr_min=2, isr=(1,))
    assert end(lonely, commit=True).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert lonely.log.end_offset == 0


def test_only_a_leader_ends_transactions() -> None:
    partition = leader()
    partition.handle(Stop(), 0.0)
    assert end(partition, commit=True).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
