"""Places the transactions of a cycle on a drawing.

Each transaction is a box with a line for each micro-operation, and the boxes are in one column in
the order of the argument. The step from each box to the next one is an arc at the right, and the
last step returns to the first box at the left. Labels are outside of the boxes, and boxes are far
enough from each other that no two labels overlap. A cycle visits each transaction once, so one
column is its layout in layers: a library for graphs would have nothing to decide.
"""

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from checkers.isolation import Found, Step
from harness.app.report import sheet

BOXES_MAX = 40
"""Number of transactions of a cycle that is drawn; a longer one is a list of steps only."""
LINES_MAX, LETTERS_MAX, KEY_MAX = 6, 30, 12
"""Number of lines in a box, and of letters in a line and in the name of a key."""
WHY_LETTERS, WHY_LINES = 27, 4
"""Number of letters in a line of a reason, and of its lines."""
LETTER, PROSE = 7.25, 6.3
"""Pixels: the width of a letter of a micro-operation, and the mean width of those of a reason."""
LINE, HEAD, PADDING, GAP, MARGIN = 20.0, 24.0, 10.0, 26.0, 14.0
"""Pixels: the height of a line, and of the name of a transaction, the space around texts, the least
space between two boxes, and the space around the drawing."""
BULGE, LANE, ARROW, BEND = 36.0, 30.0, 8.0, 9.0
"""Pixels: how far an arc, and the way back, are from the boxes, the length of an arrow's head, and
the radius of a corner."""
LABEL, OVER, WHY_LINE, APART, NEXT = 20.0, 14.0, 15.0, 8.0, 3.5
"""Pixels: the height of a label, how far it is on the inner side of its line, the height of a line
of a reason, the least space between two labels, and how far from its middle an arc meets a line."""
CUT = "…"

MEANINGS = {
    "ww": "the later transaction overwrites what the earlier one wrote",
    "wr": "the later transaction read what the earlier one wrote",
    "rw": "the later transaction overwrites what the earlier one read",
    "wwp": "as ww, by a predicate",
    "wrp": "as wr, by a predicate",
    "rwp": "as rw, by a predicate",
    "process": "the same process executed one after the other",
    "rt": "real time: the earlier transaction completed before the later one was invoked",
}
"""What each kind of step says."""


@dataclass(frozen=True)
class Line:
    """A micro-operation; all lengths are pixels."""

    y: float
    """The top of the line."""
    text: str
    is_marked: bool = False
    """Whether a step begins or ends here."""


@dataclass(frozen=True)
class Box:
    """A transaction."""

    name: str
    y: float
    height: float
    lines: list[Line]
    whole: str
    """All that the transaction did."""


@dataclass(frozen=True)
class Edge:
    """A step."""

    kind: str
    path: str
    head: str
    """The points of the arrow's head."""
    label: str
    x: float
    y: float
    """The upper left corner of the label."""
    width: float
    """The width of the label."""
    why: list[tuple[float, str]]
    """The lines of the reason, each with its base line."""
    why_x: float
    """Where these lines begin, or end if the edge leads back to the first transaction."""
    is_back: bool
    says: str
    """The line of the argument."""


@dataclass(frozen=True)
class Drawing:
    """A cycle."""

    boxes: list[Box]
    edges: list[Edge]
    left: float
    """Where boxes begin."""
    box_width: float
    width: float
    height: float

    @property
    def kinds(self) -> list[str]:
        """The kinds of its steps, in the order of :data:`MEANINGS`."""
        present = {edge.kind for edge in self.edges}
        return [kind for kind in MEANINGS if kind in present]


@dataclass(frozen=True)
class _Label:
    """The texts of a step, and their size."""

    kind: str
    text: str
    why: list[str]

    @property
    def width(self) -> float:
        return width_of(self.text) + PADDING

    @property
    def height(self) -> float:
        return LABEL + WHY_LINE * len(self.why)

    @property
    def outer_width(self) -> float:
        """How far the label is outside of its line."""
        reasons = [APART + width_of(line, PROSE) for line in self.why]
        return max([self.width - OVER, *reasons])


