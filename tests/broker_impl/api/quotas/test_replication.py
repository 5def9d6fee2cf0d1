"""The quota of replication (KIP-73): which replicas count, and when they must wait."""

import pytest

from broker_impl.api.quotas.replication import FOLLOWERS, UNLIMITED, ReplicationQuota, names
from broker_impl.wire.types import TopicPartition


@pytest.mark.parametrize(
    ("replicas", "named"),
    [("*", True), ("0:1, 2:3", True), ("2:3", True), ("2:1,3:3", False), ("12:3,2:31", False),
     ("", False)],
)  # fmt: skip
def test_a_list_names_replicas(replicas: str, named: bool) -> None:
    """A list has all replicas, or pairs of partition and broker."""
    assert names(replicas, 2, 3) is named


def test_a_quota_is_used_up_until_its_rate_has_fallen() -> None:
    """The rate is measured over ten windows of a second; a higher limit applies at once."""
    limit = [UNLIMITED]
    quota = ReplicationQuota(
        FOLLOWERS,
        1,
        limit=lambda: limit[0],
        overrides=lambda topic: {FOLLOWERS: "0:1"} if topic == "t" else {},
        samples=11,
        window_ms=1000,
    )
    assert not quota.throttles(TopicPartition("t", 0))
    limit[0] = 100
    assert quota.throttles(TopicPartition("t", 0))
    assert not quota.throttles(TopicPartition("t", 1))
    assert not quota.throttles(TopicPartition("u", 0))
    quota.record(1000, 0)
    assert not quota.is_used_up(0)
    quota.record(1, 1)
    assert quota.is_used_up(5000)
    limit[0] = 101
    assert not quota.is_used_up(5000)
    limit[0] = 0
    assert quota.is_used_up(10_999)
    assert not quota.is_used_up(11_000)
