"""Which faults explain the answer of a former leader, and for how long."""

import pytest

from checkers.kernels import former
from checkers.kernels.faults import FaultInterval

SECOND = 1_000_000_000
LATE = 100 * SECOND
"""When the answers are given, which takes a second."""


def interval(from_s: int, to_s: int | None, *nodes: str, restarts: bool = False) -> FaultInterval:
    return FaultInterval(
        1,
        from_s * SECOND,
        None if to_s is None else to_s * SECOND,
        misleads=not restarts,
        nodes=frozenset(nodes) or None,
        restarts=restarts,
    )


def needed_s(
    intervals: list[FaultInterval], right_until_s: int, right_from_s: int = 0
) -> int | None:
    """Seconds needed to explain an answer that was right between these two times."""

    def explains(spell: former.Spell) -> bool:
        from_s, to_s = spell.from_ns / SECOND, spell.to_ns / SECOND
        return from_s <= right_until_s and to_s >= right_from_s

    needed = former.idle_ns(intervals, LATE, LATE + SECOND, explains)
    return None if needed is None else former.seconds(needed)


@pytest.mark.parametrize(
    ("intervals", "right_until_s", "needed"),
    [
        ([], 99, None),
        ([interval(90, None)], 90, 0),
        ([interval(90, None)], 89, None),  # every broker had heard before the fault
        ([interval(90, 97)], 95, 3),
        ([interval(70, 85)], 80, 15),
        ([interval(70, 84)], 80, None),
        ([interval(101, None)], 99, None),
        # one fault after another, on the same broker
        ([interval(60, 80, "a"), interval(85, 95, "a")], 70, 5),
        ([interval(60, 80, "a"), interval(85, 95, "b")], 70, None),
        ([interval(60, 80, "a"), interval(85, 95, "b")], 90, 5),
        ([interval(60, 80, "a"), interval(79, 95)], 70, 5),
        ([interval(60, 95, "a"), interval(70, 98, "b")], 65, 5),  # the one that explains it
        # a broker that has ended remembers nothing
        ([interval(60, 95, "a"), interval(70, 75, "a", restarts=True)], 65, None),
        ([interval(60, 95, "a"), interval(70, 75, "b", restarts=True)], 65, 5),
        ([interval(60, 95, "a"), interval(70, 75, "a", restarts=True)], 75, 5),
        (
            [interval(60, 80, "a"), interval(82, 83, "a", restarts=True), interval(85, 95, "a")],
            70,
            None,
        ),
        ([interval(80, 90, "a"), interval(91, 92, "a", restarts=True)], 85, None),
        (
            [interval(80, 90, "a"), interval(91, None, "a", restarts=True)],
            85,
            10,
        ),  # it was the controller
        # a paused broker gives no answer until it continues
        ([interval(80, None, "a")._replace(silences=True)], 85, None),
        ([interval(80, 102, "a")._replace(silences=True)], 85, None),
        ([interval(80, 99, "a")._replace(silences=True)], 85, 1),
        # a broker that keeps its connections hears soon
        ([interval(80, 98, "a")._replace(disconnects=False)], 85, 2),
        ([interval(80, 97, "a")._replace(disconnects=False)], 85, None),
        ([interval(80, 97, "a")._replace(disconnects=False), interval(70, 90, "a")], 85, 10),
    ],
)
def test_faults_that_explain_an_answer(
    intervals: list[FaultInterval], right_until_s: int, needed: int | None
) -> None:
    """A chain of faults on one broker explains an answer, from its time back to when it was
    right."""
    assert needed_s(intervals, right_until_s) == needed


@pytest.mark.parametrize(("right_from_s", "needed"), [(90, 5), (97, 5), (98, None), (101, None)])
def test_what_came_after_the_fault_is_not_remembered(right_from_s: int, needed: int | None) -> None:
    """A state is remembered only if it was right when a fault was active, or soon after."""
    assert needed_s([interval(80, 95)], 101, right_from_s) == needed


def test_faults_concern_partitions() -> None:
    """An operator's fault concerns only the partitions that it named."""
    of_x = interval(0, 1)._replace(keys=frozenset({"x-0"}), coordinators=False)
    internal = interval(0, 1)._replace(keys=frozenset())
    all_of_them, harmless = interval(0, 1), interval(0, 1)._replace(misleads=False)
    end = interval(0, 1, restarts=True)
    every = [of_x, internal, all_of_them, harmless, end]
    assert former.leaders_of(every, "x-0") == (of_x, all_of_them, end)
    assert former.leaders_of(every, "x-1") == (all_of_them, end)
    assert former.coordinators_of(every) == (internal, all_of_them, end)
