from broker_impl.node.fetch_session import FetchSession, Outgoing
from broker_impl.replica.fetch_targets import FetchTarget
from broker_impl.replica.replica_state import Stage
from broker_impl.wire.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def target(tp: TopicPartition, *, epoch: int = 0, offset: int = 0) -> FetchTarget:
    return FetchTarget(tp, Stage.FETCH, epoch, offset, -1, 0)


def begun() -> FetchSession:
    """A session with number 9 of the partitions A and B."""
    session = FetchSession()
    session.want(target(A))
    session.want(target(B))
    assert session.next() == Outgoing(0, 0, [target(A), target(B)], [])
    session.answered(9)
    return session


def test_after_a_full_request_only_differences_are_named() -> None:
    """KIP-227: with a session a request names what is new, changed, or no longer fetched."""
    session = begun()
    assert session.next() == Outgoing(9, 1, [], [])
    session.answered(9)
    session.want(target(B, offset=4))
    session.want(target(A))
    assert session.next() == Outgoing(9, 2, [target(B, offset=4)], [])
    session.answered(9)
    session.leave(A)
    session.leave(TopicPartition("u", 0))
    assert session.next() == Outgoing(9, 3, [], [A])
    session.answered(9)
    session.want(target(A))
    assert session.next() == Outgoing(9, 4, [target(A)], [])


def test_a_new_epoch_is_named() -> None:
    """KIP-320: a new leader epoch is sent even if the fetch is otherwise the same."""
    session = begun()
    session.want(target(A, epoch=1))
    assert session.next().named == [target(A, epoch=1)]


def test_what_comes_back_meanwhile_is_not_named() -> None:
    """A partition that is left and wanted again before the next request has not changed."""
    session = begun()
    session.leave(A)
    session.want(target(A))
    session.leave(B)
    assert session.next() == Outgoing(9, 1, [], [B])


def test_rows_belong_to_what_was_sent() -> None:
    """A row of a response belongs to the request that the leader holds, not to a later one."""
    session = begun()
    session.want(target(A, offset=3))
    assert session.held(A) == target(A)
    session.next()
    assert session.held(A) == target(A, offset=3)
    assert session.held(TopicPartition("u", 0)) is None


def test_a_lost_session_begins_again() -> None:
    """After a failure the next request is full, names the old session, and gets a new one."""
    session = begun()
    session.want(target(A, offset=3))
    session.next()
    session.lost()
    outgoing = session.next()
    assert outgoing == Outgoing(9, 0, [target(A, offset=3), target(B)], [])
    assert outgoing.is_full
    session.answered(10)
    assert session.next() == Outgoing(10, 1, [], [])


def test_a_leader_without_sessions_gets_full_requests() -> None:
    """A leader that creates no session, or ends one, gets a full request each time."""
    session = begun()
    session.next()
    session.answered(0)
    for _ in range(2):
        assert session.next() == Outgoing(0, 0, [target(A), target(B)], [])
        session.answered(0)


def test_epochs_wrap() -> None:
    """After the largest session epoch comes 1."""
    session = begun()
    session._epoch = 2**31 - 1
    session.answered(9)
    assert session.next().session_epoch == 1


def test_nothing_to_fetch() -> None:
    """A session is false while no partition is fetched."""
    session = FetchSession()
    assert not session
    session.want(target(A))
    assert session
    session.leave(A)
    assert not session
