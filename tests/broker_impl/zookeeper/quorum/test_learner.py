"""A learner: what it accepts in each phase, and what is durable before each answer."""

import copy

import pytest

from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.learner import (
    Arrived,
    Commit,
    Connected,
    Effect,
    Learner,
    Leave,
    Paused,
    Phase,
    Pinged,
    ReadState,
    Send,
    Serve,
    StateArrived,
    Synced,
    Validity,
)
from broker_impl.zookeeper.quorum.packets import Packet, PacketReader, Type
from broker_impl.zookeeper.txn_records import Proposal
from tests.broker_impl.zookeeper.quorum.conftest import RecordingHistory, create, session, z


def sent(effects: list[Effect]) -> list[Packet]:
    """The packets among the effects."""
    reader = PacketReader()
    for effect in effects:
        if isinstance(effect, Send):
            reader.receive(effect.data)
    found = []
    while (packet := reader.next()) is not None:
        found.append(packet)
    return found


class Site:
    """A learner with a history, and the packets of a leader."""

    def __init__(self, *zxids: int, observes: bool = False) -> None:
        self.history = RecordingHistory()
        self.history.fill(*zxids)
        self.learner = Learner(2, self.history, observes=observes)

    def arrive(self, kind: Type, zxid: int, data: bytes = b"") -> list[Effect]:
        return self.learner.handle(Arrived(Packet(kind, zxid, data)))

    def propose(self, proposal: Proposal, kind: Type = Type.PROPOSAL) -> list[Effect]:
        return self.arrive(kind, proposal.header.zxid, proposal.entry)

    def pause(self) -> list[Effect]:
        return self.learner.handle(Paused())

    def discover(self, epoch: int) -> list[Effect]:
        self.learner.handle(Connected())
        return self.arrive(Type.LEADERINFO, z(epoch, 0), packets.encode_number(packets.PROTOCOL))

    def synchronize(self, epoch: int) -> None:
        self.discover(epoch)
        self.arrive(Type.DIFF, self.history.last_zxid)
        self.arrive(Type.NEWLEADER, z(epoch, 0))

    def serve(self, epoch: int) -> None:
        self.synchronize(epoch)
        self.arrive(Type.UPTODATE, -1)
        self.history.store.taken()

    def steps(self) -> list[tuple[str, int]]:
        return self.history.store.taken()


@pytest.mark.parametrize("observes", [False, True])
def test_it_registers_with_the_epoch_that_it_has_accepted(observes: bool) -> None:
    """The first packet has the accepted epoch, the id and the protocol."""
    site = Site(z(2, 1), observes=observes)
    site.history.store.accept_epoch(4)
    [packet] = sent(site.learner.handle(Connected()))
    assert packet.type is (Type.OBSERVERINFO if observes else Type.FOLLOWERINFO)
    assert packet.zxid == z(4, 0)
    assert packet.data == packets.LearnerInfo(2, packets.PROTOCOL, 0).encode()


def test_an_epoch_is_durable_before_it_is_promised() -> None:
    """ACKEPOCH has the epoch of the history and its last zxid, after the promise is stored."""
    site = Site(z(1, 1), z(1, 2))
    [packet] = sent(site.discover(3))
    assert site.steps() == [("accept", 3)]
    assert (packet.type, packet.zxid) == (Type.ACKEPOCH, z(1, 2))
    assert packets.decode_number(packet.data) == 1
    assert site.learner.phase is Phase.PROMISED


def test_an_accepted_epoch_is_not_promised_again() -> None:
    """For an epoch that was accepted before, ACKEPOCH carries no promise, and nothing is stored."""
    site = Site(z(1, 1))
    site.history.store.accept_epoch(3)
    site.steps()
    [packet] = sent(site.discover(3))
    assert packets.decode_number(packet.data) == -1
    assert site.steps() == []


def test_a_leader_of_an_earlier_epoch_is_left() -> None:
    """A leader whose epoch is lower than the accepted one is left, and nothing is stored."""
    site = Site(z(1, 1))
    site.history.store.accept_epoch(3)
    site.steps()
    [effect] = site.discover(2)
    assert isinstance(effect, Leave)
    assert site.steps() == []


