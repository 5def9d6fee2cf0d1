import pytest

from broker_impl.errors import ErrorCode
from broker_impl.replica import acks


@pytest.mark.parametrize(
    ("high_watermark", "replicated", "in_sync", "expected"),
    [
        (10, 10, 2, ErrorCode.NONE),
        (12, 12, 3, ErrorCode.NONE),
        (9, 9, 2, None),
        (9, 9, 1, None),  # too few in sync, but not replicated to them either
        # the ISR is too small to advance the watermark
        (9, 10, 1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        # the ISR has shrunk since the commit
        (10, 10, 1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        # the ISR has grown for the leader, but not in the znode yet: the watermark waits
        (9, 10, 2, None),
    ],
)
def test_outcome(
    high_watermark: int, replicated: int, in_sync: int, expected: ErrorCode | None
) -> None:
    """acks=all succeeds when the append is committed and enough replicas are in sync."""
    assert acks.outcome(10, high_watermark, replicated, in_sync, 2) is expected


@pytest.mark.parametrize(
    ("leads", "appended_in", "expected"),
    [
        (True, 5, False),
        (True, 7, False),  # a later epoch of the same leadership: nothing was truncated since
        (True, 4, True),  # another broker may have led in between
        (False, 5, True),
    ],
)
def test_is_abandoned(leads: bool, appended_in: int, expected: bool) -> None:
    """A produce is abandoned once the leadership that took its append has ended.

    Epoch 5 is the first epoch of the present leadership.
    """
    assert acks.is_abandoned(leads, appended_in, 5) is expected
