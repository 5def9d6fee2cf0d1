"""The drawing shows the operations around the one that has no place in any order."""

import re

from checkers.linearizability import judging, models
from checkers.linearizability.operations import NEVER, Operation
from harness.app.objects_page import timeline

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
    placed = [bar for bar in found.bars if bar.point is not None]
    for bar in placed:
        assert bar.point is not None
        assert bar.x <= bar.point <= bar.x + bar.width + timeline.STEP
    ordered = sorted(placed, key=lambda bar: bar.place or 0)
    points = [bar.point or 0.0 for bar in ordered]
    assert points == sorted(points)
    assert found.path.count(",") == len(placed)
    assert "(event 8): it read 1, and the register held 2" in found.bars[-1].says
    assert found.bars[2].says.endswith("it takes no effect in this order")
    assert found.bars[2].is_open
    assert re.search(r"write 2 .*: 1 becomes 2", ordered[1].says)
    assert found.left_out == 0


def test_a_long_history_is_cut() -> None:
    """Only the last operations are drawn, and the others are counted."""
    many = [Operation("write", n, 2 * n, 2 * n + 1, 0) for n in range(100)]
    wrong = [*many, Operation("read", 3, 300, 301, 1)]
    model = models.Register(0)
    (part,) = judging.judge(wrong, model).parts
    found = timeline.of(part, model)
    assert found is not None
    assert (len(found.bars), found.left_out) == (timeline.SHOWN + 1, 60)


def test_a_valid_history_has_no_drawing() -> None:
    """There is nothing to explain."""
    model = models.Register(0)
    (part,) = judging.judge(STALE[:2], model).parts
    assert timeline.of(part, model) is None
