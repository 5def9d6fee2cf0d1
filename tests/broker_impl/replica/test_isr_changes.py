import pytest

from broker_impl.errors import ErrorCode
from broker_impl.replica import appending
from broker_impl.replica.events import (
    AppendResult,
    BecomeLeader,
    DeleteRecords,
    FollowerFetched,
    FollowerKeptUp,
    HighWatermarkAdvanced,
    IsrChanged,
    IsrRefreshed,
    IsrWriteRefused,
    IsrWritten,
    LeadershipLost,
    LogStartAdvanced,
    RefreshIsr,
    Role,
    Tick,
    WriteIsr,
)
from tests.broker_impl.replica.replica_driver import LAG, TP, Driver, leader, records


def test_a_slow_follower_leaves_when_the_znode_says_so() -> None:
    """R12, R14: the watermark waits for a slow follower until the ISR is written (KAFKA-13091)."""
    driver = leader(isr=(1, 2, 3))
    driver.append()
    driver.fetched(2, 1)
    driver.now += LAG
    assert driver(Tick()) == [], "the limit itself is not over it"
    checked_at = driver.now
    driver.now += 1
    driver.fetched(2, 1)
    assert driver(Tick()) == [WriteIsr(TP, 1, 0, (1, 2), 1, 0)]
    assert driver.partition.maximal_isr == {1, 2, 3}
    assert driver.partition.high_watermark == 0
    assert driver(Tick()) == [], "one write at a time"
    assert driver.partition.in_sync_at == checked_at
    assert driver(IsrWritten(1)) == [
        IsrChanged(TP, (1, 2, 3), (1, 2)),
        HighWatermarkAdvanced(TP, 1),
    ]
    assert driver.partition.isr == {1, 2}
    assert driver.partition.zk_version == 1


def test_a_silent_follower_that_holds_all_stays() -> None:
    """KAFKA-7152: a silent follower that has all records stays in the ISR."""
    driver = leader()
    driver.append()
    driver.fetched(2, 1)
    driver.now += 10 * LAG
    assert driver(Tick()) == []


def test_a_follower_that_keeps_pace_stays() -> None:
    """A follower that keeps pace with steady appends stays in the ISR.

    It never has all records at the time of a fetch, but always those of its previous fetch.
    """
    driver = leader()
    driver.append()
    for offset in range(30):
        driver.now += 1
        driver.append()
        driver.fetched(2, offset + 1)
        assert driver(Tick()) == []


@pytest.mark.parametrize(
    ("offset", "eligible", "joins"), [(2, True, True), (1, True, False), (2, False, False)]
)
def test_a_follower_joins_that_holds_all_committed(
    offset: int, eligible: bool, joins: bool
) -> None:
    """Rule R13: a follower that has all committed records joins the ISR.

    While the ISR write is in flight the watermark waits for this follower.
    """
    driver = leader(isr=(1,))
    driver.append(2)
    effects = driver.fetched(2, offset, eligible=eligible)
    assert effects == ([WriteIsr(TP, 1, 0, (1, 2), 1, 0)] if joins else [])
    assert driver.partition.maximal_isr == ({1, 2} if joins else {1})
    if joins:
        driver.append()
        driver.now += LAG + 1
        driver(Tick())
        assert driver.partition.high_watermark == 2
        assert driver(IsrWritten(1)) == [IsrChanged(TP, (1,), (1, 2))]


def test_the_start_of_the_epoch_is_needed_to_join() -> None:
    """KAFKA-7128: to join, a follower must reach the epoch's start.

    A new leader's watermark may be behind what was committed.
    """
    driver = Driver()
    data = b"".join(records(1, base=i, epoch=0) for i in range(3))
    driver.partition.log.append_as_follower(data, now_ms=0)
    driver(BecomeLeader(driver.state(epoch=1, isr=(1, 2))))
    assert driver.partition.high_watermark == 0
    assert driver.fetched(3, 2, epoch=1) == []
    assert driver.fetched(3, 3, epoch=1) == [WriteIsr(TP, 1, 1, (1, 2, 3), 1, 0)]


def test_a_late_answer_of_a_former_epoch_is_ignored() -> None:
    """KAFKA-12686: a late answer to an ISR write of a former epoch is ignored.

    The controller's write has overtaken this write.
    """
    driver = leader(isr=(1,))
    driver.fetched(2, 0)
    driver(BecomeLeader(driver.state(epoch=1, isr=(1, 3), version=7)))
    assert driver.fetched(2, 0, epoch=1) == [WriteIsr(TP, 1, 1, (1, 2, 3), 1, 7)]
    assert driver(IsrWritten(1)) == []
    assert driver.partition.isr == {1, 3}
    assert driver(IsrWritten(8)) == [IsrChanged(TP, (1, 3), (1, 2, 3))]


def refused() -> Driver:
    """A leader whose ISR write, which shrinks the ISR to itself, was refused."""
    driver = leader()
    driver.append()
    driver.now += LAG + 1
    assert driver(Tick()) == [WriteIsr(TP, 1, 0, (1,), 1, 0)]
    assert driver(IsrWriteRefused()) == [RefreshIsr(TP)]
    return driver


