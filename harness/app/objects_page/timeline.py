"""Places the operations around one that has no place in any order on a drawing.

Each process has a row, and each operation a bar from its invocation to its completion. A point
marks where the operation takes effect in the longest order that explains all results before. Events
have equal distances, because only their order counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.linearizability import explanation
from checkers.linearizability.judging import Part
from checkers.linearizability.models import Inconsistent, Model
from checkers.linearizability.operations import Operation
from checkers.linearizability.search import Illegal

SHOWN = 40
"""Number of operations that are drawn: those that ended last before the blocked one, and those that
were pending then."""
STEP, ROW, LEFT, TOP = 26.0, 34.0, 110.0, 26.0
"""Pixels between two events, between two processes, and around the drawing."""


@dataclass(frozen=True)
class Bar:
    """An operation on the drawing; all lengths are pixels."""

    x: float
    y: float
    width: float
    label: str
    look: str
    """``placed``, ``pending`` (it takes no effect in this order) or ``blocked``."""
    says: str
    """What the operation did, and the states before and after it."""
    point: float | None = None
    """Where it takes effect."""
    place: int | None = None
    """Its place among the operations of the drawing that take effect, from 1."""
    is_open: bool = False
    """Whether it was never completed."""


@dataclass(frozen=True)
class Timeline:
    """A drawing."""

    bars: list[Bar]
    processes: list[tuple[str, float]]
    """Names of rows, and where they are."""
    width: float
    height: float
    left_out: int
    """How many earlier operations are not drawn."""

    @property
    def path(self) -> str:
        """The points of the order, as the points of a line."""
        placed = [bar for bar in self.bars if bar.point is not None]
        ordered = sorted(placed, key=lambda bar: bar.place or 0)
        return " ".join(f"{bar.point:.1f},{bar.y + 11:.1f}" for bar in ordered)


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
    return _drawn(shown, operations, outcome, _texts(operations, outcome, model), len(reached))


def _texts(operations: Sequence[Operation], outcome: Illegal, model: Model) -> dict[int, str]:
    """Say for each operation of the order what the state was before and after it."""
    state, found = model.inner.initial, {}
    for row in outcome.prefix:
        after = model.inner.step(state, operations[row])
        assert not isinstance(after, Inconsistent), "the order was found by the same steps"
        change = f"the state stays {state}" if after == state else f"{state} becomes {after}"
        found[row] = f"{explanation.described(operations[row])}: {change}"
        state = after
    return found


def _drawn(
    shown: Sequence[int],
    operations: Sequence[Operation],
    outcome: Illegal,
    texts: dict[int, str],
    reached: int,
) -> Timeline:
    limit = operations[outcome.blocked].end
    places = sorted(
        {operations[row].call for row in shown} | {min(operations[row].end, limit) for row in shown}
    )
    x_of = {place: LEFT + STEP * rank for rank, place in enumerate(places)}
    processes = sorted({str(operations[row].process) for row in shown}, key=lambda p: (len(p), p))
    y_of = {process: TOP + ROW * rank for rank, process in enumerate(processes)}
    order = [row for row in outcome.prefix if row in set(shown)]
    points = _points(order, operations, x_of, limit)
    bars = []
    for row in shown:
        each = operations[row]
        begin, end = x_of[each.call], x_of[min(each.end, limit)]
        look = "blocked" if row == outcome.blocked else "placed" if row in points else "pending"
        why = "; ".join(dict.fromkeys(refusal.why for refusal in outcome.refusals[:3]))
        idle = f"{explanation.described(each)}: it takes no effect in this order"
        says = (
            f"{explanation.described(each)}: {why}" if look == "blocked" else texts.get(row, idle)
        )
        bars.append(
            Bar(
                x=begin,
                y=y_of[str(each.process)],
                width=max(end - begin, STEP / 2),
                label=_label(each),
                look=look,
                says=says,
                point=points.get(row),
                place=order.index(row) + 1 if row in points else None,
                is_open=each.end > limit,
            )
        )
    return Timeline(
        bars,
        [(f"process {process}", y) for process, y in y_of.items()],
        LEFT + STEP * (len(places) + 1),
        TOP + ROW * len(processes) + 10,
        reached - len(shown),
    )


def _points(
    order: Sequence[int], operations: Sequence[Operation], x_of: dict[int, float], limit: int
) -> dict[int, float]:
    """Return where operations take effect: each within its bar, and each after the one before."""
    found: dict[int, float] = {}
    at = 0.0
    for row in order:
        each = operations[row]
        at = max(at + 3.0, x_of[each.call] + 3.0)
        found[row] = min(at, x_of[min(each.end, limit)] + STEP / 2)
    return found


def _label(operation: Operation) -> str:
    value = "" if operation.value is None else f" {operation.value}"
    text = f"{operation.f}{value}"
    return text if len(text) <= 14 else f"{text[:13]}…"
