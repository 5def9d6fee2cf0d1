"""Which answers are certain signs of life, and for how long a session was silent."""

from workloads.client.zk_life import SignsOfLife


def life(timeout_s: float = 4.0) -> SignsOfLife:
    """A session that was created by a handshake at second 10."""
    found = SignsOfLife()
    found.connected(10.0, timeout_s)
    return found


def test_the_time_at_which_an_answered_request_was_sent_counts() -> None:
    """The server extended the session no earlier than that, and the answers may come late."""
    found = life()
    assert found.last_s == 10.0
    found.answered(11.0, 11.5)
    assert found.last_s == 11.0
    found.answered(10.5, 11.6)
    assert found.last_s == 11.0


def test_nothing_is_known_before_the_first_handshake() -> None:
    """An answer without a session, and the end of a session that never began, prove nothing."""
    found = SignsOfLife()
    found.answered(1.0, 1.5)
    found.expired(2.0)
    assert (found.last_s, found.silent_s) == (None, None)


def test_an_answer_after_a_long_silence_is_doubted() -> None:
    """The leader may have expired the session just then; if it outlives that, it was not."""
    found = life()
    found.answered(12.5, 12.6)  # 2.6 s after the handshake: more than half a timeout
    assert found.last_s == 10.0
    found.answered(14.0, 14.1)
    assert found.last_s == 10.0
    found.answered(14.6, 14.7)  # the session has outlived half a timeout
    assert found.last_s == 14.6


def test_an_answer_in_time_is_not_doubted() -> None:
    """The near miss: the answer comes just within half a timeout of what was sent before."""
    found = life()
    found.answered(11.9, 12.0)
    assert found.last_s == 11.9


def test_silence_in_the_time_of_doubt_prolongs_it() -> None:
    """Each long silence begins another time of doubt."""
    found = life()
    found.answered(12.5, 12.6)
    found.answered(14.7, 14.8)
    assert found.last_s == 10.0


def test_a_handshake_is_always_certain() -> None:
    """The leader itself confirms that the session exists."""
    found = life()
    found.answered(12.5, 12.6)
    found.connected(13.0, 4.0)
    assert found.last_s == 13.0
    found.answered(13.5, 13.6)
    assert found.last_s == 13.5


def test_the_smallest_timeout_counts() -> None:
    """Servers may grant different timeouts."""
    found = life()
    found.connected(11.0, 6.0)
    assert found.timeout_s == 4.0
    found.connected(12.0, 2.0)
    assert found.timeout_s == 2.0


def test_how_long_an_expired_session_was_silent() -> None:
    """From its last certain sign of life to the first report that it has expired."""
    found = life()
    found.answered(11.0, 11.5)
    found.expired(15.25)
    found.expired(16.0)
    assert found.silent_s == 4.25
