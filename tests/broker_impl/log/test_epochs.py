"""Leader epochs: rules E4 and E5 by tables, and against a naive model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.log.epochs import EpochStart, LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(EpochStart(*entry) for entry in entries)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),  # an undefined epoch
        (0, (0, 10)),  # lower than all known: the epoch itself, and the start of the first
        (2, (2, 30)),  # a known epoch ends where the next begins
        (3, (2, 30)),  # an unknown epoch in between: the largest below it (KIP-279)
        (4, (4, 60)),
        (5, (4, 60)),
        (7, (7, 99)),  # the latest epoch ends at the log end
        (8, (-1, -1)),  # higher than all known: undefined
    ],
)
def test_end_offset_for(asked: int, answer: tuple[int, int]) -> None:
    """E5: the end offset of an epoch, case by case."""
    assert epochs((2, 10), (4, 30), (7, 60)).end_offset_for(asked, 99) == answer


def test_nothing_is_known_of_an_empty_history() -> None:
    """Without known epochs every answer is undefined."""
    assert epochs().latest == -1
    assert epochs().end_offset_for(0, 5) == (-1, -1)


@pytest.mark.parametrize(
    ("epoch", "start", "expected"),
    [
        (5, 50, [(2, 10), (4, 30), (5, 50)]),
        (4, 40, [(2, 10), (4, 30)]),  # known already, with a later start: no change
        (4, 20, [(2, 10), (4, 20)]),  # known already, with an earlier start: the start moves
        (3, 40, [(2, 10), (3, 40)]),  # an older epoch: the newer one is removed
        (6, 30, [(2, 10), (6, 30)]),  # epoch 4 has no records left
        (6, 5, [(6, 5)]),
    ],
)
def test_assign(epoch: int, start: int, expected: list[tuple[int, int]]) -> None:
    """E4: assigning an epoch removes contradicting entries, and returns whether any changed."""
    history = epochs((2, 10), (4, 30))
    assert history.assign(epoch, start) == (expected != [(2, 10), (4, 30)])
    assert list(history.entries) == expected


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(99, [(2, 10), (4, 30)]), (31, [(2, 10), (4, 30)]), (30, [(2, 10)]), (0, [])],
)
def test_truncate_from_end(offset: int, expected: list[tuple[int, int]]) -> None:
    """E4: truncation from the end removes epochs that start at the offset or after it."""
    history = epochs((2, 10), (4, 30))
    assert history.truncate_from_end(offset) == (len(expected) < 2)
    assert list(history.entries) == expected


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (5, [(2, 10), (4, 30)]),
        (10, [(2, 10), (4, 30)]),
        (20, [(2, 20), (4, 30)]),
        (30, [(4, 30)]),
        (40, [(4, 40)]),
    ],
)
def test_truncate_from_start(offset: int, expected: list[tuple[int, int]]) -> None:
    """E4: truncation from the start keeps the epoch of the new start, which then starts there."""
    history = epochs((2, 10), (4, 30))
    assert history.truncate_from_start(offset) == (expected != [(2, 10), (4, 30)])
    assert list(history.entries) == expected


def test_clear() -> None:
    """Clearing the epochs returns whether there were any."""
    history = epochs((2, 10))
    assert history.clear()
    assert not history.clear()
    assert history.entries == ()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.data())
def test_answers_follow_from_the_records(steps: list[int], data: st.DataObject) -> None:
    """E5 equals a scan of every record's epoch, after appends and truncations at both ends."""
    history = LeaderEpochs()
    log: list[int] = []
    for epoch in sorted(steps):
        if epoch > history.latest:
            history.assign(epoch, len(log))
        log.append(epoch)
    cut = data.draw(st.integers(1, len(log)))
    del log[cut:]
    history.truncate_from_end(cut)
    start = data.draw(st.integers(0, len(log) - 1))
    history.truncate_from_start(start)
    kept = log[start:]
    for asked in range(6):
        higher = [i for i, epoch in enumerate(log) if i >= start and epoch > asked]
        lower = [epoch for epoch in kept if epoch <= asked]
        if asked == kept[-1]:
            expected = (asked, len(log))
        elif not higher:
            expected = (-1, -1)
        else:
            expected = (max(lower, default=asked), higher[0])
        assert history.end_offset_for(asked, len(log)) == expected
