"""The election of a leader: each server adopts the best vote that it hears of.

The best vote is that of the server with the longest history. Once a quorum has the same vote, and
no better one arrives for a short time, the election is decided. A server that has a leader already
answers with its vote, so that a server which starts later finds that leader. This is ZooKeeper's
``FastLeaderElection``.
"""

from dataclasses import dataclass
from typing import assert_never

from broker_impl.zookeeper.quorum import election_rules as rules
from broker_impl.zookeeper.quorum.ensemble import Ensemble, ServerId
from broker_impl.zookeeper.quorum.notifications import Notification, State, Vote

OBSERVERS_VOTE = Vote(-(2**63), -(2**63), -(2**63))
"""The vote of a server that only observes; it counts nowhere."""


@dataclass(frozen=True, slots=True)
class Look:
    """Begin an election: this server has no leader."""

    epoch: int
    """The epoch of its history (``currentEpoch``)."""
    zxid: int
    """The last zxid in its log."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A notification has arrived."""

    notification: Notification


@dataclass(frozen=True, slots=True)
class Silence:
    """The timer has ended before a notification arrived."""


@dataclass(frozen=True, slots=True)
class Synchronized:
    """This server belongs to an established ensemble, in this epoch (ZOOKEEPER-1732)."""

    epoch: int


Event = Look | Heard | Silence | Synchronized


@dataclass(frozen=True, slots=True)
class Notify:
    """Send a notification to a server."""

    receiver: ServerId
    notification: Notification


@dataclass(frozen=True, slots=True)
class Wait:
    """Start the timer, or start it again; the time in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reconnect:
    """Connect to the servers to which there is no connection."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The election has ended with this state and this leader."""

    state: State
    leader: ServerId


Effect = Notify | Wait | Reconnect | Decided

WAIT_S = 0.2
"""How long a server waits for notifications at first, and for a better vote once it has a quorum
(``minNotificationInterval``, ``finalizeWait``)."""


class Election:
    """The votes that a server knows; :meth:`handle` takes everything that happens to them."""

    def __init__(self, me: ServerId, ensemble: Ensemble, wait_max_s: float = 60.0) -> None:
        """``wait_max_s`` is ``maxNotificationInterval``: the longest wait between two messages."""
        self.me = me
        self.state = State.LOOKING
        self.round = 0
        """The number of the current election (``logicalclock``)."""
        self.vote = OBSERVERS_VOTE
        self._ensemble = ensemble
        self._is_voter = me in ensemble.voters
        self._wait_max_s = wait_max_s
        self._own = OBSERVERS_VOTE
        self._votes: dict[ServerId, Vote] = {}
        """The votes of this round."""
        self._established: dict[ServerId, Notification] = {}
        """What servers say that have a leader."""
        self._wait_s = WAIT_S
        self._has_quorum = False

    def handle(self, event: Event) -> list[Effect]:
        """Handle an event, and return its effects in their order."""
        match event:
            case Look(epoch, zxid):
                return self._look(epoch, zxid)
            case Heard(notification):
                return self._heard(notification)
            case Silence():
                return self._silence()
            case Synchronized(epoch):
                self.vote = rules.synchronized(self.vote, epoch)
                return []
            case _:
                assert_never(event)

    def _look(self, epoch: int, zxid: int) -> list[Effect]:
        self.state = State.LOOKING
        self.round += 1
        self._own = Vote(epoch, zxid, self.me) if self._is_voter else OBSERVERS_VOTE
        self.vote = self._own
        self._votes = {self.me: self._own} if self._is_voter else {}
        self._established = {}
        self._wait_s = WAIT_S
        self._has_quorum = False
        return [*self._tell_all(), *self._count(), Wait(self._wait_s)]

    def _heard(self, heard: Notification) -> list[Effect]:
        sender = heard.sender
        is_voter = sender in self._ensemble.voters
        if self.state is not State.LOOKING:
            # A server without a leader, or one that only observes, hears of this one's leader.
            return [self._answer(sender)] if heard.state is State.LOOKING else []
        if not is_voter:
            return [self._answer(sender)] if sender in self._ensemble.members else []
        if heard.vote.leader not in self._ensemble.voters or heard.state is State.OBSERVING:
            return []
        if heard.state is State.LOOKING:
            return self._heard_vote(heard)
        return self._heard_leader(heard)

    def _heard_vote(self, heard: Notification) -> list[Effect]:
        effects: list[Effect] = []
        if heard.round < self.round:
            # An observer's round helps no voter, and a voter answers it: that would never end.
            return [self._answer(heard.sender)] if self._is_voter else []
        if heard.round > self.round:
            self.round = heard.round
            self._votes = {}
            self.vote = rules.better_of(heard.vote, self._own)
            effects += self._tell_all()
        elif rules.supersedes(heard.vote, self.vote):
            self.vote = heard.vote
            effects += self._tell_all()
        self._votes[heard.sender] = heard.vote
        if self._is_voter:
            self._votes[self.me] = self.vote
        return [*effects, *self._count()]

    def _count(self) -> list[Effect]:
        """Count the votes: with a quorum, wait for a better vote; with all of them, decide."""
        supporters = [server for server, vote in self._votes.items() if vote == self.vote]
        self._has_quorum = self._ensemble.has_quorum(supporters)
        if not self._has_quorum:
            return []
        if self._ensemble.voters <= set(supporters):
            return self._decide(self.vote, self.round)
        return [Wait(WAIT_S)]

    def _heard_leader(self, heard: Notification) -> list[Effect]:
        """A server has a leader: follow that leader too if a quorum does."""
        if heard.round == self.round:
            self._votes[heard.sender] = heard.vote
            supporters = [
                server for server, vote in self._votes.items() if rules.agree(vote, heard.vote)
            ]
            said = {**self._established, heard.sender: heard}
            if self._ensemble.has_quorum(supporters) and self._leads(said, heard):
                return self._decide(heard.vote, self.round)
        self._established[heard.sender] = heard
        agreeing = [
            server
            for server, said_ in self._established.items()
            if rules.agree(said_.vote, heard.vote)
        ]
        if self._ensemble.has_quorum(agreeing) and self._leads(self._established, heard):
            return self._decide(heard.vote, heard.round)
        return []

    def _leads(self, said: dict[ServerId, Notification], heard: Notification) -> bool:
        """Return whether the leader of a notification says itself that it leads."""
        leader = heard.vote.leader
        if leader == self.me:
            return heard.round == self.round
        return leader in said and said[leader].state is State.LEADING

    def _silence(self) -> list[Effect]:
        if self.state is not State.LOOKING:
            return []
        if self._has_quorum:
            return self._decide(self.vote, self.round)
        self._wait_s = min(2 * self._wait_s, self._wait_max_s)
        return [Reconnect(), *self._tell_all(), Wait(self._wait_s)]

    def _decide(self, vote: Vote, round_: int) -> list[Effect]:
        self.vote = vote
        self.round = round_
        if vote.leader == self.me:
            self.state = State.LEADING
        else:
            self.state = State.FOLLOWING if self._is_voter else State.OBSERVING
        return [Decided(self.state, vote.leader)]

    def _tell_all(self) -> list[Effect]:
        return [self._answer(server) for server in self._ensemble.voters if server != self.me]

    def _answer(self, receiver: ServerId) -> Notify:
        return Notify(receiver, Notification(self.me, self.state, self.vote, self.round))
