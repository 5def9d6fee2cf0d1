from typing import Any

import pytest

from broker_impl.coordinator.groups.events import Commit, Marked, Write, Written
from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode as E
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.coordinator.groups.conftest import Room, statics


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


def test_commits_that_always_overlap_leave_nothing() -> None:
    """A group keeps no markers or former offsets although one of its commits is always written."""
    room = Room(writes=False)
    room.commit(0, producer_id=7, producer_epoch=0)
    for number in range(1, 20):
        producer = 7 + number % 2
        room.commit(number, producer_id=producer, producer_epoch=0)
        write = room.unwritten.pop(0)
        room.happen(Written(number=write.number, error=E.NONE, offset=2 * number))
        marked = Marked(producer_id=write.producer_id, at=2 * number + 1, is_commit=True)
        room.happen(marked)
        assert room.committed() == number - 1
    (writing,) = room.group.offsets._writing
    assert (writing.markers, room.group.offsets._overtaken) == ([], {})
