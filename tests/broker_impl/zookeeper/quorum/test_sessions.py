"""A learner reports which sessions have shown signs of life, and expires none."""

from broker_impl.zookeeper.quorum.sessions import LearnerSessions


def test_touched_sessions_are_reported_once() -> None:
    """Signs of life are collected until the leader asks, and reported with the timeout."""
    sessions = LearnerSessions(2000, {1: 4000, 2: 6000})
    sessions.touch(1, 0.0)
    sessions.touch(1, 1.0)
    sessions.touch(9, 1.0)
    assert sessions.take() == {1: 4000}, "session 9 is unknown, session 2 is silent"
    assert sessions.take() == {}


def test_the_timeout_of_a_session_that_was_brought_here_counts() -> None:
    """A client that reattaches may ask for another timeout than the one in the database."""
    sessions = LearnerSessions(2000, {1: 4000, 2: 4000})
    sessions.add(1, 9000, 0.0)
    sessions.touch(1, 0.0)
    sessions.touch(2, 0.0)
    assert sessions.take() == {1: 9000, 2: 4000}
    sessions.add(1, 4000, 0.0)
    sessions.touch(1, 0.0)
    assert sessions.take() == {1: 4000}


def test_a_removed_session_is_not_reported() -> None:
    """A session that has ended here is not reported, even if it was touched before."""
    known = {1: 4000}
    sessions = LearnerSessions(2000, known)
    sessions.add(1, 5000, 0.0)
    sessions.touch(1, 0.0)
    del known[1]
    sessions.remove(1)
    sessions.touch(1, 0.0)
    assert sessions.take() == {}


def test_a_session_that_is_created_later_is_known() -> None:
    """The timeouts are those of the live database: sessions created later are found in it."""
    known: dict[int, int] = {}
    sessions = LearnerSessions(2000, known)
    known[5] = 4000
    sessions.touch(5, 0.0)
    assert sessions.take() == {5: 4000}


def test_a_learner_expires_nothing() -> None:
    """However late it is, only the leader ends a session."""
    sessions = LearnerSessions(2000, {1: 4000})
    sessions.add(1, 4000, 0.0)
    assert sessions.expired(1e9) == []


def test_timeouts_are_two_to_twenty_ticks() -> None:
    """The negotiated timeout is the nearest one in the range."""
    sessions = LearnerSessions(2000, {})
    assert [sessions.negotiate(ms) for ms in (1, 4000, 10_000, 10**7)] == [
        4000, 4000, 10_000, 40_000
    ]  # fmt: skip
