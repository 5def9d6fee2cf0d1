import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from broker_impl import config as configuration
from broker_impl.errors import BrokerError, DirectoryFailed, StorageError, WireError
from broker_impl.log import cleaner
from broker_impl.log.config import LogConfig
from broker_impl.log.directory import CLEANED_OFFSETS
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.node.cleaner import Cleaner
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

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class World:
    """The logs of a broker, which leads only A and B, and its cleaner.

    ``other_disk``: of a second data directory, which has B.
    """

    def __init__(self, other_disk: MemoryDisk | None = None) -> None:
        self.disk = MemoryDisk()
        self.logs = LogManager(
            {"": self.disk} | ({} if other_disk is None else {"other": other_disk}),
            lambda topic: LogConfig(segment_bytes=300, cleanup_policy=("compact",)),
            broker_id=1,
            cluster_id="c",
        )
        self.logs.open(0)
        self.replicas = Replicas(
            1,
            self.logs,
            ReplicaConfig(),
            clock=lambda: 0.0,
            wall_ms=lambda: 0,
            on_effect=lambda effect: None,
        )
        self.lead(A, B)
        config = configuration.parse(
            {"broker.id": "1", "zookeeper.connect": "h:1", "log.cleaner.backoff.ms": "1"}
        )
        self.cleaner = Cleaner(self.logs, self.replicas, lambda: config, lambda: 0)
        self.running: asyncio.Task[None] | None = None

    def lead(self, *partitions: TopicPartition) -> None:
        topics = [
            LeaderAndIsrTopicState(
                topic_name=tp.topic,
                partition_states=[
                    LeaderAndIsrPartitionState(
                        partition_index=tp.partition,
                        controller_epoch=1,
                        leader=1,
                        leader_epoch=1,
                        isr=[1],
                        replicas=[1],
                    )
                ],
            )
            for tp in partitions
        ]
        request = LeaderAndIsrRequest(controller_epoch=1, broker_epoch=-1, topic_states=topics)
        assert self.replicas.leader_and_isr(request).error_code == 0

    def fill(self, tp: TopicPartition, count: int = 12) -> PartitionLog:
        """Append `count` values of one key, which fill several segments."""
        for number in range(count):
            data = batch.encode_batch([Record(b"k", b"%d" % number * 20)])
            assert self.replicas.append(tp, data, acks=1).error == 0
        return self.logs.logs[tp]

    async def runs_until_clean(self) -> None:
        running = self.running = asyncio.ensure_future(self.cleaner.run())
        await until(lambda: not self.cleaner.due() or running.done())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    if world.running is not None:
        world.running.cancel()
        await asyncio.gather(world.running, return_exceptions=True)


async def test_what_is_dirty_is_compacted(world: World) -> None:
    """The cleaner compacts each log with a high dirty ratio, and writes down how far it came."""
    logs = [world.fill(A), world.fill(B)]
    assert world.cleaner.due() == [A, B]
    await world.runs_until_clean()
    assert [log.rewrites > 0 for log in logs] == [True, True]
    written = world.disk.read(CLEANED_OFFSETS).decode().split()
    assert written == ["0", "2", "a", "0", "11", "b", "0", "11"]


@pytest.mark.parametrize("is_last", [False, True])
async def test_a_directory_that_fails(is_last: bool) -> None:
    """The cleaner goes on with the logs in other directories, or ends with the last one."""
    other_disk = MemoryDisk()
    world = World(other_disk)
    log = world.fill(A), world.fill(B)
    world.disk.fails = lambda operation, path: True
    other_disk.fails = lambda operation, path: is_last
    running = asyncio.ensure_future(world.cleaner.run())
    await until(lambda: log[1].rewrites > 0 or running.done())
    assert (log[0].rewrites, log[1].rewrites > 0) == (0, not is_last)
    assert running.done() is is_last
    running.cancel()
    (ended,) = await asyncio.gather(running, return_exceptions=True)
    assert isinstance(ended, DirectoryFailed if is_last else asyncio.CancelledError)


async def test_how_far_it_came_is_known_after_a_restart(world: World) -> None:
    """The cleaner's progress survives a restart, and is dropped when the log is deleted.

    A later log of the same name therefore starts at 0.
    """
    world.fill(A)
    world.fill(B)
    await world.runs_until_clean()
    world.logs.delete(B)
    world.disk.kill()
    again = LogManager({"": world.disk}, lambda topic: LogConfig(), broker_id=1, cluster_id="c")
    again.open(0)
    assert again.logs[A].first_dirty == 11
    assert again.create(B).first_dirty == 0


async def test_nothing_is_compacted_that_is_not_committed(world: World) -> None:
    """Only records below the high watermark are compacted, and no log without a replica."""
    log = world.fill(A)
    world.replicas.partitions[A].high_watermark = 2
    assert world.cleaner.due() == []
    del world.replicas.partitions[A]
    assert world.cleaner.due() == []
    assert cleaner.dirtiness(log, log.end_offset, 0) == 1.0


@pytest.mark.parametrize("step", ["dirtiness", "clean"])
@pytest.mark.parametrize("error", [WireError("garbage"), StorageError("an incomplete batch")])
async def test_a_log_that_cannot_be_read_keeps_no_other_from_it(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str, error: BrokerError
) -> None:
    """KAFKA-8725: a log that cannot be read is not cleaned any more; the other logs are."""
    damaged, sound = world.fill(A), world.fill(B)
    whole = getattr(cleaner, step)

    def unreadable(log: PartitionLog, *rest: int) -> object:
        if log is damaged:
            raise error
        return whole(log, *rest)

    monkeypatch.setattr(cleaner, step, unreadable)
    await world.runs_until_clean()
    assert world.running is not None
    assert not world.running.done()
    assert (damaged.rewrites, sound.rewrites > 0) == (0, True)
    assert world.cleaner.due() == []


async def test_a_log_that_was_taken_offline_ends_the_cleaner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its content is unknown, and its broker may lead it."""
    log = world.fill(A)

    def clean(log: PartitionLog, *rest: int) -> object:
        log.offline = StorageError("an incomplete batch")
        raise log.offline

    monkeypatch.setattr(cleaner, "clean", clean)
    with pytest.raises(StorageError):
        await world.cleaner.run()
    assert log.offline is not None


async def test_a_log_that_is_deleted_meanwhile_is_let_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion of a log ends its pass, and no segment is replaced."""
    monkeypatch.setattr(cleaner, "_PIECE_BYTES", 1)
    log = world.fill(A)
    whole, paused = cleaner.clean, []

    def clean(log: PartitionLog, *rest: int) -> Iterator[None]:
        for _ in whole(log, *rest):
            paused.append(log.rewrites)
            if any(name.endswith(".cleaned") for name in world.disk.list(str(A))):
                del world.replicas.partitions[A]
                world.logs.delete(A)
            yield

    monkeypatch.setattr(cleaner, "clean", clean)
    world.running = asyncio.ensure_future(world.cleaner.run())
    await until(lambda: A not in world.logs.logs)
    await asyncio.sleep(0)
    assert set(paused) == {log.rewrites} == {0}
    assert not world.running.done()
