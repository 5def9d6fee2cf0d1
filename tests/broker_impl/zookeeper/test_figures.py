"""Figures of connections and sizes count what happened since the last reset."""

from broker_impl.zookeeper.figures import Latency, Sizes, Traffic
from broker_impl.zookeeper.records import Op


def test_sizes() -> None:
    """The last, least and greatest size; -1 before the first."""
    sizes = Sizes()
    assert (sizes.last, sizes.min, sizes.max) == (-1, -1, -1)
    for size in (20, 5, 9):
        sizes.add(size)
    assert (sizes.last, sizes.min, sizes.max) == (9, 5, 20)


def test_latency() -> None:
    """The mean is exact, the bounds are whole milliseconds; the first value is a bound."""
    latency = Latency()
    assert (latency.min_ms, latency.mean_ms, latency.max_ms) == (0, 0.0, 0)
    for seconds in (0.0025, 0.0015):
        latency.add(seconds)
    assert (latency.min_ms, latency.mean_ms, latency.max_ms) == (1, 2.0, 2)


def test_traffic() -> None:
    """The last answer is kept, and the last xid that the client has chosen."""
    traffic = Traffic()
    traffic.answered(Op.CREATE, 7, 0x10, now=3.0, seconds=0.004)
    traffic.answered(Op.PING, -2, 0x11, now=4.5, seconds=0.001)
    assert (traffic.last_op, traffic.last_cxid, traffic.last_zxid) == (Op.PING, 7, 0x11)
    assert (traffic.last_response_s, traffic.last_latency_ms) == (4.5, 1)
    assert (traffic.latency.min_ms, traffic.latency.max_ms) == (1, 4)
