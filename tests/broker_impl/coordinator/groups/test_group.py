from typing import Any

import msgspec
import pytest

from broker_impl.coordinator import records
from broker_impl.coordinator.groups.events import (
    Commit,
    Delete,
    DeleteOffsets,
    Expire,
    Marked,
    TopicsGone,
    Unload,
    Write,
    Written,
)
from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.coordinator.groups.states import State
from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode as E
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.coordinator.groups.conftest import Room, subscription

RETAINING = GroupConfig(initial_rebalance_delay_ms=0, offsets_retention_ms=1000)

# Joining and assignment.


def test_members_join_and_are_assigned(room: Room) -> None:
    """Two members that join within the delay form a generation; the first leads and assigns."""
    first, second = room.join(), room.join()
    assert room.is_in(State.PREPARING)
    room.pass_time(0)
    one, two = room.answers[first], room.answers[second]
    assert (one.generation, two.generation, one.leader, two.leader) == (1, 1, "m1", "m1")
    assert [member for member, _, _ in one.members] == ["m1", "m2"]
    assert two.members == ()
    assert room.is_in(State.COMPLETING)
    waiting = room.sync("m2", 1)
    assert waiting not in room.answers
    leading = room.sync("m1", 1, assignments={"m1": b"a", "m2": b"b"})
    assert room.answers[leading].assignment == b"a"
    assert room.answers[waiting].assignment == b"b"
    assert room.is_in(State.STABLE)


def test_nobody_is_told_before_it_is_written() -> None:
    """An assignment reaches members once all replicas have it (KAFKA-2017)."""
    room = Room(writes=False)
    room.join()
    room.pass_time(0)
    ticket = room.sync("m1", 1, assignments={"m1": b"a"})
    assert ticket not in room.answers
    assert room.is_in(State.COMPLETING)
    room.write()
    assert room.answers[ticket].assignment == b"a"


def test_an_assignment_that_is_not_written_begins_a_rebalance() -> None:
    """If an assignment cannot be written, its members get an error and the group rebalances."""
    room = Room(writes=False)
    room.join()
    room.pass_time(0)
    ticket = room.sync("m1", 1, assignments={"m1": b"a"})
    room.write(E.NOT_ENOUGH_REPLICAS)
    assert room.answers[ticket].error is E.COORDINATOR_NOT_AVAILABLE
    assert room.is_in(State.PREPARING)


def test_an_assignment_of_the_past_is_not_taken() -> None:
    """An assignment that is written after the next rebalance began is dropped.

    No member gets it, not even in the next generation.
    """
    room = Room(writes=False)
    room.join()
    room.pass_time(0)
    lead = room.sync("m1", 1, assignments={"m1": b"a"})
    other = room.join()
    assert room.answers[lead].error is E.REBALANCE_IN_PROGRESS
    room.join("m1")
    room.write()
    assert room.group.generation == 2
    assert room.is_in(State.COMPLETING)
    assert room.answers[other].generation == 2
    assert all(member.assignment == b"" for member in room.group.members.values())


def test_the_initial_delay_waits_for_more() -> None:
    """Each new member extends the initial delay, up to the rebalance timeout (KIP-134)."""
    room = Room(GroupConfig(initial_rebalance_delay_ms=3000))
    first = room.join(rebalance_timeout_ms=8000)
    room.pass_time(2)
    room.join(rebalance_timeout_ms=8000)
    room.pass_time(2)
    assert first not in room.answers
    room.join(rebalance_timeout_ms=8000)
    room.pass_time(3)
    assert first not in room.answers
    room.join(rebalance_timeout_ms=8000)
    room.pass_time(0.999)
    assert first not in room.answers
    room.pass_time(0.001)
    assert len(room.answers[first].members) == 4


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


def test_those_who_do_not_come_back_are_removed(room: Room) -> None:
    """Members that do not rejoin by the rebalance timeout are left out of the next generation."""
    one, two = room.stable(2, session_timeout_ms=100_000)
    third = room.join()
    again = room.join(one)
    room.pass_time(59.9)
    assert third not in room.answers
    room.pass_time(0.1)
    assert {member for member, _, _ in room.answers[again].members} == {one, "m3"}
    assert room.beat(two, 2) is E.UNKNOWN_MEMBER_ID


