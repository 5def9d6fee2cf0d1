"""Replicas move between the data directories of a broker while it serves (KIP-113)."""

import asyncio
from contextlib import suppress

import pytest

from broker_impl import config as configuration
from broker_impl.errors import DirectoryFailed, ErrorCode
from broker_impl.log import moving
from broker_impl.log.config import LogConfig
from broker_impl.node.log_mover import LogMover
from broker_impl.replica import log_directories
from broker_impl.replica.hosted import ReplicaConfig
from broker_impl.replica.replicas import Replicas
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.conftest import until
from tests.broker_impl.log.two_directories import TP, TwoDirectories, content

LIMIT = "replica.alter.log.dirs.io.max.bytes.per.second"
OTHER = TopicPartition("t", 1)


class Moving(TwoDirectories):
    """Broker 1 with two data directories, which leads two partitions, and its mover."""

    def __init__(self, limit: str | None = None) -> None:
        super().__init__(LogConfig(segment_bytes=400))
        self.replicas = Replicas(
            1,
            self.manager,
            ReplicaConfig(),
            clock=lambda: 0.0,
            wall_ms=lambda: 0,
            on_effect=lambda effect: None,
        )
        settings = {"broker.id": "1", "zookeeper.connect": "h:1", "replica.fetch.max.bytes": "100"}
        if limit is not None:
            settings[LIMIT] = limit
        config = configuration.parse(settings)
        self.mover = LogMover(self.manager, self.replicas, lambda: config, lambda: 0)

    def lead(self, *partitions: TopicPartition) -> None:
        """Become the leader of partitions without other replicas."""
        rows = [
            LeaderAndIsrPartitionState(
                partition_index=tp.partition,
                controller_epoch=1,
                leader=1,
                leader_epoch=0,
                isr=[1],
                replicas=[1],
            )
            for tp in partitions
        ]
        topic = LeaderAndIsrTopicState(topic_name="t", partition_states=rows)
        request = LeaderAndIsrRequest(controller_epoch=1, broker_epoch=-1, topic_states=[topic])
        assert self.replicas.leader_and_isr(request).error_code == 0

    def fill(self, count: int = 9, tp: TopicPartition = TP) -> None:
        """Append one batch after the other."""
        for number in range(count):
            data = batch.encode_batch([Record(b"k", b"%d" % number * 20)])
            assert self.replicas.append(tp, data, acks=1).error == 0

    def alter(self, path: str, tp: TopicPartition = TP) -> ErrorCode:
        """Ask for a move."""
        return log_directories.alter(self.replicas, tp, path)

    def shown(self) -> list[tuple[str, int, int, bool]]:
        """What DescribeLogDirs shows: directory, partition, lag, and whether it is a future log."""
        return [
            (directory.path, log.tp.partition, log.offset_lag, log.is_future)
            for directory in self.manager.directories
            for log in log_directories.stored(self.replicas, directory)
        ]


async def test_a_replica_moves_while_it_is_written() -> None:
    """Appends go on during a move; the replica keeps its role, its watermark and all records."""
    broker = Moving()
    broker.lead(TP)
    broker.fill()
    partition = broker.replicas.partitions[TP]
    assert broker.alter("b") is ErrorCode.NONE
    while TP in broker.manager.futures:
        assert broker.mover.next() == TP
        assert broker.mover.advance(TP)
        if partition.log.end_offset < 14:
            broker.fill(1)
    before = partition.high_watermark
    assert (broker.place(), before) == ("b", 14)
    assert partition.log is broker.manager.logs[TP]
    broker.fill(1)
    assert (partition.high_watermark, len(content(partition.log))) == (15, 15)
    broker.manager.checkpoint(broker.replicas.high_watermarks())
    partition.log.flush()
    broker.crash()
    assert broker.manager.high_watermarks == {TP: 15}