def test_a_difference_is_durable_before_the_epoch_and_the_answer() -> None:
    """Committed transactions, then the epoch, are durable before NEWLEADER is acknowledged."""
    site = Site(z(1, 1))
    site.discover(2)
    site.arrive(Type.DIFF, z(1, 3))
    for counter in (2, 3):
        assert site.propose(create(z(1, counter))) == []
        assert site.arrive(Type.COMMIT, z(1, counter)) == []
    assert site.steps() == [("accept", 2)], "nothing is acknowledged yet"
    assert sent(site.arrive(Type.NEWLEADER, z(2, 0))) == [Packet(Type.ACK, z(2, 0))]
    assert site.steps() == [("append", z(1, 3)), ("enter", 2)]
    assert site.history.database.last_zxid == z(1, 3)


def test_uncommitted_proposals_before_newleader_are_acknowledged_after_it() -> None:
    """A proposal that is not committed at NEWLEADER is logged later, and commits later."""
    site = Site(z(1, 1))
    site.discover(2)
    site.arrive(Type.DIFF, z(1, 1))
    site.propose(create(z(2, 1)))
    [ack] = sent(site.arrive(Type.NEWLEADER, z(2, 0)))
    assert ack == Packet(Type.ACK, z(2, 0)), "the first answer (ZOOKEEPER-4685)"
    assert site.history.last_zxid == z(1, 1)
    assert site.arrive(Type.COMMIT, z(2, 1)) == [], "between NEWLEADER and UPTODATE (4394)"
    effects = site.arrive(Type.UPTODATE, -1)
    assert sent(effects) == [Packet(Type.ACK, z(2, 1)), Packet(Type.ACK, z(2, 0))]
    kinds = [effect for effect in effects if not isinstance(effect, Send)]
    assert kinds == [Commit(z(2, 1)), Serve(2)]
    assert site.steps()[-1] == ("append", z(2, 1))


def test_a_truncation_removes_what_the_leader_does_not_have() -> None:
    """TRUNC removes later transactions from log and state, before anything is acknowledged."""
    site = Site(z(1, 1), z(1, 2), z(1, 3))
    site.discover(2)
    site.arrive(Type.TRUNC, z(1, 2))
    assert site.history.last_zxid == site.history.database.last_zxid == z(1, 2)
    assert f"/{z(1, 3):x}" not in site.history.database.nodes
    site.arrive(Type.NEWLEADER, z(2, 0))
    assert site.steps() == [("accept", 2), ("truncate", z(1, 2)), ("enter", 2)]


def test_a_state_that_was_never_committed_ends_no_server() -> None:
    """A TRUNC below a state of an earlier leader makes the learner leave, and changes nothing.

    That leader was lost before a quorum had its history. The learner must not end with its process:
    the new leader sends its own state once it has committed a transaction.
    """
    leader = RecordingHistory()
    leader.log([create(z(1, 1)), create(z(1, 2), "a")])
    leader.commit_to(z(1, 2))
    site = Site(observes=True)
    site.history.store.accept_epoch(2)
    site.history.install(leader.database)
    site.history.ledger.enter_epoch(2)
    site.steps()
    site.discover(3)
    [left] = site.arrive(Type.TRUNC, z(1, 1))
    assert isinstance(left, Leave)
    assert "newer" in left.reason
    assert site.steps() == [("accept", 3)]
    assert site.history.last_zxid == z(1, 2)
    again = RecordingHistory(site.history.store.memory_of_a_killed_process())
    assert "/a" in again.database.nodes


def test_a_state_replaces_the_log() -> None:
    """SNAP: the state is read as no packet, and is durable before NEWLEADER is acknowledged."""
    leader = RecordingHistory()
    leader.log([session(z(1, 1)), create(z(1, 2), "a")])
    leader.commit_to(z(1, 2))
    site = Site(z(1, 1), z(1, 2), z(1, 3))
    site.discover(2)
    assert site.arrive(Type.SNAP, z(1, 2)) == [ReadState(z(1, 2))]
    assert site.learner.phase is Phase.RECEIVING_STATE
    site.learner.handle(StateArrived(copy.deepcopy(leader.database)))
    site.propose(create(z(1, 3), "b"))
    site.arrive(Type.COMMIT, z(1, 3))
    assert site.steps() == [("accept", 2)]
    assert sent(site.arrive(Type.NEWLEADER, z(2, 0))) == [Packet(Type.ACK, z(2, 0))]
    assert site.steps() == [("install", z(1, 3)), ("enter", 2)]
    assert site.history.database.nodes["/"].children.keys() == {"zookeeper", "a", "b"}


def test_newleader_of_another_epoch_is_refused() -> None:
    """NEWLEADER must have the epoch of LEADERINFO."""
    site = Site()
    site.discover(2)
    site.arrive(Type.DIFF, 0)
    [effect] = site.arrive(Type.NEWLEADER, z(3, 0))
    assert isinstance(effect, Leave)
    assert site.steps() == [("accept", 2)]