def test_the_leader_is_one_who_came(room: Room) -> None:
    """A leader that does not join again is replaced."""
    one, two = room.stable(2, session_timeout_ms=100_000)
    room.join(two, protocols=(("range", b"new"),))
    room.pass_time(60)
    assert room.group.leader == two
    assert one not in room.group.members


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
    assert room.is_in(State.STABLE)


def test_a_full_group() -> None:
    """A group at group.max.size refuses new members; its members may join again."""
    room = Room(GroupConfig(initial_rebalance_delay_ms=0, size_max=1))
    (one,) = room.stable(1)
    assert room.answers[room.join()].error is E.GROUP_MAX_SIZE_REACHED
    assert room.answers[room.join(one)].error is E.NONE


def test_the_protocol_that_most_like_best(room: Room) -> None:
    """The group selects, of the protocols that all members support, the one with the most votes."""
    room.join(protocols=(("a", b"1"), ("b", b"2"), ("c", b"3")))
    room.join(protocols=(("b", b"4"), ("a", b"5")))
    room.join(protocols=(("c", b"6"), ("b", b"7"), ("a", b"8")))
    room.pass_time(0)
    assert room.group.protocol == "b"


def test_a_join_again_that_changes_nothing(room: Room) -> None:
    """A repeated join in Stable rebalances if it is the leader's, and is answered if a follower's.

    A follower that joins again unchanged gets the present generation. While the leader assigns,
    leader and followers get the answer to their join again.
    """
    one, two = room.stable(2)
    assert room.answers[room.join(two)].generation == 1
    assert room.is_in(State.STABLE)
    lead = room.join(one)
    assert room.is_in(State.PREPARING)
    room.join(two)
    assert room.answers[lead].generation == 2
    again = room.answers[room.join(one)]
    assert (again.generation, len(again.members)) == (2, 2)
    assert room.is_in(State.COMPLETING)


