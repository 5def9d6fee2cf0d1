from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.leader import Leader, Limits
from broker_impl.zookeeper.quorum.leader_events import (
    Logged,
    Proposed,
    Returned,
    Returning,
)
from broker_impl.zookeeper.records import Op
from broker_impl.zookeeper.store import Store
from broker_impl.zookeeper.txn_records import ErrorTxn, Header, Proposal
from broker_impl.zookeeper.zxids import first_of

SESSION = 77


def leader_alone() -> Leader:
    """A leader that is a quorum by itself, and serves."""
    history = History(Store(MemoryDisk()))
    ensemble = Ensemble([Member(1, "localhost", 1, 2)])
    leader = Leader(1, ensemble, history, Limits(1.0, 1.0), now=0.0)
    leader.start()
    return leader


def test_a_session_returns_after_its_earlier_writes() -> None:
    """A client that returns is attached once everything is committed that was proposed before.

    It counts its requests from 1 again, so a write over its former connection may have the same
    number as a write over the new one: its server would answer one with the other's outcome.
    """
    leader = leader_alone()
    assert leader.handle(Returning(None, SESSION)) == [Returned(None, SESSION)]
    zxid = first_of(leader.epoch) + 1
    proposal = Proposal.of(Header(SESSION, 1, zxid, 0, Op.ERROR), ErrorTxn(0))
    leader.handle(Proposed([proposal]))
    assert leader.handle(Returning(3, SESSION)) == []
    assert leader.handle(Logged(zxid))[-1] == Returned(3, SESSION)
