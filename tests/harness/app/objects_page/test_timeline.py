"""The drawing shows the operations around the one that has no place in any order."""

from checkers.linearizability import judging, models
from checkers.linearizability.monitors import Conflict
from checkers.linearizability.operations import NEVER, Operation
from harness.app.objects_page import cycle_drawing, timeline

STALE = [
    Operation("write", 1, 0, 3, 1, 0, 3),
    Operation("write", 2, 1, 2, 2, 1, 2),
    Operation("write", 9, 4, NEVER, 3, 4),
    Operation("read", 2, 5, 6, 1, 5, 6),
    Operation("read", 1, 7, 8, 2, 7, 8),
    Operation("read", 1, 9, 10, 2, 9, 10),
]


def test_bars_points_and_texts() -> None:
    """Each operation has a bar in the row of its process, those that take effect have a point
    within it, in the order of the line, and the one that cannot be placed says why."""
    model = models.Register(0)
    (part,) = judging.judge(STALE, model).parts
    found = timeline.of(part, model)
    assert found is not None
    assert [bar.look for bar in found.bars] == ["placed", "placed", "pending", "placed", "blocked"]
    assert [name for name, _ in found.processes] == ["process 1", "process 2", "process 3"]
    rows = dict(found.processes)
    assert [bar.y for bar in found.bars[:3]] == [rows[f"process {n}"] for n in (1, 2, 3)]
    for bar in found.bars:
        if bar.has_place:
            last = bar.order.points[-1]
            assert bar.x <= last.x <= bar.x + bar.width
            assert bar.y <= last.y <= bar.y + timeline.BAR
    assert found.order is not None
    points = found.order.points
    assert [point.place for point in points] == [1, 2, 3]
    assert [point.x for point in points] == sorted(point.x for point in points)
    assert found.order.line.count(",") == 3
    blocked, pending = found.bars[-1], found.bars[2]
    assert "(event 8) has no place: it read 1, and the register held 2" in blocked.says[0]
    assert blocked.says[-1] == "It cannot follow: write 1, write 2, read 2."
    assert (blocked.has_place, found.first) == (False, blocked.says)
    assert pending.is_open
    assert (
        pending.says[-1]
        == "Longest known order that ends with it: write 1, write 2, read 2, write 9."
    )
    assert (found.left_out, found.is_wide) == (0, False)


def test_operations_without_completion_have_rows_of_their_own() -> None:
    """An operation in doubt does not cover later ones of the same process, and labels have room."""
    doubts = [Operation("write", 10 + n, n, NEVER, 1, n) for n in range(5)]
    wrong = [*doubts, Operation("read", 3, 10, 11, 2, 10, 11)]
    model = models.Register(0)
    (part,) = judging.judge(wrong, model).parts
    found = timeline.of(part, model)
    assert found is not None
    assert [name for name, _ in found.processes] == [*["process 1"] * 5, "process 2"]
    assert len({bar.y for bar in found.bars}) == 6
    for bar in found.bars[:5]:
        assert bar.is_open
        assert bar.width >= cycle_drawing.width_of(bar.label)


def test_points_keep_their_order_where_time_is_short() -> None:
    """Of many operations that must take effect within a short time, none is drawn before one that
    precedes it."""
    many = [Operation("write", n, n, 20 - n, n, n, 20 - n) for n in range(8)]
    wrong = [*many, Operation("read", 77, 30, 31, 0, 30, 31)]
    model = models.Register(0)
    (part,) = judging.judge(wrong, model).parts
    found = timeline.of(part, model)
    assert found is not None
    assert found.order is not None
    for order in (found.order, *(bar.order for bar in found.bars)):
        assert [point.x for point in order.points] == sorted(point.x for point in order.points)


def test_a_long_history_is_cut() -> None:
    """Only the last operations are drawn, and the others are counted."""
    many = [Operation("write", n, 2 * n, 2 * n + 1, 0) for n in range(100)]
    wrong = [*many, Operation("read", 3, 300, 301, 1)]
    model = models.Register(0)
    (part,) = judging.judge(wrong, model).parts
    found = timeline.of(part, model)
    assert found is not None
    assert (len(found.bars), found.left_out) == (timeline.SHOWN + 1, 60)
    assert found.is_wide
    assert found.bars[-2].says[-1].startswith("Longest known order that ends with it: 88 others, ")


def test_a_valid_history_has_no_drawing() -> None:
    """There is nothing to explain."""
    model = models.Register(0)
    (part,) = judging.judge(STALE[:2], model).parts
    assert timeline.of(part, model) is None


def test_a_contradiction_without_an_order() -> None:
    """If no search has found an order, the operations that contradict each other are drawn."""
    why = "each of two values must have been replaced before the other one was written"
    part = judging.Part(None, STALE, None, 0, True, Conflict((4, 1, 2, 1), why))
    found = timeline.of(part, models.Register(0))
    assert found is not None
    assert [(bar.label, bar.look) for bar in found.bars] == [
        ("write 2", "blocked"),
        ("write 9", "blocked"),
        ("read 1", "blocked"),
    ]
    assert [bar.is_open for bar in found.bars] == [False, True, False]
    assert found.order is None
    assert found.first == [f"No order explains these operations: {why}."]
    assert found.bars[0].says[0] == "write 2 of process 2 (event 2)."
    assert found.left_out == 3
