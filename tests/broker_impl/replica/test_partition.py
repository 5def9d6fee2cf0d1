import pytest

from broker_impl.errors import ErrorCode
from broker_impl.log.config import LogConfig
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.replica import appending, serving, watermark
from broker_impl.replica.events import (
    Append,
    AppendDone,
    AppendResult,
    BecomeFollower,
    BecomeLeader,
    BoundsAnswered,
    Configure,
    DeleteRecords,
    Diverged,
    Effect,
    EpochEndAnswered,
    Event,
    FetchRefused,
    FollowerFetched,
    HighWatermarkAdvanced,
    IsrChanged,
    IsrRefreshed,
    IsrWriteRefused,
    IsrWritten,
    LeadershipLost,
    LeadershipTaken,
    LogEndAdvanced,
    LogStartAdvanced,
    PartitionState,
    RefreshIsr,
    Replicated,
    Role,
    StartFetching,
    Stop,
    StopFetching,
    Tick,
    WriteIsr,
)
from broker_impl.replica.partition import Partition
from broker_impl.replica.replica_state import Stage
from broker_impl.replica.results import EARLIEST, LATEST, MAX_TIMESTAMP
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


# Becoming a leader, and the watermark.


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


# Acknowledgement.


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


# The ISR.


def test_a_slow_follower_leaves_when_the_znode_says_so() -> None:
    """R12, R14: the watermark waits for a slow follower until the ISR is written (KAFKA-13091)."""
    driver = leader(isr=(1, 2, 3))
    driver.append()
    driver.fetched(2, 1)
    driver.now += LAG
    assert driver(Tick()) == [], "the limit itself is not over it"
    driver.now += 1
    driver.fetched(2, 1)
    assert driver(Tick()) == [WriteIsr(TP, 1, 0, (1, 2), 1, 0)]
    assert driver.partition.maximal_isr == {1, 2, 3}
    assert driver.partition.high_watermark == 0
    assert driver(Tick()) == [], "one write at a time"
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


# Following.


def test_a_new_epoch_begins_with_a_question() -> None:
    """Rule E6: in a new epoch a follower asks for its epoch's end before fetching or truncating."""
    driver = follower()
    assert driver.partition.stage is Stage.EPOCH_END
    assert driver.partition.log.end_offset == 5
    data = records(1, base=5, epoch=0)
    assert driver(Replicated(9, 5, data, 9, 0, 0)) == []
    assert driver.partition.log.end_offset == 5


def test_an_empty_log_has_nothing_to_ask() -> None:
    """A follower with an empty log fetches at once."""
    assert follower(epochs=()).partition.stage is Stage.FETCH


@pytest.mark.parametrize(
    ("answer", "end", "stage"),
    [
        ((3, 100), 10, Stage.FETCH),  # the follower's log is a prefix
        ((3, 7), 7, Stage.FETCH),  # the follower's epoch 3 is longer
        # the leader has an epoch that the follower lacks: ask for epoch 0 next
        ((2, 7), 5, Stage.EPOCH_END),
        # the follower's records from 5 on have an epoch that the leader never had
        ((0, 4), 4, Stage.FETCH),
        ((-1, -1), 3, Stage.FETCH),  # the leader does not know: the follower's watermark decides
    ],
)
def test_truncation_by_epoch(answer: tuple[int, int], end: int, stage: Stage) -> None:
    """KIP-101, KIP-279: a follower with epochs 0 (0 to 4) and 3 (5 to 9) truncates by epoch."""
    driver = follower(epochs=(0, 3))
    assert driver(EpochEndAnswered(9, 3, *answer)) == []
    assert driver.partition.log.end_offset == end
    assert driver.partition.stage is stage
    assert driver.partition.high_watermark == 3


def test_truncation_below_the_watermark_takes_it_along() -> None:
    """A truncation after an unclean election may lower the watermark."""
    driver = follower()
    driver(EpochEndAnswered(9, 0, 0, 1))
    assert driver.partition.high_watermark == 1


def test_an_epoch_without_records_goes_too() -> None:
    """KAFKA-10706: a truncation removes an epoch without records: it would be asked for again."""
    driver = follower(epochs=(0,))
    driver.partition.log.assign_epoch(4, 5)
    driver(EpochEndAnswered(9, 4, 0, 9))
    assert driver.partition.stage is Stage.FETCH
    assert driver.partition.log.epochs.latest == 0


