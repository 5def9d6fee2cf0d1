import pytest

from broker_impl.api.fetch_sessions import rules
from broker_impl.api.fetch_sessions.rules import Sent, Worth
from broker_impl.errors import ErrorCode
from broker_impl.replica.results import FetchResult

LAST = 2**31 - 1
KNOWN = FetchResult(high_watermark=5, last_stable_offset=4, log_start_offset=1)


@pytest.mark.parametrize(("epoch", "full"), [(0, True), (-1, True), (1, False), (-2, False)])
def test_full(epoch: int, full: bool) -> None:
    """KIP-227: with the epochs 0 and -1 a request is full; any other one continues a session."""
    assert rules.is_full(epoch) is full


@pytest.mark.parametrize(("epoch", "error"), [(7, 0), (6, 71), (8, 71), (-2, 71)])
def test_epochs(epoch: int, error: int) -> None:
    """Only the expected epoch continues a session, neither a repeated nor a later one."""
    assert rules.epoch_error(epoch, 7) == error


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), (LAST - 1, LAST), (LAST, 1)])
def test_next_epoch(epoch: int, following: int) -> None:
    """After the largest epoch comes 1, because 0 would create a session."""
    assert rules.next_epoch(epoch) == following


def test_the_named_epoch_fences() -> None:
    """KAFKA-9338: the epoch that the reader named is checked, whatever this broker knows."""
    assert rules.fencing_epoch(3, 4) == 3


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (KNOWN, False),
        (FetchResult(high_watermark=6, last_stable_offset=4, log_start_offset=1), True),
        (FetchResult(high_watermark=5, last_stable_offset=5, log_start_offset=1), True),
        (FetchResult(high_watermark=5, last_stable_offset=4, log_start_offset=2), True),
        (
            FetchResult(
                high_watermark=5,
                last_stable_offset=4,
                log_start_offset=1,
                records=[memoryview(b"x")],
            ),
            True,
        ),
        (
            FetchResult(
                high_watermark=5, last_stable_offset=4, log_start_offset=1, diverging=(1, 2)
            ),
            True,
        ),
        (
            FetchResult(
                high_watermark=5,
                last_stable_offset=4,
                log_start_offset=1,
                preferred_read_replica=3,
            ),
            True,
        ),
        (FetchResult(error=ErrorCode.NOT_LEADER_OR_FOLLOWER), True),
    ],
    ids=["unchanged", "hw", "lso", "start", "records", "diverging", "preferred", "error"],
)
def test_what_is_shown(result: FetchResult, shown: bool) -> None:
    """An incremental response leaves out a partition of which nothing has changed."""
    assert rules.is_shown(Sent(5, 4, 1), result) is shown


def test_after_an_error_the_partition_is_shown() -> None:
    """A repeated error is shown each time, and so is the first result without one."""
    refused = FetchResult(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert rules.is_shown(rules.sent(refused), refused)
    assert rules.is_shown(rules.sent(refused), KNOWN)
    assert not rules.is_shown(rules.sent(KNOWN), KNOWN)


def test_what_is_settled() -> None:
    """A result that can change counts as read again, and so does one that has changed since."""
    settled = FetchResult(settled=True)
    assert rules.is_settled(settled, 4, 4)
    assert not rules.is_settled(settled, 4, 5)
    assert not rules.is_settled(FetchResult(), 4, 4)


@pytest.mark.parametrize(("now", "stale"), [(130.0, False), (130.5, True)])
def test_staleness(now: float, stale: bool) -> None:
    """A session is stale when it has been out of use for more than two minutes."""
    assert rules.is_stale(10.0, now, 120.0) is stale


@pytest.mark.parametrize(
    ("new", "old", "age", "replaced"),
    [
        (Worth(False, 9), Worth(False, 8), 121.0, True),
        (Worth(False, 9), Worth(False, 9), 121.0, False),
        (Worth(False, 9), Worth(False, 8), 120.0, False),
        (Worth(True, 1), Worth(False, 8), 0.0, True),
        (Worth(True, 9), Worth(True, 8), 0.0, False),
        (Worth(True, 9), Worth(True, 8), 121.0, True),
        (Worth(False, 9), Worth(True, 1), 121.0, False),
    ],
)
def test_replacement(new: Worth, old: Worth, age: float, replaced: bool) -> None:
    """A follower is worth more than a consumer, then the larger session; young ones are safe."""
    assert rules.may_replace(new, old, 0.0, age, 120.0) is replaced
