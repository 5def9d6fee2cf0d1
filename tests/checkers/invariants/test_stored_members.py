"""Members that coordinators have after they have loaded a group."""

import pytest

from checkers.invariants.coordinated import EMPTY, PREPARING, STABLE, Group
from checkers.invariants.deleted_offsets import LastRecord
from checkers.invariants.stored_members import Content, Details, StoredMembers

GROUP = Group(STABLE, 3, {"a": None, "b": "i"})
LAST = LastRecord(9, 5)
DETAILS = Details(6000, 700, b"subscription", b"assignment")
CONTENT = Content({"a": DETAILS, "b": DETAILS}, frozenset({"t"}))
DYNAMIC = Group(STABLE, 3, {"a": None})


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


@pytest.mark.parametrize(
    ("member", "changed", "joins", "is_wrong"),
    [
        ("a", DETAILS, False, False),
        ("a", DETAILS._replace(session_ms=700), False, True),
        ("a", DETAILS._replace(rebalance_ms=6000), False, True),
        ("a", DETAILS._replace(subscription=b""), False, True),
        ("a", DETAILS._replace(assignment=b""), False, True),
        ("b", DETAILS._replace(assignment=b""), False, True),
        ("b", DETAILS._replace(session_ms=700), True, False),  # it perhaps comes with another one
        ("a", DETAILS._replace(session_ms=700), True, True),
    ],
)
def test_members_are_loaded_with_their_timeouts_and_assignments(
    member: str, changed: Details, joins: bool, is_wrong: bool
) -> None:
    """A static member that joins again may change them."""
    members = StoredMembers()
    members.acknowledged("g", 5, GROUP, LAST, content=CONTENT)
    if joins:
        members.joins("g", "i", GROUP.generation)
    now = Content({**CONTENT.details, member: changed}, frozenset({"t"}))
    assert (members.judge("g", 6, GROUP, {9: 5}.get, now) is not None) == is_wrong
    preparing = GROUP._replace(state=PREPARING)
    assert members.judge("g", 6, preparing, {9: 5}.get, now) is None


@pytest.mark.parametrize(
    ("generations", "is_wrong"), [([3], True), ([3, 3], False), ([3, 4], True), ([2, 2, 3], True)]
)
def test_assignments_that_were_sent_twice_are_not_compared(
    generations: list[int], is_wrong: bool
) -> None:
    """The first ones are acknowledged, and the last ones are stored."""
    members = StoredMembers()
    for generation in generations:
        members.assigns("g", generation)
    members.acknowledged("g", 5, GROUP, LAST, content=CONTENT)
    now = Content({**CONTENT.details, "a": DETAILS._replace(assignment=b"")}, frozenset({"t"}))
    assert (members.judge("g", 6, GROUP, {9: 5}.get, now) is not None) == is_wrong
    other = Content({**CONTENT.details, "a": DETAILS._replace(session_ms=1)}, frozenset({"t"}))
    members.acknowledged("g", 6, GROUP, LAST, content=CONTENT)
    assert members.judge("g", 7, GROUP, {9: 5}.get, other) is not None


@pytest.mark.parametrize(
    ("group", "before", "after", "is_wrong"),
    [
        (DYNAMIC, frozenset({"t"}), frozenset({"t"}), False),
        (DYNAMIC, frozenset({"t"}), frozenset(), True),
        (DYNAMIC, None, frozenset(), False),
        (DYNAMIC, frozenset({"t"}), None, False),
        (GROUP, frozenset({"t"}), frozenset(), False),  # it has a static member
    ],
)
def test_the_topics_that_are_in_use_are_loaded(
    group: Group, before: frozenset[str] | None, after: frozenset[str] | None, is_wrong: bool
) -> None:
    """They are not known of consumers of another protocol."""
    members = StoredMembers()
    members.acknowledged("g", 5, group, LAST, content=CONTENT._replace(topics=before))
    now = CONTENT._replace(topics=after)
    assert (members.judge("g", 6, group, {9: 5}.get, now) is not None) == is_wrong


def emptied(known: Group | None = None, epoch: int = 5) -> StoredMembers:
    """Return what is known of a group that has lost its member a in generation 4."""
    members = StoredMembers()
    if known is not None:
        members.acknowledged("g", 5, known, LAST)
    members.emptied("g", epoch, Group(EMPTY, 4, {}), {"a"}, LAST)
    return members


@pytest.mark.parametrize(
    ("group", "epoch", "at_last", "is_wrong"),
    [
        (DYNAMIC, 6, 5, True),
        (DYNAMIC._replace(state=PREPARING), 6, 5, True),
        (DYNAMIC, 6, 4, False),  # the record was lost
        (DYNAMIC, 4, 5, False),  # a coordinator that was replaced
        (Group(EMPTY, 4, {}), 6, 5, False),
        (Group(EMPTY, 3, {}), 6, 5, False),
        (Group(STABLE, 5, {"c": None}), 6, 5, False),
        (Group(STABLE, 2, {"c": None}), 6, 5, False),  # another group of the same name
        (None, 6, 5, False),
    ],
)
def test_a_group_that_has_lost_its_members_does_not_have_them_again(
    group: Group | None, epoch: int, at_last: int, is_wrong: bool
) -> None:
    """It may be deleted, and have new members."""
    members = emptied(DYNAMIC)
    assert members.names == ("g",)
    assert judge(members, group, epoch, at_last) == is_wrong
    assert not judge(members, Group(EMPTY, 4, {}))


def test_members_that_came_later_are_not_forgotten() -> None:
    """The record of the group without members is confirmed after the next generation."""
    later = Group(STABLE, 5, {"c": None})
    assert judge(emptied(later), later._replace(members={"d": None}))
    assert not judge(emptied(later), later)
    assert not judge(emptied(DYNAMIC, epoch=4), DYNAMIC), "its coordinator was replaced"


@pytest.mark.parametrize(
    ("group", "epoch", "at_last", "is_wrong"),
    [
        (Group(EMPTY, 3, {}), 6, 5, True),
        (DYNAMIC, 6, 5, True),
        (Group(EMPTY, 3, {}), 6, 4, False),  # the record was lost
        (Group(EMPTY, 3, {}), 4, 5, False),  # a coordinator that was replaced
        (Group(EMPTY, 0, {}), 6, 5, False),  # offsets were committed without members
        (None, 6, 5, False),
    ],
)
def test_a_deleted_group_does_not_come_back(
    group: Group | None, epoch: int, at_last: int, is_wrong: bool
) -> None:
    """It is judged for as long as no member has joined."""
    members = StoredMembers()
    members.deleted("g", 5, LAST, joined=0)
    assert members.names == ("g",)
    assert not judge(members, None, epoch=5)
    assert judge(members, group, epoch, at_last) == is_wrong


def test_members_may_join_a_group_that_was_deleted() -> None:
    """Their JoinGroup arrives after the deletion, or between its request and its answer."""
    members = StoredMembers()
    members.deleted("g", 5, LAST, joined=members.joined("g"))
    members.begins("g")
    assert not judge(members, DYNAMIC)
    joined = members.joined("g")
    members.begins("g")
    members.deleted("g", 5, LAST, joined)
    assert not judge(members, DYNAMIC)
    members.deleted("g", 5, LAST, joined + 1)
    assert judge(members, DYNAMIC)
