"""A follower or an observer: it takes over its leader's history, and then what the leader commits.

The states are a table: which packets a learner accepts in which phase. Whatever an answer promises
is durable before the answer is returned: the promise of an epoch, the history that is acknowledged
by the answer to NEWLEADER, and each transaction that is acknowledged.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import msgspec

from broker_impl.errors import WireError
from broker_impl.zookeeper import zxids
from broker_impl.zookeeper.history import CannotTruncate, History, OutOfOrder
from broker_impl.zookeeper.quorum import learner_rules as rules
from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.ensemble import ServerId
from broker_impl.zookeeper.quorum.packets import LearnerInfo, Packet, Type
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import Proposal


class Phase(StrEnum):
    """The phases of a learner."""

    REGISTERED = "registered"
    """It has sent what epoch it has accepted."""
    PROMISED = "promised"
    """It has promised to follow no leader of an earlier epoch."""
    RECEIVING_STATE = "receiving the state"
    """SNAP has arrived; the leader's state follows, which is no packet."""
    SYNCHRONIZING = "synchronizing"
    """It receives the transactions that it lacks."""
    SYNCHRONIZED = "synchronized"
    """It has acknowledged the leader's history."""
    SERVING = "serving"


_EXPECTED: Mapping[Phase, frozenset[Type]] = {
    Phase.REGISTERED: frozenset({Type.LEADERINFO}),
    Phase.PROMISED: frozenset({Type.DIFF, Type.TRUNC, Type.SNAP}),
    Phase.RECEIVING_STATE: frozenset(),
    Phase.SYNCHRONIZING: frozenset({Type.PROPOSAL, Type.COMMIT, Type.INFORM, Type.NEWLEADER}),
    Phase.SYNCHRONIZED: frozenset(
        {Type.PROPOSAL, Type.COMMIT, Type.INFORM, Type.UPTODATE, Type.PING}
    ),
    Phase.SERVING: frozenset(
        {Type.PROPOSAL, Type.COMMIT, Type.INFORM, Type.PING, Type.SYNC, Type.REVALIDATE}
    ),
}
"""The packets that a learner accepts, by its phase."""


class Connected(msgspec.Struct, frozen=True):
    """The connection to the leader is established."""


class Arrived(msgspec.Struct, frozen=True):
    """A packet of the leader has arrived."""

    packet: Packet


class StateArrived(msgspec.Struct, frozen=True):
    """The state that SNAP has announced is complete."""

    database: Database


class Paused(msgspec.Struct, frozen=True):
    """Everything that has arrived so far was handed over: it is logged and answered now."""


Event = Connected | Arrived | StateArrived | Paused


class Send(msgspec.Struct, frozen=True):
    """Send encoded packets to the leader."""

    data: bytes


class ReadState(msgspec.Struct, frozen=True):
    """The bytes that follow are the state after the transaction with this zxid."""

    zxid: int


class Serve(msgspec.Struct, frozen=True):
    """This server has the leader's history: serve clients in this epoch."""

    epoch: int


class Pinged(msgspec.Struct, frozen=True):
    """Answer a ping with the sessions that have shown signs of life."""

    zxid: int


class Commit(msgspec.Struct, frozen=True):
    """Apply the next transaction of the log, which has this zxid."""

    zxid: int


class Synced(msgspec.Struct, frozen=True):
    """The first of the forwarded syncs that are not answered yet is complete."""


class Validity(msgspec.Struct, frozen=True):
    """Whether a session that a client has brought here lives."""

    session_id: int
    is_valid: bool


class Leave(msgspec.Struct, frozen=True):
    """Leave the leader and look for another."""

    reason: str


Effect = Send | ReadState | Serve | Pinged | Commit | Synced | Validity | Leave


@dataclass(slots=True)
class _Received:
    """The transactions that a learner received before NEWLEADER."""

    proposals: deque[Proposal]
    committed: int = 0
    """How many of them, from the first one on, are committed."""


