import itertools
from typing import Any

import pytest

from broker_impl.coordinator import records
from broker_impl.coordinator.groups.events import (
    Delete,
    DeleteOffsets,
    Expire,
    Marked,
    TopicsGone,
    Write,
    Written,
)
from broker_impl.coordinator.groups.loading import Loading
from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode as E
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.coordinator.groups.conftest import MAYBE_STORED, Room

TRANSACTION: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
TP = TopicPartition("t", 0)
RETAINING = GroupConfig(initial_rebalance_delay_ms=0, offsets_retention_ms=1000)


def stored(room: Room) -> int | None:
    """The offset that the next coordinator loads from the log."""
    loading = Loading()
    for at, entry in room.history:
        if isinstance(entry, Write):
            loading.rows(((at, key, value) for key, value in entry.records), entry.producer_id)
        else:
            loading.marker(entry.producer_id, at, is_commit=entry.is_commit)
    placed = loading.offsets.get(("g", TP))
    return None if placed is None else placed.committed.offset


def test_deleting_offsets(room: Room) -> None:
    """OffsetDelete deletes offsets of topics without subscribers, and no others (KAFKA-8954)."""
    room.commit(5, "t")
    room.commit(5, "u")
    room.stable(1)
    asked = (TopicPartition("t", 0), TopicPartition("u", 0), TopicPartition("u", 9))
    answer = room.ask(DeleteOffsets, partitions=asked)
    assert list(answer.rows.values()) == [E.GROUP_SUBSCRIBED_TO_TOPIC, E.NONE, E.NONE]
    assert (room.committed("t"), room.committed("u")) == (5, None)


def test_deleting_offsets_before_the_first_generation(room: Room) -> None:
    """The first members of a group with offsets may read any of its topics."""
    room.commit(5)
    room.join()
    answer = room.ask(DeleteOffsets, partitions=(TP,))
    assert answer.rows == {TP: E.GROUP_SUBSCRIBED_TO_TOPIC}
    assert room.committed() == 5


def empty(room: Room) -> None:
    """Bring the group to Empty after it had a member."""
    (one,) = room.stable(1)
    assert room.leave(one) is E.NONE
    assert room.is_in(GroupStatus.EMPTY)


@pytest.mark.parametrize("had_members", [False, True])
def test_a_group_ends_with_its_last_offset(room: Room, had_members: bool) -> None:
    """OffsetDelete of the last offset ends a group without members, as in Kafka 2.8."""
    if had_members:
        empty(room)
    room.commit(5, "t")
    room.commit(5, "u")
    assert not room.ask(DeleteOffsets, partitions=(TopicPartition("t", 0),)).error
    assert room.is_in(GroupStatus.EMPTY)
    last = TopicPartition("u", 0)
    assert room.ask(DeleteOffsets, partitions=(last,)).rows == {last: E.NONE}
    assert room.is_in(GroupStatus.DEAD)
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
    assert room.is_in(GroupStatus.EMPTY)
    answer = room.ask(DeleteOffsets, partitions=(TopicPartition("t", 9),))
    assert answer.rows == {TopicPartition("t", 9): E.NONE}
    assert room.is_in(GroupStatus.DEAD)


def test_a_group_does_not_end_while_offsets_are_under_way(room: Room) -> None:
    """A group with a pending commit or an offset in an open transaction does not end."""
    tp = TopicPartition("t", 0)
    room.commit(5)
    room.commit(6, "u", producer_id=7, producer_epoch=0)
    assert not room.ask(DeleteOffsets, partitions=(tp,)).error
    assert room.is_in(GroupStatus.EMPTY)
    room.mark(7, is_commit=True)
    assert room.committed("u") == 6
    room.writes = False
    deleting = room.request(DeleteOffsets, partitions=(TopicPartition("u", 0),))
    committing = room.commit(7, "u")
    room.write()
    assert (room.answers[deleting].error, room.answers[committing]) == (E.NONE, E.NONE)
    assert room.is_in(GroupStatus.EMPTY)
    assert room.committed("u") == 7


def test_a_group_does_not_end_if_the_deletion_cannot_be_written() -> None:
    """A group does not end if the deletion cannot be written; its offset still counts."""
    room = Room(writes=False)
    room.commit(5)
    room.write()
    deleting = room.request(DeleteOffsets, partitions=(TopicPartition("t", 0),))
    room.write(E.NOT_ENOUGH_REPLICAS)
    assert list(room.answers[deleting].rows.values()) == [E.COORDINATOR_NOT_AVAILABLE]
    assert room.is_in(GroupStatus.EMPTY)
    assert room.committed() == 5


def test_a_group_does_not_end_while_a_member_joins(room: Room) -> None:
    """A group does not end while a client holds a member id that it has not used yet.

    Its offsets may be deleted because it has no subscription, but the client may join at any
    moment.
    """
    room.commit(5)
    room.join(requires_id=True)
    assert not room.ask(DeleteOffsets, partitions=(TopicPartition("t", 0),)).error
    assert room.is_in(GroupStatus.EMPTY)


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


