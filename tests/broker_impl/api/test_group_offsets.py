"""Offsets of groups: when those expire whose clients state a retention time of their own."""

import pytest

from broker_impl.api.group_offsets import expires_at_ms
from broker_impl.config.setting import INT64_MAX
from broker_impl.coordinator.records import Committed, decode_offset, encode_offset

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("retention_ms", "expires_ms"),
    [(0, NOW_MS), (1000, NOW_MS + 1000), (INT64_MAX - NOW_MS, INT64_MAX), (INT64_MAX, INT64_MAX)],
)
def test_an_expiry_time_is_one_that_a_record_can_hold(retention_ms: int, expires_ms: int) -> None:
    """OffsetCommit v2 to v4 state a time of up to 2**63 - 1 ms, which is added to the present."""
    assert expires_at_ms(NOW_MS, retention_ms) == expires_ms
    committed = Committed(7, -1, "", NOW_MS, expires_ms)
    assert decode_offset(encode_offset(committed)) == committed