class Learner:
    """The state of a follower or observer; :meth:`handle` takes everything that happens to it.

    Effects are returned in their order. After an effect ``Leave`` the learner takes no events.
    """

    def __init__(self, me: ServerId, history: History, *, observes: bool) -> None:
        self.phase = Phase.REGISTERED
        self.epoch = 0
        """The epoch of the leader; 0 until it is known."""
        self._me = me
        self._history = history
        self._observes = observes
        self._received = _Received(deque())
        self._state: Database | None = None
        """The state that SNAP has brought, until it is durable."""
        self._unlogged: list[Proposal] = []
        self._then: list[Effect] = []
        """What follows the logging, in the order of the packets that asked for it."""

    @property
    def has_history(self) -> bool:
        """Has it acknowledged the leader's history?"""
        return self.phase in (Phase.SYNCHRONIZED, Phase.SERVING)

    def handle(self, event: Event) -> list[Effect]:
        """Handle an event, and return its effects in their order.

        Raises:
            StorageError: it is unknown whether something is stored; the server must stop.
        """
        try:
            match event:
                case Arrived(packet):
                    return self._arrived(packet)
                case Paused():
                    return self._pause()
                case Connected():
                    return [self._info()]
                case StateArrived(database):
                    self._state = rules.hold(self._history, database)
                    self.phase = Phase.SYNCHRONIZING
                    return []
                case _:
                    assert_never(event)
        except (OutOfOrder, WireError, CannotTruncate) as error:
            # A snapshot that an earlier leader has sent contains what was never committed. The
            # leader sends its state once it has committed a transaction of its own epoch.
            return [Leave(str(error))]

    def _info(self) -> Effect:
        kind = Type.OBSERVERINFO if self._observes else Type.FOLLOWERINFO
        accepted = zxids.first_of(self._history.ledger.accepted_epoch)
        info = LearnerInfo(self._me, packets.PROTOCOL, 0)
        return Send(packets.encode(Packet(kind, accepted, info.encode())))

    def _arrived(self, packet: Packet) -> list[Effect]:
        if packet.type not in _EXPECTED[self.phase]:
            return [
                Leave(f"{packet.type.name} has arrived while this server is {self.phase.value}")
            ]
        match packet.type:
            case Type.PROPOSAL:
                return self._proposal(Proposal.decode(packet.data))
            case Type.COMMIT:
                return self._commit(packet.zxid)
            case Type.INFORM:
                return self._inform(Proposal.decode(packet.data))
            case Type.PING:
                self._then.append(Pinged(packet.zxid))
            case Type.SYNC:
                self._then.append(Synced())
            case Type.REVALIDATE:
                self._then.append(Validity(*packets.decode_validity(packet.data)))
            case Type.LEADERINFO:
                return self._leader_info(packet)
            case Type.DIFF | Type.TRUNC | Type.SNAP:
                return self._begin(packet)
            case Type.NEWLEADER:
                return self._new_leader(packet.zxid)
            case _:
                return self._up_to_date()
        return []

    # --- discovery and synchronization

    def _leader_info(self, packet: Packet) -> list[Effect]:
        ledger = self._history.ledger
        self.epoch = zxids.epoch_of(packet.zxid)
        accepted = ledger.accepted_epoch
        if not rules.may_follow(self.epoch, accepted):
            return [Leave(f"epoch {self.epoch} is over: epoch {accepted} was accepted here")]
        current = rules.promise(self.epoch, accepted, ledger.current_epoch)
        if self.epoch > accepted:
            ledger.accept_epoch(self.epoch)
        self.phase = Phase.PROMISED
        data = packets.encode_number(current)
        return [Send(packets.encode(Packet(Type.ACKEPOCH, self._history.last_zxid, data)))]

    def _begin(self, packet: Packet) -> list[Effect]:
        if packet.type is Type.SNAP:
            rules.begin(self._history, packet.type, packet.zxid)
            self.phase = Phase.RECEIVING_STATE
            return [ReadState(packet.zxid)]
        rules.begin(self._history, packet.type, packet.zxid)
        self.phase = Phase.SYNCHRONIZING
        return []

    def _new_leader(self, zxid: int) -> list[Effect]:
        """The history is complete: make it durable, and acknowledge it."""
        if zxid != zxids.first_of(self.epoch):
            return [Leave(f"NEWLEADER is of epoch {zxids.epoch_of(zxid)}, not of {self.epoch}")]
        received, self._received = self._received, _Received(deque())
        committed = [received.proposals.popleft() for _ in range(received.committed)]
        rules.take_over(self._history, self._state, committed, self.epoch)
        self._state = None
        self._unlogged = rules.uncommitted(received.proposals)
        self.phase = Phase.SYNCHRONIZED
        return [Send(packets.short(Type.ACK, zxid))]

    def _up_to_date(self) -> list[Effect]:
        effects = self._pause()
        self.phase = Phase.SERVING
        acknowledgement = Send(packets.short(Type.ACK, zxids.first_of(self.epoch)))
        return [*effects, acknowledgement, Serve(self.epoch)]

    # --- broadcast

    def _proposal(self, proposal: Proposal) -> list[Effect]:
        if self.phase is Phase.SYNCHRONIZING:
            self._received.proposals.append(proposal)
        else:
            self._unlogged.append(proposal)
        return []

    def _commit(self, zxid: int) -> list[Effect]:
        if self.phase is not Phase.SYNCHRONIZING:
            self._then.append(Commit(zxid))
            return []
        received = self._received
        at = received.committed
        if at >= len(received.proposals) or received.proposals[at].header.zxid != zxid:
            return [Leave(f"transaction {zxid:#x} is committed, but is not the next one")]
        received.committed += 1
        return []

    def _inform(self, proposal: Proposal) -> list[Effect]:
        """A committed transaction, to an observer."""
        self._proposal(proposal)
        return self._commit(proposal.header.zxid)

    def _pause(self) -> list[Effect]:
        """Log what has arrived and acknowledge it; then do what came with it."""
        effects: list[Effect] = []
        if self._unlogged:
            proposals, self._unlogged = self._unlogged, []
            acknowledged = rules.log(self._history, proposals)
            if not self._observes:
                acks = b"".join(packets.short(Type.ACK, zxid) for zxid in acknowledged)
                effects.append(Send(acks))
        then, self._then = self._then, []
        return effects + then
