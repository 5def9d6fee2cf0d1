"""Lag, unseen records and consume counts, in histories with an event a second."""

from typing import Any

import pytest

from checkers.kernels.consumption import NOTHING, Unseen, consumption, merged


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("s:x=a@0 p:x=a@0", None),  # the reader has just begun
        ("s:x=a@0 p:x=a@0 s:x=b@1 p:x=b@1", 2),  # acknowledged at 5 s, delivered at 7 s
        ("s:x=a@0 p:x=a@0 s:x=b@1 z:60 p:x=b@1", 62),
        ("s:x=a@0 p:x=a@0 s?:x=b p8:x=b@1 z:60 p:x=b@1", 62),  # another reader showed it
        ("s:x=a@0,x=b@1 z:60 p:x=a@0 p:x=b@1", None),  # it was there before the reader began
        ("s:x=a@0", None),
    ],
)
def test_the_worst_lag(histories: Any, text: str, seconds: int | None) -> None:
    """Lag is from the first event that shows a record to its delivery to a reader that has begun
    before."""
    lag = consumption(histories.log(text)).lag
    assert (None if lag is None else lag.ns) == (None if seconds is None else seconds * 10**9)


@pytest.mark.parametrize(
    ("text", "most", "at_s", "end"),
    [
        ("s:x=a@0 p:x=a@0", 1, 1, 0),
        ("s:x=a@0,x=b@1 s:x=c@2 p:x=a@0 p:x=b@1,x=c@2", 3, 3, 0),
        ("s:x=a@0,x=b@1 p:x=a@0", 2, 1, 1),
        ("p:x=a@0 s:x=b@1 p:x=b@1", 1, 3, 0),
    ],
)
def test_unseen_records(histories: Any, text: str, most: int, at_s: int, end: int) -> None:
    """Unseen records are those that were acknowledged and that no process has read."""
    found = consumption(histories.log(text)).unseen
    assert found == Unseen("x", most, at_s * 10**9, end)


def test_nothing_acknowledged_is_never_unseen(histories: Any) -> None:
    """A record in doubt is never unseen."""
    assert consumption(histories.log("s?:x=a")).unseen is None


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("s:x=a@0 p:x=a@0", {1: 1, 3: -1}),
        ("s:x=a@0,x=b@1 p:x=a@0 p8:x=a@0", {1: 2, 3: -1}),
        ("p:x=a@0 s:x=a@0", {}),  # it was read before its acknowledgement
        ("s?:x=a", {}),
    ],
)
def test_unseen_over_time(histories: Any, text: str, changes: dict[int, int]) -> None:
    """By second, how the number of acknowledged records that no process had read changed."""
    assert consumption(histories.log(text)).unseen_changes == changes


def test_consume_counts(histories: Any) -> None:
    """Consume counts are the pairs of a process and a record, by how often the process received the
    record."""
    text = "s:x=a@0,x=b@1 p:x=a@0,x=b@1 p:x=a@0 p8:x=a@0 p7?:x=b@1"
    assert consumption(histories.log(text)).counts == {1: 2, 2: 1}
    again = "s:x=a@0,x=b@1 p:x=a@0 p:x=a@0 p7?:x=b@1"  # as many reads that count as records
    assert consumption(histories.log(again)).counts == {2: 1}


def test_keys_are_merged(histories: Any) -> None:
    """Partitions are merged by the worst of each, and by the sum of the counts."""
    tables = histories.tables("s:x=a@0,y=b@0,y=c@1 p:x=a@0|y=b@0,y=c@1")
    both = merged(consumption(log) for log in tables.logs())
    assert (both.unseen, both.counts) == (Unseen("y", 2, 10**9, 0), {1: 3})
    assert both.unseen_changes == {1: 3, 3: -3}
    assert merged([]) == NOTHING
    assert merged([NOTHING]).lag is None
