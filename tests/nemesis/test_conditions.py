"""States of the cluster for which a fault waits."""

from typing import Any

import pytest

from nemesis import conditions
from nemesis.options import Once
from tests.nemesis.conftest import FakeCluster


@pytest.mark.parametrize(
    ("once", "holds"),
    [
        ({"leader": "broker-2"}, True),
        ({"leader": "broker-1"}, False),
        ({"in_sync": ["broker-2", "broker-3"]}, True),
        ({"in_sync": ["broker-1", "broker-2"]}, False),
        ({"out_of_sync": ["broker-1"]}, True),
        ({"out_of_sync": ["broker-1", "broker-2"]}, False),
        ({"leader": "broker-2", "in_sync": ["broker-3"], "out_of_sync": ["broker-1"]}, True),
        ({"leader": "broker-2", "in_sync": ["broker-1"]}, False),
        ({"leader": "broker-3", "in_sync": ["broker-2"]}, False),
    ],
)
async def test_everything_in_a_state_must_hold(
    once: Any, holds: bool, cluster: FakeCluster
) -> None:
    """The leader is the named one, and the named brokers are in the ISR, or are not."""
    cluster.leaders["x-0"] = "broker-2"
    cluster.isrs["x-0"] = ("broker-2", "broker-3")
    assert await conditions.holds(cluster, Once(key="x-0", **once)) is holds


async def test_no_broker_is_out_of_sync_of_an_unknown_partition(cluster: FakeCluster) -> None:
    """While a partition is not known, or cannot be read, no state of it holds."""
    assert not await conditions.holds(cluster, Once(key="z-0", out_of_sync=["broker-1"]))
