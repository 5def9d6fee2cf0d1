"""The retransmission timer: exponential backoff from the round trip, and an end."""

import pytest

from harness.simulation.retransmission import Retransmission
from harness.simulation.segment import TcpOptions

OPTIONS = TcpOptions(rto_s_min=0.2, rto_s_max=1.0, give_up_s=5.0, syn_rto_s=1.0, syn_retries=2)


def test_the_wait_doubles_up_to_a_maximum() -> None:
    """Each repetition waits twice as long as the one before it, up to ``rto_s_max``."""
    times = Retransmission(OPTIONS, 0.0)
    times.begin(10.0)
    waits = []
    for now in (10.0, 20.0, 30.0, 40.0):
        waits.append(times.due(is_established=True) - now)
        times.repeat(now + 10.0)
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.0])


@pytest.mark.parametrize(("echo", "wait_s"), [(9.95, 0.2), (9.8, 0.4), (1.0, 1.0)])
def test_the_first_wait_follows_from_the_round_trip(echo: float, wait_s: float) -> None:
    """After an acknowledgement the wait is twice the round trip, within the limits."""
    times = Retransmission(OPTIONS, 0.0)
    times.begin(9.0)
    times.repeat(9.5)
    times.acknowledged(10.0, echo)
    assert times.due(is_established=True) - 10.0 == pytest.approx(wait_s)


def test_a_connect_is_given_up_after_its_retries() -> None:
    """A SYN is repeated ``syn_retries`` times; its waits start at ``syn_rto_s``."""
    times = Retransmission(OPTIONS, 0.0)
    times.begin(0.0)
    assert times.due(is_established=False) == 1.0
    for _ in range(2):
        assert not times.is_hopeless(50.0, is_established=False, has_flight=True)
        times.repeat(1.0)
    assert times.is_hopeless(1.0, is_established=False, has_flight=True)


def test_a_peer_that_answers_without_room_is_not_given_up() -> None:
    """Without a flight the time since the peer was last heard from counts."""
    times = Retransmission(OPTIONS, 0.0)
    times.begin(0.0)
    times.heard_at = 4.0
    assert times.is_hopeless(5.0, is_established=True, has_flight=True)
    assert not times.is_hopeless(8.9, is_established=True, has_flight=False)
    assert times.is_hopeless(9.0, is_established=True, has_flight=False)
