from broker_impl.errors import ErrorCode
from broker_impl.replica import appending
from broker_impl.replica.events import (
    Append,
    AppendDone,
    BecomeFollower,
    BecomeLeader,
    Configure,
    HighWatermarkAdvanced,
    IsrWritten,
    LeadershipLost,
    LeadershipTaken,
    LogEndAdvanced,
    StartFetching,
    Tick,
)
from tests.broker_impl.replica.replica_driver import LAG, TP, leader, records


def test_acks_all_waits_for_the_watermark() -> None:
    """An append with acks=all is acknowledged when every counted replica has it."""
    driver = leader(isr_min=2)
    result = driver.append(3)
    assert (result.base_offset, result.last_offset, result.required_offset) == (0, 2, 3)
    assert appending.acknowledged(driver.partition, result) is None
    driver.fetched(2, 3)
    assert appending.acknowledged(driver.partition, result) is ErrorCode.NONE


def test_too_few_in_sync_is_refused_before_the_append() -> None:
    """Rule R11: acks=all is refused before the append if too few replicas are in sync.

    acks=1 is accepted.
    """
    driver = leader(isr=(1,), isr_min=2)
    result = driver.append()
    assert result.error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.partition.log.end_offset == 0
    assert driver.append(acks=1).error is ErrorCode.NONE
    assert driver.partition.high_watermark == 0, "held below min.insync.replicas (KIP-966)"


def test_too_few_in_sync_after_the_append_is_told() -> None:
    """If the ISR shrinks while a producer waits, it gets NOT_ENOUGH_REPLICAS_AFTER_APPEND.

    The record is in the log, and its fate is open.
    """
    driver = leader(isr_min=2)
    result = driver.append()
    driver.now += LAG + 1
    driver(Tick())
    assert appending.acknowledged(driver.partition, result) is None, "not before the znode says so"
    driver(IsrWritten(1))
    assert (
        appending.acknowledged(driver.partition, result)
        is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    )
    assert driver.partition.high_watermark == 0


def test_min_insync_replicas_can_be_changed() -> None:
    """A lower min.insync.replicas releases the watermark."""
    driver = leader(isr=(1,), isr_min=2)
    driver.append(acks=1)
    assert driver(Configure(1)) == [HighWatermarkAdvanced(TP, 1)]


def test_a_repeated_batch_is_answered_by_its_first_offsets() -> None:
    """A repeated idempotent batch appends nothing, and waits for the record that is in the log."""
    driver = leader()
    first = driver.append(2, producer=5)
    effects = driver(Append(records(2, producer=5), -1, 0))
    assert len(effects) == 1
    again = effects[0]
    assert isinstance(again, AppendDone)
    assert again.result == first
    assert appending.acknowledged(driver.partition, again.result) is None
    driver.fetched(2, 2)
    assert appending.acknowledged(driver.partition, again.result) is ErrorCode.NONE


def test_a_bad_batch_is_refused_by_the_log() -> None:
    """A batch that the log refuses has the log's error, and no effect."""
    driver = leader()
    broken = bytearray(records(1))
    broken[-1] ^= 1
    effects = driver(Append(bytes(broken), -1, 0))
    assert len(effects) == 1
    done = effects[0]
    assert isinstance(done, AppendDone)
    assert done.result.error is ErrorCode.CORRUPT_MESSAGE
    assert done.result.message


def test_lost_leadership_leaves_the_fate_open() -> None:
    """Producers that wait at a leader that steps down get NOT_LEADER_OR_FOLLOWER.

    This stays so when the broker leads again.
    """
    driver = leader()
    result = driver.append()
    assert driver(BecomeFollower(driver.state(2, epoch=1))) == [
        LeadershipLost(TP),
        StartFetching(TP, 2),
    ]
    assert appending.acknowledged(driver.partition, result) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert driver.append().error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    driver(BecomeLeader(driver.state(1, epoch=2)))
    driver.fetched(2, 1, epoch=2)
    assert driver.partition.high_watermark == 1
    assert appending.acknowledged(driver.partition, result) is ErrorCode.NOT_LEADER_OR_FOLLOWER, (
        "another record may lie there now"
    )


def test_a_leader_that_stays_keeps_its_producers_waiting() -> None:
    """A leader that is confirmed in a new epoch keeps its waiting appends.

    The controller changed only the ISR: the log was not truncated, so they can still be
    committed.
    """
    driver = leader()
    result = driver.append()
    assert driver(BecomeLeader(driver.state(1, epoch=1))) == [
        LogEndAdvanced(TP, 1),
        LeadershipTaken(TP, 1),
    ]
    assert appending.acknowledged(driver.partition, result) is None
    driver.fetched(2, 1, epoch=1)
    assert appending.acknowledged(driver.partition, result) is ErrorCode.NONE
