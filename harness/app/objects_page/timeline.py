"""Places the operations around one that has no place in any order on a drawing.

Each process has a row, and each operation a bar from its invocation to its completion. Numbered
points mark where operations take effect in the longest order that explains all results before, and
each operation has the longest known order that ends with it. Distances say nothing, because only
the order of events counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checkers.linearizability.judging import Part
from checkers.linearizability.models import Model
from checkers.linearizability.operations import Operation
from checkers.linearizability.search import Illegal
from harness.app.objects_page import partial_orders
from harness.app.objects_page.cycle_drawing import shortened, width_of
from harness.app.objects_page.partial_orders import Placement

SHOWN = 40
"""Number of operations that are drawn: those that ended last before the blocked one, and those that
were pending then."""
STEP, ROW, TOP, BAR, MARGIN = 24.0, 52.0, 32.0, 20.0, 14.0
"""Pixels: the least distance of two events, that of two processes, the space above the first one,
the height of a bar, and the space around the drawing."""
LABEL_MAX, NAME_MAX, LISTED = 18, 16, 12
"""Number of letters of a label and of the name of a process, and of operations of an order that are
listed in words."""
APART = 15.0
"""Pixels between two points of an order in the same bar, or at the same event."""


@dataclass(frozen=True)
class Point:
    """Where an operation takes effect; all lengths are pixels."""

    x: float
    y: float
    place: int
    """Its place among the operations of the order that are drawn, from 1."""


@dataclass(frozen=True)
class Order:
    """An order of operations."""

    points: list[Point]

    @property
    def line(self) -> str:
        """The points, as those of a line."""
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


@dataclass(frozen=True)
class Bar:
    """An operation on the drawing."""

    x: float
    y: float
    width: float
    label: str
    look: str
    """``placed``, ``pending`` (it takes no effect in the longest order) or ``blocked``."""
    says: list[str]
    """What the operation did, the longest known order that ends with it, or why it has none."""
    order: Order
    """The longest known order that ends with it; without one, the order that it cannot follow."""
    has_place: bool = True
    """Whether there is an order that ends with it."""
    is_open: bool = False
    """Whether it was not completed when the blocked one was."""


@dataclass(frozen=True)
class Timeline:
    """A drawing."""

    bars: list[Bar]
    processes: list[tuple[str, float]]
    """Names of rows, and where they are."""
    order: Order
    """The longest order that explains all results before the blocked one."""
    left: float
    """Where the lines of processes begin."""
    width: float
    height: float
    left_out: int
    """How many earlier operations are not drawn."""

    @property
    def first(self) -> list[str]:
        """What is said before an operation is chosen: why the blocked one is illegal."""
        return next((bar.says for bar in self.bars if bar.look == "blocked"), [])


def of(part: Part, model: Model) -> Timeline | None:
    """Return the drawing of a key; ``None`` if no search has found why it is illegal."""
    if not isinstance(part.outcome, Illegal):
        return None
    operations, outcome = part.operations, part.outcome
    end = operations[outcome.blocked].end
    reached = [row for row, each in enumerate(operations) if each.call <= end]
    over = sorted(
        (row for row in reached if operations[row].end < end), key=lambda row: operations[row].end
    )
    others = [row for row in reached if operations[row].end >= end]
    shown = sorted([*over[-SHOWN:], *others[-SHOWN:]], key=lambda row: operations[row].call)
    if outcome.blocked not in shown:
        shown.append(outcome.blocked)
    placements = partial_orders.of(operations, outcome, model, shown)
    scene = _Scene(operations, shown, end)
    return Timeline(
        list(_bars(scene, outcome, placements)),
        [(_name(process), y) for process, y in scene.y_of.items()],
        scene.order(outcome.prefix),
        scene.left - 6,
        scene.width,
        TOP + ROW * len(scene.y_of),
        len(reached) - len(shown),
    )


class _Scene:
    """Where processes and events are."""

    def __init__(self, operations: Sequence[Operation], shown: Sequence[int], limit: int) -> None:
        self.operations, self.shown, self._limit = operations, shown, limit
        processes = sorted(
            {str(operations[row].process) for row in shown}, key=lambda p: (len(p), p)
        )
        self.y_of = {process: TOP + ROW * rank for rank, process in enumerate(processes)}
        self.left = MARGIN + max(width_of(_name(process), 6.6) for process in processes) + 16
        self._x_of = self._places()
        self.width = max(self.end(row) for row in shown) + STEP + MARGIN

    def _places(self) -> dict[int, float]:
        """Return where events are: so far from each other that each label fits above its bar."""
        begins: dict[int, list[int]] = {}
        for row in self.shown:
            begins.setdefault(self.operations[row].call, []).append(row)
        events = sorted({*begins, *(self._last(row) for row in self.shown)})
        found: dict[int, float] = {}
        free: dict[str, float] = {}
        """By process, where its next event may be."""
        ends: dict[int, list[str]] = {}
        for row in self.shown:
            ends.setdefault(self._last(row), []).append(str(self.operations[row].process))
        x = self.left + 4 - STEP
        for event in events:
            starting = [str(self.operations[row].process) for row in begins.get(event, ())]
            x = max([x + STEP, *(free.get(p, 0.0) for p in (*starting, *ends.get(event, ())))])
            found[event] = x
            for row in begins.get(event, ()):
                needed = max(width_of(_label(self.operations[row])) + 8, 2 * STEP)
                free[str(self.operations[row].process)] = x + needed
        return found

    def _last(self, row: int) -> int:
        return min(self.operations[row].end, self._limit)

    def begin(self, row: int) -> float:
        """Return where an operation begins."""
        return self._x_of[self.operations[row].call]

    def end(self, row: int) -> float:
        """Return where the bar of an operation ends."""
        return max(self._x_of[self._last(row)], self.begin(row) + STEP)

    def order(self, rows: Sequence[int]) -> Order:
        """Return where operations take effect: within their bars, each after the one before."""
        drawn = set(self.shown)
        points: list[Point] = []
        x = 0.0
        for row in rows:
            if row in drawn:
                x = min(max(x + APART, self.begin(row) + APART / 2), self.end(row) - APART / 2)
                y = self.y_of[str(self.operations[row].process)] + BAR / 2
                points.append(Point(x, y, len(points) + 1))
        return Order(points)


def _bars(scene: _Scene, outcome: Illegal, placements: dict[int, Placement]) -> Iterator[Bar]:
    order = {*outcome.prefix}
    for row in scene.shown:
        each, placement = scene.operations[row], placements[row]
        is_placed = row in order
        x = scene.begin(row)
        yield Bar(
            x=x,
            y=scene.y_of[str(each.process)],
            width=scene.end(row) - x,
            label=_label(each),
            look="blocked" if row == outcome.blocked else "placed" if is_placed else "pending",
            says=[*placement.says, _listed(scene.operations, placement)],
            order=scene.order(placement.order),
            has_place=placement.has_place,
            is_open=each.end > scene.operations[outcome.blocked].end,
        )


def _listed(operations: Sequence[Operation], placement: Placement) -> str:
    """List an order of operations in words."""
    begin = "Longest known order that ends with it" if placement.has_place else "It cannot follow"
    names = [_label(operations[row]) for row in placement.order[-LISTED:]]
    more = len(placement.order) - len(names)
    before = [f"{more:,} others"] if more else []
    return f"{begin}: {', '.join([*before, *names]) or 'no operation'}."


def _label(operation: Operation) -> str:
    value = "" if operation.value is None else f" {operation.value}"
    return shortened(f"{operation.f}{value}", LABEL_MAX)


def _name(process: str) -> str:
    return shortened(f"process {process}", NAME_MAX)
