"""A leader: when it chooses its epoch, what it sends to each learner, and what it commits."""

import pytest

from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.leader import Leader, Limits, Phase
from broker_impl.zookeeper.quorum.leader_events import (
    Arrived,
    Commit,
    Connected,
    Drop,
    Effect,
    Forwarded,
    Key,
    Left,
    Logged,
    Proposed,
    Resign,
    Revalidate,
    Send,
    SendState,
    Serve,
    StateSent,
    Synced,
    SyncRequested,
    Tick,
    Touched,
)
from broker_impl.zookeeper.quorum.packets import LearnerInfo, Packet, PacketReader, Request, Type
from broker_impl.zookeeper.records import Id, Op
from tests.broker_impl.zookeeper.quorum.conftest import RecordingHistory, create, z

LIMITS = Limits(initialization=10.0, silence=5.0)


def sent(effects: list[Effect], key: Key) -> list[Packet]:
    """The packets to one learner among the effects."""
    reader = PacketReader()
    for effect in effects:
        if isinstance(effect, Send) and effect.key == key:
            reader.receive(effect.data)
    found = []
    while (packet := reader.next()) is not None:
        found.append(packet)
    return found


class Site:
    """Server 1 leads; voters and observers have the ids after it. The key is the server's id."""

    def __init__(self, *zxids: int, voters: int = 3, observers: int = 0) -> None:
        self.ensemble = Ensemble(
            Member(id_, "h", 1, 2, observes=id_ > voters)
            for id_ in range(1, voters + observers + 1)
        )
        self.history = RecordingHistory()
        self.history.fill(*zxids)
        self.now = 100.0
        self.leader = Leader(1, self.ensemble, self.history, LIMITS, self.now)
        self.first = self.leader.start()

    def phase(self) -> Phase:
        return self.leader.phase

    def handle(self, event: object) -> list[Effect]:
        return self.leader.handle(event)  # type: ignore[arg-type]

    def arrive(self, key: Key, kind: Type, zxid: int, data: bytes = b"") -> list[Effect]:
        return self.handle(Arrived(key, Packet(kind, zxid, data), self.now))

    def connect(self, server: int, accepted: int = 0, key: Key | None = None) -> list[Effect]:
        key = key or server
        self.handle(Connected(key, self.now))
        observes = self.ensemble.members[server].observes
        kind = Type.OBSERVERINFO if observes else Type.FOLLOWERINFO
        info = LearnerInfo(server, packets.PROTOCOL, 0).encode()
        return self.arrive(key, kind, z(accepted, 0), info)

    def promise(self, key: Key, current: int, zxid: int) -> list[Effect]:
        return self.arrive(key, Type.ACKEPOCH, zxid, packets.encode_number(current))

    def lead(self, *followers: int) -> None:
        """Bring the followers, who have the leader's history, to the broadcast."""
        current = self.history.store.current_epoch
        for server in followers:
            self.connect(server, current)
        for server in followers:
            self.promise(server, current, self.history.last_zxid)
        for server in followers:
            self.arrive(server, Type.ACK, z(self.leader.epoch, 0))
        assert self.leader.phase is Phase.BROADCAST
        self.history.store.taken()

    def propose(self, *zxids: int) -> list[Effect]:
        proposals = [create(zxid) for zxid in zxids]
        effects = self.handle(Proposed(proposals))
        self.history.log(proposals)
        return effects


def test_a_server_alone_serves_at_once() -> None:
    """The only voter establishes its epoch by itself, durably."""
    site = Site(z(1, 1), voters=1)
    assert site.first == [Serve(2)]
    assert site.history.store.taken() == [("accept", 2), ("enter", 2)]


