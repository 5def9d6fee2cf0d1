"""What a broker counts."""

import pytest

from broker_impl.counts import FOLLOWER_FETCH, LIMITS_MS, Counts, Durations, TopicCounts


def test_durations_are_counted_in_ranges() -> None:
    """A duration at a limit belongs to the range below it; one beyond all limits is not lost."""
    durations = Durations()
    for ms in (0.1, 1, 1.1, 10_000, 10_001):
        durations.add(ms)
    found = {
        limit: number
        for limit, number in zip([*LIMITS_MS, "more"], durations.in_range, strict=True)
        if number
    }
    assert found == {0.5: 1, 1: 1, 2: 1, 10_000: 1, "more": 1}
    assert (durations.count, round(durations.sum_ms, 1)) == (5, 20_003.2)


def test_traffic_is_counted_by_topic() -> None:
    """What followers fetch is replication, and counts for no topic."""
    counts = Counts()
    counts.produced("t", 100, 3)
    counts.produced("t", 50, 1)
    counts.fetched("t", 70, by_follower=False)
    counts.fetched("t", 150, by_follower=True)
    assert counts.topics == {"t": TopicCounts(150, 70, 4, 2, 1)}
    assert counts.replication_bytes_out == 150
    counts.forget("t")
    counts.forget("never seen")
    assert counts.topics == {}


@pytest.mark.parametrize(
    ("before", "after", "shrinks", "expands"),
    [
        ((1, 2, 3), (1, 2), 1, 0),
        ((1, 2), (1, 2, 3), 0, 1),
        ((1, 2), (1, 3), 1, 1),
        ((1, 2), (2, 1), 0, 0),
    ],
)
def test_isr_changes(
    before: tuple[int, ...], after: tuple[int, ...], shrinks: int, expands: int
) -> None:
    """An ISR that loses a member has shrunk, and one that gains a member has expanded."""
    counts = Counts()
    counts.isr_changed(before, after)
    assert (counts.isr_shrinks, counts.isr_expands) == (shrinks, expands)


def test_unclean_elections_are_counted_twice() -> None:
    """An election is unclean if the leader was not in sync; a first leader is never unclean."""
    counts = Counts()
    counts.elected(1, None)
    counts.elected(2, (1, 2))
    counts.elected(3, (1, 2))
    assert (counts.elections, counts.unclean_elections) == (3, 1)


def test_requests_are_counted_by_kind() -> None:
    """The fetches of followers are counted apart from those of consumers."""
    counts = Counts()
    counts.answered(1, 0.003)
    counts.answered(FOLLOWER_FETCH, 0.5)
    counts.answered(1, 0.001)
    found = {kind: (each.count, round(each.sum_ms)) for kind, each in counts.requests.items()}
    assert found == {1: (2, 4), FOLLOWER_FETCH: (1, 500)}
