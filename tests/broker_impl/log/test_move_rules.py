"""The rules of moves between data directories, by table (KIP-113)."""

import pytest

from broker_impl.log import move_rules
from broker_impl.log.move_rules import Fate


@pytest.mark.parametrize(
    ("has_current", "is_complete", "fate"),
    [
        (True, False, Fate.STARTED_OVER),
        (True, True, Fate.STARTED_OVER),  # ended before the current log was renamed
        (False, True, Fate.PROMOTED),  # ended between the two renames
        (False, False, Fate.DISCARDED),  # the topic was deleted
    ],
)
def test_fate(has_current: bool, is_complete: bool, fate: Fate) -> None:
    """Only a complete copy whose current log is gone becomes the current log."""
    assert move_rules.fate(has_current=has_current, is_complete=is_complete) is fate


@pytest.mark.parametrize(("copy_end", "may"), [(4, False), (5, True)])
def test_may_replace(copy_end: int, may: bool) -> None:
    """A copy replaces a log when it has the same end, and not one record before."""
    assert move_rules.may_replace(copy_end, 5) is may


def test_start_after() -> None:
    """Deleted records stay deleted, though their segment is copied."""
    assert move_rules.start_after(5, 0) == 5


@pytest.mark.parametrize(("copy_end", "cut"), [(3, None), (4, None), (5, 4)])
def test_cut_of_copy(copy_end: int, cut: int | None) -> None:
    """A truncation to 4 concerns a copy that ends after 4."""
    assert move_rules.cut_of_copy(4, copy_end) == cut


@pytest.mark.parametrize(
    ("copy_base", "copy_end", "starts_over"),
    [
        (0, 6, True),  # the record that it needs next is deleted
        (0, 7, False),
        (9, 12, False),
        (10, 12, True),  # it lacks a record that is in the log
    ],
)
def test_must_start_over(copy_base: int, copy_end: int, starts_over: bool) -> None:
    """A log begins at 7 and may be read from 9 on: its copy must have all records from there on."""
    assert move_rules.must_start_over(copy_base, copy_end, 7, 9) is starts_over


@pytest.mark.parametrize(
    ("counts", "number"), [([0], 0), ([1, 0], 1), ([2, 1, 1], 1), ([3, 3, 3], 0)]
)
def test_fewest(counts: list[int], number: int) -> None:
    """The directory with the fewest logs is chosen; on a tie, the first in ``log.dirs``."""
    assert move_rules.fewest(counts) == number


@pytest.mark.parametrize(
    ("end", "copy_end", "high_watermark", "lag"),
    [
        (10, None, 8, 0),
        (10, None, 12, 2),  # not possible for a replica, but Kafka's definition
        (10, 4, 8, 6),
        (10, 12, 8, -2),
    ],
)
def test_lag(end: int, copy_end: int | None, high_watermark: int, lag: int) -> None:
    """A current log lags behind the high watermark, and a future one behind the current one."""
    assert move_rules.lag(end, copy_end, high_watermark) == lag