def test_transactions_are_logged_together_and_acknowledged_each() -> None:
    """What arrives together is logged by one sync, and then acknowledged in order."""
    site = Site()
    site.serve(1)
    assert site.propose(create(z(1, 1))) == []
    assert site.propose(create(z(1, 2))) == []
    assert site.steps() == [], "nothing before the pause"
    acks = sent(site.pause())
    assert acks == [Packet(Type.ACK, z(1, 1)), Packet(Type.ACK, z(1, 2))]
    assert site.steps() == [("append", z(1, 2))]


def test_what_follows_a_proposal_waits_for_its_log() -> None:
    """Commits, pings and answers keep their order, and come after the acknowledgements."""
    site = Site()
    site.serve(1)
    site.propose(create(z(1, 1)))
    for kind, zxid, data in (
        (Type.COMMIT, z(1, 1), b""),
        (Type.SYNC, 0, b""),
        (Type.PING, z(1, 1), b""),
        (Type.REVALIDATE, -1, packets.encode_validity(7, True)),
    ):
        assert site.arrive(kind, zxid, data) == []
    ack, *rest = site.pause()
    assert isinstance(ack, Send)
    assert rest == [Commit(z(1, 1)), Synced(), Pinged(z(1, 1)), Validity(7, True)]
    assert site.pause() == []


def test_a_gap_in_the_proposals_is_noticed() -> None:
    """A proposal that does not follow the log makes the learner leave (ZOOKEEPER-4925)."""
    site = Site()
    site.serve(1)
    site.propose(create(z(1, 1)))
    site.propose(create(z(1, 3)))
    [effect] = site.pause()
    assert isinstance(effect, Leave)
    assert site.history.last_zxid == 0, "nothing of the batch is logged"


def test_a_commit_of_another_transaction_is_refused_while_synchronizing() -> None:
    """COMMIT must be of the next proposal."""
    site = Site()
    site.discover(1)
    site.arrive(Type.DIFF, 0)
    site.propose(create(z(1, 1)))
    [effect] = site.arrive(Type.COMMIT, z(1, 2))
    assert isinstance(effect, Leave)


def test_an_observer_acknowledges_nothing_but_the_history() -> None:
    """INFORM is logged and committed without an ACK."""
    site = Site(observes=True)
    site.discover(1)
    site.arrive(Type.DIFF, 0)
    site.propose(create(z(1, 1)), Type.INFORM)
    assert sent(site.arrive(Type.NEWLEADER, z(1, 0))) == [Packet(Type.ACK, z(1, 0))]
    site.arrive(Type.UPTODATE, -1)
    site.propose(create(z(1, 2)), Type.INFORM)
    assert site.pause() == [Commit(z(1, 2))]
    assert site.history.last_zxid == z(1, 2)


PHASES: dict[Phase, set[Type]] = {
    Phase.REGISTERED: {Type.LEADERINFO},
    Phase.PROMISED: {Type.DIFF, Type.TRUNC, Type.SNAP},
    Phase.RECEIVING_STATE: set(),
    Phase.SYNCHRONIZING: {Type.PROPOSAL, Type.COMMIT, Type.INFORM, Type.NEWLEADER},
    Phase.SYNCHRONIZED: {Type.PROPOSAL, Type.COMMIT, Type.INFORM, Type.UPTODATE, Type.PING},
    Phase.SERVING: {
        Type.PROPOSAL, Type.COMMIT, Type.INFORM, Type.PING, Type.SYNC, Type.REVALIDATE
    },
}  # fmt: skip


@pytest.mark.parametrize("phase", Phase)
def test_other_packets_make_it_leave(phase: Phase) -> None:
    """In each phase every packet that the protocol does not allow there makes the learner leave."""
    for kind in set(Type) - PHASES[phase]:
        site = Site()
        site.learner.phase = phase
        [effect] = site.arrive(kind, 0)
        assert isinstance(effect, Leave)
        assert kind.name in effect.reason
        assert site.steps() == []


def test_unreadable_data_make_it_leave() -> None:
    """A proposal or an answer that cannot be decoded makes the learner leave."""
    site = Site()
    site.serve(1)
    for kind in (Type.PROPOSAL, Type.REVALIDATE):
        [effect] = site.arrive(kind, z(1, 1), b"xx")
        assert isinstance(effect, Leave)
