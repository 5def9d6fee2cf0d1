import math

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.replica import isr


@pytest.mark.parametrize(
    ("follower_end", "high_watermark", "epoch_start", "eligible", "expected"),
    [
        (5, 5, 5, True, True),
        (7, 5, 6, True, True),
        (4, 5, 0, True, False),  # lacks a committed record
        # committed in an earlier epoch, and the watermark lags (KAFKA-7128)
        (5, 5, 6, True, False),
        (5, 5, 5, False, False),  # a former incarnation, or not registered
        (-1, 0, 0, True, False),  # has not fetched yet
    ],
)
def test_may_join(
    follower_end: int, high_watermark: int, epoch_start: int, eligible: bool, expected: bool
) -> None:
    """To join, a follower must have all records that are, or may have been, committed."""
    assert isr.may_join(follower_end, high_watermark, epoch_start, eligible) is expected


@pytest.mark.parametrize(
    ("follower_start", "leader_start", "expected"),
    [(3, 3, True), (4, 3, True), (2, 3, False), (-1, 3, False), (-1, 0, True)],
)
def test_begins_there(follower_start: int, leader_start: int, expected: bool) -> None:
    """A follower has the leader's log start if its own is not lower; an unknown one counts as 0."""
    assert isr.begins_there(follower_start, leader_start) is expected


@pytest.mark.parametrize(
    ("live_epoch", "fetch_epoch", "expected"),
    [
        (7, 7, True),
        (8, 7, False),  # restarted since it sent this fetch (KIP-903)
        (None, 7, False),  # not registered (KIP-841)
        (None, -1, False),
        (-1, 7, True),  # the epochs of live brokers are not known
        (7, -1, True),  # a fetch without a broker epoch
    ],
)
def test_eligible(live_epoch: int | None, fetch_epoch: int, expected: bool) -> None:
    """Only the registered incarnation of a broker may join, as far as it is known."""
    assert isr.eligible(live_epoch, fetch_epoch) is expected


@pytest.mark.parametrize(
    ("follower_end", "leader_end", "now", "caught_up_at", "expected"),
    [
        (5, 6, 11.1, 1.0, True),
        (5, 6, 11.0, 1.0, False),  # the limit itself is still in sync
        (6, 6, 99.0, 1.0, False),  # silent, but it has all records (KAFKA-7152)
        (-1, 0, 11.1, 1.0, True),  # has not fetched yet
    ],
)
def test_out_of_sync(
    follower_end: int, leader_end: int, now: float, caught_up_at: float, expected: bool
) -> None:
    """A follower that is behind for more than replica.lag.time.max.ms is out of sync."""
    assert isr.out_of_sync(follower_end, leader_end, now, caught_up_at, 10.0) is expected


@pytest.mark.parametrize(
    ("offset", "leader_end", "last_leader_end", "last_fetch_at", "expected"),
    [
        (9, 9, 7, 4.0, 5.0),  # has all records: now
        (7, 9, 7, 4.0, 4.0),  # has all records that existed at its last fetch
        (6, 9, 7, 4.0, 2.0),  # behind: unchanged
        (7, 9, 7, 1.0, 2.0),  # the time never goes back
        (0, 9, 99, -math.inf, 2.0),
    ],
)
def test_caught_up_at(
    offset: int, leader_end: int, last_leader_end: int, last_fetch_at: float, expected: float
) -> None:
    """A follower that keeps pace with steady appends counts as caught up."""
    got = isr.caught_up_at(2.0, offset, leader_end, 5.0, last_leader_end, last_fetch_at)
    assert got == expected


@pytest.mark.parametrize(
    ("error", "diverged", "again", "expected"),
    [
        (ErrorCode.NONE, False, False, True),
        (ErrorCode.OFFSET_OUT_OF_RANGE, False, False, False),
        (ErrorCode.NONE, True, False, False),
        (ErrorCode.NONE, False, True, False),
    ],
)
def test_reports_log_end(error: ErrorCode, diverged: bool, again: bool, expected: bool) -> None:
    """Only the first read of a fetch that was served shows how far a follower has come."""
    assert isr.reports_log_end(error, diverged, again) is expected


@pytest.mark.parametrize(("written", "expected"), [(5, True), (4, False), (6, False)])
def test_confirms(written: int, expected: bool) -> None:
    """The write over version 4 makes version 5; any other is a late answer (KAFKA-12686)."""
    assert isr.confirms(written, 4) is expected


def test_maximal() -> None:
    """While an ISR change is in flight, the maximal ISR contains the replicas of both ISRs."""
    assert isr.maximal(frozenset({1, 2}), frozenset({1, 3})) == {1, 2, 3}


@pytest.mark.parametrize(
    ("in_maximal_isr", "caught_up_at", "expected"),
    [(True, -math.inf, True), (False, 1.0, True), (False, 0.9, False), (False, -math.inf, False)],
)
def test_counts(in_maximal_isr: bool, caught_up_at: float, expected: bool) -> None:
    """The watermark waits for the maximal ISR, and for replicas that were caught up just now."""
    assert isr.counts(in_maximal_isr, 11.0, caught_up_at, 10.0) is expected


@pytest.mark.parametrize(("in_sync", "isr_min", "expected"), [(2, 2, True), (1, 2, False)])
def test_enough_in_sync(in_sync: int, isr_min: int, expected: bool) -> None:
    """min.insync.replicas is a lower bound, inclusive."""
    assert isr.enough_in_sync(in_sync, isr_min) is expected
