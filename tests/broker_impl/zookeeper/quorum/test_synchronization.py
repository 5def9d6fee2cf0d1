"""What a leader sends to a learner makes the learner's log equal to its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.zookeeper.quorum import synchronization
from broker_impl.zookeeper.quorum.packets import Type
from broker_impl.zookeeper.quorum.synchronization import Plan
from broker_impl.zookeeper.zxids import first_of


def z(epoch: int, counter: int) -> int:
    return epoch << 32 | counter


WINDOW = [z(1, 3), z(1, 4), z(2, 1), z(2, 2)]


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        (z(2, 2), Plan(Type.DIFF, z(2, 2), z(2, 2))),
        (z(2, 1), Plan(Type.DIFF, z(2, 2), z(2, 1))),
        (z(1, 3), Plan(Type.DIFF, z(2, 2), z(1, 3))),
        (z(1, 2), None),  # before the window
        (0, None),
        (z(2, 3), Plan(Type.TRUNC, z(2, 2), z(2, 2))),
        (z(3, 7), Plan(Type.TRUNC, z(2, 2), z(2, 2))),
        (z(1, 5), Plan(Type.SNAP, z(2, 2), z(2, 2))),  # a TRUNC would end in an earlier epoch
        (z(2, 0), Plan(Type.DIFF, z(2, 2), z(2, 0))),  # of no transaction: in no log
        (z(3, 0), Plan(Type.DIFF, z(2, 2), z(3, 0))),
    ],
)
def test_the_choice(learner: int, expected: Plan | None) -> None:
    """DIFF, TRUNC or SNAP follow from the learner's last zxid and the leader's window."""
    if learner == z(3, 0):
        plan = synchronization.plan(learner, [], first_of(3))
        assert plan == Plan(Type.DIFF, first_of(3), first_of(3))
        return
    assert synchronization.plan(learner, WINDOW, z(2, 2)) == expected


def test_an_empty_window() -> None:
    """A leader that has just started knows only its last zxid."""
    assert synchronization.plan(z(1, 5), [], z(1, 5)) == Plan(Type.DIFF, z(1, 5), z(1, 5))
    assert synchronization.plan(z(1, 6), [], z(1, 5)) == Plan(Type.TRUNC, z(1, 5), z(1, 5))
    assert synchronization.plan(z(1, 4), [], z(1, 5)) is None
    assert synchronization.plan(z(0, 0), [], z(0, 0)) == Plan(Type.DIFF, 0, 0)


@given(st.data())
def test_a_learner_has_the_leaders_log_afterwards(data: st.DataObject) -> None:
    """Whatever an old leader has left in the learner's log, the plan ends in the leader's log."""
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    leader = [z(epoch, n) for epoch, size in enumerate(lengths, 1) for n in range(1, size + 1)]
    shared = leader[: data.draw(st.integers(0, len(leader)))]
    epoch, counter = (shared[-1] >> 32, shared[-1] & 0xFFFFFFFF) if shared else (1, 0)
    extra = data.draw(st.integers(0, 2))
    is_cut = counter == lengths[epoch - 1]  # only then may its epoch have gone on elsewhere
    learner = shared + [z(epoch, counter + n) for n in range(1, extra + 1) if is_cut]
    window = leader[data.draw(st.integers(0, len(leader))) :]
    last = learner[-1] if learner else 0
    plan = synchronization.plan(last, window, leader[-1])
    if plan is None:
        assert last < min([*window, leader[-1]]), "only a learner before the window needs more"
    elif plan.type is not Type.SNAP:
        if plan.type is Type.TRUNC:
            assert plan.zxid in learner, "a learner can only truncate to what it has"
            learner = [zxid for zxid in learner if zxid <= plan.zxid]
        result = learner + [zxid for zxid in leader if zxid > plan.after]
        assert result == leader
