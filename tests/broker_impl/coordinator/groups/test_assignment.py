import pytest

from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode as E
from tests.broker_impl.coordinator.groups.conftest import Room


def test_nobody_is_told_before_it_is_written() -> None:
    """An assignment reaches members once all replicas have it (KAFKA-2017)."""
    room = Room(writes=False)
    room.join()
    room.pass_time(0)
    ticket = room.sync("m1", 1, assignments={"m1": b"a"})
    assert ticket not in room.answers
    assert room.is_in(GroupStatus.COMPLETING)
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
    assert room.is_in(GroupStatus.PREPARING)


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
    assert room.is_in(GroupStatus.COMPLETING)
    assert room.answers[other].generation == 2
    assert all(member.assignment == b"" for member in room.group.members.values())


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
