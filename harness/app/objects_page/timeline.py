"""Places the operations around one that has no place in any order on a drawing.

Each process has a row, and each operation a bar from its invocation to its completion. Numbered
points mark where operations take effect in the longest order that explains all results before, and
each operation has the longest known order that ends with it. Distances say nothing, because only
the order of events counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from checkers.linearizability import explanation
from checkers.linearizability.judging import Part
from checkers.linearizability.models import Model
from checkers.linearizability.monitors import Conflict
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
WIDE = 900.0
"""The width in pixels from which processes are also named at the right."""
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
    first: list[str]
    """What is said before an operation is chosen: why the marked operations are wrong."""
    order: Order | None
    """The longest order that explains all results before the blocked one, if a search found it."""
    left: float
    """Where the lines of processes begin."""
    right: float
    """Where they end."""
    width: float
    height: float
    left_out: int
    """How many operations are not drawn; in the drawing of an order, how many earlier ones."""

    @property
    def is_wide(self) -> bool:
        """Whether processes are also named at the right."""
        return self.right < self.width


def of(part: Part, model: Model) -> Timeline | None:
    """Return the drawing of an illegal key; ``None`` if the key is not illegal.

    If no search has found an order, it has the operations that contradict each other.
    """
    if isinstance(part.outcome, Illegal):
        return _of_search(part.operations, part.outcome, model)
    return None if part.conflict is None else _of_conflict(part.operations, part.conflict)


def _of_search(operations: Sequence[Operation], outcome: Illegal, model: Model) -> Timeline:
    end = operations[outcome.blocked].end
    reached = [row for row, each in enumerate(operations) if each.call <= end]
    over = sorted(
        (row for row in reached if operations[row].end < end), key=lambda row: operations[row].end
    )
    others = [row for row in reached if operations[row].end >= end]
    chosen = {*over[-SHOWN:], *others[-SHOWN:], outcome.blocked}
    shown = sorted(chosen, key=lambda row: operations[row].call)
    placements = partial_orders.of(operations, outcome, model, shown)
    scene = _Scene(operations, shown, end)
    bars = list(_bars(scene, outcome, placements))
    first = next(bar.says for bar in bars if bar.look == "blocked")
    order = scene.order(outcome.prefix)
    return _timeline(scene, bars, first, order, len(reached) - len(shown))


def _of_conflict(operations: Sequence[Operation], conflict: Conflict) -> Timeline:
    shown = sorted({*conflict.rows}, key=lambda row: operations[row].call)[:SHOWN]
    ends = [
        each.call if each.is_pending else each.end for each in map(operations.__getitem__, shown)
    ]
    scene = _Scene(operations, shown, max(ends))
    why = f"No order explains these operations: {conflict.why}."
    bars = [
        scene.bar(row, "blocked", [f"{explanation.described(operations[row])}.", why], ())
        for row in shown
    ]
    return _timeline(scene, bars, [why], None, len(operations) - len(shown))


def _timeline(
    scene: "_Scene", bars: list[Bar], first: list[str], order: Order | None, left_out: int
) -> Timeline:
    return Timeline(
        bars,
        [(_name(process), y) for (process, _), y in scene.y_of.items()],
        first,
        order,
        scene.left - 6,
        scene.right,
        scene.right + scene.left if scene.right > WIDE else scene.right,
        TOP + ROW * len(scene.y_of),
        left_out,
    )


_Lane = tuple[str, int]
"""A process, and which of its rows: an operation in doubt may last while the process goes on."""


class _Scene:
    """Where processes and events are."""

    def __init__(self, operations: Sequence[Operation], shown: Sequence[int], limit: int) -> None:
        self.operations, self.shown, self._limit = operations, shown, limit
        self._lane_of = self._lanes()
        lanes = sorted({*self._lane_of.values()}, key=lambda lane: (len(lane[0]), lane))
        self.y_of = {lane: TOP + ROW * rank for rank, lane in enumerate(lanes)}
        self.left = MARGIN + max(width_of(_name(process), 6.6) for process, _ in lanes) + 16
        self._x_of = self._places()
        self.right = max(self.end(row) for row in shown) + STEP + MARGIN

    def _lanes(self) -> dict[int, _Lane]:
        """Return the row of each operation: the first one of its process that is free."""
        found: dict[int, _Lane] = {}
        ends: dict[_Lane, int] = {}
        for row in self.shown:
            lane = (str(self.operations[row].process), 0)
            while ends.get(lane, -1) >= self.operations[row].call:
                lane = (lane[0], lane[1] + 1)
            found[row] = lane
            ends[lane] = self._last(row)
        return found

    def _places(self) -> dict[int, float]:
        """Return where events are: so far from each other that each label fits above its bar."""
        rows_at: dict[int, list[int]] = {}
        for row in self.shown:
            for event in {self.operations[row].call, self._last(row)}:
                rows_at.setdefault(event, []).append(row)
        found: dict[int, float] = {}
        free: dict[_Lane, float] = {}
        """Where the next event may be."""
        x = self.left + 4 - STEP
        for event, rows in sorted(rows_at.items()):
            x = max([x + STEP, *(free.get(self._lane_of[row], 0.0) for row in rows)])
            found[event] = x
            for row in rows:
                if self.operations[row].call == event:
                    needed = max(width_of(_label(self.operations[row])) + 8, 2 * STEP)
                    free[self._lane_of[row]] = x + needed
        return found

    def _last(self, row: int) -> int:
        return min(self.operations[row].end, self._limit)

    def y(self, row: int) -> float:
        """Return the top of the bar of an operation."""
        return self.y_of[self._lane_of[row]]

    def begin(self, row: int) -> float:
        """Return where an operation begins."""
        return self._x_of[self.operations[row].call]

    def end(self, row: int) -> float:
        """Return where the bar of an operation ends."""
        return max(self._x_of[self._last(row)], self.begin(row) + STEP)

    def order(self, rows: Sequence[int]) -> Order:
        """Return where operations take effect: within their bars, and none left of the one before.

        A point is also not right of the end of any later operation, which must have room. An order
        that is not one of time, as of sequential consistency, may have to go back.
        """
        drawn = [row for row in rows if row in self._lane_of]
        ends = [self.end(row) - APART / 2 for row in drawn]
        latest = [*accumulate(reversed(ends), min)][::-1]
        points: list[Point] = []
        x = 0.0
        for place, (row, last) in enumerate(zip(drawn, latest, strict=True), 1):
            first = self.begin(row) + APART / 2
            x = max(first, min(x + APART, last))
            points.append(Point(x, self.y(row) + BAR / 2, place))
        return Order(points)

    def bar(
        self,
        row: int,
        look: str,
        says: list[str],
        order: Sequence[int],
        has_place: bool = False,
    ) -> Bar:
        """Return the bar of an operation, with an order of rows."""
        x, each = self.begin(row), self.operations[row]
        return Bar(
            x=x,
            y=self.y(row),
            width=self.end(row) - x,
            label=_label(each),
            look=look,
            says=says,
            order=self.order(order),
            has_place=has_place,
            is_open=each.end > self._limit,
        )


def _bars(scene: _Scene, outcome: Illegal, placements: dict[int, Placement]) -> Iterator[Bar]:
    order = {*outcome.prefix}
    for row in scene.shown:
        placement = placements[row]
        look = "blocked" if row == outcome.blocked else "placed" if row in order else "pending"
        says = [*placement.says, _listed(scene.operations, placement)]
        yield scene.bar(row, look, says, placement.order, placement.has_place)


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
