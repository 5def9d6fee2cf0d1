import pytest

from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode as E
from tests.broker_impl.coordinator.groups.conftest import Room


def test_members_join_and_are_assigned(room: Room) -> None:
    """Two members that join within the delay form a generation; the first leads and assigns."""
    first, second = room.join(), room.join()
    assert room.is_in(GroupStatus.PREPARING)
    room.pass_time(0)
    one, two = room.answers[first], room.answers[second]
    assert (one.generation, two.generation, one.leader, two.leader) == (1, 1, "m1", "m1")
    assert [member for member, _, _ in one.members] == ["m1", "m2"]
    assert two.members == ()
    assert room.is_in(GroupStatus.COMPLETING)
    waiting = room.sync("m2", 1)
    assert waiting not in room.answers
    leading = room.sync("m1", 1, assignments={"m1": b"a", "m2": b"b"})
    assert room.answers[leading].assignment == b"a"
    assert room.answers[waiting].assignment == b"b"
    assert room.is_in(GroupStatus.STABLE)


def test_a_member_id_is_required() -> None:
    """A client that supports KIP-394 gets a member id first, and is a member once it uses it."""
    room = Room()
    asked = room.answers[room.join(requires_id=True)]
    assert (asked.error, asked.member_id) == (E.MEMBER_ID_REQUIRED, "m1")
    assert not room.group.members
    room.join("m1", requires_id=True)
    assert list(room.group.members) == ["m1"]


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    """An unused member id expires after the session timeout; a rebalance waits until then."""
    room = Room()
    (one,) = room.stable(1)
    room.join(requires_id=True)
    again = room.join(one, protocols=(("range", b"other"),))
    assert again not in room.answers
    room.pass_time(10)
    assert room.answers[again].generation == 2
    late = room.answers[room.join("m2", requires_id=True)]
    assert late.error is E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"session_timeout_ms": 5_999}, E.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, E.INVALID_SESSION_TIMEOUT),
        ({"protocols": ()}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("sticky", b""),)}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "stranger"}, E.UNKNOWN_MEMBER_ID),
        ({"member_id": "m1", "instance_id": "i"}, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_joins_that_are_refused(room: Room, fields: dict[str, object], error: E) -> None:
    """A refused join leaves the group as it is."""
    room.stable(1)
    ticket = room.join(**fields)  # type: ignore[arg-type]
    assert room.answers[ticket].error is error
    assert room.is_in(GroupStatus.STABLE)


def test_a_full_group() -> None:
    """A group at group.max.size refuses new members; its members may join again."""
    room = Room(GroupConfig(initial_rebalance_delay_ms=0, size_max=1))
    (one,) = room.stable(1)
    assert room.answers[room.join()].error is E.GROUP_MAX_SIZE_REACHED
    assert room.answers[room.join(one)].error is E.NONE


def test_a_join_again_that_changes_nothing(room: Room) -> None:
    """A repeated join in Stable rebalances if it is the leader's, and is answered if a follower's.

    A follower that joins again unchanged gets the present generation. While the leader assigns,
    leader and followers get the answer to their join again.
    """
    one, two = room.stable(2)
    assert room.answers[room.join(two)].generation == 1
    assert room.is_in(GroupStatus.STABLE)
    lead = room.join(one)
    assert room.is_in(GroupStatus.PREPARING)
    room.join(two)
    assert room.answers[lead].generation == 2
    again = room.answers[room.join(one)]
    assert (again.generation, len(again.members)) == (2, 2)
    assert room.is_in(GroupStatus.COMPLETING)
