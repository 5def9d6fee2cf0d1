"""How long coordinators wait for members: timeouts that end too early or never."""

import pytest

from checkers.invariants.coordinated import COMPLETING, EMPTY, PREPARING, STABLE
from checkers.invariants.rebalances import Rebalances, Sight, Timed

SLOW = Timed(None, session_s=6.0, rebalance_s=1.5)
FAST = Timed(None, session_s=6.0, rebalance_s=0.3)
STATIC = Timed("i", session_s=6.0, rebalance_s=1.5)


class Course:
    """The sights of a group, and what they show."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self.rebalances = Rebalances(delay_s)

    def sees(self, at_s: float, state: str, generation: int, **members: Timed) -> list[str]:
        """See the group; return what is broken."""
        sight = Sight(at_s, state, generation, members)
        names = {True: "rebalance-in-time", False: "removed-after-timeout"}
        return [names[found.is_late] for found in self.rebalances.look(sight)]


def rebalancing(member: Timed, at_s: float = 11.0) -> Course:
    """A group in which a rebalance has begun at 10 s; a sends heartbeats until ``at_s``."""
    course = Course()
    assert course.sees(9.0, STABLE, 3, a=member) == []
    assert course.sees(10.0, STABLE, 3, a=member) == []
    joined = FAST._replace(has_joined=True)
    assert course.sees(min(at_s, 10.2), PREPARING, 3, a=member, b=joined) == []
    course.rebalances.beats("a", at_s)
    return course


@pytest.mark.parametrize(
    ("member", "at_s", "is_early"),
    [
        (SLOW, 10.4, True),
        (SLOW, 11.4, True),
        (SLOW, 11.6, False),
        (FAST, 10.25, True),
        (FAST, 10.4, False),
        (STATIC, 10.4, True),
    ],
)
def test_a_rebalance_waits_for_the_slowest_member(
    member: Timed, at_s: float, is_early: bool
) -> None:
    """A member is removed after its own rebalance timeout."""
    expected = ["removed-after-timeout"] if is_early else []
    assert rebalancing(member).sees(at_s, COMPLETING, 4, b=FAST) == expected


def test_a_rebalance_does_not_remove_static_members() -> None:
    """The next generation may, if they send no SyncGroup in it."""
    for seen_s, is_early in ((11.9, True), (10.2, False)):
        course = rebalancing(STATIC)
        course.sees(seen_s, PREPARING, 3, a=STATIC, b=FAST)
        expected = ["removed-after-timeout"] if is_early else []
        assert course.sees(12.0, COMPLETING, 4, b=FAST) == expected


def test_a_silent_member_is_removed_after_its_session() -> None:
    """Nothing is known of a member that has not sent a heartbeat."""
    course = Course()
    course.sees(9.0, STABLE, 3, a=SLOW)
    assert course.sees(9.1, EMPTY, 4) == []
    course = Course()
    course.sees(9.0, STABLE, 3, a=SLOW)
    course.rebalances.beats("a", 9.0)
    course.sees(14.9, STABLE, 3, a=SLOW)
    assert course.sees(15.0, PREPARING, 3) == []
    course = Course()
    course.sees(9.0, STABLE, 3, a=SLOW)
    course.rebalances.beats("a", 10.0)
    course.sees(14.9, STABLE, 3, a=SLOW)
    assert course.sees(15.0, PREPARING, 3) == ["removed-after-timeout"]


def test_a_member_may_leave_or_be_replaced() -> None:
    """Neither waits for a timeout."""
    course = rebalancing(SLOW)
    course.rebalances.leaves("a")
    assert course.sees(10.4, COMPLETING, 4, b=FAST) == []
    assert rebalancing(STATIC).sees(10.4, PREPARING, 3, c=STATIC, b=FAST) == []


@pytest.mark.parametrize(("synced", "at_s"), [(True, 22.0), (False, 22.0), (False, 20.5)])
def test_a_member_that_does_not_sync_may_be_removed(synced: bool, at_s: float) -> None:
    """After its rebalance timeout; one that has sent SyncGroup is not."""
    course = Course()
    course.sees(20.0, PREPARING, 3, a=SLOW, b=SLOW)
    course.sees(20.1, COMPLETING, 4, a=SLOW, b=SLOW)
    course.rebalances.syncs("a")
    course.rebalances.assigned("a", 4 if synced else 3)
    course.rebalances.beats("a", at_s - 0.1)
    course.sees(at_s - 0.1, STABLE, 4, a=SLOW, b=SLOW)
    is_early = synced or at_s < 21.0
    expected = ["removed-after-timeout"] if is_early else []
    assert course.sees(at_s, PREPARING, 4, b=SLOW) == expected


def test_members_of_a_group_that_was_loaded_have_synced() -> None:
    """It is stable when it is first seen."""
    course = Course()
    course.sees(20.0, STABLE, 4, a=SLOW)
    course.sees(30.0, STABLE, 4, a=SLOW)
    course.rebalances.beats("a", 30.0)
    assert course.sees(30.1, PREPARING, 4) == ["removed-after-timeout"]


JOINED: dict[str, Timed] = {"a": SLOW, "b": SLOW._replace(has_joined=True)}


@pytest.mark.parametrize(
    ("times", "delay_s", "is_late"),
    [
        ((10.0, 11.4, 11.45), 0.0, False),
        ((10.0, 11.6), 0.0, False),
        ((10.0, 11.6, 11.65), 0.0, False),
        ((10.0, 11.6, 11.8), 0.0, True),
        ((10.0, 11.6, 11.8), 3.0, False),
        ((10.0, 13.1, 13.3), 3.0, True),
    ],
)
def test_a_rebalance_ends(times: tuple[float, ...], delay_s: float, is_late: bool) -> None:
    """After the longest timeout, or the initial delay if that is longer."""
    course = Course(delay_s)
    found = [each for at_s in times for each in course.sees(at_s, PREPARING, 3, **JOINED)]
    assert found == (["rebalance-in-time"] if is_late else [])


def test_a_rebalance_that_no_member_has_joined_does_not_end() -> None:
    """It begins again whenever its timeout ends, while static members are absent."""
    course = Course()
    for second in range(10, 20):
        assert course.sees(second, PREPARING, 3, a=STATIC) == []
    assert course.sees(20.0, PREPARING, 3, **JOINED | {"a": STATIC}) == []


@pytest.mark.parametrize("state", [COMPLETING, STABLE])
@pytest.mark.parametrize(("synced", "is_late"), [("ab", False), ("a", True), ("", True)])
def test_a_member_that_does_not_sync_is_removed_in_time(
    state: str, synced: str, is_late: bool
) -> None:
    """Whether or not the leader has assigned."""
    course = Course()
    course.sees(10.0, COMPLETING, 4, a=SLOW, b=SLOW)
    for member in synced:
        course.rebalances.syncs(member)
    found = [
        each for at_s in (11.4, 11.6, 11.8) for each in course.sees(at_s, state, 4, a=SLOW, b=SLOW)
    ]
    assert found == (["rebalance-in-time"] if is_late else [])


def test_what_members_have_sent_is_not_known_in_a_generation_that_is_seen_too_late() -> None:
    """It is stable when it is first seen, and was not loaded so."""
    course = Course()
    course.sees(10.0, PREPARING, 3, a=SLOW)
    for at_s in (11.0, 20.0, 20.2):
        assert course.sees(at_s, STABLE, 4, a=SLOW) == []


def test_a_member_with_a_long_timeout_may_have_come_and_gone() -> None:
    """The rebalance waits for as long as it asked for."""
    course = Course()
    course.rebalances.joins(9.0)
    for at_s in (10.0, 18.9, 19.0):
        assert course.sees(at_s, PREPARING, 3, **JOINED) == []
    course.sees(19.1, PREPARING, 3, **JOINED)
    assert course.sees(19.3, PREPARING, 3, **JOINED) == ["rebalance-in-time"]


WAITS = Timed(None, session_s=0.6, rebalance_s=3.0, has_joined=True)


@pytest.mark.parametrize(
    ("member", "seen_s", "removed_s", "is_early"),
    [
        (WAITS, None, 12.1, True),
        (WAITS, None, 12.7, False),
        (WAITS, 12.0, 12.1, True),
        (WAITS, 12.5, 12.7, False),
        (WAITS._replace(instance="i"), None, 12.1, False),  # another one has perhaps replaced it
        (WAITS._replace(has_joined=False), None, 12.1, False),
        (WAITS._replace(rebalance_s=0.05), None, 12.1, False),  # it has perhaps sent no SyncGroup
    ],
)
def test_a_member_that_waits_is_not_silent(
    member: Timed, seen_s: float | None, removed_s: float, is_early: bool
) -> None:
    """Its session begins with its answer, in a generation that was seen or not."""
    course = Course()
    assert course.sees(9.0, STABLE, 3, a=member._replace(has_joined=False), b=SLOW) == []
    assert course.sees(10.0, PREPARING, 3, a=member, b=SLOW) == []
    assert course.sees(12.0, PREPARING, 3, a=member, b=SLOW) == []
    if seen_s is not None:
        answered = member._replace(has_joined=False)
        assert course.sees(seen_s, COMPLETING, 4, a=answered, b=SLOW) == []
    expected = ["removed-after-timeout"] if is_early else []
    assert course.sees(removed_s, PREPARING, 4, b=SLOW) == expected
