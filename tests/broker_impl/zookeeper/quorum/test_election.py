"""Elections: the server with the longest history is elected, in any order of messages."""

import random
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_impl.zookeeper.quorum.election import (
    OBSERVERS_VOTE,
    WAIT_S,
    Decided,
    Effect,
    Election,
    Heard,
    Look,
    Notify,
    Reconnect,
    Silence,
    Synchronized,
    Wait,
)
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.notifications import Notification, State, Vote


def ensemble(voters: int, observers: int = 0) -> Ensemble:
    return Ensemble(
        Member(id_, f"zk-{id_}", 1, 2, observes=id_ > voters)
        for id_ in range(1, voters + observers + 1)
    )


class Network:
    """Servers that exchange notifications; each pair's arrive in order, others in any order.

    Timers end only when no message is on its way.
    """

    def __init__(self, servers: Ensemble, seed: int) -> None:
        self.servers = {id_: Election(id_, servers) for id_ in servers.members}
        self.up: set[int] = set()
        self.decided: dict[int, Decided] = {}
        self._rng = random.Random(seed)
        self._wires: dict[tuple[int, int], deque[Notification]] = {}

    def look(self, server: int, epoch: int, zxid: int) -> None:
        self.up.add(server)
        self.decided.pop(server, None)
        self._take(server, self.servers[server].handle(Look(epoch, zxid)))

    def stop(self, server: int) -> None:
        self.up.discard(server)
        self.decided.pop(server, None)

    def run(self, timers_max: int = 20) -> None:
        """Deliver everything; then end timers until all servers that can decide have decided."""
        for _ in range(timers_max):
            while self._deliver():
                pass
            looking = sorted(self.up - self.decided.keys())
            if not looking:
                return
            server = self._rng.choice(looking)
            self._take(server, self.servers[server].handle(Silence()))

    def _deliver(self) -> bool:
        waiting = sorted(pair for pair, wire in self._wires.items() if wire)
        if not waiting:
            return False
        pair = self._rng.choice(waiting)
        notification = self._wires[pair].popleft()
        receiver = pair[1]
        if receiver in self.up:
            self._take(receiver, self.servers[receiver].handle(Heard(notification)))
        return True

    def _take(self, server: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Notify(receiver, notification):
                    assert receiver != server
                    self._wires.setdefault((server, receiver), deque()).append(notification)
                case Decided():
                    assert server not in self.decided, "an election is decided once"
                    self.decided[server] = effect
                case Wait(seconds):
                    assert seconds > 0
                case Reconnect():
                    pass


def test_a_server_alone_elects_itself() -> None:
    """The only voter of an ensemble decides at once, and sends nothing."""
    election = Election(1, ensemble(1))
    effects = election.handle(Look(0, 0))
    assert Decided(State.LEADING, 1) in effects
    assert not [effect for effect in effects if isinstance(effect, Notify)]


@settings(max_examples=150)
@given(
    voters=st.integers(1, 5),
    observers=st.integers(0, 2),
    histories=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=7, max_size=7),
    seed=st.integers(0, 2**32),
)
def test_the_longest_history_leads(
    voters: int, observers: int, histories: list[tuple[int, int]], seed: int
) -> None:
    """All servers decide for the voter with the greatest epoch, zxid and id."""
    network = Network(ensemble(voters, observers), seed)
    ids = list(network.servers)
    network._rng.shuffle(ids)
    for id_ in ids:
        network.look(id_, *histories[id_ - 1])
    network.run(timers_max=60)
    best = max(range(1, voters + 1), key=lambda id_: (*histories[id_ - 1], id_))
    assert network.decided == {
        id_: Decided(
            State.LEADING if id_ == best else State.FOLLOWING if id_ <= voters else State.OBSERVING,
            best,
        )
        for id_ in network.servers
    }


@given(st.integers(0, 2**32))
def test_a_minority_decides_nothing(seed: int) -> None:
    """Two of five voters and two observers do not elect a leader, however long they try."""
    network = Network(ensemble(5, 2), seed)
    for id_ in (1, 2, 6, 7):
        network.look(id_, 1, 1)
    network.run()
    assert network.decided == {}