# Generations and sessions.


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


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"protocol_type": "consumer", "protocol": "range"}, E.NONE),
        ({"protocol_type": "connect"}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": "sticky"}, E.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_sync_names_the_protocol(room: Room, fields: dict[str, str], error: E) -> None:
    """KIP-559: a SyncGroup with another protocol than the group's is refused."""
    room.stable(1)
    assert room.answers[room.sync("m1", 1, **fields)].error is error


def test_a_silent_member_is_given_up(room: Room) -> None:
    """A member without a heartbeat is removed after its session timeout."""
    one, two = room.stable(2)
    room.pass_time(6)
    assert room.beat(one, 1) is E.NONE
    room.pass_time(5)
    assert room.is_in(State.PREPARING)
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


def test_members_that_never_sync_are_given_up(room: Room) -> None:
    """Members that never sync are removed at the rebalance timeout (KAFKA-12890).

    Their heartbeats do not prevent that.
    """
    room.join(session_timeout_ms=100_000)
    room.join(session_timeout_ms=100_000)
    room.pass_time(0)
    waiting = room.sync("m2", 1)
    room.pass_time(60)
    assert room.answers[waiting].error is E.REBALANCE_IN_PROGRESS
    assert list(room.group.members) == ["m2"]


def test_leaving(room: Room) -> None:
    """When a member leaves, the others rebalance at once; the last one leaves an empty group.

    The empty group is written to the log.
    """
    one, two = room.stable(2)
    assert room.leave(two) is E.NONE
    assert room.leave(two) is E.UNKNOWN_MEMBER_ID
    assert room.is_in(State.PREPARING)
    assert room.leave(one) is E.NONE
    assert room.is_in(State.EMPTY)
    key, value = room.log[-1]
    assert records.decode_key(key) == records.GroupKey("g")
    assert value is not None
    kept = records.decode_group(value)
    assert (kept.generation, kept.protocol, kept.members) == (2, None, ())


# Static members (KIP-345).


def statics(room: Room) -> str:
    """Bring two members to Stable of which the second, ``m2``, is static."""
    room.join(session_timeout_ms=30_000)
    room.join(instance_id="i", session_timeout_ms=30_000)
    room.pass_time(0)
    room.settle(["m1", "m2"])
    return "m2"


def test_a_static_member_comes_back_unnoticed(room: Room) -> None:
    """A static member that rejoins in Stable keeps its assignment, and its old id is fenced."""
    former = statics(room)
    answer = room.answers[room.join(instance_id="i")]
    assert (answer.error, answer.generation, answer.member_id) == (E.NONE, 1, "m3")
    assert room.is_in(State.STABLE)
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
    assert room.is_in(State.PREPARING)


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


# Offsets.


def test_commits_count_once_they_are_written() -> None:
    """A commit counts once it is written; until then the former offset is shown as unstable."""
    room = Room(writes=False)
    tp = TopicPartition("t", 0)
    first = room.commit(5)
    assert (room.committed(), room.group.offsets.is_unstable(tp)) == (None, True)
    room.write()
    assert (room.answers[first], room.committed()) == (E.NONE, 5)
    second = room.commit(6)
    room.write(E.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert room.answers[second] is E.COORDINATOR_NOT_AVAILABLE
    assert (room.committed(), room.group.offsets.is_unstable(tp)) == (5, False)


def test_commits_from_outside(room: Room) -> None:
    """A client with manual assignment commits without a member id, if the group has no members."""
    assert room.answers[room.commit(5)] is E.NONE
    room.stable(1)
    assert room.answers[room.commit(6)] is E.UNKNOWN_MEMBER_ID
    assert room.committed() == 5


def test_commits_during_a_rebalance(room: Room) -> None:
    """Commits are accepted while members rejoin, and refused while the leader assigns."""
    one, two = room.stable(2)
    lead = room.join(one)
    assert room.answers[room.commit(5, member_id=two, generation=1)] is E.NONE
    room.join(two)
    assert room.answers[lead].generation == 2
    late = room.commit(6, member_id=two, generation=1)
    assert room.answers[late] is E.ILLEGAL_GENERATION
    early = room.commit(6, member_id=two, generation=2)
    assert room.answers[early] is E.REBALANCE_IN_PROGRESS
    assert room.committed() == 5


def test_offsets_of_a_transaction(room: Room) -> None:
    """Offsets of a transaction count in log order when it commits, and never if it aborts."""
    tp = TopicPartition("t", 0)
    room.commit(5, producer_id=7, producer_epoch=0)
    room.commit(9, producer_id=8, producer_epoch=0)
    assert (room.committed(), room.group.offsets.is_unstable(tp)) == (None, True)
    room.mark(8, is_commit=True)
    assert room.committed() == 9
    room.mark(7, is_commit=True)
    assert room.committed() == 9
    room.commit(11, producer_id=7, producer_epoch=0)
    room.mark(7, is_commit=False)
    assert (room.committed(), room.group.offsets.is_unstable(tp)) == (9, False)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_that_is_told_before_what_it_ends(room: Room, is_commit: bool) -> None:
    """A marker may be reported before the offsets that it ends.

    Both are committed together, and the report of the write comes a moment later. These offsets
    are ended, and do not belong to the producer's next transaction.
    """
    tp = TopicPartition("t", 0)
    event = Commit(ticket=99, offsets={tp: Committed(5)}, producer_id=7, producer_epoch=0)
    (write,) = room.group.handle(event, 0.0, 0)
    assert isinstance(write, Write)
    room.happen(Marked(producer_id=7, at=10, is_commit=is_commit))
    room.happen(Marked(producer_id=8, at=11, is_commit=not is_commit))
    assert room.committed() is None
    room.happen(Written(number=write.number, error=E.NONE, offset=9))
    assert room.committed() == (5 if is_commit else None)
    assert room.group.offsets.is_settled
    room.happen(Marked(producer_id=7, at=12, is_commit=not is_commit))
    assert room.committed() == (5 if is_commit else None)


def test_a_marker_ends_nothing_that_lies_behind_it(room: Room) -> None:
    """A marker does not end offsets behind it, which belong to the producer's next transaction.

    The write of these offsets is reported before the marker.
    """
    tp = TopicPartition("t", 0)
    event = Commit(ticket=99, offsets={tp: Committed(5)}, producer_id=7, producer_epoch=0)
    (write,) = room.group.handle(event, 0.0, 0)
    assert isinstance(write, Write)
    room.happen(Written(number=write.number, error=E.NONE, offset=11))
    room.happen(Marked(producer_id=7, at=10, is_commit=False))
    assert room.group.offsets.is_unstable(tp)
    room.happen(Marked(producer_id=7, at=12, is_commit=True))
    assert room.committed() == 5


def test_a_transaction_of_a_member_is_fenced_by_generation(room: Room) -> None:
    """KIP-447: the generation fences a transaction's member; without one, only the epoch does."""
    (one,) = room.stable(1)
    stale = room.commit(5, producer_id=7, producer_epoch=0, member_id=one, generation=0)
    assert room.answers[stale] is E.ILLEGAL_GENERATION
    old = room.commit(5, producer_id=7, producer_epoch=0)
    assert room.answers[old] is E.NONE


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({}, E.NONE),
        ({"instance_id": "unknown"}, E.NONE),
        ({"instance_id": "unknown", "member_id": "m1", "generation": 1}, E.NONE),
        ({"instance_id": "unknown", "generation": 1}, E.NONE),
        ({"instance_id": "unknown", "generation": 0}, E.ILLEGAL_GENERATION),
        ({"instance_id": "unknown", "member_id": "m9", "generation": 1}, E.UNKNOWN_MEMBER_ID),
        ({"instance_id": "i"}, E.FENCED_INSTANCE_ID),
        ({"instance_id": "i", "member_id": "m1", "generation": 1}, E.FENCED_INSTANCE_ID),
        ({"instance_id": "i", "member_id": "m2", "generation": 1}, E.NONE),
        ({"member_id": "m1"}, E.NONE),
        ({"member_id": "m1", "generation": 1}, E.NONE),
        ({"member_id": "m1", "generation": 0}, E.ILLEGAL_GENERATION),
        ({"member_id": "m9"}, E.UNKNOWN_MEMBER_ID),
        ({"generation": 1}, E.NONE),
        ({"generation": 2}, E.ILLEGAL_GENERATION),
    ],
)
def test_a_transaction_is_checked_by_what_it_names(
    room: Room, named: dict[str, Any], error: E
) -> None:
    """TxnOffsetCommit checks the member id, generation and instance id it has, as in Kafka 2.8.

    An instance id that no member has is ignored.
    """
    statics(room)
    asked = room.commit(5, producer_id=7, producer_epoch=0, **named)
    assert room.answers[asked] is error


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({}, E.NONE),
        ({"instance_id": "unknown"}, E.NONE),
        ({"member_id": "m9"}, E.UNKNOWN_MEMBER_ID),
        ({"generation": 3}, E.ILLEGAL_GENERATION),
    ],
)
def test_a_transaction_is_checked_in_an_empty_group(
    room: Room, named: dict[str, Any], error: E
) -> None:
    """In an empty group no member id is valid for TxnOffsetCommit, and only generation 0."""
    asked = room.commit(5, producer_id=7, producer_epoch=0, **named)
    assert room.answers[asked] is error


