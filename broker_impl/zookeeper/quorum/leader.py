"""A leader: it establishes an epoch, brings learners to its history, and orders transactions.

A leader passes through the phases of ZAB: discovery (a quorum sends the epochs that it has
accepted), synchronization (a quorum takes over the leader's history), broadcast. It takes events,
changes its state, and returns effects: what the server sends and does. Whatever an answer promises
is durable before the answer is returned.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from broker_impl.errors import WireError
from broker_impl.zookeeper import zxids
from broker_impl.zookeeper.figures import Sizes
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.jute import Reader
from broker_impl.zookeeper.quorum import ensemble as quorums
from broker_impl.zookeeper.quorum import leader_rules as rules
from broker_impl.zookeeper.quorum import packets, synchronization
from broker_impl.zookeeper.quorum.ensemble import Ensemble, ServerId
from broker_impl.zookeeper.quorum.leader_events import (
    Arrived,
    Commit,
    Connected,
    Drop,
    Effect,
    Event,
    Forwarded,
    Key,
    Left,
    Logged,
    Proposed,
    Resign,
    Returned,
    Returning,
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
from broker_impl.zookeeper.quorum.packets import LearnerInfo, Packet, Type
from broker_impl.zookeeper.txn_records import Proposal


class Phase(Enum):
    """The phases of a leader."""

    DISCOVERY = "discovery"
    """It waits until a quorum has sent the epochs that it has accepted."""
    PROMISES = "promises"
    """It waits until a quorum has promised to follow no leader of an earlier epoch."""
    SYNCHRONIZATION = "synchronization"
    """It waits until a quorum has its history."""
    BROADCAST = "broadcast"


class Stage(Enum):
    """The next packet that a learner is expected to send."""

    INFO = "FOLLOWERINFO or OBSERVERINFO"
    ACKEPOCH = "ACKEPOCH"
    WAITING = "nothing, until a quorum has promised"
    STATE = "nothing, until the state is sent"
    NEWLEADER = "ACK of NEWLEADER"
    BROADCAST = "ACK, PING, REQUEST or REVALIDATE"


@dataclass(slots=True)
class Learner:
    """What the leader knows of one learner."""

    server: ServerId = 0
    observes: bool = False
    stage: Stage = Stage.INFO
    last_zxid: int = 0
    """The last zxid in its log when it connected."""
    heard: float = 0.0
    """When its last packet arrived."""
    forwards: bool = False
    """Does it receive the transactions of the broadcast?"""
    has_history: bool = False
    """Has it acknowledged NEWLEADER?"""
    unacknowledged: tuple[int, float] | None = None
    """A transaction that it has not acknowledged, and since when it has not."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits in seconds."""

    initialization: float
    """For discovery and synchronization together (``initLimit`` ticks)."""
    silence: float
    """For a learner's next sign of life, and its acknowledgements (``syncLimit`` ticks)."""