@given(st.integers(0, 2**32))
def test_a_late_server_joins_the_established_leader(seed: int) -> None:
    """A server that starts later follows the leader, although its own vote would be better."""
    network = Network(ensemble(3, 1), seed)
    network.look(1, 0, 0)
    network.look(2, 0, 0)
    network.run()
    assert network.decided[1] == Decided(State.FOLLOWING, 2)
    for id_ in (1, 2):
        network.servers[id_].handle(Synchronized(1))
    network.look(3, 0, 0)
    network.look(4, 0, 0)
    network.run()
    assert network.decided[3] == Decided(State.FOLLOWING, 2)
    assert network.decided[4] == Decided(State.OBSERVING, 2)
    assert network.servers[3].vote.epoch == 1


@given(st.integers(0, 2**32))
def test_a_server_that_returns_after_several_rounds_joins(seed: int) -> None:
    """Rounds of the others do not keep a server out (ZOOKEEPER-1732, 1818)."""
    network = Network(ensemble(3), seed)
    for epoch in range(1, 4):
        for id_ in (1, 2):
            network.look(id_, epoch - 1, 0)
        network.run()
        for id_ in (1, 2):
            network.servers[id_].handle(Synchronized(epoch))
    network.look(3, 0, 0)
    network.run()
    assert network.decided[3] == Decided(State.FOLLOWING, 2)
    network.stop(2)
    network.look(1, 3, 5)
    network.look(3, 3, 5)
    network.run()
    assert network.decided == {1: Decided(State.FOLLOWING, 3), 3: Decided(State.LEADING, 3)}


def heard(sender: int, vote: Vote, round_: int, state: State = State.LOOKING) -> Heard:
    return Heard(Notification(sender, state, vote, round_))


def looking(me: int = 1, voters: int = 3, zxid: int = 5) -> Election:
    election = Election(me, ensemble(voters, 1))
    election.handle(Look(1, zxid))
    return election


def test_a_vote_of_an_earlier_round_is_answered_and_not_counted() -> None:
    """A server that lags hears the current round, so that it catches up."""
    election = looking()
    election.handle(heard(2, Vote(1, 9, 2), 4))
    assert election.round == 4
    effects = election.handle(heard(3, Vote(9, 9, 3), 3))
    assert effects == [Notify(3, Notification(1, State.LOOKING, Vote(1, 9, 2), 4))]
    assert election.vote == Vote(1, 9, 2)


def test_a_later_round_resets_the_votes() -> None:
    """Votes of an earlier round do not count in a later one, and the own vote counts again."""
    election = looking(voters=5)
    election.handle(heard(2, Vote(1, 9, 2), 1))
    assert election.handle(heard(3, Vote(1, 9, 2), 1)) == [Wait(WAIT_S)]
    effects = election.handle(heard(4, Vote(0, 0, 4), 2))
    assert not [effect for effect in effects if isinstance(effect, Wait)]
    assert election.vote == Vote(1, 5, 1), "the better of the vote that was heard and the own one"


def test_a_quorum_waits_for_a_better_vote() -> None:
    """With a majority a server waits; a better vote in that time begins the count again."""
    election = looking(voters=5)
    election.handle(heard(2, Vote(1, 5, 3), 1))
    assert election.handle(heard(3, Vote(1, 5, 3), 1)) == [Wait(WAIT_S)]
    election.handle(heard(4, Vote(1, 6, 4), 1))
    effects = election.handle(Silence())
    assert not [effect for effect in effects if isinstance(effect, Decided)]
    assert election.handle(heard(2, Vote(1, 6, 4), 1)) == [Wait(WAIT_S)]
    assert election.handle(Silence()) == [Decided(State.FOLLOWING, 4)]


