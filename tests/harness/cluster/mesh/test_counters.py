"""Toxiproxy's counters in the text format of Prometheus."""

from harness.cluster.mesh.counters import Passed, parsed, swallowed

TEXT = """# TYPE toxiproxy_proxy_received_bytes_total counter
toxiproxy_proxy_received_bytes_total{direction="upstream",listener="[::]:1",proxy="a.b"} 1.5e+06
toxiproxy_proxy_received_bytes_total{direction="downstream",listener="[::]:1",proxy="a.b"} 7
toxiproxy_proxy_sent_bytes_total{direction="upstream",listener="[::]:1",proxy="a.b"} 1.4e+06
go_goroutines 12
"""


def test_received_and_sent_are_told_by_proxy_and_direction() -> None:
    """Large numbers have exponents; a proxy that has not sent anything yet has no line."""
    assert parsed(TEXT) == {
        ("a.b", "upstream"): Passed(1_500_000, 1_400_000),
        ("a.b", "downstream"): Passed(7, 0),
    }


def test_swallowed_is_what_grew() -> None:
    """Only growth counts as swallowed bytes; a proxy without a line has swallowed none."""
    after = parsed(TEXT)
    assert swallowed({}, after, "a.b", "upstream") == 100_000
    assert swallowed(after, after, "a.b", "upstream") == 0
    assert swallowed({}, after, "b.a", "upstream") == 0
