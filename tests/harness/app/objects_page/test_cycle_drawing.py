"""The drawing of a cycle: boxes below each other, and labels that do not overlap."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import pytest

from checkers import isolation
from checkers.isolation import Found, Step
from harness.app.objects_page import cycle_drawing
from harness.app.objects_page.cycle_drawing import Drawing, shortened
from tests.checkers.isolation.histories import history


def cycle(count: int, key: str = "x", micro_ops: int = 2) -> Found:
    """Return a cycle of so many transactions."""
    kinds = ("ww", "wr", "rw", "realtime", "process")
    steps = tuple(
        Step(
            at,
            (at + 1) % count,
            kinds[at % len(kinds)],
            key,
            why=f"T{at + 1} did something to {key} that the other one did not see at all",
            source_at=at % micro_ops,
            target_at=(at * 2) % micro_ops,
        )
        for at in range(count)
    )
    what = tuple(f"append {key} {n}" for n in range(micro_ops))
    return Found("G1c", tuple(range(count)), ("",) * count, "", steps, micro_ops=(what,) * count)


def drawn(found: Found) -> Drawing:
    """Return the drawing of a cycle that has one."""
    drawing = cycle_drawing.of(found)
    assert drawing is not None
    return drawing


def _labels(drawing: Drawing) -> Sequence[tuple[float, float, float, float]]:
    """Return the rectangles of labels with their reasons."""
    found = []
    for edge in drawing.edges:
        widths = [cycle_drawing.width_of(text, cycle_drawing.PROSE) for _, text in edge.why]
        bottom = max([edge.y + cycle_drawing.LABEL, *(y for y, _ in edge.why)])
        left = min([edge.x, *(edge.why_x - width for width in widths if edge.is_back)])
        right = [edge.why_x + width for width in widths if not edge.is_back]
        found.append((left, edge.y, max([edge.x + edge.width, *right]), bottom))
    return found


@pytest.mark.parametrize("count", [2, 3, 5, 12])
@pytest.mark.parametrize("micro_ops", [1, 2, 9])
def test_nothing_overlaps_or_is_cut(count: int, micro_ops: int) -> None:
    """Boxes and labels are apart from each other, and within the drawing."""
    drawing = drawn(cycle(count, "key-" * 9, micro_ops))
    assert len(drawing.boxes) == len(drawing.edges) == count
    assert [edge.is_back for edge in drawing.edges] == [*[False] * (count - 1), True]
    for above, below in pairwise(drawing.boxes):
        assert above.y + above.height < below.y
    rectangles = _labels(drawing)
    for (left, top, right, bottom), other in combinations(rectangles, 2):
        apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
        assert apart
    for left, top, right, bottom in rectangles:
        assert 0 <= left < right <= drawing.width
        assert 0 <= top < bottom <= drawing.height


def test_a_long_cycle_has_no_drawing() -> None:
    """Its steps are listed only; so are anomalies that are no cycles."""
    assert cycle_drawing.of(cycle(cycle_drawing.BOXES_MAX + 1)) is None
    assert cycle_drawing.of(Found("G1a", (1,), ("r x [1]",), "why")) is None


def test_the_micro_operations_of_steps_are_marked() -> None:
    """Long transactions show these, and those nearby."""
    lines = ["x= y+1", "y= " + " ".join(f"z{n}=" for n in range(20)) + " x+1", "x=1 y=1"]
    result = isolation.judge(history(*lines), "list-append", isolation.Options(("serializable",)))
    drawing = drawn(result.anomalies["G2-item"][0])
    assert [[line.text for line in box.lines if line.is_marked] for box in drawing.boxes] == [
        ["r x nil", "append y 1"],
        ["r y nil", "append x 1"],
    ]
    assert cycle_drawing.CUT in [line.text for line in drawing.boxes[1].lines]
    assert drawing.kinds == ["rw"]


def test_texts_are_shortened() -> None:
    """Of a list, its last elements remain."""
    assert shortened("r x [1 2]") == "r x [1 2]"
    assert (
        shortened("r x [" + " ".join(map(str, range(50))) + "]") == "r x [… 43 44 45 46 47 48 49]"
    )
    assert shortened("append key " + "v" * 50) == "append key " + "v" * 18 + "…"
