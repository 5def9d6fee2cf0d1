"""Elections of leaders, by tables of cases, and a property that holds for every choice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.controller import election
from broker_impl.controller.election import NO_LEADER, Choice

BROKERS = st.integers(1, 5)


def chosen(leader: int, *isr: int) -> Choice:
    return Choice(leader, isr)


@pytest.mark.parametrize(
    ("replicas", "candidates", "choice"),
    [
        ([1, 2, 3], {1, 2, 3}, chosen(1, 1, 2, 3)),
        ([1, 2, 3], {2, 3}, chosen(2, 2, 3)),  # the preferred replica is not alive
        ([3, 1], {1, 2, 3}, chosen(3, 3, 1)),  # the assignment decides the order
        ([1, 2], {3}, None),
    ],
)
def test_first(replicas: list[int], candidates: set[int], choice: Choice | None) -> None:
    """All replicas that are alive begin in sync, and the first of them leads."""
    assert election.first(replicas, candidates) == choice


@pytest.mark.parametrize(
    ("replicas", "isr", "candidates", "unclean", "choice"),
    [
        ([1, 2, 3], [1, 2, 3], {2, 3}, False, chosen(2, 2, 3)),
        ([1, 2, 3], [3, 1], {2, 3}, False, chosen(3, 3)),  # broker 2 is alive, but not in sync
        ([1, 2, 3], [1], {2, 3}, False, None),
        ([1, 2, 3], [1], {2, 3}, True, chosen(2, 2)),  # alone: broker 3 may hold other records
        # a clean election is preferred to an unclean one
        ([1, 2, 3], [1, 3], {2, 3}, True, chosen(3, 3)),
        ([1, 2], [1], set(), True, None),
    ],
)
def test_offline(
    replicas: list[int], isr: list[int], candidates: set[int], unclean: bool, choice: Choice | None
) -> None:
    """The first replica that is in sync and alive leads; else, if allowed, any that is alive."""
    assert election.offline(replicas, isr, candidates, unclean=unclean) == choice


@pytest.mark.parametrize(
    ("leader", "isr", "live", "leaving", "choice"),
    [
        (1, (1, 2, 3), {1, 2, 3}, set(), None),  # nothing to change
        (1, (1, 2, 3), {1, 2}, set(), chosen(1, 1, 2)),  # a follower died
        (1, (1, 2), {1, 2}, set(), None),  # the dead replica was not in sync
        (1, (1, 2, 3), {2, 3}, set(), chosen(2, 2, 3)),  # the leader died
        (1, (1,), {2, 3}, set(), chosen(NO_LEADER, 1)),  # no other replica is in sync
        # both have all records: the first to come back leads
        (1, (1, 2), {3}, set(), chosen(NO_LEADER, 1, 2)),
        (NO_LEADER, (1, 2), {3}, set(), None),  # no change
        (NO_LEADER, (1, 2), {2, 3}, set(), chosen(2, 2)),  # broker 2 came back
        # a leader that is shutting down serves until it is gone
        (1, (1, 2, 3), {1, 2, 3}, {1}, None),
        (1, (1, 2, 3), {2, 3}, {2}, chosen(3, 3)),  # broker 2 is shutting down, and may not lead
    ],
)
def test_reconsider(
    leader: int, isr: tuple[int, ...], live: set[int], leaving: set[int], choice: Choice | None
) -> None:
    """A live leader stays and removes dead followers; a dead one is replaced from the ISR."""
    candidates = live - leaving
    got = election.reconsider([1, 2, 3], leader, isr, live, candidates, unclean=False)
    assert got == choice


@given(
    replicas=st.lists(BROKERS, min_size=1, max_size=5, unique=True),
    isr_size=st.integers(1, 5),
    leads=st.booleans(),
    live=st.sets(BROKERS),
    leaving=st.sets(BROKERS),
    unclean=st.booleans(),
)
def test_no_choice_loses_what_is_committed(
    replicas: list[int],
    isr_size: int,
    leads: bool,
    live: set[int],
    leaving: set[int],
    unclean: bool,
) -> None:
    """Leaders come from the ISR unless unclean, no ISR grows or empties, and it converges."""
    isr = tuple(replicas[-isr_size:])
    leader = isr[0] if leads else NO_LEADER
    candidates = live - leaving
    for choice in (
        election.reconsider(replicas, leader, isr, live, candidates, unclean=unclean),
        election.preferred(replicas, leader, isr, candidates) if leader in live else None,
        election.controlled_shutdown(replicas, leader, isr, candidates, isr[0])
        if isr[0] in leaving
        else None,
    ):
        if choice is None:
            continue
        assert choice.isr
        assert choice.leader == NO_LEADER or choice.leader in choice.isr
        if choice.leader in isr or choice.leader == NO_LEADER:
            assert set(choice.isr) <= set(isr)
        else:
            assert unclean
            assert choice.isr == (choice.leader,)
            assert not set(isr) & candidates
    changed = election.reconsider(replicas, leader, isr, live, candidates, unclean=unclean)
    if changed is not None:
        again = election.reconsider(replicas, *changed, live, candidates, unclean=unclean)
        assert again is None


@pytest.mark.parametrize(
    ("leader", "isr", "candidates", "choice"),
    [
        (1, (1, 2, 3), {2, 3}, chosen(2, 2, 3)),
        (2, (1, 2, 3), {2, 3}, chosen(2, 2, 3)),  # a follower leaves the ISR
        (2, (2, 3), {2, 3}, None),  # broker 1 was not in the ISR
        (1, (1,), {2, 3}, None),  # no other replica is in sync: broker 1 keeps the leadership
        (1, (1, 2), {3}, None),  # broker 2 is shutting down too
        (NO_LEADER, (1,), {2, 3}, None),  # the last replica with all records stays in the ISR
    ],
)
def test_controlled_shutdown(
    leader: int, isr: tuple[int, ...], candidates: set[int], choice: Choice | None
) -> None:
    """When broker 1 shuts down, its leaderships move within the ISR, and it leaves other ISRs."""
    assert election.controlled_shutdown([1, 2, 3], leader, isr, candidates, 1) == choice


@pytest.mark.parametrize(
    ("leader", "isr", "candidates", "choice"),
    [
        (2, (2, 1, 3), {1, 2, 3}, chosen(1, 2, 1, 3)),
        (1, (1, 2, 3), {1, 2, 3}, None),  # it leads already
        (2, (2, 3), {1, 2, 3}, None),  # not in sync
        (2, (1, 2, 3), {2, 3}, None),  # not alive
    ],
)
def test_preferred(
    leader: int, isr: tuple[int, ...], candidates: set[int], choice: Choice | None
) -> None:
    """Leadership goes back to the first of the assignment only if it is alive and in sync."""
    assert election.preferred([1, 2, 3], leader, isr, candidates) == choice


@pytest.mark.parametrize(
    ("leader", "isr", "back", "candidates", "choice"),
    [
        (1, (1, 2, 3), (), {1, 2, 3}, None),
        # broker 1 may have lost its last records: another leads
        (1, (1, 2, 3), (1,), {1, 2, 3}, chosen(2, 2, 3)),
        (1, (1, 2, 3), (2,), {1, 2, 3}, chosen(1, 1, 3)),
        # the replica that stayed is dead now: only broker 1 is left
        (1, (1, 2), (1,), {1}, chosen(1, 1)),
        # all came back: nothing changes but the epoch
        (1, (1, 2, 3), (1, 2, 3), {1, 2, 3}, chosen(1, 1, 2, 3)),
        (1, (1,), (1,), {1, 2}, chosen(1, 1)),
        (NO_LEADER, (1,), (1,), {1}, chosen(1, 1)),
        (1, (1, 2), (1,), set(), None),
    ],
)
def test_returned(
    leader: int, isr: tuple[int, ...], back: tuple[int, ...], candidates: set[int], choice: Choice
) -> None:
    """A replica that was away leaves the ISR if others in the ISR stayed."""
    assert election.returned([1, 2, 3], leader, isr, candidates, back) == choice


@pytest.mark.parametrize(
    ("replicas", "leader", "isr", "alive", "choice"),
    [
        ((3, 1, 2), 1, (1, 2), (1, 2, 3), (1, (1, 2))),
        ((3, 2), 1, (1, 2, 3), (1, 2, 3), (3, (2, 3))),
        ((3, 2), 1, (1, 2, 3), (1, 2), (2, (2,))),
        ((3,), 1, (1, 2), (1, 2, 3), None),
        ((3,), 1, (1, 3), (1,), None),
        ((3, 1), -1, (1,), (3,), (-1, (1,))),
    ],
)
def test_among_other_replicas(
    replicas: tuple[int, ...],
    leader: int,
    isr: tuple[int, ...],
    alive: tuple[int, ...],
    choice: tuple[int, tuple[int, ...]] | None,
) -> None:
    """KIP-455: a leader in the new assignment stays; else its first in-sync replica leads."""
    assert election.among(replicas, leader, isr, alive) == choice
