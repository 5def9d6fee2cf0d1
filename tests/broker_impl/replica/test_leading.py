from broker_impl.errors import ErrorCode
from broker_impl.replica.events import (
    Append,
    AppendDone,
    BecomeFollower,
    BecomeLeader,
    HighWatermarkAdvanced,
    LeadershipLost,
    LogEndAdvanced,
    Role,
    Stop,
    StopFetching,
    Tick,
)
from tests.broker_impl.replica.replica_driver import LAG, TP, follower, leader, records


def test_a_new_leader_starts_its_epoch_at_its_log_end() -> None:
    """A new leader starts its epoch at its log end (KAFKA-7415).

    It can therefore tell a follower with records of a later epoch where this one begins.
    """
    driver = leader(isr=(1,), replicas=(1,))
    driver.append(3)
    driver(BecomeLeader(driver.state(epoch=4, isr=(1,), replicas=(1,))))
    log = driver.partition.log
    assert log.epochs.entries[-1] == (4, 3)
    assert driver.partition.epoch_start == 3
    assert log.epochs.end_offset_for(2, log.end_offset) == (0, 3)


def test_the_slowest_in_sync_replica_decides() -> None:
    """The slowest in-sync replica decides the watermark, and each advance of it is an effect."""
    driver = leader()
    effects = driver(Append(records(3), 1, 0))
    assert isinstance(effects[0], AppendDone)
    assert effects[1:] == [LogEndAdvanced(TP, 3)]
    assert driver.fetched(2, 0) == []
    assert driver.fetched(2, 2) == [HighWatermarkAdvanced(TP, 2)]
    assert driver.fetched(2, 2) == []
    assert driver.fetched(2, 3) == [HighWatermarkAdvanced(TP, 3)]


def test_alone_in_its_assignment_a_leader_commits_at_once() -> None:
    """A leader with a single assigned replica commits at once.

    This holds even if min.insync.replicas exceeds the replicas; acks=all is refused then.
    """
    driver = leader(isr=(1,), replicas=(1,), isr_min=2)
    effects = driver(Append(records(3), 1, 0))
    assert effects[1:] == [LogEndAdvanced(TP, 3), HighWatermarkAdvanced(TP, 3)]
    assert driver.append().error is ErrorCode.NOT_ENOUGH_REPLICAS


def test_what_was_known_of_followers_is_of_another_epoch() -> None:
    """A re-elected leader forgets what its followers had: another may have led in between."""
    driver = leader()
    driver.append(3)
    driver.fetched(2, 3)
    driver(BecomeLeader(driver.state(epoch=2)))
    driver.append(1)
    assert driver.partition.high_watermark == 3
    assert driver.fetched(2, 4, epoch=0) == [], "a fetch of the former epoch does not count"
    assert driver.fetched(2, 4, epoch=2) == [HighWatermarkAdvanced(TP, 4)]


def test_a_follower_that_is_about_to_join_is_waited_for() -> None:
    """Rule R9: a follower that was caught up just now delays the watermark, even out of sync."""
    driver = leader(isr=(1,), replicas=(1, 2))
    driver.append(2)
    assert driver.partition.high_watermark == 2
    driver.fetched(2, 2, eligible=False)
    driver.append(1)
    assert driver.partition.high_watermark == 2
    driver.now += LAG + 1
    assert driver(Tick()) == [HighWatermarkAdvanced(TP, 3)], "but not for ever"


def test_a_stranger_does_not_count() -> None:
    """A broker outside the assignment does not count for the watermark."""
    driver = leader()
    assert driver.fetched(7, 0) == []
    assert 7 not in driver.partition.remotes


def test_a_follower_becomes_a_leader() -> None:
    """A follower that becomes leader stops fetching, and keeps its records beyond the watermark."""
    driver = follower()
    assert driver(BecomeLeader(driver.state(epoch=10)))[0] == StopFetching(TP)
    assert driver.partition.log.end_offset == 5
    assert driver.partition.leading_since == 10


def test_stop() -> None:
    """A stopped replica neither leads nor follows, and may become either again."""
    driver = leader()
    assert driver(Stop()) == [LeadershipLost(TP)]
    assert driver.partition.role is Role.STOPPED
    assert driver.append().error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    driver(BecomeFollower(driver.state(2, epoch=1)))
    assert driver(Stop()) == [StopFetching(TP)]
    assert driver(Stop()) == []
