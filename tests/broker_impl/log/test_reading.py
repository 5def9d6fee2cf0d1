"""Which reads of a log cannot return more, however long the reader waits."""

import pytest

from broker_impl.log.config import LogConfig
from broker_impl.log.partition_log import PartitionLog
from tests.broker_impl.log.compacted_log import clean, new_disk, opened, put, roll

CONFIG = LogConfig(segment_bytes=160)
"""With this configuration two batches of one record each fill a segment."""


def filled(batches: int, config: LogConfig = CONFIG) -> PartitionLog:
    log = opened(new_disk(), config)
    for number in range(batches):
        put(log, (b"k", b"%d" % number))
    assert log.segment_offsets == [*range(0, batches, 2)]
    return log


@pytest.mark.parametrize(
    ("offset", "limit", "cannot_grow"),
    [
        (0, 6, True),
        (1, 6, True),
        (3, 6, True),
        (4, 6, False),  # the active segment
        (5, 6, False),
        (6, 6, False),  # nothing to read
        (2, 4, True),  # the limit is where the next segment begins
        (2, 3, False),  # the limit is in the segment, and moves
        (1, 1, False),
    ],
)
def test_a_read_cannot_grow_once_its_segment_is_closed(
    offset: int, limit: int, cannot_grow: bool
) -> None:
    """A read cannot grow if its segment is closed and the limit is not within the segment."""
    log = filled(6)
    assert log.read_from(offset, bytes_max=1_000, limit=limit).cannot_grow is cannot_grow


@pytest.mark.parametrize("at_least_one", [False, True])
def test_a_read_that_has_no_room_cannot_grow_either(at_least_one: bool) -> None:
    """The position in the log decides whether a read can grow, not how many bytes it returned."""
    log = filled(6)
    assert log.read_from(0, bytes_max=0, limit=6, at_least_one=at_least_one).cannot_grow


def test_an_active_segment_may_be_empty() -> None:
    """A read at the start of an empty active segment can grow; a read before it cannot."""
    log = filled(2)
    assert not log.read_from(0, bytes_max=1_000, limit=2).cannot_grow
    roll(log)
    assert log.read_from(0, bytes_max=1_000, limit=2).cannot_grow
    assert not log.read_from(2, bytes_max=1_000, limit=2).cannot_grow


def test_the_segment_counts_in_which_batches_were_found() -> None:
    """A read continues behind a gap in the next segment, and can grow if that one is active."""
    log = filled(6, LogConfig(segment_bytes=160, cleanup_policy=("compact",)))
    clean(log)
    assert log.read_from(0, bytes_max=1_000, limit=6).cannot_grow
    log.truncate_to(4)
    put(log, (b"k", b"again"))
    log.compacted_to(0)
    assert not log.read_from(4, bytes_max=1_000, limit=5).cannot_grow


@pytest.mark.parametrize(
    ("bytes_max", "at_least_one", "count", "cut_at"),
    [
        (1_000, False, 2, 0),
        (140, False, 2, 0),
        (139, False, 1, 139),
        (69, False, 0, 69),
        (69, True, 1, 69),
        (0, False, 0, 0),
    ],
)
def test_a_read_says_if_its_limit_has_cut_it(
    bytes_max: int, at_least_one: bool, count: int, cut_at: int
) -> None:
    """A read names the limit because of which it left out batches that the reader may have."""
    log = filled(2)
    found = log.read_from(0, bytes_max=bytes_max, limit=2, at_least_one=at_least_one)
    size = log.segments[0].size // 2
    assert sum(map(len, found.records)) == count * size
    assert (size, found.cut_at) == (70, cut_at)