@dataclass(frozen=True)
class _Shape:
    """A box without its place: all heights are those within the box."""

    name: str
    lines: list[Line]
    anchors: dict[int | None, float]
    """Where steps from and to a micro-operation, or the whole transaction, begin and end."""
    whole: str

    @property
    def height(self) -> float:
        return HEAD + LINE * len(self.lines) + 5

    @property
    def width(self) -> float:
        return max(width_of(text) for text in (self.name, *(line.text for line in self.lines)))

    def at(self, y: float) -> Box:
        """Return the box at a place."""
        lines = [replace(line, y=y + line.y) for line in self.lines]
        return Box(self.name, y, self.height, lines, self.whole)


def of(found: Found) -> Drawing | None:
    """Return the drawing of a cycle; ``None`` for another anomaly, and for a long cycle."""
    steps = found.steps
    if not steps or len(steps) > BOXES_MAX:
        return None
    labels = [_label_of(step) for step in steps]
    shapes = [
        _shape(f"T{at + 1} (event {event})", what, {steps[at].source_at, steps[at - 1].target_at})
        for at, (event, what) in enumerate(zip(found.events, found.micro_ops, strict=True))
    ]
    heights = _heights(steps, shapes, labels)
    boxes = [shape.at(y) for shape, y in zip(shapes, heights, strict=True)]
    left = MARGIN + labels[-1].outer_width + LANE
    width = max(shape.width for shape in shapes) + 2 * PADDING
    right = left + width
    edges = []
    for at, (label, line) in enumerate(zip(labels, found.argument(), strict=True)):
        ends = _ends(steps, shapes, heights, at)
        if at < len(steps) - 1:
            edges.append(_forward(label, line, right, ends))
        else:
            edges.append(_back(label, line, left, ends))
    below = max(edge.y + label.height for edge, label in zip(edges, labels, strict=True))
    return Drawing(
        boxes,
        edges,
        left,
        width,
        right + BULGE + max(label.outer_width for label in labels[:-1]) + MARGIN,
        max(boxes[-1].y + boxes[-1].height, below) + MARGIN,
    )


def _shape(name: str, what: Sequence[str], used: set[int | None]) -> _Shape:
    anchors: dict[int | None, float] = {None: HEAD / 2}
    lines: list[Line] = []
    for place in _chosen(len(what), {at for at in used if at is not None}):
        y = HEAD + LINE * len(lines)
        if place is None:
            lines.append(Line(y, CUT))
            continue
        anchors[place] = y + LINE / 2
        lines.append(Line(y, shortened(what[place]), place in used))
    return _Shape(name, lines, anchors, f"{name} = {', '.join(what)}")


def _chosen(count: int, used: set[int]) -> list[int | None]:
    """Return which micro-operations have a line; ``None`` stands for those left out."""
    nearest = sorted(
        range(count), key=lambda at: (min((abs(at - u) for u in used), default=at), at)
    )
    found: list[int | None] = []
    before = -1
    for place in sorted({*nearest[:LINES_MAX], *used}):
        found += [None, place] if place > before + 1 else [place]
        before = place
    return [*found, None] if before < count - 1 else found


def _heights(
    steps: Sequence[Step], shapes: Sequence[_Shape], labels: Sequence[_Label]
) -> list[float]:
    """Return where boxes begin: below each other, and so that no label reaches the one before."""
    heights, free = [MARGIN], MARGIN
    for at, label in enumerate(labels[:-1]):
        heights.append(heights[-1] + shapes[at].height + GAP)
        begin, end = _ends(steps, shapes, heights, at)
        top = _top(begin, end)
        if top < free:
            heights[-1] += 2 * (free - top)
            top = free
        free = top + label.height + APART
    first = _top(*_ends(steps, shapes, heights, len(steps) - 1))
    lower = max(MARGIN - first, 0.0)
    return [height + lower for height in heights]