def test_who_does_not_know_where_the_log_begins_does_not_join() -> None:
    """A follower that does not know where the log begins does not join the ISR (finding 17).

    A former leader may have other records below the log start, where logs are not compared.
    """
    driver = leader()
    driver.append(5)
    driver.fetched(2, 5)
    driver(DeleteRecords(3))
    assert driver(FollowerFetched(3, 0, 5, 0, True)) == []
    assert driver(FollowerFetched(3, 0, 5, 3, True)) == [
        LogStartAdvanced(TP),
        WriteIsr(TP, 1, 0, (1, 2, 3), 1, 0),
    ]


def test_a_refused_write_is_not_repeated_blindly() -> None:
    """After a refused ISR write the leader reads the znode at each tick, before it writes again.

    Meanwhile it uses the maximal ISR.
    """
    driver = refused()
    assert driver(Tick()) == [RefreshIsr(TP)]
    assert driver.partition.maximal_isr == {1, 2}
    assert driver.partition.high_watermark == 0


def test_what_was_read_is_taken_over() -> None:
    """KAFKA-2729: the state that a refresh reads is adopted, so that the next write fits."""
    driver = refused()
    assert driver(IsrRefreshed(1, 0, (1,), 5)) == [
        IsrChanged(TP, (1, 2), (1,)),
        HighWatermarkAdvanced(TP, 1),
    ]
    assert driver.partition.pending_isr is None
    assert driver.fetched(3, 1) == [WriteIsr(TP, 1, 0, (1, 3), 1, 5)]


def test_an_unchanged_znode_leaves_the_doubt() -> None:
    """A refresh that finds the znode unchanged writes again, and keeps the maximal ISR.

    The first write may still arrive: only a successful write at the same version excludes that.
    """
    driver = refused()
    assert driver(IsrRefreshed(1, 0, (1, 2), 0)) == [WriteIsr(TP, 1, 0, (1,), 1, 0)]
    assert driver.partition.maximal_isr == {1, 2}
    assert driver(IsrWritten(1))[0] == IsrChanged(TP, (1, 2), (1,))


@pytest.mark.parametrize(("epoch", "version"), [(-1, 9), (0, -1)])
def test_a_lagging_answer_of_zookeeper_is_ignored(epoch: int, version: int) -> None:
    """A refresh with an older epoch or version is ignored."""
    driver = refused()
    assert driver(IsrRefreshed(1, epoch, (1,), version)) == []
    assert driver(Tick()) == [RefreshIsr(TP)]


@pytest.mark.parametrize(("who", "epoch"), [(2, 1), (1, 1), (-1, 1)])
def test_a_deposed_leader_fences_itself(who: int, epoch: int) -> None:
    """A leader that reads of its replacement fences itself until the controller's next order."""
    driver = refused()
    result = AppendResult(base_offset=0, last_offset=0, required_offset=1, leader_epoch=0)
    assert driver(IsrRefreshed(who, epoch, (2,), 3)) == [LeadershipLost(TP)]
    partition = driver.partition
    assert partition.role is Role.FENCED
    assert appending.acknowledged(partition, result) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert driver.append().error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.refusal(0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert driver(Tick()) == []
    assert driver(IsrWritten(1)) == []
    assert driver(IsrWriteRefused()) == []
    driver(BecomeLeader(driver.state(epoch=2)))
    assert partition.snapshot().role == "leader"


def test_an_answer_that_nobody_waits_for_is_ignored() -> None:
    """A refresh or refusal that the leader does not wait for is ignored."""
    driver = leader()
    assert driver(IsrRefreshed(2, 9, (2,), 9)) == []
    assert driver(IsrWriteRefused()) == []
    assert driver.partition.role is Role.LEADER


@pytest.mark.parametrize(
    ("event", "stays"),
    [
        (FollowerKeptUp(2, 0, 1, 100.0 + LAG), True),
        (FollowerKeptUp(2, 0, 1, 100.0), False),
        (FollowerKeptUp(2, 0, 0, 100.0 + LAG), False),
        (FollowerKeptUp(2, 1, 1, 100.0 + LAG), False),
        (FollowerKeptUp(3, 0, 1, 100.0 + LAG), False),
    ],
    ids=["until now", "not for long", "elsewhere", "in another epoch", "another broker"],
)
def test_a_follower_that_kept_up_is_not_late(event: FollowerKeptUp, stays: bool) -> None:
    """Incremental fetches that leave a partition out count until its log grows again."""
    driver = leader()
    driver.append()
    driver.fetched(2, 1)
    driver.now += LAG
    driver.append()
    assert driver(event) == []
    driver.now += 1
    assert (driver(Tick()) == []) is stays


def test_who_keeps_up_is_late_in_the_end() -> None:
    """After a change, a follower that does not fetch any more leaves the ISR as any other one."""
    driver = leader()
    driver.append()
    driver.fetched(2, 1)
    driver.append()
    driver(FollowerKeptUp(2, 0, 1, driver.now))
    driver.now += LAG + 1
    assert driver(Tick()) == [WriteIsr(TP, 1, 0, (1,), 1, 0)]
