import pytest

from broker_impl.coordinator import records
from broker_impl.coordinator.groups.events import Unload
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode as E
from tests.broker_impl.coordinator.groups.conftest import Room


@pytest.mark.parametrize(
    ("member", "generation", "error"),
    [
        ("m1", 1, E.NONE),
        ("m1", 0, E.ILLEGAL_GENERATION),
        ("m1", 2, E.ILLEGAL_GENERATION),
        ("stranger", 1, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_speak(room: Room, member: str, generation: int, error: E) -> None:
    """Heartbeat, SyncGroup and OffsetCommit check member id and generation alike."""
    room.stable(1)
    assert room.beat(member, generation) is error
    assert room.answers[room.sync(member, generation)].error is error
    commit = room.commit(5, member_id=member, generation=generation)
    assert room.answers[commit] is error


def test_a_silent_member_is_given_up(room: Room) -> None:
    """A member without a heartbeat is removed after its session timeout."""
    one, two = room.stable(2)
    room.pass_time(6)
    assert room.beat(one, 1) is E.NONE
    room.pass_time(5)
    assert room.is_in(GroupStatus.PREPARING)
    assert list(room.group.members) == [one]
    assert room.beat(one, 1) is E.REBALANCE_IN_PROGRESS
    assert room.beat(two, 1) is E.UNKNOWN_MEMBER_ID


def test_who_is_kept_waiting_is_not_silent(room: Room) -> None:
    """A parked join survives the session timeout of its member."""
    one, _ = room.stable(2, session_timeout_ms=6_000)
    waiting = room.join(one)
    room.pass_time(5.9)
    assert waiting not in room.answers
    room.pass_time(0.2)
    assert room.answers[waiting].generation == 2


def test_leaving(room: Room) -> None:
    """When a member leaves, the others rebalance at once; the last one leaves an empty group.

    The empty group is written to the log.
    """
    one, two = room.stable(2)
    assert room.leave(two) is E.NONE
    assert room.leave(two) is E.UNKNOWN_MEMBER_ID
    assert room.is_in(GroupStatus.PREPARING)
    assert room.leave(one) is E.NONE
    assert room.is_in(GroupStatus.EMPTY)
    key, value = room.log[-1]
    assert records.decode_key(key) == records.GroupKey("g")
    assert value is not None
    kept = records.decode_group(value)
    assert (kept.generation, kept.protocol, kept.members) == (2, None, ())


def test_unloading_answers_everybody() -> None:
    """Unloading a group answers its parked requests with NOT_COORDINATOR."""
    room = Room(writes=False)
    join = room.join()
    room.happen(Unload())
    assert room.answers[join].error is E.NOT_COORDINATOR
    room = Room(writes=False)
    room.join()
    room.pass_time(0)
    sync = room.sync("m1", 1, assignments={})
    commit = room.commit(1)
    room.happen(Unload())
    assert room.answers[sync].error is E.NOT_COORDINATOR
    room.write(E.NOT_LEADER_OR_FOLLOWER)
    assert room.answers[commit] is E.UNKNOWN_MEMBER_ID
    assert room.beat("m1", 1) is E.COORDINATOR_NOT_AVAILABLE
