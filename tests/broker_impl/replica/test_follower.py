import pytest

from broker_impl.replica import follower
from broker_impl.replica.follower import Truncation


@pytest.mark.parametrize(
    ("log_end", "high_watermark", "latest", "expected"),
    [
        (9, 5, 2, None),  # never by its own watermark (KIP-101)
        (9, 5, 0, None),
        (0, 0, -1, 0),
        (9, 5, -1, 5),  # no epoch to ask for
    ],
)
def test_on_new_epoch(log_end: int, high_watermark: int, latest: int, expected: int | None) -> None:
    """A log with epochs asks the leader before it truncates."""
    assert follower.on_new_epoch(log_end, high_watermark, latest) == expected


@pytest.mark.parametrize(
    ("leader", "own", "expected"),
    [
        ((3, 20), (3, 12), Truncation(12, True)),  # a prefix of the leader's log
        ((3, 8), (3, 12), Truncation(8, True)),  # the leader's epoch ended earlier
        # KIP-279: epoch 1 from offset 11 on is unknown to the leader
        ((0, 12), (0, 11), Truncation(11, True)),
        # the leader has an epoch that the follower lacks: ask again
        ((2, 9), (1, 7), Truncation(7, False)),
        # the leader does not know the epoch: the watermark decides
        ((-1, -1), (-1, -1), Truncation(5, True)),
        ((2, 9), (-1, -1), Truncation(9, True)),  # the follower has no epoch to compare
        ((2, 30), (-1, -1), Truncation(12, True)),
    ],
)
def test_truncation_point(
    leader: tuple[int, int], own: tuple[int, int], expected: Truncation
) -> None:
    """A follower truncates to where the shorter of both logs ends the last common epoch."""
    assert follower.truncation_point(leader, own, 12, 5) == expected


@pytest.mark.parametrize(
    ("offset", "answer", "expected"),
    [
        (12, (3, 12), False),
        (12, (3, 20), False),
        (12, (3, 11), True),  # the epoch ended before the reader's offset
        (12, (2, 20), True),  # the leader never had the epoch
    ],
)
def test_diverges(offset: int, answer: tuple[int, int], expected: bool) -> None:
    """A reader has the leader's history if the leader's epoch reaches its offset (KIP-595)."""
    assert follower.diverges(3, offset, answer) is expected
