"""The limits of a role follow from ticks."""

import asyncio

from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.leader import Limits
from broker_impl.zookeeper.quorum.membership import Membership
from broker_impl.zookeeper.server import Server
from tests.broker_impl.zookeeper.quorum.conftest import RecordingHistory


async def test_limits_are_ticks() -> None:
    """The limits are in seconds: 10 ticks of initialization and 5 of silence by default."""
    ensemble = Ensemble([Member(1, "h", 1, 2)])
    clock = asyncio.get_running_loop().time
    server = Server(tick_ms=500)
    site = Membership(1, ensemble, RecordingHistory(), server, lambda: 0, clock)
    assert site.tick_s == 0.5
    assert site.limits == Limits(initialization=5.0, silence=2.5)
    other = Membership(
        1, ensemble, site.history, server, lambda: 0, clock, init_limit=3, sync_limit=1
    )
    assert other.limits == Limits(initialization=1.5, silence=0.5)
