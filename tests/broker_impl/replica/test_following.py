import pytest

from broker_impl.errors import ErrorCode
from broker_impl.replica.events import (
    BecomeFollower,
    BoundsAnswered,
    Configure,
    Diverged,
    EpochEndAnswered,
    Event,
    FetchRefused,
    FollowerFetched,
    IsrWriteRefused,
    IsrWritten,
    LogStartAdvanced,
    Replicated,
    StopFetching,
    Tick,
)
from broker_impl.replica.replica_state import Stage
from tests.broker_impl.replica.replica_driver import TP, Driver, follower, records


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


def test_a_log_of_deleted_records_starts_over_within_a_batch() -> None:
    """Finding 29: the leader's log starts at this log's end, in the middle of the leader's batch.

    The follower was truncated to there, and all that it has is deleted: it takes the batch whole.
    """
    driver = fetching()
    effects = driver(Replicated(9, 5, records(3, base=4, epoch=8), 7, 5, 0))
    log = driver.partition.log
    assert (log.start_offset, log.end_offset, driver.partition.high_watermark) == (5, 7, 7)
    assert log.epochs.entries == ((8, 4),)
    assert LogStartAdvanced(TP) in effects
    near = fetching()
    near(Replicated(9, 5, records(3, base=4, epoch=8), 7, 4, 0))
    assert (near.partition.log.start_offset, near.partition.log.end_offset) == (0, 5)


def test_a_log_of_deleted_records_is_kept_where_the_next_batch_fits() -> None:
    """A follower whose records are all deleted keeps what it knows of producers."""
    driver = fetching()
    driver(Replicated(9, 5, records(1, base=5, epoch=8, producer=7), 6, 0, 0))
    driver(Replicated(9, 6, records(1, base=6, epoch=8), 6, 6, 0))
    log = driver.partition.log
    assert (log.start_offset, log.end_offset) == (6, 7)
    assert 7 in log.producers.entries


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
