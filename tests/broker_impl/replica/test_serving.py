from broker_impl.errors import ErrorCode
from broker_impl.replica import serving, watermark
from broker_impl.replica.events import BecomeLeader, FollowerFetched
from broker_impl.replica.results import EARLIEST, LATEST, MAX_TIMESTAMP
from broker_impl.wire import batch
from tests.broker_impl.replica.replica_driver import Driver, leader, records


def test_the_end_is_not_told_before_it_is_certain() -> None:
    """KIP-207: ListOffsets gets OFFSET_NOT_AVAILABLE until the watermark reaches the epoch's start.

    A former leader may have returned a later end than this leader's watermark.
    """
    driver = Driver()
    driver.partition.log.append_as_follower(records(3, epoch=0, time_ms=50), now_ms=0)
    driver(BecomeLeader(driver.state(epoch=1)))
    driver.fetched(2, 1, epoch=1)
    partition = driver.partition

    def ask(timestamp: int, replica_id: int = watermark.CONSUMER) -> tuple[ErrorCode, int]:
        found = serving.list_offset(partition, timestamp, isolation=0, replica_id=replica_id)
        return found.error, found.offset

    assert partition.high_watermark == 1
    assert ask(LATEST) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert ask(LATEST, replica_id=3) == (ErrorCode.NONE, 3)
    assert ask(EARLIEST) == (ErrorCode.NONE, 0)
    assert ask(50) == (ErrorCode.NONE, 0)
    assert ask(52) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    driver.fetched(2, 3, epoch=1)
    assert ask(LATEST) == (ErrorCode.NONE, 3)
    assert ask(52) == (ErrorCode.NONE, 2)
    assert ask(99) == (ErrorCode.NONE, -1)
    assert ask(MAX_TIMESTAMP) == (ErrorCode.NONE, 2)
    assert (
        serving.list_offset(
            partition, EARLIEST, isolation=1, replica_id=watermark.CONSUMER
        ).leader_epoch
        == 0
    )


def test_read_is_bounded() -> None:
    """A read ends at the reader's limit, and fails outside the log or in a diverging history."""
    driver = leader()
    for _ in range(4):
        driver.append()
    driver(FollowerFetched(2, driver.partition.leader_epoch, 3, 0, True))
    driver(BecomeLeader(driver.state(epoch=2)))
    partition = driver.partition
    consumer, follower = -1, 2

    def read(offset: int, last_epoch: int = -1, reader: int = follower) -> tuple[object, ...]:
        result = serving.read(
            partition,
            offset,
            replica_id=reader,
            isolation=0,
            bytes_max=10_000,
            last_fetched_epoch=last_epoch,
            at_least_one=True,
        )
        values = [r.offset for data in result.records for r in batch.records(data)]
        return result.error, values, result.diverging

    none, beyond = ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.high_watermark == 3
    assert read(1, reader=consumer) == (none, [1, 2], None)
    assert read(3, reader=consumer) == (none, [], None)
    assert read(4, reader=consumer) == (none, [], None)
    assert read(1) == (none, [1, 2, 3], None)
    assert read(4) == (none, [], None)
    assert read(5) == (beyond, [], None)
    assert read(4, 0) == (none, [], None)
    assert read(5, 0) == (none, [], (0, 4))
    assert read(4, 1) == (none, [], (0, 4))
    assert read(4, 7) == (beyond, [], None), "an epoch that the leader cannot place"
    partition.high_watermark = 4
    partition.log.advance_start(2)
    assert read(1, 1) == (beyond, [], None), "out of range goes before diverging (KAFKA-12996)"