@pytest.mark.parametrize("error", MAYBE_STORED)
@pytest.mark.parametrize(("kind", "fields"), [(Delete, {}), (DeleteOffsets, {"partitions": (TP,)})])
def test_what_may_be_stored_is_deleted(error: E, kind: Any, fields: dict[str, Any]) -> None:
    """A commit that failed may be in the log; its group or offset does not return with it."""
    room = Room(writes=False)
    room.commit(5)
    room.write(error)
    assert (room.committed(), stored(room)) == (None, 5)
    room.request(kind, **fields)
    room.write()
    assert stored(room) is None


def test_a_tombstone_ends_the_doubt() -> None:
    """A commit that failed is deleted once, and not again with the group."""
    room = Room(writes=False)
    room.commit(5)
    room.write(E.REQUEST_TIMED_OUT)
    room.commit(6, "u")
    room.write()
    assert list(room.group.offsets.in_log) == [TopicPartition("u", 0), TP]
    room.request(DeleteOffsets, partitions=(TP,))
    room.write()
    assert list(room.group.offsets.in_log) == [TopicPartition("u", 0)]


def test_a_later_commit_ends_the_doubt() -> None:
    """Once a later commit is deleted, so is the one before that failed."""
    room = Room(writes=False)
    room.commit(5)
    room.write(E.REQUEST_TIMED_OUT)
    deleting = room.request(DeleteOffsets, partitions=(TP,))
    room.write(E.NOT_ENOUGH_REPLICAS)
    assert list(room.answers[deleting].rows.values()) == [E.COORDINATOR_NOT_AVAILABLE]
    assert list(room.group.offsets.in_log) == [TP]
    room.commit(6)
    room.write()
    room.commit(7, "u")
    room.request(DeleteOffsets, partitions=(TP,))
    room.write()
    assert list(room.group.offsets.in_log) == [TopicPartition("u", 0)]


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
    assert room.is_in(GroupStatus.EMPTY)
    room.wall_ms += 1
    room.happen(Expire())
    assert room.is_in(GroupStatus.DEAD)


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


def test_no_commit_before_its_deletion_counts() -> None:
    """A deleted partition has no offset, whatever was under way: a write, or a transaction.

    Neither has it at the next coordinator. A commit for the next partition of that name counts.
    """
    for fields, is_written, is_again in itertools.product(
        [{}, TRANSACTION], [False, True], [False, True]
    ):
        room = Room(writes=False)
        room.commit(5)
        room.write()
        room.commit(900, **fields)
        if is_written:
            room.write()
        room.happen(TopicsGone((TP,)))
        assert (room.committed(), room.group.offsets.is_unstable(TP)) == (None, False)
        if is_again:
            room.commit(1)
        room.write()
        if fields:
            room.mark(7, is_commit=True)
            room.write()
        assert room.committed() == stored(room) == (1 if is_again else None)
        assert room.group.offsets.is_settled
        assert list(room.group.offsets.in_log) == ([TP] if is_again else [])


def test_a_marker_before_the_end_of_the_write_that_it_ends() -> None:
    """An offset whose partition was deleted while it was written gets a tombstone, too."""
    room = Room(writes=False)
    room.commit(900, **TRANSACTION)
    room.happen(TopicsGone((TP,)))
    (write,) = room.unwritten
    marked = Marked(producer_id=7, at=1, is_commit=True)
    room.history = [(0, write), (1, marked)]
    room.log = [*write.records, (b"", None)]
    room.happen(marked)
    room.unwritten.clear()
    room.happen(Written(number=write.number, error=E.NONE, offset=0))
    assert stored(room) == 900
    room.write()
    assert (room.committed(), stored(room)) == (None, None)


@pytest.mark.parametrize("error", [E.NOT_ENOUGH_REPLICAS, E.REQUEST_TIMED_OUT])
def test_tombstones_that_fail_are_written_again(error: E) -> None:
    """Offsets of deleted partitions do not count, and their tombstones are written until stored.

    They are not written any more once there is a commit for the next partition of that name.
    """
    room = Room(writes=False)
    room.commit(5)
    room.write()
    room.happen(TopicsGone((TP,)))
    room.write(error)
    assert room.committed() is None
    room.happen(Expire())
    room.write(error)
    assert list(room.group.offsets.in_log) == [TP]
    later = room.commit(1)
    room.happen(Expire())
    assert [len(write.records) for write in room.unwritten] == [1]
    room.write(E.NOT_ENOUGH_REPLICAS)
    assert room.answers[later]
    room.happen(Expire())
    room.write()
    assert (list(room.group.offsets.in_log), stored(room)) == ([], None)
    room.commit(6)
    room.write()
    room.happen(TopicsGone((TP,)))
    room.write(error)
    room.commit(2)
    room.write()
    room.happen(Expire())
    assert (room.unwritten, room.committed(), stored(room)) == ([], 2, 2)


def test_a_group_is_deleted_with_the_tombstones_that_have_failed() -> None:
    room = Room(writes=False)
    room.commit(5)
    room.write()
    room.happen(TopicsGone((TP,)))
    room.write(E.NOT_ENOUGH_REPLICAS)
    room.request(Delete)
    room.write()
    assert stored(room) is None
