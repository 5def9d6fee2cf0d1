import msgspec

from broker_impl.coordinator import records
from broker_impl.coordinator.groups.events import DeleteOffsets
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode as E
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.coordinator.groups.conftest import Room, statics, subscription


def test_a_group_is_restored(room: Room) -> None:
    """A restored group has the generation, leader, assignments and static members of the log.

    The sessions of its members start again.
    """
    statics(room)
    value = room.log[-1][1]
    assert value is not None
    other = Room()
    other.group.restore(records.decode_group(value), other.now)
    assert other.group.state is GroupStatus.STABLE
    was = room.group.snapshot()
    assert other.group.snapshot() == msgspec.structs.replace(was, state="Stable")
    assert other.beat("m2", 1, instance_id="i") is E.NONE
    assert other.answers[other.sync("m1", 1)].assignment == b"m1"
    other.pass_time(31)
    assert other.group.state is not GroupStatus.STABLE


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
