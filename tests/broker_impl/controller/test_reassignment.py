import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.controller import reassignment
from broker_impl.controller.reassignment import Assignment, Move
from broker_impl.errors import ApiError, ErrorCode

BROKERS = st.lists(st.integers(1, 5), min_size=1, unique=True).map(tuple)


@pytest.mark.parametrize(
    ("replicas", "move", "wanted", "together", "after"),
    [
        ((1, 2), None, (3, 4), (3, 4, 1, 2), Move((3, 4), (1, 2))),
        ((1, 2), None, (1, 2, 3), (1, 2, 3), Move((3,), ())),
        ((1, 2, 3), None, (3, 1), (3, 1, 2), Move((), (2,))),
        ((1, 2), None, (2, 1), (2, 1), None),
        ((3, 1, 2), Move((3,), (1, 2)), (4,), (4, 1, 2), Move((4,), (1, 2))),
        ((3, 1, 2), Move((3,), (1, 2)), (1, 2), (1, 2), None),
    ],
)
def test_a_move_begins(
    replicas: tuple[int, ...],
    move: Move | None,
    wanted: tuple[int, ...],
    together: tuple[int, ...],
    after: Move | None,
) -> None:
    """KIP-455: a moving partition has the replicas of both sets, the target's first.

    A new target replaces a move in progress, and starts from its origin.
    """
    assert reassignment.begin(replicas, move, wanted) == (together, after)


@given(BROKERS, BROKERS, BROKERS)
def test_a_move_can_be_turned_back_or_gone_on_with(
    first: tuple[int, ...], second: tuple[int, ...], third: tuple[int, ...]
) -> None:
    """However often the target changes, the origin stays, and the last requested target counts."""
    replicas, move = reassignment.begin(first, None, second)
    assert sorted(reassignment.origin(replicas, move)) == sorted(first)
    replicas, move = reassignment.begin(replicas, move, third)
    if move is not None:
        assert reassignment.target(replicas, move) == third
        assert sorted(reassignment.origin(replicas, move)) == sorted(
            first if set(second) != set(first) else second
        )
    else:
        assert replicas == third


def test_a_move_is_complete_when_the_target_is_in_sync() -> None:
    """C12: a move is complete when its target is in sync; being alive is not enough."""
    assert not reassignment.is_complete((3, 4), (1, 2, 3), live=(1, 2, 3, 4))
    assert reassignment.is_complete((3, 4), (1, 4, 3), live=(1,))


@pytest.mark.parametrize(
    ("wanted", "new"), [((), ()), ((1, 1), ()), ((1, 9), (9,))], ids=["nobody", "twice", "dead"]
)
def test_what_is_refused(wanted: tuple[int, ...], new: tuple[int, ...]) -> None:
    """A target must not be empty or repeat a broker, and the replicas to be added must be alive."""
    with pytest.raises(ApiError) as refused:
        reassignment.refuse(wanted, new, live=(1, 2))
    assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_who_is_a_replica_already_may_be_dead() -> None:
    """A dead broker may stay in the target if it is a replica already."""
    reassignment.refuse((1, 9), (), live=(1,))


def test_an_assignment_but_for_one_partition() -> None:
    """`but` replaces the replicas and the move of one partition."""
    before = Assignment({0: (1,), 1: (2,)}, {1: Move((2,), ())})
    moved = before.but(0, (1, 3), Move((3,), ()))
    assert moved == Assignment({0: (1, 3), 1: (2,)}, {0: Move((3,), ()), 1: Move((2,), ())})
    assert moved.but(0, (1,), None) == before
