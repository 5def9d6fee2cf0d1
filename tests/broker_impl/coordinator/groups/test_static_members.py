from broker_impl.coordinator import records
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode as E
from tests.broker_impl.coordinator.groups.conftest import RANGE, Room, statics


def test_a_static_member_comes_back_unnoticed(room: Room) -> None:
    """A static member that rejoins in Stable keeps its assignment, and its old id is fenced."""
    former = statics(room)
    answer = room.answers[room.join(instance_id="i")]
    assert (answer.error, answer.generation, answer.member_id) == (E.NONE, 1, "m3")
    assert room.is_in(GroupStatus.STABLE)
    assert room.answers[room.sync("m3", 1, instance_id="i")].assignment == b"m2"
    assert room.beat(former, 1, instance_id="i") is E.FENCED_INSTANCE_ID
    stale = room.commit(1, member_id=former, generation=1, instance_id="i")
    assert room.answers[stale] is E.FENCED_INSTANCE_ID


def test_its_new_id_is_written_first() -> None:
    """The new id of a static member is written before the member is answered (KAFKA-10284).

    The next coordinator therefore knows the new id. If the write fails, the old id stays valid.
    """
    for error in (E.NONE, E.NOT_ENOUGH_REPLICAS):
        room = Room(writes=False)
        room.join(instance_id="i")
        room.pass_time(0)
        room.sync("m1", 1, assignments={"m1": b"a"})
        room.write()
        ticket = room.join(instance_id="i")
        assert ticket not in room.answers
        room.write(error)
        expected = "m1" if error else "m2"
        assert list(room.group.members) == [expected]
        assert bool(room.answers[ticket].error) == bool(error)
        if not error:
            value = room.log[-1][1]
            assert value is not None
            assert [m.member_id for m in records.decode_group(value).members] == ["m2"]


def test_an_empty_instance_id_is_one_too(room: Room) -> None:
    """A member without an instance id is no static member, not even the one whose id is empty."""
    room.join(instance_id="")
    room.pass_time(0)
    room.settle(["m1"])
    other = room.join(protocols=(("sticky", b""),))
    assert room.answers[other].error is E.INCONSISTENT_GROUP_PROTOCOL


def test_a_former_member_returns_only_with_a_protocol_of_all_others() -> None:
    """Another member may have joined with a protocol of the new one while that was being written.

    If the write fails, the former id is valid again, and the protocols stay those of the last join.
    """
    room = Room(writes=False)
    room.join(instance_id="i", session_timeout_ms=100_000)
    room.pass_time(0)
    room.sync("m1", 1, assignments={"m1": b"a"})
    room.write()
    both = (*RANGE, ("sticky", b""))
    back = room.join(instance_id="i", session_timeout_ms=100_000, protocols=both)
    other = room.join(protocols=(("sticky", b""),))
    room.write(E.NOT_ENOUGH_REPLICAS)
    assert room.answers[back].error
    room.pass_time(60)
    assert room.answers[other].protocol == "sticky"


def test_a_former_member_returns_only_with_the_protocol_of_the_generation() -> None:
    """A rebalance may have chosen a protocol of the new member while that was being written.

    If the write fails, the protocols stay those of the last join, also if the former ones would
    have another one in common with all other members.
    """
    room = Room(writes=False)
    both = (*RANGE, ("sticky", b""))
    preferred = tuple(reversed(both))
    room.join(protocols=both, rebalance_timeout_ms=2_000)
    room.join(instance_id="i", rebalance_timeout_ms=2_000)
    room.pass_time(0)
    room.sync("m1", 1, assignments={"m1": b"a", "m2": b"b"})
    room.write()
    back = room.join(instance_id="i", rebalance_timeout_ms=2_000, protocols=preferred)
    again = room.join("m1", rebalance_timeout_ms=2_000, protocols=preferred)
    room.pass_time(2)
    assert room.answers[again].protocol == "sticky"
    room.write(E.NOT_ENOUGH_REPLICAS)
    assert room.answers[back].error
    synced = room.sync("m1", 2, assignments={"m1": b"a", "m2": b"b"})
    room.write()
    assert room.answers[synced].assignment == b"a"


def test_twins_fence_each_other_while_joining(room: Room) -> None:
    """The first of two joins with one instance id is fenced while it still waits (KAFKA-8500)."""
    first = room.join(instance_id="i")
    second = room.join(instance_id="i")
    assert room.answers[first].error is E.FENCED_INSTANCE_ID
    room.pass_time(0)
    assert room.answers[second].member_id == "m2"


def test_coming_back_while_the_leader_assigns_begins_anew(room: Room) -> None:
    """A static member that rejoins while the leader assigns starts another rebalance (KAFKA-9801).

    Otherwise the assignment would contain its old id only.
    """
    room.join()
    room.join(instance_id="i")
    room.pass_time(0)
    room.join(instance_id="i")
    assert room.is_in(GroupStatus.PREPARING)


def test_a_static_leader_comes_back_as_a_follower(room: Room) -> None:
    """A static leader that rejoins in Stable does not assign again.

    The answer names another leader, or has SkipAssignment set if the client supports it.
    """
    room.join(instance_id="i")
    room.pass_time(0)
    room.settle(["m1"])
    old = room.answers[room.join(instance_id="i")]
    assert (old.member_id, old.leader, old.members) == ("m2", "m1", ())
    new = room.answers[room.join(instance_id="i", may_skip_assignment=True)]
    assert (new.leader, new.skip_assignment, len(new.members)) == ("m3", True, 1)


def test_static_members_keep_their_place_through_a_rebalance(room: Room) -> None:
    """A static member that is away during a rebalance stays in the group until its session ends."""
    statics(room)
    again = room.join("m1", protocols=(("range", b"new"),))
    room.pass_time(29)
    assert again not in room.answers
    room.pass_time(1)
    assert room.answers[again].generation == 2
    assert list(room.group.members) == ["m1"]


def test_a_static_member_leaves_by_its_instance_id(room: Room) -> None:
    """LeaveGroup removes a static member by its instance id.

    An operator need not know the member id; a wrong member id is fenced.
    """
    former = statics(room)
    assert room.leave("stranger", "i") is E.FENCED_INSTANCE_ID
    assert room.leave("", "nobody") is E.UNKNOWN_MEMBER_ID
    assert room.leave("", "i") is E.NONE
    assert former not in room.group.members
