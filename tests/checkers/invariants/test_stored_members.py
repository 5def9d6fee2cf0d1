"""Members that coordinators have after they have loaded a group."""

import pytest

from checkers.invariants.coordinated import PREPARING, STABLE, Group
from checkers.invariants.deleted_offsets import LastRecord
from checkers.invariants.stored_members import StoredMembers

GROUP = Group(STABLE, 3, {"a": None, "b": "i"})
LAST = LastRecord(9, 5)


def stored(*, joins: bool = False, group: Group = GROUP) -> StoredMembers:
    """Return what was acknowledged by a coordinator in epoch 5, and whether b may be replaced."""
    members = StoredMembers()
    members.acknowledged("g", 5, group, LAST)
    if joins:
        members.joins("g", "i", group.generation)
    return members


def judge(members: StoredMembers, group: Group | None, epoch: int = 6, at_last: int = 5) -> bool:
    """Return whether a later coordinator has other members."""
    return members.judge("g", epoch, group, {9: at_last}.get) is not None


@pytest.mark.parametrize(
    ("loaded", "is_wrong"),
    [
        ({"a": None, "b": "i"}, False),
        ({"b": "i"}, True),
        ({"a": None, "b": "i", "c": None}, True),
        ({"a": None, "b": None}, True),
        ({"a": None}, True),
        ({"a": None, "c": "i"}, True),
    ],
)
def test_a_group_that_is_loaded_has_its_members(
    loaded: dict[str, str | None], is_wrong: bool
) -> None:
    """They have the same ids and the same instance ids."""
    assert judge(stored(), GROUP._replace(members=loaded)) == is_wrong


@pytest.mark.parametrize(
    ("group", "epoch", "at_last"),
    [
        (None, 6, 5),  # the group was deleted
        (GROUP._replace(generation=1), 6, 5),  # and began again
        (GROUP._replace(generation=4), 6, 5),
        (GROUP._replace(state=PREPARING), 6, 5),
        (GROUP, 4, 5),  # a coordinator that was replaced
        (GROUP, 6, 4),  # the records were lost
    ],
)
def test_what_is_not_certain_is_not_judged(group: Group | None, epoch: int, at_last: int) -> None:
    """Another generation, a rebalance, and a log without the records."""
    other = None if group is None else group._replace(members={"x": None})
    assert not judge(stored(), other, epoch, at_last)


@pytest.mark.parametrize(
    ("generation", "members", "at_last", "is_wrong"),
    [
        (2, {"a": None}, 5, True),
        (2, {"b": "i"}, 5, True),
        (4, {"a": None}, 5, False),
        (2, {"x": None}, 5, False),
        (2, {"a": None}, 4, False),
    ],
)
def test_a_generation_does_not_come_back(
    generation: int, members: dict[str, str | None], at_last: int, is_wrong: bool
) -> None:
    """A new group of the same name has an earlier generation, but other members."""
    group = Group(PREPARING, generation, members)
    assert judge(stored(), group, at_last=at_last) == is_wrong


def test_another_group_of_the_same_name_is_not_compared_with_the_former_one() -> None:
    """It comes to the same generation later."""
    members = stored()
    assert not judge(members, None)
    assert not judge(members, GROUP._replace(members={"x": None}))


def test_a_static_member_may_have_been_replaced_without_an_acknowledgement() -> None:
    """Until it is acknowledged, or the next generation has begun."""
    other = GROUP._replace(members={"a": None, "c": "i"})
    assert not judge(stored(joins=True), other)
    members = stored(joins=True)
    members.acknowledged("g", 6, GROUP, LAST)
    assert not judge(members, other), "another member has asked for its assignment"
    members.acknowledged("g", 6, other, LAST, "i")
    assert judge(members, GROUP)
    assert not judge(members, other)
    members = stored(joins=True)
    members.acknowledged("g", 5, GROUP._replace(generation=4), LAST)
    assert judge(members, other._replace(generation=4))


def test_a_coordinator_that_was_replaced_acknowledges_nothing() -> None:
    """It does not know which member has come since."""
    members = stored()
    assert not judge(members, GROUP)
    members.acknowledged("g", 5, GROUP._replace(members={"x": "i"}), LAST)
    assert not judge(members, GROUP)
