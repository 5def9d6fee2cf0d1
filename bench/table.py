"""What was measured as values, and the one table that shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Series:
    """The same thing measured several times."""

    what: str
    unit: str
    values: tuple[float, ...]
    cores: tuple[tuple[str, float], ...] = ()
    """By process: CPU seconds per second, over all the rounds."""

    @property
    def typical(self) -> float:
        """The median."""
        return median(self.values)


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure has to reach: at least the limit, or at most."""

    what: str
    unit: str
    figure: float
    limit: float
    at_most: bool = False

    @property
    def is_met(self) -> bool:
        """Is it reached?"""
        return self.figure <= self.limit if self.at_most else self.figure >= self.limit

    @property
    def wanted(self) -> str:
        """The limit in words."""
        return f"{'≤' if self.at_most else '≥'} {shown(self.limit)} {self.unit}"


@dataclass(frozen=True, slots=True)
class Result:
    """One run of the benchmark."""

    facts: tuple[tuple[str, str], ...]
    """Machine, versions, date: name and value."""
    method: tuple[str, ...]
    """Sentences."""
    series: tuple[Series, ...]
    bars: tuple[Bar, ...]

    @property
    def all_met(self) -> bool:
        """Is every bar reached?"""
        return all(bar.is_met for bar in self.bars)

    def markdown(self) -> str:
        """The whole of it as a page: bars first, then what they come from, then how."""
        lines = ["# Benchmark", ""]
        lines += [f"- {name}: {value}" for name, value in self.facts]
        lines += ["", "| bar | wanted | measured | |", "|---|---:|---:|---|"]
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
    """Three significant digits of what is small, whole numbers of what is large."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _spread(values: Sequence[float]) -> str:
    return f"{shown(min(values))} to {shown(max(values))}" if len(values) > 1 else ""
