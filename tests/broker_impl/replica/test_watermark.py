import pytest

from broker_impl.replica import watermark


@pytest.mark.parametrize(
    ("ends", "end"),
    [
        ([5, 3], 3),  # the slowest decides
        ([5], 5),  # a single replica
        ([5, 5, -1], -1),  # a follower that has not fetched yet
    ],
)
def test_replicated_end(ends: list[int], end: int) -> None:
    """The replicated end is the lowest log end of the counted replicas."""
    assert watermark.replicated_end(ends) == end


@pytest.mark.parametrize(
    ("current", "replicated", "enough", "expected"),
    [
        (2, 3, True, 3),
        (2, 2, True, 2),
        (4, 3, True, 4),  # a new leader waits for a fetch of a follower that had all records
        (4, -1, True, 4),
        (2, 3, False, 2),  # below min.insync.replicas the watermark stays (KIP-966)
    ],
)
def test_high_watermark(current: int, replicated: int, enough: bool, expected: int) -> None:
    """The watermark follows the replicated end, never goes back, and waits for enough replicas."""
    assert watermark.high_watermark(current, replicated, enough) == expected


@pytest.mark.parametrize(
    ("replica_id", "isolation", "expected"), [(-1, 0, 7), (-1, 1, 5), (-2, 0, 9), (2, 1, 9)]
)
def test_read_limit(replica_id: int, isolation: int, expected: int) -> None:
    """Consumers read committed or stable records; replicas and debugging tools read all."""
    assert watermark.read_limit(replica_id, isolation, 7, 5, 9) == expected


@pytest.mark.parametrize(("high_watermark", "expected"), [(0, 3), (3, 3), (5, 5), (9, 9), (12, 9)])
def test_bounded(high_watermark: int, expected: int) -> None:
    """A watermark from another source is limited to this log."""
    assert watermark.bounded(high_watermark, log_start=3, log_end=9) == expected