class Leader:
    """The state of a leader; :meth:`handle` takes everything that happens to it."""

    def __init__(
        self, me: ServerId, ensemble: Ensemble, history: History, limits: Limits, now: float
    ) -> None:
        self.me = me
        self.phase = Phase.DISCOVERY
        self.epoch = history.ledger.accepted_epoch + 1
        """The epoch that it will establish, or has established."""
        self.learners: dict[Key, Learner] = {}
        self.committed = 0
        """The zxid up to which transactions of this epoch are committed."""
        self.proposed = 0
        """The zxid of the last transaction that was proposed in this epoch."""
        self.proposal_sizes = Sizes()
        self._ensemble = ensemble
        self._history = history
        self._limits = limits
        self._deadline = now + limits.initialization
        self._accepted: set[ServerId] = {me}
        self._promised: set[ServerId] = {me}
        self._have_history: set[ServerId] = {me}
        self._acknowledged: dict[ServerId, int] = {}
        self._outstanding: deque[tuple[int, bytes]] = deque()
        """The proposals that are not committed: the zxid, and the encoded transaction."""
        self._waiting: deque[tuple[int, Effect]] = deque()
        """What follows once everything up to a zxid is committed, in order."""

    # --- the door

    def handle(self, event: Event) -> list[Effect]:
        """Handle an event, and return its effects in their order."""
        match event:
            case Arrived(key, packet, now):
                return self._arrived(key, packet, now)
            case Proposed(proposals):
                return self._proposed(proposals)
            case Logged(zxid):
                return self._acknowledge(self.me, zxid)
            case SyncRequested(key, request):
                return self._after_commits(_synced(key, request))
            case Returning(key, session_id):
                return self._after_commits(Returned(key, session_id))
            case StateSent(key):
                return self._state_sent(key)
            case Tick(now):
                return self._tick(now)
            case Connected(key, now):
                self.learners[key] = Learner(heard=now)
                return []
            case Left(key):
                self.learners.pop(key, None)
                return []
            case _:
                assert_never(event)

    def start(self) -> list[Effect]:
        """Begin: a server that is a quorum by itself establishes its epoch at once."""
        return self._try_epoch()

    @property
    def waiting_syncs(self) -> int:
        """The number of syncs that wait for transactions, and of clients that return."""
        return len(self._waiting)

    @property
    def have_history(self) -> Collection[ServerId]:
        """The servers that have acknowledged the leader's history."""
        return self._have_history

    @property
    def acknowledged(self) -> Mapping[ServerId, int]:
        """The zxid up to which each server has acknowledged the transactions of the broadcast."""
        return self._acknowledged

    # --- discovery and synchronization

    def _arrived(self, key: Key, packet: Packet, now: float) -> list[Effect]:
        learner = self.learners.get(key)
        if learner is None:
            return []
        learner.heard = now
        if packet.type is Type.ACK and learner.stage is Stage.BROADCAST:
            return self._ack(learner, packet.zxid, now)
        try:
            return self._other(key, learner, packet)
        except WireError as error:
            return self._drop(key, str(error))

    def _other(self, key: Key, learner: Learner, packet: Packet) -> list[Effect]:
        match learner.stage, packet.type:
            case Stage.INFO, Type.FOLLOWERINFO | Type.OBSERVERINFO:
                return self._info(key, learner, packet)
            case Stage.ACKEPOCH, Type.ACKEPOCH:
                return self._ack_epoch(key, learner, packet)
            case Stage.NEWLEADER, Type.ACK:
                return self._ack_new_leader(key, learner, packet.zxid)
            case Stage.BROADCAST, Type.PING:
                return [Touched(learner.server, packets.decode_sessions(packet.data))]
            case Stage.BROADCAST, Type.REVALIDATE:
                return [Revalidate(key, learner.server, *packets.decode_session(packet.data))]
            case Stage.BROADCAST, Type.REQUEST:
                request = packets.decode_request(packet.data)
                return [Forwarded(key, learner.server, request, packet.ids)]
            case _:
                return self._drop(
                    key, f"{packet.type.name} has arrived, expected is {learner.stage.value}"
                )

    def _info(self, key: Key, learner: Learner, packet: Packet) -> list[Effect]:
        info = LearnerInfo.read(Reader(packet.data))
        if info.server not in self._ensemble.members or info.server == self.me:
            return self._drop(key, f"server {info.server} is no other member of the ensemble")
        for other_key, other in list(self.learners.items()):
            if other.server == info.server:
                # The server has connected again, and its former connection has not ended yet.
                del self.learners[other_key]
        learner.server = info.server
        learner.observes = packet.type is Type.OBSERVERINFO
        learner.stage = Stage.ACKEPOCH
        accepted = zxids.epoch_of(packet.zxid)
        if self.phase is Phase.DISCOVERY:
            self.epoch = max(self.epoch, accepted + 1)
            self._accepted.add(learner.server)
            return self._try_epoch()
        if accepted > self.epoch and learner.server in self._ensemble.voters:
            # It may not follow a leader of an earlier epoch, so it needs a leader of a later one.
            return [Resign(f"server {learner.server} has accepted the later epoch {accepted}")]
        return [self._leader_info(key)]

    def _try_epoch(self) -> list[Effect]:
        """Choose the epoch once a quorum has sent the epochs that it has accepted."""
        if not self._ensemble.has_quorum(self._accepted):
            return []
        rules.accept(self._history, self.epoch)
        self.phase = Phase.PROMISES
        told = [
            self._leader_info(key)
            for key, learner in self.learners.items()
            if learner.stage is Stage.ACKEPOCH
        ]
        return [*told, *self._try_synchronization()]

    def _leader_info(self, key: Key) -> Effect:
        data = packets.encode_number(packets.PROTOCOL)
        zxid = zxids.first_of(self.epoch)
        return Send(key, packets.encode(Packet(Type.LEADERINFO, zxid, data)))

    def _ack_epoch(self, key: Key, learner: Learner, packet: Packet) -> list[Effect]:
        current = packets.decode_number(packet.data)
        learner.last_zxid = packet.zxid
        learner.stage = Stage.WAITING
        if self.phase is not Phase.PROMISES:
            return self._synchronize(key, learner)
        votes = learner.server in self._ensemble.voters
        if current >= 0:
            ours = (self._history.ledger.current_epoch, self._history.last_zxid)
            if votes and rules.has_longer_history((current, packet.zxid), ours):
                return self._drop(key, "it has a longer history than this server, which leads")
            self._promised.add(learner.server)
        return self._try_synchronization()

    def _try_synchronization(self) -> list[Effect]:
        """Take over the epoch once a quorum has promised to follow it."""
        if not self._ensemble.has_quorum(self._promised):
            return []
        self._history.ledger.enter_epoch(self.epoch)
        self.phase = Phase.SYNCHRONIZATION
        self.committed = self.proposed = zxids.first_of(self.epoch)
        effects: list[Effect] = []
        for key, learner in list(self.learners.items()):
            if learner.stage is Stage.WAITING:
                effects += self._synchronize(key, learner)
        return [*effects, *self._try_broadcast()]

    def _synchronize(self, key: Key, learner: Learner) -> list[Effect]:
        """Send the leader's history, and from then on everything that is proposed and committed."""
        learner.forwards = True
        # It may have to truncate what it has acknowledged before, so that must not count any more.
        self._acknowledged.pop(learner.server, None)
        found = self._plan(learner.last_zxid)
        effects: list[Effect] = []
        out = bytearray()
        if found is None:
            learner.stage = Stage.STATE
            effects.append(SendState(key))
        else:
            learner.stage = Stage.NEWLEADER
            plan, proposals = found
            out += packets.short(plan.type, plan.zxid)
            for proposal in proposals:
                zxid = proposal.header.zxid
                out += packets.with_data(Type.PROPOSAL, zxid, proposal.entry)
                out += packets.short(Type.COMMIT, zxid)
        if not learner.observes:
            for zxid, body in self._outstanding:
                out += packets.with_data(Type.PROPOSAL, zxid, body)
        if learner.stage is Stage.NEWLEADER:
            out += packets.short(Type.NEWLEADER, zxids.first_of(self.epoch))
        return [*effects, Send(key, bytes(out))] if out else effects

    def _state_sent(self, key: Key) -> list[Effect]:
        """End the history of a learner that was sent the state.

        The state may contain effects of transactions that were committed while it was sent. They
        are sent before this, so that the learner acknowledges them too (ZOOKEEPER-3104).
        """
        learner = self.learners.get(key)
        if learner is None:
            return []
        learner.stage = Stage.NEWLEADER
        return [Send(key, packets.short(Type.NEWLEADER, zxids.first_of(self.epoch)))]

    def _plan(self, learner: int) -> tuple[synchronization.Plan, Sequence[Proposal]] | None:
        """Return how to synchronize a learner without the whole state; None if that is needed."""
        last = self._history.database.last_zxid
        window = [proposal.header.zxid for proposal in self._history.window]
        plan = synchronization.plan(learner, window, last)
        if plan is None:
            earlier = self._history.committed_since(learner)
            if not earlier:
                return None
            plan = synchronization.Plan(Type.DIFF, last, learner)
        if plan.type is Type.SNAP:
            return None
        proposals = self._history.committed_since(plan.after)
        return None if proposals is None else (plan, proposals)

    def _ack_new_leader(self, key: Key, learner: Learner, zxid: int) -> list[Effect]:
        if zxid != zxids.first_of(self.epoch):
            return self._drop(key, f"it has acknowledged {zxid:#x} in place of NEWLEADER")
        learner.stage = Stage.BROADCAST
        learner.has_history = True
        if self.phase is Phase.BROADCAST:
            return [Send(key, packets.short(Type.UPTODATE, -1))]
        self._have_history.add(learner.server)
        return self._try_broadcast()

    def _try_broadcast(self) -> list[Effect]:
        """Serve clients once a quorum has the leader's history."""
        if not self._ensemble.has_quorum(self._have_history):
            return []
        self.phase = Phase.BROADCAST
        ready = [
            Send(key, packets.short(Type.UPTODATE, -1))
            for key, learner in self.learners.items()
            if learner.has_history
        ]
        return [Serve(self.epoch), *ready]

    # --- broadcast

    def _proposed(self, proposals: Sequence[Proposal]) -> list[Effect]:
        out = bytearray()
        for proposal in proposals:
            zxid = proposal.header.zxid
            body = proposal.entry
            self._outstanding.append((zxid, body))
            self.proposal_sizes.add(len(body))
            out += packets.with_data(Type.PROPOSAL, zxid, body)
        self.proposed = proposals[-1].header.zxid
        data = bytes(out)
        return [Send(key, data) for key in self._receivers(observers=False)]

    def _receivers(self, *, observers: bool) -> Iterable[Key]:
        for key, learner in self.learners.items():
            if learner.forwards and learner.observes is observers:
                yield key

    def _ack(self, learner: Learner, zxid: int, now: float) -> list[Effect]:
        if not zxids.counter_of(zxid):
            return []  # NEWLEADER again, after UPTODATE
        waits = self.proposed > zxid
        learner.unacknowledged = (self.proposed, now) if waits else None
        return self._acknowledge(learner.server, zxid)

    def _acknowledge(self, server: ServerId, zxid: int) -> list[Effect]:
        if zxid <= self._acknowledged.get(server, 0):
            return []
        self._acknowledged[server] = zxid
        if zxid <= self.committed:
            return []
        nothing = zxids.first_of(self.epoch)
        end = quorums.supported_by_quorum(self._ensemble.voters, self._acknowledged, nothing)
        return self._commit(end) if end > self.committed else []

    def _commit(self, end: int) -> list[Effect]:
        """Commit everything up to a zxid, in order.

        The leader's own clients are answered first: learners that wake up compete for the CPU.
        """
        commits, informs = bytearray(), bytearray()
        observers = list(self._receivers(observers=True))
        while self._outstanding and self._outstanding[0][0] <= end:
            zxid, body = self._outstanding.popleft()
            commits += packets.short(Type.COMMIT, zxid)
            if observers:
                informs += packets.with_data(Type.INFORM, zxid, body)
        self.committed = end
        effects: list[Effect] = [Commit(end)]
        effects += [Send(key, bytes(commits)) for key in self._receivers(observers=False)]
        effects += [Send(key, bytes(informs)) for key in observers]
        while self._waiting and self._waiting[0][0] <= end:
            effects.append(self._waiting.popleft()[1])
        return effects

    def _after_commits(self, effect: Effect) -> list[Effect]:
        """Return an effect once everything is committed that was proposed before it.

        This asks no quorum: a leader that was replaced and does not know it yet answers a sync as
        well (ZOOKEEPER-1675).
        """
        if self.proposed <= self.committed:
            return [effect]
        self._waiting.append((self.proposed, effect))
        return []

    # --- time

    def _tick(self, now: float) -> list[Effect]:
        """Send pings, and resign without a quorum; called every half tick."""
        if self.phase is not Phase.BROADCAST:
            if now > self._deadline:
                return [Resign(f"no quorum has followed within the time of {self.phase.value}")]
            return []
        effects: list[Effect] = []
        synced = {self.me}
        for key, learner in list(self.learners.items()):
            if now - learner.heard > self._time_limit(learner) or self._lags(learner, now):
                effects += self._drop(key, "it has been silent for too long")
            elif learner.has_history:
                effects.append(Send(key, packets.short(Type.PING, self.proposed)))
                synced.add(learner.server)
        if not rules.may_lead(self._ensemble, synced):
            return [*effects, Resign("the quorum is lost")]
        return effects

    def _time_limit(self, learner: Learner) -> float:
        return self._limits.silence if learner.has_history else self._limits.initialization

    def _lags(self, learner: Learner, now: float) -> bool:
        """Return whether a learner has not acknowledged a transaction for too long."""
        if learner.observes or not learner.has_history:
            return False
        acknowledged = self._acknowledged.get(learner.server, 0)
        if not self._outstanding or acknowledged >= self.proposed:
            learner.unacknowledged = None
            return False
        if learner.unacknowledged is None or acknowledged >= learner.unacknowledged[0]:
            learner.unacknowledged = (self.proposed, now)
        return now - learner.unacknowledged[1] > self._limits.silence

    def _drop(self, key: Key, reason: str) -> list[Effect]:
        self.learners.pop(key, None)
        return [Drop(key, reason)]


def _synced(key: Key | None, request: packets.Request) -> Effect:
    return Synced(request) if key is None else Send(key, packets.short(Type.SYNC, 0))