def test_the_epoch_is_above_those_of_a_quorum() -> None:
    """The epoch exceeds what a quorum has accepted, and is durable before LEADERINFO."""
    site = Site(z(1, 1), voters=5)
    assert site.connect(2, accepted=6) == []
    assert site.history.store.taken() == [], "two of five are no quorum"
    effects = site.connect(3, accepted=4)
    assert site.history.store.taken() == [("accept", 7)]
    for key in (2, 3):
        [info] = sent(effects, key)
        assert (info.type, info.zxid) == (Type.LEADERINFO, z(7, 0))
    [late] = sent(site.connect(4, accepted=1), 4)
    assert late.zxid == z(7, 0)


def test_observers_do_not_make_a_quorum() -> None:
    """Observers register and promise, but the phases wait for voters."""
    site = Site(voters=3, observers=3)
    for server in (4, 5, 6):
        assert site.connect(server) == []
    assert site.phase() is Phase.DISCOVERY
    site.connect(2)
    for server in (4, 5, 6):
        site.promise(server, 0, 0)
    assert site.phase() is Phase.PROMISES
    site.promise(2, 0, 0)
    assert site.phase() is Phase.SYNCHRONIZATION
    for server in (4, 5, 6):
        site.arrive(server, Type.ACK, z(1, 0))
    assert site.phase() is Phase.SYNCHRONIZATION


def test_an_answer_without_a_promise_does_not_count() -> None:
    """ACKEPOCH with epoch -1 is from a server that has promised this epoch to another."""
    site = Site(voters=3)
    site.connect(2)
    site.promise(2, -1, 0)
    assert site.phase() is Phase.PROMISES
    site.connect(3)
    site.promise(3, 0, 0)
    assert site.phase() is Phase.SYNCHRONIZATION


@pytest.mark.parametrize(("current", "zxid"), [(2, z(1, 1)), (1, z(1, 3))])
def test_a_voter_with_a_longer_history_is_dropped(current: int, zxid: int) -> None:
    """A leader must not overwrite a history that is longer than its own."""
    site = Site(z(1, 1), z(1, 2))
    site.connect(2, 1)
    [drop] = site.promise(2, current, zxid)
    assert isinstance(drop, Drop)
    assert site.phase() is Phase.PROMISES


def test_the_epoch_is_durable_before_synchronization() -> None:
    """The leader enters its epoch once a quorum has promised, before it sends any history."""
    site = Site(z(1, 1), z(1, 2))
    site.connect(2, 1)
    site.history.store.taken()
    effects = site.promise(2, 1, z(1, 1))
    assert site.history.store.taken() == [("enter", 2)]
    assert [(p.type, p.zxid) for p in sent(effects, 2)] == [
        (Type.DIFF, z(1, 2)),
        (Type.PROPOSAL, z(1, 2)),
        (Type.COMMIT, z(1, 2)),
        (Type.NEWLEADER, z(2, 0)),
    ]


def test_a_learner_with_more_is_truncated() -> None:
    """A learner that joins with later transactions of a former epoch has to remove them."""
    site = Site(z(1, 1), z(1, 2))
    site.lead(2)
    site.connect(3, 1)
    effects = site.promise(3, 1, z(1, 4))
    assert [(p.type, p.zxid) for p in sent(effects, 3)] == [
        (Type.TRUNC, z(1, 2)),
        (Type.NEWLEADER, z(2, 0)),
    ]


def test_a_learner_that_is_too_far_behind_gets_the_state() -> None:
    """Without the log that a learner lacks, the leader sends its state."""
    site = Site(z(1, 1), z(1, 2))
    site.history.window.clear()
    site.history.store.memory.remove(f"version-2/log.{z(1, 1):x}")
    site.lead(2)
    site.connect(3, 1)
    assert site.promise(3, 0, 0) == [SendState(3)]
    assert sent(site.handle(StateSent(3)), 3) == [Packet(Type.NEWLEADER, z(2, 0))]
    assert sent(site.arrive(3, Type.ACK, z(2, 0)), 3) == [Packet(Type.UPTODATE, -1)]


