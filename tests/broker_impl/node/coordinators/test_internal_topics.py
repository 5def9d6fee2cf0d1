"""The internal topics in which coordinators keep their state."""

import asyncio

import pytest

from broker_impl import config as configuration
from broker_impl.api.purgatory import Waiting
from broker_impl.coordinator import transaction_records
from broker_impl.errors import ErrorCode
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.node.coordinators import internal_topics
from broker_impl.node.coordinators.internal_topics import InternalTopics
from broker_impl.replica.events import (
    Effect,
    HighWatermarkAdvanced,
    LeadershipLost,
    LogEndAdvanced,
)
from broker_impl.replica.hosted import ReplicaConfig
from broker_impl.replica.replicas import Replicas
from broker_impl.wire.messages.create_topics_request import CreatableTopic
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("__transaction_state", 0)


class Here:
    """Broker 1, which leads the partition, with broker 2 in the ISR."""

    def __init__(self, load_bytes: int = 1 << 20) -> None:
        logs = LogManager(
            {"": MemoryDisk()}, lambda topic: LogConfig(), broker_id=1, cluster_id="c"
        )
        logs.open(0)
        self.waiting = Waiting()
        self.replicas = Replicas(
            1, logs, ReplicaConfig(), clock=lambda: 0.0, wall_ms=lambda: 0, on_effect=self._effect
        )
        self.failures: list[BaseException] = []
        self.topics = InternalTopics(
            self.replicas,
            self.waiting,
            wall_ms=lambda: 0,
            timeout_s=0.05,
            load_bytes=load_bytes,
            on_failure=self.failures.append,
        )
        self.done: list[tuple[ErrorCode, int]] = []
        self.order(1, 0)

    def _effect(self, effect: Effect) -> None:
        match effect:
            case HighWatermarkAdvanced() | LogEndAdvanced() | LeadershipLost():
                asyncio.get_running_loop().call_soon(self.waiting.notify, TP)
            case _:
                pass

    def order(self, leader: int, epoch: int) -> None:
        row = LeaderAndIsrPartitionState(
            partition_index=0,
            leader=leader,
            leader_epoch=epoch,
            isr=[1, 2],
            partition_epoch=epoch,
            replicas=[1, 2],
        )
        topic = LeaderAndIsrTopicState(topic_name=TP.topic, partition_states=[row])
        self.replicas.leader_and_isr(
            LeaderAndIsrRequest(controller_id=1, broker_epoch=-1, topic_states=[topic])
        )

    def fetched(self, offset: int, epoch: int = 0) -> None:
        """Let the follower fetch at `offset`, which says that it has all records below."""
        self.replicas.fetch(
            TP, replica_id=2, offset=offset, bytes_max=1000, current_leader_epoch=epoch
        )

    def append(self, epoch: int = 0) -> None:
        self.topics.append(
            TP, epoch, [(b"k", b"v")], lambda error, at: self.done.append((error, at))
        )

    async def read(self, epoch: int = 0) -> list[bytes | None]:
        return [
            record.value async for _, records in self.topics.read(TP, epoch) for record in records
        ]


