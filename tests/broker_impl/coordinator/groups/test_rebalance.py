from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.errors import ErrorCode as E
from tests.broker_impl.coordinator.groups.conftest import Room


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


def test_the_protocol_that_most_like_best(room: Room) -> None:
    """The group selects, of the protocols that all members support, the one with the most votes."""
    room.join(protocols=(("a", b"1"), ("b", b"2"), ("c", b"3")))
    room.join(protocols=(("b", b"4"), ("a", b"5")))
    room.join(protocols=(("c", b"6"), ("b", b"7"), ("a", b"8")))
    room.pass_time(0)
    assert room.group.protocol == "b"