def test_transactions_that_commit_while_the_state_is_sent_precede_newleader() -> None:
    """What the state may contain in part is acknowledged with it (ZOOKEEPER-3104)."""
    site = Site(z(1, 1), z(1, 2))
    site.history.window.clear()
    site.history.store.memory.remove(f"version-2/log.{z(1, 1):x}")
    site.lead(2)
    site.propose(z(2, 1))
    site.connect(3, 1)
    effects = site.promise(3, 0, 0)
    effects += site.propose(z(2, 2))
    effects += site.handle(Logged(z(2, 2))) + site.arrive(2, Type.ACK, z(2, 1))
    effects += site.handle(StateSent(3))
    effects += site.arrive(2, Type.ACK, z(2, 2))
    assert [(p.type, p.zxid) for p in sent(effects, 3)] == [
        (Type.PROPOSAL, z(2, 1)),
        (Type.PROPOSAL, z(2, 2)),
        (Type.COMMIT, z(2, 1)),
        (Type.NEWLEADER, z(2, 0)),
        (Type.COMMIT, z(2, 2)),
    ]


def test_a_learner_that_leaves_while_it_is_sent_the_state() -> None:
    """Nothing is sent to a learner whose connection has ended meanwhile."""
    site = Site(z(1, 1), z(1, 2))
    site.history.window.clear()
    site.history.store.memory.remove(f"version-2/log.{z(1, 1):x}")
    site.lead(2)
    site.connect(3, 1)
    site.promise(3, 0, 0)
    site.handle(Left(3))
    assert site.handle(StateSent(3)) == []


def test_a_learner_that_joins_receives_outstanding_proposals() -> None:
    """Transactions that are proposed and not committed precede NEWLEADER, without COMMIT."""
    site = Site(voters=3)
    site.lead(2)
    site.propose(z(1, 1))
    site.connect(3)
    effects = site.promise(3, 0, 0)
    assert [(p.type, p.zxid) for p in sent(effects, 3)] == [
        (Type.DIFF, 0),
        (Type.PROPOSAL, z(1, 1)),
        (Type.NEWLEADER, z(1, 0)),
    ]
    effects = site.arrive(2, Type.ACK, z(1, 1)) + site.handle(Logged(z(1, 1)))
    assert sent(effects, 3) == [Packet(Type.COMMIT, z(1, 1))], "no gap, and not twice"
    assert sent(site.arrive(3, Type.ACK, z(1, 0)), 3) == [Packet(Type.UPTODATE, -1)]


def test_clients_are_served_once_a_quorum_has_the_history() -> None:
    """A quorum of acknowledgements of NEWLEADER, the leader's own included, begins the epoch."""
    site = Site(voters=5)
    for server in (2, 3):
        site.connect(server)
    for server in (2, 3):
        site.promise(server, 0, 0)
    assert site.arrive(2, Type.ACK, z(1, 0)) == []
    serve, *rest = site.arrive(3, Type.ACK, z(1, 0))
    assert serve == Serve(1)
    for key in (2, 3):
        assert sent(rest, key) == [Packet(Type.UPTODATE, -1)]


def test_a_wrong_acknowledgement_of_the_history_is_refused() -> None:
    """An ACK of a transaction before that of NEWLEADER ends the connection (ZOOKEEPER-4685)."""
    site = Site(z(1, 1))
    site.connect(2, 1)
    site.promise(2, 1, z(1, 1))
    [drop] = site.arrive(2, Type.ACK, z(1, 1))
    assert isinstance(drop, Drop)
    assert site.phase() is Phase.SYNCHRONIZATION


def commits(effects: list[Effect]) -> list[int]:
    return [effect.zxid for effect in effects if isinstance(effect, Commit)]


