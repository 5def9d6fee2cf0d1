"""A cycle is drawn as a column of transactions, with an arrow and a label for each step."""

import itertools
import re

import pytest

from checkers import objects
from checkers.isolation import Found, Step
from harness.app.objects_page import cycle_drawing
from harness.app.objects_page.cycle_drawing import Drawing
from tests.checkers.test_aggregates import done, events


def cycle(count: int, key: str = "k", why: str = "it says so") -> Found:
    """Return a cycle in which each transaction reads what the one before wrote."""
    steps = tuple(
        Step(at, (at + 1) % count, "wr", key, 1, None, why, 0, 1 if count > 1 else 0)
        for at in range(count)
    )
    ops = tuple((f"append {key} {at}", f"r {key} [{at}]") for at in range(count))
    texts = tuple(map(", ".join, ops))
    return Found("G1c", tuple(range(count)), texts, "", steps, micro_ops=ops)


def drawn(found: Found) -> Drawing:
    drawing = cycle_drawing.of(found)
    assert drawing is not None
    return drawing


def test_two_transactions_with_several_dependencies() -> None:
    """The two steps between the same two transactions are an arc at the right and one back at the
    left; only the micro-operations at their ends are marked."""
    both = done("txn", [["r", "x", None], ["append", "x", 1]], [["r", "x", []], ["append", "x", 1]])
    other = done(
        "txn", [["r", "x", None], ["append", "x", 2]], [["r", "x", []], ["append", "x", 2]]
    )
    read = done("txn", [["r", "x", None]], [["r", "x", [1, 2]]])
    said = [both[0], (1, *other[0][1:]), both[1], (1, *other[1][1:]), *read]
    result = objects.judged(events(*said), "list-append").result
    assert result is not None
    drawing = drawn(result.anomalies["G-single-item"][0])
    assert [box.name for box in drawing.boxes] == ["T1 (event 2)", "T2 (event 3)"]
    assert [(edge.kind, edge.label, edge.is_back) for edge in drawing.edges] == [
        ("ww", "ww x", False),
        ("rw", "rw x", True),
    ]
    marked = [[line.text for line in box.lines if line.is_marked] for box in drawing.boxes]
    assert marked == [["append x 1"], ["r x []", "append x 2"]]
    assert drawing.kinds == ["ww", "rw"]
    assert drawing.boxes[0].whole == "T1 (event 2) = r x [], append x 1"
    assert drawing.edges[1].says.endswith(": a contradiction.")


@pytest.mark.parametrize("count", [2, 3, 12, cycle_drawing.BOXES_MAX])
@pytest.mark.parametrize("why", ["short", "a reason with many words " * 20])
def test_nothing_overlaps(count: int, why: str) -> None:
    """Boxes and labels are below each other, and everything is within the drawing."""
    drawing = drawn(cycle(count, "a-key-with-a-long-name", why))
    assert len(drawing.boxes) == len(drawing.edges) == count
    for before, box in itertools.pairwise(drawing.boxes):
        assert before.y + before.height < box.y
    *forward, back = drawing.edges
    for before_edge, edge in itertools.pairwise(forward):
        assert max(y for y, _ in before_edge.why) < edge.y
    right = drawing.left + drawing.box_width
    for edge in forward:
        assert right < edge.x
        assert edge.x + edge.width < drawing.width
    assert 0 <= back.x < back.x + back.width < drawing.left
    for edge in drawing.edges:
        assert 0 <= edge.y < max(y for y, _ in edge.why) < drawing.height
        lines = [cycle_drawing.width_of(text, cycle_drawing.PROSE) for _, text in edge.why]
        reach = edge.why_x - max(lines) if edge.is_back else edge.why_x + max(lines)
        assert 0 < reach < drawing.width


def test_arrows_end_at_boxes() -> None:
    """Each arrow has its head at the side of its target."""
    drawing = drawn(cycle(3))
    *forward, back = drawing.edges
    right = f"{drawing.left + drawing.box_width:.1f},"
    assert all(edge.head.startswith(right) for edge in forward)
    assert all(edge.path.startswith(f"M{right}") for edge in forward)
    assert back.head.startswith(f"{drawing.left:.1f},")
    ends = [float(re.split("[, ]", edge.head)[1]) for edge in drawing.edges]
    for end, box in zip(ends, [*drawing.boxes[1:], drawing.boxes[0]], strict=True):
        assert box.y < end < box.y + box.height


def test_what_is_not_drawn() -> None:
    """An anomaly without steps has no drawing, and neither has a very long cycle."""
    assert cycle_drawing.of(Found("G1a", (1,), ("r x 1",), "why")) is None
    assert cycle_drawing.of(cycle(cycle_drawing.BOXES_MAX + 1)) is None


def test_a_long_transaction_is_cut() -> None:
    """Of many micro-operations, those at the ends of steps and their neighbours have lines."""
    steps = (Step(0, 1, "ww", "x", why="a", source_at=30), Step(1, 0, "rt", why="b"))
    ops = (tuple(f"append x {n}" for n in range(60)), ("r x [1]",))
    drawing = drawn(Found("G0", (0, 1), ("many", "one"), "", steps, micro_ops=ops))
    texts = [line.text for line in drawing.boxes[0].lines]
    assert texts[0] == texts[-1] == cycle_drawing.CUT
    assert "append x 30" in texts
    assert len(texts) == cycle_drawing.LINES_MAX + 2


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("r x [1 2]", "r x [1 2]"),
        (f"r x [{' '.join(map(str, range(40)))}]", "r x [… 32 33 34 35 36 37 38 39]"[:31]),
        ("w x " + "long" * 20, ("w x " + "long" * 20)[:29] + "…"),
        ("w x \x1b[2J", "w x \\x1b[2J"),
    ],
)
def test_shortened(text: str, short: str) -> None:
    """A list keeps its end, other text its beginning; control characters are escapes."""
    found = cycle_drawing.shortened(text)
    assert len(found) <= cycle_drawing.LETTERS_MAX
    if "[0" in text:
        assert found.startswith("r x [… ")
        assert found.endswith(" 39]")
    else:
        assert found == short


def test_wide_letters_take_two_places() -> None:
    """Letters of East Asian scripts are as wide as two."""
    assert cycle_drawing.width_of("鍵") == cycle_drawing.width_of("ab")