def test_deleting_offsets(room: Room) -> None:
    """OffsetDelete deletes offsets of topics without subscribers, and no others (KAFKA-8954)."""
    room.commit(5, "t")
    room.commit(5, "u")
    room.stable(1)
    asked = (TopicPartition("t", 0), TopicPartition("u", 0), TopicPartition("u", 9))
    answer = room.ask(DeleteOffsets, partitions=asked)
    assert list(answer.rows.values()) == [E.GROUP_SUBSCRIBED_TO_TOPIC, E.NONE, E.NONE]
    assert (room.committed("t"), room.committed("u")) == (5, None)


def empty(room: Room) -> None:
    """Bring the group to Empty after it had a member."""
    (one,) = room.stable(1)
    assert room.leave(one) is E.NONE
    assert room.is_in(State.EMPTY)


@pytest.mark.parametrize("had_members", [False, True])
def test_a_group_ends_with_its_last_offset(room: Room, had_members: bool) -> None:
    """OffsetDelete of the last offset ends a group without members, as in Kafka 2.8."""
    if had_members:
        empty(room)
    room.commit(5, "t")
    room.commit(5, "u")
    assert not room.ask(DeleteOffsets, partitions=(TopicPartition("t", 0),)).error
    assert room.is_in(State.EMPTY)
    last = TopicPartition("u", 0)
    assert room.ask(DeleteOffsets, partitions=(last,)).rows == {last: E.NONE}
    assert room.is_in(State.DEAD)
    assert room.log[-2:] == [
        (records.encode_offset_key("g", last), None),
        (records.encode_group_key("g"), None),
    ]