def test_silence_repeats_the_vote_ever_more_slowly() -> None:
    """Without a quorum a server connects again, repeats its vote, and doubles its wait."""
    election = Election(1, ensemble(3), wait_max_s=1.0)
    election.handle(Look(1, 5))
    waits = []
    for _ in range(5):
        reconnect, *rest, wait = election.handle(Silence())
        assert isinstance(reconnect, Reconnect)
        assert [effect.receiver for effect in rest if isinstance(effect, Notify)] == [2, 3]
        assert isinstance(wait, Wait)
        waits.append(wait.seconds)
    assert waits == [0.4, 0.8, 1.0, 1.0, 1.0]


def test_observers_are_answered_and_never_counted() -> None:
    """An observer's notification, whatever it says, changes no vote."""
    election = looking()
    [answer] = election.handle(heard(4, Vote(9, 9, 4), 1))
    assert isinstance(answer, Notify)
    assert answer.receiver == 4
    assert election.vote == Vote(1, 5, 1)
    assert election.handle(heard(4, Vote(1, 5, 1), 1, State.OBSERVING)) == [answer]
    assert Election(4, ensemble(3, 1)).vote == OBSERVERS_VOTE


def test_an_observer_and_a_voter_that_look_do_not_answer_each_other_without_end() -> None:
    """An observer in a later round than a voter does not answer it (finding 27)."""
    observer = Election(4, ensemble(3, 1))
    observer.handle(Look(0, 0))
    observer.handle(Look(0, 0))
    assert observer.round == 2
    voter = looking()
    [answer] = voter.handle(heard(4, OBSERVERS_VOTE, 2))
    assert answer == Notify(4, Notification(1, State.LOOKING, Vote(1, 5, 1), 1))
    assert observer.handle(Heard(answer.notification)) == []


def test_a_vote_for_an_unknown_server_is_ignored() -> None:
    """A vote for a server that does not vote, and one of a stranger, have no effect."""
    election = looking()
    assert election.handle(heard(2, Vote(9, 9, 4), 1)) == []
    assert election.handle(heard(2, Vote(9, 9, 77), 9)) == []
    assert election.handle(heard(77, Vote(9, 9, 2), 1)) == []
    assert election.vote == Vote(1, 5, 1)


def test_a_leader_must_say_itself_that_it_leads() -> None:
    """Followers that name a leader are not enough: it may be gone since."""
    election = looking(voters=5)
    for follower in (2, 3, 4):
        vote = Vote(1, 9, 5)
        effects = election.handle(heard(follower, vote, 7, State.FOLLOWING))
        assert effects == []
    assert election.handle(heard(5, Vote(1, 9, 5), 7, State.LEADING)) == [
        Decided(State.FOLLOWING, 5)
    ]
    assert election.round == 7, "it answers later with the round of the established ensemble"


def test_a_server_with_a_leader_answers_only_those_that_look() -> None:
    """A server that follows sends its leader to servers without one, and nothing to others."""
    election = looking(me=1, voters=3)
    election.handle(heard(2, Vote(1, 9, 2), 1))
    election.handle(heard(3, Vote(1, 9, 2), 1))
    assert election.state is State.FOLLOWING
    election.handle(Synchronized(2))
    [answer] = election.handle(heard(3, Vote(1, 5, 3), 2))
    assert answer == Notify(3, Notification(1, State.FOLLOWING, Vote(2, 9, 2), 1))
    assert election.handle(heard(3, Vote(1, 5, 2), 2, State.FOLLOWING)) == []
    assert election.handle(Silence()) == []


@pytest.mark.parametrize("same_round", [True, False])
def test_a_former_leader_does_not_elect_itself_by_old_notifications(same_round: bool) -> None:
    """Servers that still follow this server count only in its current round."""
    election = looking(me=3)
    election.handle(Look(1, 5))
    round_ = election.round if same_round else election.round - 1
    for follower in (1, 2):
        effects = election.handle(heard(follower, Vote(1, 5, 3), round_, State.FOLLOWING))
        if not same_round:
            assert not effects
    assert (election.state is State.LEADING) is same_round
