import pytest

from broker_impl.errors import ErrorCode
from broker_impl.replica import acks


@pytest.mark.parametrize(
    ("high_watermark", "replicated", "in_sync", "expected"),
    [
        (10, 10, 2, ErrorCode.NONE),
        (12, 12, 3, ErrorCode.NONE),
        (9, 9, 2, None),
        (9, 9, 1, None),  # too few, but it is not where they are either
        (9, 10, 1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),  # the watermark is held
        (10, 10, 1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),  # shrunk since it was committed
        (9, 10, 2, None),  # grown in the leader's eyes, not yet in the znode: still held
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
        (True, 7, False),  # a later epoch of the same leadership: nothing was cut since
        (True, 4, True),  # somebody else may have led in between
        (False, 5, True),
    ],
)
def test_is_abandoned(leads: bool, appended_in: int, expected: bool) -> None:
    """Who waits for a leader of epoch 5 and later waits for the leadership that took the append."""
    assert acks.is_abandoned(leads, appended_in, 5) is expected
