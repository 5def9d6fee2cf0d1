"""Writes over the former connection of a session that has moved are refused (ZOOKEEPER-710)."""

from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.quorum.owners import Owners
from broker_impl.zookeeper.records import Op

SESSION = 77


def test_a_moved_session_is_refused_at_its_former_server() -> None:
    """After a move only the new server's writes are accepted; also the way back is a move."""
    owners = Owners(1)
    assert owners.refusal(SESSION, 2, Op.CREATE_SESSION) is Code.OK
    assert owners.refusal(SESSION, 2, Op.CREATE) is Code.OK
    owners.move(SESSION, 3)
    assert owners.refusal(SESSION, 2, Op.SET_DATA) is Code.SESSION_MOVED
    assert owners.refusal(SESSION, 2, Op.CLOSE_SESSION) is Code.SESSION_MOVED
    assert owners.refusal(SESSION, 3, Op.SET_DATA) is Code.OK
    owners.move(SESSION, 2)
    assert owners.refusal(SESSION, 2, Op.SET_DATA) is Code.OK
    assert owners.refusal(SESSION, 3, Op.SET_DATA) is Code.SESSION_MOVED


def test_the_first_writer_owns_a_session_of_unknown_owner() -> None:
    """A new leader does not know where clients are; the first write of each shows it."""
    owners = Owners(1)
    assert owners.refusal(SESSION, 3, Op.CREATE) is Code.OK
    assert owners.refusal(SESSION, 1, Op.CREATE) is Code.SESSION_MOVED


def test_an_ended_session_is_forgotten() -> None:
    """Owners of ended sessions are not kept."""
    owners = Owners(1)
    owners.move(SESSION, 2)
    owners.forget(SESSION)
    owners.forget(SESSION)
    assert owners.refusal(SESSION, 3, Op.CREATE) is Code.OK