def _ends(
    steps: Sequence[Step], shapes: Sequence[_Shape], heights: Sequence[float], at: int
) -> tuple[float, float]:
    """Return the heights at which a step begins and ends."""
    then = (at + 1) % len(steps)
    begin, end = shapes[at].anchors, shapes[then].anchors
    apart = 0.0 if then == 0 else NEXT  # a step may begin where the one before ends
    source, target = steps[at].source_at, steps[at].target_at
    return heights[at] + begin[source] + apart, heights[then] + end[target] - apart


def _top(begin: float, end: float) -> float:
    """Return where the label of a step begins: its name is in the middle of the line."""
    return (begin + end - LABEL) / 2


def _forward(label: _Label, line: str, right: float, ends: tuple[float, float]) -> Edge:
    """Return a step to the next box: an arc at the right."""
    begin, end = ends
    far = right + BULGE * 4 / 3  # a curve gets as far as three quarters of its control points
    path = (
        f"M{right:.1f},{begin:.1f} C{far:.1f},{begin:.1f} {far:.1f},{end:.1f}"
        f" {right + ARROW:.1f},{end:.1f}"
    )
    x = right + BULGE
    return _edge(label, line, path, _head(right, end, ARROW), x - OVER, x + APART, ends)


def _back(label: _Label, line: str, left: float, ends: tuple[float, float]) -> Edge:
    """Return the step to the first box, which is higher: a way at the left."""
    begin, end = ends
    x, r = left - LANE, BEND
    path = (
        f"M{left:.1f},{begin:.1f} H{x + r:.1f} q-{r},0 -{r},-{r} V{end + r:.1f}"
        f" q0,-{r} {r},-{r} H{left - ARROW:.1f}"
    )
    begins = x + OVER - label.width
    return _edge(label, line, path, _head(left, end, -ARROW), begins, x - APART, ends, True)


def _edge(
    label: _Label,
    line: str,
    path: str,
    head: str,
    x: float,
    why_x: float,
    ends: tuple[float, float],
    is_back: bool = False,
) -> Edge:
    y = _top(*ends)
    why = [(y + LABEL + WHY_LINE * at - 3, text) for at, text in enumerate(label.why, 1)]
    return Edge(label.kind, path, head, label.text, x, y, label.width, why, why_x, is_back, line)


def _head(x: float, y: float, length: float) -> str:
    """Return the points of the head of an arrow that ends at a point."""
    return f"{x:.1f},{y:.1f} {x + length:.1f},{y - 4.5:.1f} {x + length:.1f},{y + 4.5:.1f}"


def _label_of(step: Step) -> _Label:
    kind = "rt" if step.kind == "realtime" else step.kind
    key = shortened(str(step.key), KEY_MAX)
    text = kind if kind in ("process", "rt") else f"{kind} {key}"
    why = textwrap.wrap(
        step.why, WHY_LETTERS, max_lines=WHY_LINES, placeholder=f" {CUT}", break_on_hyphens=False
    )
    return _Label(kind, text, why)


def shortened(text: str, most: int = LETTERS_MAX) -> str:
    """Return a text with an ellipsis, if it is long; of a list, the last elements remain.

    Control characters are written as escapes first, because these take space.
    """
    text = sheet.visible(text)
    if len(text) <= most:
        return text
    begin = text.find("[") + 1
    if text.endswith("]") and 0 < begin < most - 6:
        elements = text[begin:-1].removeprefix(CUT).split()
        while len(elements) > 1 and begin + 3 + len(" ".join(elements)) > most:
            elements.pop(0)
        short = f"{text[:begin]}{CUT} {' '.join(elements)}]"
        if len(short) <= most:
            return short
    return text[: most - 1] + CUT


def width_of(text: str, letter: float = LETTER) -> float:
    """Return how many pixels a text takes; letters of some scripts are as wide as two."""
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return letter * (len(text) + wide)