def test_an_empty_group_ends_by_deleting_what_it_does_not_have(room: Room) -> None:
    """Deleting an offset that does not exist ends an empty group.

    Kafka 2.8 checks which offsets are left, not which were deleted.
    """
    empty(room)
    assert not room.ask(DeleteOffsets, partitions=()).error
    assert room.is_in(State.EMPTY)
    answer = room.ask(DeleteOffsets, partitions=(TopicPartition("t", 9),))
    assert answer.rows == {TopicPartition("t", 9): E.NONE}
    assert room.is_in(State.DEAD)


def test_a_group_does_not_end_while_offsets_are_under_way(room: Room) -> None:
    """A group with a pending commit or an offset in an open transaction does not end."""
    tp = TopicPartition("t", 0)
    room.commit(5)
    room.commit(6, "u", producer_id=7, producer_epoch=0)
    assert not room.ask(DeleteOffsets, partitions=(tp,)).error
    assert room.is_in(State.EMPTY)
    room.mark(7, is_commit=True)
    assert room.committed("u") == 6
    room.writes = False
    deleting = room.request(DeleteOffsets, partitions=(TopicPartition("u", 0),))
    committing = room.commit(7, "u")
    room.write()
    assert (room.answers[deleting].error, room.answers[committing]) == (E.NONE, E.NONE)
    assert room.is_in(State.EMPTY)
    assert room.committed("u") == 7


def test_a_group_does_not_end_if_the_deletion_cannot_be_written() -> None:
    """A group does not end if the deletion cannot be written; its offset still counts."""
    room = Room(writes=False)
    room.commit(5)
    room.write()
    deleting = room.request(DeleteOffsets, partitions=(TopicPartition("t", 0),))
    room.write(E.NOT_ENOUGH_REPLICAS)
    assert list(room.answers[deleting].rows.values()) == [E.COORDINATOR_NOT_AVAILABLE]
    assert room.is_in(State.EMPTY)
    assert room.committed() == 5


def test_a_group_does_not_end_while_a_member_joins(room: Room) -> None:
    """A group does not end while a client holds a member id that it has not used yet.

    Its offsets may be deleted because it has no subscription, but the client may join at any
    moment.
    """
    room.commit(5)
    room.join(requires_id=True)
    assert not room.ask(DeleteOffsets, partitions=(TopicPartition("t", 0),)).error
    assert room.is_in(State.EMPTY)


def test_deleting_offsets_of_other_groups(room: Room) -> None:
    """OffsetDelete is refused for groups of other protocol types, whose topics are unknown."""
    room.join(protocol_type="connect")
    answer = room.ask(DeleteOffsets, partitions=(TopicPartition("t", 0),))
    assert answer.error is E.NON_EMPTY_GROUP


