"""The deletion of a topic is complete when its last replica is deleted."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker_impl.controller.deletion import TRANSITIONS, DeletionState, Event, TopicDeletion

BROKERS = st.integers(1, 3)


def test_the_plain_case() -> None:
    """Each broker receives one order; the deletion is complete when all have confirmed it."""
    deletion = TopicDeletion([(0, 1), (0, 2)])
    assert deletion.start({1, 2}) == [(0, 1), (0, 2)]
    assert deletion.start({1, 2}) == []
    deletion.answered((0, 1), deleted=True)
    assert not deletion.is_complete
    deletion.answered((0, 2), deleted=True)
    assert deletion.is_complete


def test_a_broker_that_is_down_is_waited_for() -> None:
    """The order for a replica on a dead broker is sent when that broker comes back."""
    deletion = TopicDeletion([(0, 1), (0, 2)])
    assert deletion.start({1}) == [(0, 1)]
    deletion.answered((0, 1), deleted=True)
    assert not deletion.is_complete
    assert deletion.start({1, 2}) == [(0, 2)]


def test_a_broker_that_goes_unanswered_is_asked_again() -> None:
    """A broker that left without an answer is asked again: a second order does no harm."""
    deletion = TopicDeletion([(0, 1)])
    deletion.start({1})
    deletion.broker_gone(1)
    assert deletion.start(()) == []
    assert deletion.start({1}) == [(0, 1)]


def test_a_refusal_is_tried_again() -> None:
    """A broker that answered with an error is asked again at the next start."""
    deletion = TopicDeletion([(0, 1)])
    deletion.start({1})
    deletion.answered((0, 1), deleted=False)
    assert not deletion.is_complete
    assert deletion.start({1}) == [(0, 1)]


def test_a_refusal_is_not_tried_again_at_once() -> None:
    """A start without repetition orders only deletions that were never ordered."""
    deletion = TopicDeletion([(0, 1), (0, 2)])
    assert deletion.start({1}, repeat=False) == [(0, 1)]
    deletion.answered((0, 1), deleted=False)
    assert deletion.start({1, 2}, repeat=False) == [(0, 2)]
    assert deletion.start({1, 2}) == [(0, 1)]


def test_a_replica_that_was_moved_away_is_none_of_it() -> None:
    """The answer of a broker whose replica was moved away before does not count (finding 18)."""
    deletion = TopicDeletion([(0, 1)])
    deletion.start({1, 2})
    deletion.answered((0, 2), deleted=True)
    deletion.answered((0, 2), deleted=False)
    assert not deletion.is_complete
    deletion.answered((0, 1), deleted=True)
    assert deletion.is_complete


def test_a_topic_without_replicas_is_gone() -> None:
    """The deletion of a topic without replicas is complete at once."""
    assert TopicDeletion([]).is_complete


@given(st.sampled_from([DeletionState.SUCCESSFUL]), st.sampled_from(list(Event)))
def test_what_is_gone_stays_gone(state: DeletionState, event: Event) -> None:
    """No event brings a deleted replica back."""
    assert TRANSITIONS.get((state, event), DeletionState.SUCCESSFUL) is DeletionState.SUCCESSFUL


class Deleting(RuleBasedStateMachine):
    """Random brokers come and go, and answer or not; the model is the set of logs on disks."""

    @initialize(replicas=st.sets(st.tuples(st.integers(0, 2), BROKERS), min_size=1))
    def begin(self, replicas: set[tuple[int, int]]) -> None:
        self.on_disk = set(replicas)
        self.deletion = TopicDeletion(sorted(replicas))
        self.live = {1, 2, 3}
        self.asked: set[tuple[int, int]] = set()

    @rule()
    def start(self) -> None:
        due = self.deletion.start(self.live)
        assert all(broker in self.live for _, broker in due)
        self.asked.update(due)

    @rule(broker=BROKERS)
    def bounce(self, broker: int) -> None:
        self.live ^= {broker}
        self.asked = {replica for replica in self.asked if replica[1] != broker}
        self.deletion.broker_gone(broker)

    @rule(deleted=st.booleans())
    def answer(self, deleted: bool) -> None:
        if self.asked:
            replica = min(self.asked)
            self.asked.remove(replica)
            if deleted:
                self.on_disk.discard(replica)
            self.deletion.answered(replica, deleted=deleted)

    @rule()
    def obeyed_without_an_answer(self) -> None:
        if self.asked:
            self.on_disk.discard(min(self.asked))

    @invariant()
    def complete_means_gone(self) -> None:
        if hasattr(self, "deletion") and self.deletion.is_complete:
            assert not self.on_disk

    def teardown(self) -> None:
        if not hasattr(self, "deletion"):
            return
        for broker in (1, 2, 3):
            self.deletion.broker_gone(broker)
        for replica in self.deletion.start({1, 2, 3}):
            self.on_disk.discard(replica)
            self.deletion.answered(replica, deleted=True)
        assert self.deletion.is_complete


TestDeleting = Deleting.TestCase
TestDeleting.settings = settings(max_examples=50, stateful_step_count=30)