def test_a_quorum_commits_in_order() -> None:
    """A transaction is committed with a majority, and an acknowledgement covers earlier ones."""
    site = Site(voters=5)
    site.lead(2, 3, 4)
    for key in (2, 3, 4):
        assert [p.zxid for p in sent(site.handle(Proposed([create(z(1, key - 1))])), key)]
    site.history.log([create(z(1, n)) for n in (1, 2, 3)])
    assert commits(site.handle(Logged(z(1, 3)))) == []
    assert commits(site.arrive(2, Type.ACK, z(1, 1))) == []
    effects = site.arrive(3, Type.ACK, z(1, 2))
    assert commits(effects) == [z(1, 1)]
    assert [p.zxid for p in sent(effects, 4)] == [z(1, 1)]
    effects = site.arrive(2, Type.ACK, z(1, 3))
    assert commits(effects) == [z(1, 2)]
    assert commits(site.arrive(4, Type.ACK, z(1, 3))) == [z(1, 3)]


def test_followers_may_commit_before_the_leaders_disk() -> None:
    """The leader's own log is one vote of several."""
    site = Site(voters=3)
    site.lead(2, 3)
    site.handle(Proposed([create(z(1, 1))]))
    assert commits(site.arrive(2, Type.ACK, z(1, 1))) == []
    assert commits(site.arrive(3, Type.ACK, z(1, 1))) == [z(1, 1)]


def test_observers_neither_acknowledge_nor_get_proposals() -> None:
    """An observer's ACK commits nothing; it gets INFORM with the transaction at commit."""
    site = Site(voters=3, observers=1)
    site.lead(2)
    site.connect(4)
    site.promise(4, 0, 0)
    site.arrive(4, Type.ACK, z(1, 0))
    assert sent(site.propose(z(1, 1)), 4) == []
    assert commits(site.arrive(4, Type.ACK, z(1, 1))) == []
    assert commits(site.handle(Logged(z(1, 1)))) == []
    effects = site.arrive(2, Type.ACK, z(1, 1))
    assert sent(effects, 4) == [Packet(Type.INFORM, z(1, 1), create(z(1, 1)).entry)]
    assert sent(effects, 2) == [Packet(Type.COMMIT, z(1, 1))]


def test_a_repeated_acknowledgement_counts_once() -> None:
    """The same server cannot make a majority by answering twice, also over a new connection."""
    site = Site(voters=5)
    site.lead(2, 3)
    site.propose(z(1, 1))
    site.handle(Logged(z(1, 1)))
    assert commits(site.arrive(2, Type.ACK, z(1, 1))) == []
    assert commits(site.arrive(2, Type.ACK, z(1, 1))) == []


def test_acknowledgements_before_a_new_synchronization_do_not_count() -> None:
    """A server that reconnects may have to truncate what it has acknowledged before."""
    site = Site(voters=3)
    site.lead(2, 3)
    site.propose(z(1, 1))
    assert commits(site.arrive(2, Type.ACK, z(1, 1))) == []
    site.connect(2, 1, key=12)
    site.promise(12, -1, 0)
    assert commits(site.handle(Logged(z(1, 1)))) == []
    assert site.arrive(2, Type.ACK, z(1, 1)) == [], "the former connection is forgotten"


def test_a_server_that_has_accepted_a_later_epoch_ends_the_leader() -> None:
    """A voter that cannot follow this leader needs a leader of a later epoch."""
    site = Site(voters=3)
    site.lead(2)
    [resign] = site.connect(3, accepted=5)
    assert isinstance(resign, Resign)


def test_a_stranger_is_dropped() -> None:
    """A server that is no other member is not a learner."""
    site = Site(voters=3)
    for server in (1, 9):
        site.handle(Connected(9, site.now))
        info = LearnerInfo(server, packets.PROTOCOL, 0).encode()
        [drop] = site.arrive(9, Type.FOLLOWERINFO, 0, info)
        assert isinstance(drop, Drop)


@pytest.mark.parametrize("kind", [Type.ACKEPOCH, Type.ACK, Type.REQUEST, Type.PING, Type.DIFF])
def test_a_packet_out_of_order_ends_the_connection(kind: Type) -> None:
    """A learner that has not registered may send nothing else."""
    site = Site(voters=3)
    site.handle(Connected(2, site.now))
    [drop] = site.arrive(2, kind, 0)
    assert isinstance(drop, Drop)
    assert site.arrive(2, kind, 0) == [], "later packets of a dropped learner are ignored"


