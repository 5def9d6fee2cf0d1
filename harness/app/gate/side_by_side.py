"""Compares the systems of a gate over the cases that differ in nothing but the system.

A summary counts only the cases for which every system has a value. A case that one system could
not complete would otherwise make the others look worse.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from harness.app.gate.outcome import Case, Gate

Value = float | None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a case in which systems are compared."""

    title: str
    unit: str
    digits: int
    """Digits after the point in a table of text."""
    of: Callable[[Case], Value]


FIGURES = (
    Figure("throughput", "/s", 0, lambda case: case.throughput_hz),
    Figure("longest wait", "s", 1, lambda case: case.unavailable_s),
    Figure("recovery", "s", 1, lambda case: case.recovery_s),
)


@dataclass(frozen=True, slots=True)
class Row:
    """The cases that differ only in their system."""

    name: str
    """Their common name, which does not contain the system."""
    cases: tuple[Case | None, ...]
    """One for each system; ``None`` if a system has no such case."""

    def values(self, figure: Figure) -> tuple[Value, ...]:
        """Return a figure of each system; ``None`` if it was not measured."""
        return tuple(
            None if case is None or case.status == "skipped" else figure.of(case)
            for case in self.cases
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """A figure of all systems over the rows in which every system has a value."""

    figure: Figure
    rows: int
    """The number of these rows."""
    medians: tuple[Value, ...]
    """By system; ``None`` if there is no such row."""

    @property
    def ratios(self) -> tuple[Value, ...]:
        """Each system's median divided by that of the first system; ``None`` if that is 0."""
        first = self.medians[0]
        return tuple(
            value / first if value is not None and first else None for value in self.medians
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The systems of a gate side by side."""

    systems: tuple[str, ...]
    rows: tuple[Row, ...]
    """In the order of the gate's cases; cases that only one system has are not among them."""
    summaries: tuple[Summary, ...]
    """In the order of :data:`FIGURES`."""

    def largest(self, figure: Figure) -> float:
        """Return the largest value of a figure, 0 if there is none: the length of a full bar."""
        values = [value for row in self.rows for value in row.values(figure)]
        return max((value for value in values if value is not None), default=0.0)

    def green(self, place: int) -> int:
        """Return how many cases of a system are valid."""
        return sum(case is not None and case.status == "valid" for case in self._of(place))

    def count(self, place: int) -> int:
        """Return the number of cases of a system."""
        return sum(case is not None for case in self._of(place))

    def _of(self, place: int) -> list[Case | None]:
        return [row.cases[place] for row in self.rows]


def compare(gate: Gate) -> Comparison | None:
    """Return the systems of a gate side by side; ``None`` if no case ran on more than one."""
    systems = gate.systems
    by_name: dict[str, dict[str, Case]] = {}
    for case in gate.cases:
        by_name.setdefault(case.name_of_any_system, {})[case.system] = case
    rows = tuple(
        Row(name, tuple(cases.get(system) for system in systems))
        for name, cases in by_name.items()
        if len(cases) > 1
    )
    if not rows:
        return None
    return Comparison(systems, rows, tuple(_summary(figure, rows) for figure in FIGURES))


def _summary(figure: Figure, rows: Sequence[Row]) -> Summary:
    complete = []
    for row in rows:
        values = [value for value in row.values(figure) if value is not None]
        if len(values) == len(row.cases):
            complete.append(values)
    systems = len(rows[0].cases)
    medians = [
        median(values[place] for values in complete) if complete else None
        for place in range(systems)
    ]
    return Summary(figure, len(complete), tuple(medians))


def table(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the summaries as rows of text, the first of them the titles; one row per system."""
    titles = tuple(f"median {figure.title}" for figure in FIGURES)
    rows = [("system", "valid", *titles)]
    for place, system in enumerate(comparison.systems):
        valid = f"{comparison.green(place)} of {comparison.count(place)}"
        cells = (_cell(summary, place) for summary in comparison.summaries)
        rows.append((system, valid, *cells))
    return rows


def _cell(summary: Summary, place: int) -> str:
    """Return a median, and after the first system its ratio to that of the first."""
    value, figure = summary.medians[place], summary.figure
    if value is None:
        return "—"
    text = f"{value:,.{figure.digits}f} {figure.unit}"
    return f"{text} (ratio {ratio(summary.ratios[place])})" if place else text


def ratio(value: Value) -> str:
    """Format a ratio, such as ``0.42``; a dash stands for none."""
    return "—" if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"