def test_deleting_a_group(room: Room) -> None:
    """DeleteGroups deletes only an empty group, and its offsets with it."""
    room.commit(5)
    (one,) = room.stable(1)
    assert room.ask(Delete) is E.NON_EMPTY_GROUP
    room.leave(one)
    assert room.ask(Delete) is E.NONE
    assert [value for _, value in room.log[-2:]] == [None, None]
    assert room.answers[room.join()].error is E.COORDINATOR_NOT_AVAILABLE
    assert room.ask(Delete) is E.GROUP_ID_NOT_FOUND


def test_a_group_that_is_committed_to_is_not_deleted() -> None:
    """A group with pending commits cannot be deleted.

    Otherwise these commits would restore it at the next coordinator.
    """
    room = Room(writes=False)
    room.commit(5)
    assert room.ask(Delete) is E.NON_EMPTY_GROUP
    room.write()
    room.commit(6, producer_id=7, producer_epoch=0)
    room.write()
    assert room.ask(Delete) is E.NON_EMPTY_GROUP
    room.mark(7, is_commit=False)
    ticket = room.request(Delete)
    room.write()
    assert room.answers[ticket] is E.NONE


def test_offsets_expire() -> None:
    """Offsets expire after their retention, counted from when the last member left (KIP-211).

    The group ends with its last offset.
    """
    room = Room(RETAINING)
    (one,) = room.stable(1)
    room.commit(5, member_id=one, generation=1)
    room.wall_ms += 10_000
    room.happen(Expire())
    assert room.committed() == 5
    room.leave(one)
    room.wall_ms += 999
    room.happen(Expire())
    assert room.is_in(State.EMPTY)
    room.wall_ms += 1
    room.happen(Expire())
    assert room.is_in(State.DEAD)


def test_offsets_of_topics_that_nobody_reads_any_more() -> None:
    """Offsets of topics without subscribers expire while the group has members (KAFKA-13636).

    Offsets of subscribed topics do not.
    """
    room = Room(RETAINING)
    room.commit(5, "t")
    room.commit(5, "u")
    room.stable(1)
    room.wall_ms += 1000
    room.happen(Expire())
    assert (room.committed("t"), room.committed("u")) == (5, None)


def test_offsets_of_deleted_partitions(room: Room) -> None:
    """Offsets of deleted partitions are removed: a later topic of that name is another topic."""
    room.commit(5, "t")
    room.commit(5, "u")
    room.happen(TopicsGone((TopicPartition("t", 0),)))
    assert (room.committed("t"), room.committed("u")) == (None, 5)


# Unloading and loading.


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


def test_a_group_is_restored(room: Room) -> None:
    """A restored group has the generation, leader, assignments and static members of the log.

    The sessions of its members start again.
    """
    statics(room)
    value = room.log[-1][1]
    assert value is not None
    other = Room()
    other.group.restore(records.decode_group(value), other.now)
    assert other.group.state is State.STABLE
    was = room.group.snapshot()
    assert other.group.snapshot() == msgspec.structs.replace(was, state="Stable")
    assert other.beat("m2", 1, instance_id="i") is E.NONE
    assert other.answers[other.sync("m1", 1)].assignment == b"m1"
    other.pass_time(31)
    assert other.group.state is not State.STABLE


def test_consumers_that_say_what_nobody_understands(room: Room) -> None:
    """Members with an unreadable subscription protect all offsets: their topics are unknown."""
    room.commit(5)
    room.stable(1, protocols=(("range", b"\xff"),))
    answer = room.ask(DeleteOffsets, partitions=(TopicPartition("t", 0),))
    assert answer.rows == {TopicPartition("t", 0): E.GROUP_SUBSCRIBED_TO_TOPIC}


def test_the_snapshot_tells_metadata_in_stable_only(room: Room) -> None:
    """The snapshot has the members' metadata in Stable only, as in DescribeGroups."""
    room.join()
    assert room.group.snapshot().members[0].subscription == b""
    room.pass_time(0)
    room.settle(["m1"])
    shown = room.group.snapshot()
    assert (shown.protocol, shown.members[0].subscription) == ("range", subscription("t"))
