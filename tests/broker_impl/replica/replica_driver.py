"""One replica with its log and a clock, for tests that pass events to it."""

from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.replica.events import (
    Append,
    AppendDone,
    AppendResult,
    BecomeFollower,
    BecomeLeader,
    Effect,
    Event,
    FollowerFetched,
    PartitionState,
    StartFetching,
)
from broker_impl.replica.partition import Partition
from broker_impl.wire import batch
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)
LAG = 10.0


def open_log() -> PartitionLog:
    disk = MemoryDisk()
    disk.make_dir("t-0")
    return PartitionLog.open(
        disk, "t-0", TP, LogConfig(), clean=True, recovery_point=0, start_offset=0, now_ms=0
    )


def records(
    count: int, *, base: int = 0, epoch: int = -1, producer: int = -1, time_ms: int = 0
) -> bytes:
    """One batch of `count` records."""
    return batch.encode_batch(
        [batch.Record(value=b"v", timestamp_ms=time_ms + i) for i in range(count)],
        base_offset=base,
        leader_epoch=epoch,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
    )


class Driver:
    """Broker 1's replica, and a clock."""

    def __init__(self, *, isr_min: int = 1, high_watermark: int = 0) -> None:
        self.now = 100.0
        self.partition = Partition(
            1,
            TP,
            open_log(),
            high_watermark=high_watermark,
            isr_min=isr_min,
            lag_max=LAG,
            fetch_backoff=1.0,
        )

    def __call__(self, event: Event) -> list[Effect]:
        return self.partition.handle(event, self.now)

    def state(
        self,
        leader: int = 1,
        *,
        epoch: int = 0,
        isr: tuple[int, ...] = (1, 2),
        version: int = 0,
        replicas: tuple[int, ...] = (1, 2, 3),
    ) -> PartitionState:
        return PartitionState(1, leader, epoch, isr, version, replicas)

    def append(self, count: int = 1, *, acks: int = -1, producer: int = -1) -> AppendResult:
        done = self(Append(records(count, producer=producer), acks, 0))[0]
        assert isinstance(done, AppendDone)
        return done.result

    def fetched(
        self, broker: int, offset: int, *, epoch: int = 0, eligible: bool = True
    ) -> list[Effect]:
        return self(FollowerFetched(broker, epoch, offset, 0, eligible))


def leader(
    *, isr_min: int = 1, isr: tuple[int, ...] = (1, 2), replicas: tuple[int, ...] = (1, 2, 3)
) -> Driver:
    driver = Driver(isr_min=isr_min)
    driver(BecomeLeader(driver.state(isr=isr, replicas=replicas)))
    return driver


def follower(*, epochs: tuple[int, ...] = (0,), each: int = 5) -> Driver:
    """A follower of broker 2 in epoch 9, with `each` records per epoch, and high watermark 3."""
    driver = Driver(high_watermark=3)
    for epoch in epochs:
        base = driver.partition.log.end_offset
        data = b"".join(records(1, base=base + i, epoch=epoch) for i in range(each))
        driver.partition.log.append_as_follower(data, now_ms=0)
    driver.partition.high_watermark = min(3, driver.partition.log.end_offset)
    effects = driver(BecomeFollower(driver.state(2, epoch=9)))
    assert effects == [StartFetching(TP, 2)]
    return driver
