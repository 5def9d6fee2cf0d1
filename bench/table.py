"""The results of a benchmark as values, and the table that shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Series:
    """The repeated measurements of one figure."""

    what: str
    unit: str
    values: tuple[float, ...]
    cores: tuple[tuple[str, float], ...] = ()
    """By process: CPU seconds per second, over all rounds."""

    @property
    def typical(self) -> float:
        """The median."""
        return median(self.values)


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit that a figure must reach as a minimum, or as a maximum with ``at_most``."""

    what: str
    unit: str
    figure: float
    limit: float
    at_most: bool = False

    @property
    def is_met(self) -> bool:
        """True if the figure keeps the limit."""
        return self.figure <= self.limit if self.at_most else self.figure >= self.limit

    @property
    def wanted(self) -> str:
        """The limit as text."""
        return f"{'≤' if self.at_most else '≥'} {shown(self.limit)} {self.unit}"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one run of the benchmark."""

    facts: tuple[tuple[str, str], ...]
    """Machine, versions, date: name and value."""
    method: tuple[str, ...]
    """Sentences that describe the method."""
    series: tuple[Series, ...]
    bars: tuple[Bar, ...]

    @property
    def all_met(self) -> bool:
        """True if every bar is met."""
        return all(bar.is_met for bar in self.bars)

    def markdown(self) -> str:
        """Return the result as a page: bars first, then the series, then the method."""
        lines = ["# Benchmark", ""]
        lines += [f"- {name}: {value}" for name, value in self.facts]
        lines += ["", "| requirement | limit | measured | |", "|---|---:|---:|---|"]
        lines += [
            f"| {bar.what} | {bar.wanted} | {shown(bar.figure)} {bar.unit} "
            f"| {'met' if bar.is_met else '**missed**'} |"
            for bar in self.bars
        ]
        lines += [
            "",
            "| measured | median | lowest to highest | unit | cores used |",
            "|---|---:|---:|---|---|",
        ]
        lines += [
            f"| {row.what} | {shown(row.typical)} | {_spread(row.values)} | {row.unit} "
            f"| {', '.join(f'{name} {cores:.2f}' for name, cores in row.cores)} |"
            for row in self.series
        ]
        lines += ["", *(f"- {sentence}" for sentence in self.method), ""]
        return "\n".join(lines)


def shown(number: float) -> str:
    """Format a small number with three significant digits, a large one as a whole number."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _spread(values: Sequence[float]) -> str:
    return f"{shown(min(values))} to {shown(max(values))}" if len(values) > 1 else ""