async def test_an_append_counts_once_it_is_committed() -> None:
    """T6: an append succeeds when all in-sync replicas have it."""
    here = Here()
    here.append()
    assert here.done == []
    here.fetched(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert here.done == [(ErrorCode.NONE, 0)]


async def test_an_append_may_have_no_outcome() -> None:
    """An append that is not committed in time fails with REQUEST_TIMED_OUT, its outcome unknown."""
    here = Here()
    here.append()
    await asyncio.sleep(0.1)
    assert here.done == [(ErrorCode.REQUEST_TIMED_OUT, 0)]


async def test_a_failure_of_whoever_is_told_is_heard() -> None:
    """An exception in the callback of an append ends the broker.

    It may be a broken invariant, or a full disk.
    """
    here = Here()
    failure = AssertionError("broken")

    def done(error: ErrorCode, offset: int) -> None:
        raise failure

    here.topics.append(TP, 0, [(b"k", b"v")], done)
    here.fetched(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert here.failures == [failure]


async def test_an_append_of_another_epoch_is_refused() -> None:
    """An append with an older leader epoch is refused, even if the same broker leads again.

    The decision of a former coordinator must not be written by the next.
    """
    here = Here()
    here.order(1, 1)
    here.append(epoch=0)
    assert here.done == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    assert await here.read(epoch=0) == []


@pytest.mark.parametrize(("first", "goes_on"), [(5, True), (9, True), (None, False)])
def test_offsets_may_be_missing(first: int | None, goes_on: bool) -> None:
    """A read continues over gaps that compaction left, and ends only where there is no batch."""
    assert internal_topics.goes_on(5, first) is goes_on


async def test_a_read_that_brings_nothing_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that returns nothing is not repeated, whatever the log end is (KAFKA-9065)."""
    here = Here()
    here.append()
    here.fetched(1)
    assert await here.read() == [b"v"]
    monkeypatch.setattr(PartitionLog, "read", lambda *_, **__: [])
    async with asyncio.timeout(5):
        assert await here.read() == []


@pytest.mark.parametrize(("load_bytes", "reads"), [(1, 3), (200, 2), (1 << 20, 1)])
async def test_a_log_is_read_in_chunks(
    load_bytes: int, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All records are read, whatever the size of a chunk; a chunk has at least one whole batch."""
    here = Here(load_bytes)
    for _ in range(3):
        here.append()
    here.fetched(3)
    read, sizes = PartitionLog.read, []

    def counted(log: PartitionLog, offset: int, *, bytes_max: int, limit: int) -> list[memoryview]:
        pieces = read(log, offset, bytes_max=bytes_max, limit=limit)
        sizes.append(sum(map(len, pieces)))
        return pieces

    monkeypatch.setattr(PartitionLog, "read", counted)
    assert await here.read() == [b"v"] * 3
    assert len(sizes) == reads
    assert max(sizes) <= max(load_bytes, min(sizes))


async def test_what_is_read_is_committed_in_the_end() -> None:
    """A load waits until the records that it read are committed.

    Otherwise markers could be sent for a decision that is lost at the next failover.
    """
    here = Here()
    here.append()
    here.order(1, 1)  # elected again: the record is in the log, and not committed
    reading = asyncio.create_task(here.read(epoch=1))
    await asyncio.sleep(0.12)
    assert not reading.done()
    here.fetched(1, epoch=1)
    async with asyncio.timeout(5):
        assert await reading == [b"v"]


async def test_a_reader_gives_up_when_another_broker_leads() -> None:
    here = Here()
    here.append()
    here.order(1, 1)
    reading = asyncio.create_task(here.read(epoch=1))
    await asyncio.sleep(0)
    here.order(2, 2)
    async with asyncio.timeout(5):
        await reading


def creatable(topic: str, brokers: int, **given: str) -> CreatableTopic | None:
    settings = {name.replace("_", "."): value for name, value in given.items()}
    config = configuration.parse({"zookeeper.connect": "z:1", "broker.id": "1"} | settings)
    return internal_topics.creatable(topic, config, brokers)


@pytest.mark.parametrize(
    ("given", "brokers", "copies", "in_sync"),
    [(None, 3, 3, "2"), (None, 1, 1, "1"), (None, 5, 3, "2"), ("3", 1, 3, "2")],
)
def test_replicas_of_an_internal_topic(
    given: str | None, brokers: int, copies: int, in_sync: str
) -> None:
    """The default replication factor adapts to the number of brokers; a configured one does not."""
    settings = {} if given is None else {"transaction_state_log_replication_factor": given}
    topic = creatable(transaction_records.TOPIC, brokers, **settings)
    assert topic is not None
    assert topic.replication_factor == copies
    settings = {row.name: row.value or "" for row in topic.configs}
    assert settings["min.insync.replicas"] == in_sync
    assert settings["unclean.leader.election.enable"] == "false"


def test_other_topics_are_not_internal() -> None:
    assert creatable("t", 3) is None
