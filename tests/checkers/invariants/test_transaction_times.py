"""When transactions are aborted that their producers have not ended."""

import pytest

from checkers.invariants.deleted_offsets import LastRecord
from checkers.invariants.transaction_times import Answered, Coordinator, TransactionTimes

MS = 1_000_000
TIMEOUT_MS = 2000
ANSWERED = Answered(5, LastRecord(9, 5))
"""The coordinator in leader epoch 5, with the record at offset 9."""


def coordinator(leader_epoch: int = 5, at_last: int | None = 5) -> Coordinator:
    """Return a coordinator whose record at offset 9, if there is one, has this epoch."""
    known = {} if at_last is None else {9: at_last}
    return Coordinator(leader_epoch, known.get)


def initialized(*, epoch: int = 2) -> TransactionTimes:
    """Return what coordinators have answered, after producer 7 has got an epoch."""
    times = TransactionTimes()
    times.initializes("t")
    times.initialized("t", 7, epoch, TIMEOUT_MS, ANSWERED)
    return times


def add(
    times: TransactionTimes, at_ms: int, *, epoch: int = 2, begins: bool = True, code: int = 0
) -> None:
    """Producer 7 adds a partition."""
    added = times.adds("t", at_ms * MS)
    times.added(added, 7, epoch, None if code else ANSWERED, begins=begins)


def judge(
    times: TransactionTimes, at_ms: int, epoch: int = 3, producer: int = 7, leader_epoch: int = 5
) -> bool:
    """Return whether a transaction has been aborted too early."""
    return times.judge("t", producer, epoch, coordinator(leader_epoch), at_ms * MS) is not None


@pytest.mark.parametrize(("at_ms", "is_early"), [(1100, True), (2999, True), (3000, False)])
def test_a_transaction_is_aborted_after_its_timeout(at_ms: int, is_early: bool) -> None:
    """It is reported once."""
    times = initialized()
    add(times, 1000)
    add(times, 1050, begins=False)
    assert not judge(times, 1100, epoch=2)
    assert judge(times, at_ms) == is_early
    assert not judge(times, at_ms)


def test_the_timeout_counts_from_the_begin_of_each_transaction() -> None:
    """The producer ends one, and begins another one in the same epoch."""
    times = initialized()
    add(times, 1000)
    times.ends("t")
    add(times, 2900)
    assert judge(times, 3100)


@pytest.mark.parametrize(
    ("epoch", "producer", "leader_epoch"),
    [
        (2, 7, 5),  # the transaction is open
        (1, 7, 5),
        (3, 8, 5),  # the transactional id was lost
        (3, 7, 4),  # a coordinator that was replaced
    ],
)
def test_only_a_later_epoch_shows_an_abort(epoch: int, producer: int, leader_epoch: int) -> None:
    """A coordinator that was replaced may know an earlier transaction only."""
    times = initialized()
    add(times, 1000)
    assert not judge(times, 1100, epoch, producer, leader_epoch)
    assert judge(times, 1100, leader_epoch=6)


def test_a_transaction_may_be_ended_or_replaced() -> None:
    """By EndTxn or InitProducerId, whether or not the request is answered."""
    times = initialized()
    add(times, 1000)
    times.ends("t")
    assert not judge(times, 1100)
    add(times, 1200)
    times.initializes("t")
    assert not judge(times, 1300)


def test_what_is_not_known_to_begin_is_not_judged() -> None:
    """An addition to an open transaction, one that was refused, and one of another epoch."""
    times = initialized()
    add(times, 1000, begins=False)
    add(times, 1000, code=51)
    add(times, 1000, epoch=1)
    assert not judge(times, 1100)


def test_another_addition_may_have_begun_the_transaction() -> None:
    """It arrived before, and has no answer."""
    times = initialized()
    times.adds("t", 0)
    add(times, 1900)
    assert not judge(times, 2100)


