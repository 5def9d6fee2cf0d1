import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.zookeeper.records import PASSWORD_BYTES
from broker_impl.zookeeper.sessions import SessionTracker, first_id, password


@pytest.mark.parametrize(
    ("asked", "given_"), [(1, 4000), (4000, 4000), (9999, 9999), (40_000, 40_000), (10**7, 40_000)]
)
def test_a_timeout_is_2_to_20_ticks(asked: int, given_: int) -> None:
    """A session timeout is the requested one, limited to 2 to 20 ticks."""
    assert SessionTracker(2000).negotiate(asked) == given_


@given(st.integers(1, 20_000), st.floats(0, 1e6), st.lists(st.floats(0, 5), max_size=5))
def test_a_session_lives_its_timeout_and_at_most_a_tick_more(
    timeout_ms: int, start: float, pauses: list[float]
) -> None:
    """A session expires after its timeout since the last activity, at most one tick late."""
    tracker = SessionTracker(1000)
    tracker.add(1, timeout_ms, start)
    heard = start
    for pause in pauses:
        if pause < timeout_ms / 1000:
            heard += pause
            assert tracker.expired(heard) == []
            tracker.touch(1, heard)
    assert tracker.expired(heard + timeout_ms / 1000 - 1e-6) == []
    assert tracker.expired(heard + timeout_ms / 1000 + 1.001) == [1]
    assert len(tracker) == 0


def test_sessions_expire_in_the_order_of_their_deadlines() -> None:
    """Expired sessions are returned in the order of their deadlines; the others stay."""
    tracker = SessionTracker(100)
    tracker.add_all({1: 900, 2: 300, 3: 5000}, now=10.0)
    assert tracker.expired(12.0) == [2, 1]
    assert tracker.expired(12.0) == []


def test_a_sign_of_life_of_an_expired_session_is_none() -> None:
    """A late packet does not bring an expired session back."""
    tracker = SessionTracker(100)
    tracker.add(1, 300, now=0.0)
    assert tracker.expired(5.0) == [1]
    tracker.touch(1, 5.0)
    assert tracker.expired(100.0) == []


def test_everybody_can_be_given_a_full_timeout() -> None:
    """`touch_all` gives every session its full timeout, after a time without service."""
    tracker = SessionTracker(100)
    tracker.add_all({1: 300, 2: 400}, now=0.0)
    tracker.touch_all(60.0)
    assert tracker.expired(60.2) == []


def test_ids_are_new_after_a_restart_even_if_the_clock_went_back() -> None:
    """Session ids have server and time, and exceed all known ids even if the clock went back."""
    first = first_id(1, 1_700_000_000_000, [])
    assert first >> 56 == 1
    assert first_id(1, 1_600_000_000_000, [first + 5]) == first + 6


def test_a_password_depends_on_the_secret_and_the_session() -> None:
    """A session's password is the same on every server with the secret, and on no other."""
    assert password(b"secret", 1) == password(b"secret", 1)
    assert len({password(b"secret", 1), password(b"secret", 2), password(b"other", 1)}) == 3
    assert len(password(b"secret", 1)) == PASSWORD_BYTES
