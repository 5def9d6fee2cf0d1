"""The drawing shows the operations around the one that has no place in any order."""

import re
from itertools import pairwise

from checkers.linearizability import judging, models
from checkers.linearizability.operations import NEVER, Operation
from harness.app.objects_page import timeline
from harness.app.objects_page.cycle_drawing import width_of
from harness.app.objects_page.timeline import Timeline

STALE = [
    Operation("write", 1, 0, 3, 1, 0, 3),
    Operation("write", 2, 1, 2, 2, 1, 2),
    Operation("write", 9, 4, NEVER, 3, 4),
    Operation("read", 2, 5, 6, 1, 5, 6),
    Operation("read", 1, 7, 8, 2, 7, 8),
    Operation("read", 1, 9, 10, 2, 9, 10),
]


def drawn(operations: list[Operation]) -> Timeline:
    """Return the drawing of a history of a register that is not linearizable."""
    model = models.Register(0)
    (part,) = judging.judge(operations, model).parts
    found = timeline.of(part, model)
    assert found is not None
    return found


def test_bars_and_texts() -> None:
    """Each operation has a bar in the row of its process, and the one that cannot be placed says
    why."""
    found = drawn(STALE)
    assert [bar.look for bar in found.bars] == ["placed", "placed", "pending", "placed", "blocked"]
    assert [name for name, _ in found.processes] == ["process 1", "process 2", "process 3"]
    rows = dict(found.processes)
    assert [bar.y for bar in found.bars[:3]] == [rows[f"process {n}"] for n in (1, 2, 3)]
    assert [bar.is_open for bar in found.bars] == [False, False, True, False, False]
    assert [bar.has_place for bar in found.bars] == [True, True, True, True, False]
    assert found.first == found.bars[-1].says
    assert "(event 8) has no place: it read 1, and the register held 2" in found.first[0]
    assert found.bars[2].says[1] == "No result needs it."
    assert re.search(r"write 2 .*: 1 becomes 2", found.bars[1].says[0])
    assert found.left_out == 0


def test_points_are_within_their_bars() -> None:
    """The order goes from left to right, and each point is in the bar of its operation."""
    found = drawn(STALE)
    bars = sorted((bar for bar in found.bars if bar.look == "placed"), key=lambda bar: bar.says[0])
    for order in (found.order, *(bar.order for bar in found.bars)):
        assert [point.place for point in order.points] == list(range(1, len(order.points) + 1))
        assert all(a.x <= b.x for a, b in pairwise(order.points))
        for point in order.points:
            assert any(
                bar.x <= point.x <= bar.x + bar.width and bar.y < point.y < bar.y + timeline.BAR
                for bar in found.bars
            )
    assert len(found.order.points) == len(bars)
    assert found.order.line.count(",") == len(bars)


def test_labels_do_not_overlap() -> None:
    """The next operation of a process begins after the label of the one before."""
    many = [Operation("write", 10**15 + n, 2 * n, 2 * n + 1, 0) for n in range(5)]
    found = drawn([*many, Operation("read", 3, 300, 301, 0)])
    ends = [bar.x + width_of(bar.label) for bar in found.bars]
    assert all(end < bar.x for end, bar in zip(ends[:-1], found.bars[1:], strict=True))
    assert max(bar.x + bar.width for bar in found.bars) < found.width


def test_a_long_history_is_cut() -> None:
    """Only the last operations are drawn, and the others are counted."""
    many = [Operation("write", n, 2 * n, 2 * n + 1, 0) for n in range(100)]
    found = drawn([*many, Operation("read", 3, 300, 301, 1)])
    assert (len(found.bars), found.left_out) == (timeline.SHOWN + 1, 60)
    assert "others, write 88" in found.first[1]


def test_a_valid_history_has_no_drawing() -> None:
    """There is nothing to explain."""
    model = models.Register(0)
    (part,) = judging.judge(STALE[:2], model).parts
    assert timeline.of(part, model) is None