@pytest.mark.parametrize(
    "event",
    [
        EpochEndAnswered(8, 0, 0, 1),  # asked in another leader epoch (KAFKA-7786)
        EpochEndAnswered(9, 1, 0, 1),  # asked for an epoch that is truncated by now
        Diverged(9, 5, 0, 1),  # of an earlier fetch
        BoundsAnswered(9, 1, 2),
        Replicated(9, 5, b"", 1, 0, 0),
    ],
)
def test_late_answers_are_ignored(event: Event) -> None:
    """Only the answer to the open request of this epoch counts."""
    driver = follower()
    assert driver(event) == []
    assert driver.partition.stage is Stage.EPOCH_END
    assert driver.partition.log.end_offset == 5
    assert driver.partition.high_watermark == 3


def fetching() -> Driver:
    """A follower that agrees with its leader up to 5."""
    driver = follower()
    driver(EpochEndAnswered(9, 0, 0, 5))
    assert driver.partition.stage is Stage.FETCH
    return driver


def test_records_come_with_their_epoch_and_the_watermark() -> None:
    """A follower takes over records with their epoch, and the watermark within its log.

    The watermark may go back.
    """
    driver = fetching()
    driver(Replicated(9, 5, records(2, base=5, epoch=8), 6, 0, 0))
    partition = driver.partition
    assert (partition.log.end_offset, partition.high_watermark) == (7, 6)
    assert partition.log.epochs.entries[-1] == (8, 5)
    driver(Replicated(9, 7, b"", 99, 0, 0))
    assert partition.high_watermark == 7
    driver(Replicated(9, 7, b"", 4, 0, 0))
    assert partition.high_watermark == 4


@pytest.mark.parametrize(
    "event",
    [
        Replicated(8, 5, records(1, base=5, epoch=8), 9, 0, 0),  # another epoch
        Replicated(9, 4, records(1, base=4, epoch=8), 9, 0, 0),  # asked before a truncation
        Diverged(9, 4, 0, 1),
        Diverged(8, 5, 0, 1),
    ],
)
def test_late_answers_to_a_fetch_are_ignored(event: Event) -> None:
    """A follower ignores responses to fetches of another epoch or offset."""
    driver = fetching()
    driver(event)
    assert driver.partition.log.end_offset == 5
    assert driver.partition.high_watermark == 3


def test_the_leaders_log_start_is_followed() -> None:
    """A follower advances its log start to the leader's, up to its own watermark."""
    driver = fetching()
    driver(Replicated(9, 5, records(1, base=5, epoch=8), 6, 4, 0))
    assert driver.partition.log.start_offset == 4
    driver(Replicated(9, 6, b"", 5, 6, 0))
    assert driver.partition.log.start_offset == 5


def test_a_leader_of_another_history_is_agreed_with_first() -> None:
    """KIP-595: a diverging response truncates the log, and has neither records nor a watermark."""
    driver = fetching()
    driver(Diverged(9, 5, 0, 2))
    partition = driver.partition
    assert (partition.log.end_offset, partition.high_watermark) == (2, 2)
    assert partition.stage is Stage.FETCH


def test_records_that_do_not_fit_are_left_out() -> None:
    """Records below the log's end are refused, and fetched again after a pause."""
    driver = fetching()
    driver(Replicated(9, 5, records(1, base=4, epoch=8), 9, 0, 0))
    assert driver.partition.log.end_offset == 5
    assert driver.partition.retry_at == driver.now + 1.0