def test_an_addition_of_a_former_epoch_has_begun_nothing_later() -> None:
    """It never gets an answer, and is refused once its producer has another epoch."""
    times = initialized()
    times.adds("t", 0)
    times.initializes("t")
    times.initialized("t", 7, 3, TIMEOUT_MS, ANSWERED)
    add(times, 1900, epoch=3)
    assert judge(times, 2100, epoch=4)


def test_a_log_that_has_lost_records_is_not_judged() -> None:
    """The coordinator may know an earlier epoch of the producer only, and abort in the next."""
    times = initialized()
    add(times, 1000)
    for log in (coordinator(6, 4), coordinator(6, None)):
        assert times.judge("t", 7, 3, log, 1100 * MS) is None
    assert times.judge("t", 7, 3, coordinator(6), 1100 * MS) is not None


def test_an_end_may_overtake_an_addition() -> None:
    """The addition is answered after the end of the transaction has arrived."""
    times = initialized()
    added = times.adds("t", 1000 * MS)
    times.ends("t")
    times.added(added, 7, 2, ANSWERED, begins=True)
    assert not judge(times, 1100)


def test_an_epoch_that_is_asked_for_may_be_given_later() -> None:
    """The timeout and the epoch are known once each InitProducerId has an answer."""
    times = TransactionTimes()
    times.initializes("t")
    times.initializes("t")
    times.initialized("t", 7, 2, TIMEOUT_MS, ANSWERED)
    add(times, 1000)
    assert not judge(times, 1100)
    times.initialized("t", -1, -1, TIMEOUT_MS, None)
    add(times, 1200)
    assert not judge(times, 1300)
    times.initializes("t")
    times.initialized("t", 7, 4, TIMEOUT_MS, ANSWERED)
    add(times, 1400, epoch=4)
    assert judge(times, 1500, epoch=5)


@pytest.mark.parametrize(
    ("at_ms", "leader_epoch", "at_last", "is_early"),
    [
        (2500, 5, 5, True),
        (2500, 6, 5, True),
        (2999, 5, 5, False),  # times are whole milliseconds
        (2500, 4, 5, False),  # a coordinator that was replaced
        (2500, 6, 4, False),  # the record of the use was lost
        (2500, 6, None, False),
    ],
)
def test_a_transactional_id_is_kept(
    at_ms: int, leader_epoch: int, at_last: int | None, is_early: bool
) -> None:
    """It was used last at 1,000 ms, in leader epoch 5, and is kept for 2,000 ms."""
    times = TransactionTimes()
    times.used("t", 1000 * MS, ANSWERED)
    times.used("t", 500 * MS, Answered(5, LastRecord(8, 5)))
    now = coordinator(leader_epoch, at_last)
    assert (times.judge_forgotten("t", now, TIMEOUT_MS, at_ms * MS) is not None) == is_early
    assert times.judge_forgotten("other", now, TIMEOUT_MS, at_ms * MS) is None


@pytest.mark.parametrize(
    ("epoch", "timeout_ms", "leader_epoch", "is_wrong"),
    [
        (2, TIMEOUT_MS, 5, False),
        (2, 1000, 5, True),
        (2, 1000, 6, True),
        (2, 1000, 4, False),  # the producer may have asked for the same epoch again
        (3, 1000, 5, False),
    ],
)
def test_coordinators_have_the_timeout_of_the_producer(
    epoch: int, timeout_ms: int, leader_epoch: int, is_wrong: bool
) -> None:
    """Also those that have loaded the transactional id."""
    times = initialized()
    now = coordinator(leader_epoch)
    assert (times.judge_timeout("t", 7, epoch, timeout_ms, now) is not None) == is_wrong
    assert times.judge_timeout("t", 7, epoch, timeout_ms, coordinator(leader_epoch, 4)) is None
    times.initializes("t")
    assert times.judge_timeout("t", 7, epoch, timeout_ms, now) is None