def test_a_sync_waits_for_what_was_proposed_before_it() -> None:
    """A sync is answered at once without outstanding transactions, else after their commit."""
    site = Site(voters=3)
    site.lead(2)
    first, second = Request(5, 1, Op.SYNC, b""), Request(5, 2, Op.SYNC, b"")
    assert site.handle(SyncRequested(None, first)) == [Synced(first)]
    site.propose(z(1, 1))
    assert site.handle(SyncRequested(2, first)) == []
    assert site.handle(SyncRequested(None, second)) == []
    assert site.leader.waiting_syncs == 2
    site.handle(Logged(z(1, 1)))
    effects = site.arrive(2, Type.ACK, z(1, 1))
    assert sent(effects, 2) == [Packet(Type.COMMIT, z(1, 1)), Packet(Type.SYNC, 0)]
    assert effects[-1] == Synced(second)
    assert site.leader.waiting_syncs == 0


def test_requests_of_learners_are_handed_over() -> None:
    """Forwarded requests, pings and questions about sessions become effects."""
    site = Site(voters=3)
    site.lead(2)
    request, ids = Request(7, 3, Op.CREATE, b"body"), (Id("ip", "::1"),)
    reader = PacketReader()
    reader.receive(packets.encode_request(request, ids))
    packet = reader.next()
    assert packet is not None
    assert site.handle(Arrived(2, packet, site.now)) == [Forwarded(2, 2, request, ids)]
    data = packets.encode_sessions({7: 4000})
    assert site.arrive(2, Type.PING, 0, data) == [Touched(2, [(7, 4000)])]
    data = packets.encode_session(7, 4000)
    assert site.arrive(2, Type.REVALIDATE, -1, data) == [Revalidate(2, 2, 7, 4000)]
    [drop] = site.arrive(2, Type.PING, 0, b"x")
    assert isinstance(drop, Drop)


def test_a_leader_resigns_without_a_quorum() -> None:
    """Learners that are silent are dropped; without a majority the leader resigns."""
    site = Site(voters=3)
    site.lead(2, 3)
    site.now += 4
    pings = site.handle(Tick(site.now))
    assert [p.type for key in (2, 3) for p in sent(pings, key)] == [Type.PING] * 2
    site.arrive(2, Type.PING, 0)
    site.now += 3
    effects = site.handle(Tick(site.now))
    assert [effect.key for effect in effects if isinstance(effect, Drop)] == [3]
    assert not [effect for effect in effects if isinstance(effect, Resign)]
    site.now += 6
    assert isinstance(site.handle(Tick(site.now))[-1], Resign)


def test_the_end_of_a_connection_counts_at_the_next_tick() -> None:
    """A leader whose last follower has left resigns."""
    site = Site(voters=3)
    site.lead(2)
    site.handle(Left(2))
    assert isinstance(site.handle(Tick(site.now))[-1], Resign)


def test_a_leader_without_followers_gives_up() -> None:
    """Discovery and synchronization together have a time limit."""
    site = Site(voters=3)
    assert site.handle(Tick(site.now + 9.9)) == []
    [resign] = site.handle(Tick(site.now + 10.1))
    assert isinstance(resign, Resign)


def test_a_follower_that_acknowledges_nothing_is_dropped() -> None:
    """Pings do not help a follower whose disk does not take the transactions."""
    site = Site(voters=3)
    site.lead(2, 3)
    site.propose(z(1, 1))
    dropped: list[Key] = []
    for _ in range(4):
        for key in (2, 3):
            site.arrive(key, Type.PING, 0)
        dropped += [e.key for e in site.handle(Tick(site.now)) if isinstance(e, Drop)]
        site.now += 2
        site.arrive(2, Type.ACK, z(1, 1))
    assert dropped == [3]
