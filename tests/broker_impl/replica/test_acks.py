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