async def test_the_mover_runs() -> None:
    """The task waits for an order, and moves one partition after the other."""
    broker = Moving()
    broker.lead(TP, OTHER)
    broker.fill()
    broker.fill(tp=OTHER)
    running = asyncio.ensure_future(broker.mover.run())
    await asyncio.sleep(0)
    for tp, path in ((TP, "b"), (OTHER, "a")):
        assert broker.alter(path, tp) is ErrorCode.NONE
    await until(lambda: not broker.manager.futures)
    assert [broker.place(tp) for tp in (TP, OTHER)] == ["b", "a"]
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_the_limit_holds_a_move_back() -> None:
    """Nothing is copied while the rate of the last seconds is above the limit."""
    broker = Moving(limit="1")
    broker.lead(TP)
    broker.fill()
    broker.alter("b")
    assert not broker.mover.is_throttled()
    broker.mover.advance(TP)
    assert broker.mover.is_throttled()


async def test_the_mover_goes_on_without_a_directory() -> None:
    """A move to a directory that fails ends, and the mover waits for the next one (KIP-112)."""
    broker = Moving()
    broker.lead(TP)
    broker.fill()
    lost: list[TopicPartition] = []
    broker.manager.on_failure = lambda directory: lost.extend(broker.manager.give_up(directory))
    running = asyncio.ensure_future(broker.mover.run())
    broker.alter("b")
    broker.disks["b"].fails = lambda operation, path: True
    await until(lambda: not broker.manager.futures)
    await asyncio.sleep(0)
    assert (broker.place(), running.done(), lost) == ("a", False, [])
    broker.fill(1)
    assert broker.alter("b") is ErrorCode.KAFKA_STORAGE_ERROR
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_the_mover_ends_with_the_last_directory() -> None:
    """If no directory works, the failure ends the mover, and so the broker."""
    broker = Moving()
    broker.lead(TP)
    broker.fill()
    broker.alter("b")
    for disk in broker.disks.values():
        disk.fails = lambda operation, path: True
    with pytest.raises(DirectoryFailed):
        broker.manager.checkpoint({})
    with pytest.raises(DirectoryFailed):
        await broker.mover.run()


async def test_a_damaged_log_stays() -> None:
    """A batch that is damaged ends the move, and the broker goes on with other partitions."""
    broker = Moving()
    broker.lead(TP)
    broker.fill()
    segment = broker.manager.logs[TP].segments[0]
    data = bytearray(broker.disks["a"].read(segment.file_path))
    data[65] ^= 1
    broker.disks["a"].write(segment.file_path, bytes(data))
    segment.file = broker.disks["a"].open(segment.file_path)
    broker.alter("b")
    assert broker.mover.advance(TP)
    assert broker.mover.next() is None
    assert broker.place() == "a"


def test_lags_are_shown() -> None:
    """A future log is shown where it is, with the records that it still lacks."""
    broker = Moving()
    broker.lead(TP, OTHER)
    broker.fill()
    broker.alter("b")
    assert broker.shown() == [("a", 0, 0, False), ("b", 0, 9, True), ("b", 1, 0, False)]
    moving.copy(broker.manager.logs[TP], broker.manager.futures[TP], 1, 0)
    assert broker.shown()[1] == ("b", 0, 8, True)


def test_orders_are_refused_as_in_kafka() -> None:
    """An unknown directory, a partition without a replica, and an offline log are refused.

    A partition without a replica is created in the directory that was named for it.
    """
    broker = Moving()
    assert broker.alter("c") is ErrorCode.LOG_DIR_NOT_FOUND
    assert broker.alter("b") is ErrorCode.REPLICA_NOT_AVAILABLE
    assert broker.alter("b", TopicPartition("t" * 214, 0)) is ErrorCode.INVALID_TOPIC_EXCEPTION
    broker.lead(TP, OTHER)
    assert [broker.place(tp) for tp in (TP, OTHER)] == ["b", "a"]
    assert broker.alter("b") is ErrorCode.NONE
    assert broker.manager.futures == {}
    broker.disks["b"].fails = lambda operation, path: operation == "append"
    with suppress(Exception):
        broker.fill(1)
    assert broker.alter("a") is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_stopped_replica_is_listed_without_a_lag() -> None:
    """A log whose partition has no replica here has the lag -1, as in Kafka."""
    broker = Moving()
    broker.manager.create(TP)
    assert broker.shown() == [("a", 0, -1, False)]