def test_an_error_makes_a_pause() -> None:
    """An error pauses fetching for replica.fetch.backoff.ms; a new epoch ends the pause."""
    driver = follower()
    driver(FetchRefused(8, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert driver.partition.retry_at < driver.now
    driver(FetchRefused(9, ErrorCode.UNKNOWN_LEADER_EPOCH))
    assert driver.partition.retry_at == driver.now + 1.0
    driver(BecomeFollower(driver.state(3, epoch=10)))
    assert driver.partition.retry_at < driver.now


@pytest.mark.parametrize(
    ("bounds", "start", "end", "high_watermark"),
    [
        ((0, 4), 0, 4, 3),  # the leader's log is shorter: never fatal (KAFKA-7414)
        ((0, 2), 0, 2, 2),
        # the leader's log starts behind the follower's end: start again there (KAFKA-9491)
        ((20, 30), 20, 20, 20),
        # the leader's log has grown since: the follower's offset is in range again
        ((2, 9), 0, 5, 3),
    ],
)
def test_out_of_range(bounds: tuple[int, int], start: int, end: int, high_watermark: int) -> None:
    """Rule E9: out of range, a follower asks for the leader's bounds, and fetches within them."""
    driver = fetching()
    driver(FetchRefused(9, ErrorCode.OFFSET_OUT_OF_RANGE))
    assert driver.partition.stage is Stage.BOUNDS
    driver(BoundsAnswered(9, *bounds))
    partition = driver.partition
    assert (partition.log.start_offset, partition.log.end_offset) == (start, end)
    assert partition.high_watermark == high_watermark
    assert partition.stage is Stage.FETCH


def test_nobody_to_follow() -> None:
    """A partition without a leader keeps its log, and fetches from no broker."""
    driver = follower()
    assert driver(BecomeFollower(driver.state(-1, epoch=10))) == [StopFetching(TP)]
    assert driver.partition.leader is None
    assert driver.partition.stage is Stage.NOTHING
    assert driver.partition.log.end_offset == 5


def test_a_follower_becomes_a_leader() -> None:
    """A follower that becomes leader stops fetching, and keeps its records beyond the watermark."""
    driver = follower()
    assert driver(BecomeLeader(driver.state(epoch=10)))[0] == StopFetching(TP)
    assert driver.partition.log.end_offset == 5
    assert driver.partition.leading_since == 10


def test_a_follower_has_no_isr() -> None:
    """A follower ignores ticks, late results of ISR writes, and fetches."""
    driver = follower()
    for event in (
        Tick(),
        Configure(2),
        IsrWritten(1),
        IsrWriteRefused(),
        FollowerFetched(3, 9, 5, 0, True),
    ):
        assert driver(event) == []


def test_stop() -> None:
    """A stopped replica neither leads nor follows, and may become either again."""
    driver = leader()
    assert driver(Stop()) == [LeadershipLost(TP)]
    assert driver.partition.role is Role.STOPPED
    assert driver.append().error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    driver(BecomeFollower(driver.state(2, epoch=1)))
    assert driver(Stop()) == [StopFetching(TP)]
    assert driver(Stop()) == []


# Requests.


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


def test_snapshot() -> None:
    """A snapshot has the replica's state as plain values."""
    driver = leader()
    driver.append(2)
    driver.fetched(2, 1)
    shot = driver.partition.snapshot()
    assert (shot.role, shot.leader, shot.leader_epoch, shot.epoch_start) == ("leader", 1, 0, 0)
    assert (shot.log_start, shot.high_watermark, shot.log_end) == (0, 1, 2)
    assert (shot.isr, shot.maximal_isr, shot.zk_version) == ((1, 2), (1, 2), 0)


def test_the_watermark_of_the_checkpoint_is_bounded_by_the_log() -> None:
    """The checkpointed watermark is limited to the log's end, which a crash may have moved."""
    assert Driver(high_watermark=7).partition.high_watermark == 0


# Invariants.


def test_epochs_only_grow() -> None:
    """An order that is not newer is an assertion error: it must be fenced before."""
    driver = leader()
    with pytest.raises(AssertionError, match="the leader epoch does not increase"):
        driver(BecomeFollower(driver.state(2, epoch=0)))


def test_check_sees_what_one_replica_can_see() -> None:
    """`check` raises an AssertionError for each broken invariant, with its name."""
    driver = leader()
    driver.append(3)
    driver.fetched(2, 2)
    partition = driver.partition
    driver(Tick())

    def broken(attribute: str, value: object, message: str) -> None:
        correct = getattr(partition, attribute)
        setattr(partition, attribute, value)
        with pytest.raises(AssertionError, match=message):
            partition.check()
        setattr(partition, attribute, correct)
        partition.check()

    broken("high_watermark", 4, "are not in this order")
    broken("high_watermark", 1, "went back within epoch")
    broken("isr", frozenset({2}), "the leader is not in the ISR")
    broken("maximal_isr", frozenset({1}), "lacks a member")
    broken("leader", 2, "this replica leads, but its leader is 2")
    broken("leader_epoch", 1, "the last epoch of its log is 0")
    broken("exposed", 3, "above the high watermark")
