"""Counts in how many runs each branch of the rules was reached, as a file and as a table."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.app import files
from harness.app.rules.argued import ARGUED
from harness.app.rules.probes import Outcome
from harness.app.rules.recorder import Rule

FILE = "coverage.json"
PREFIX = "broker_impl."
"""What all names of rules begin with; the table leaves it out."""
ROWS_MAX = 60
"""The number of functions that the table lists; the file has all of them."""


class BranchFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One branch of a function."""

    line: int
    condition: str
    """The condition, or the head of a loop, a case or an ``except`` clause."""
    outcome: Outcome
    runs: int
    """The number of runs that reached it."""
    first_seed: int | None
    """The first seed that reached it."""
    argued: str = ""
    """Why no run can reach it; empty for most."""


class FunctionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One function of the modules with rules."""

    name: str
    """``module:function``, as mutants name the rule that they replace."""
    line: int
    mutants: tuple[str, ...]
    """The bugs that replace it; a function is a rule if there are any."""
    runs: int
    first_seed: int | None
    branches: tuple[BranchFigures, ...]

    @property
    def missing(self) -> tuple[BranchFigures, ...]:
        """The branches that no run reached although one could."""
        return tuple(each for each in self.branches if not each.runs and not each.argued)


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """How much of some functions was reached."""

    functions: int
    functions_reached: int
    branches: int
    branches_reached: int
    branches_argued: int
    """The branches that no run reached, and that no run can reach."""

    @property
    def share(self) -> float:
        """The share of branches that were reached, of those that runs can reach."""
        possible = self.branches - self.branches_argued
        return self.branches_reached / possible if possible else 1.0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``coverage.json``."""

    runs: int
    rules: Totals
    """Of the functions that mutants replace."""
    modules: Totals
    """Of all functions of their modules."""
    functions: tuple[FunctionFigures, ...]


class Counts:
    """In how many runs each probe was reached, and the first seed that reached it."""

    def __init__(self, rules: Sequence[Rule], size: int) -> None:
        self._rules = rules
        self._runs = 0
        self._counts = [0] * size
        self._first: list[int | None] = [None] * size

    def add(self, seed: int, reached: bytes) -> None:
        """Add a run; ``reached`` has one byte for each probe. The order of runs does not matter."""
        self._runs += 1
        for number, hit in enumerate(reached):
            if hit:
                self._counts[number] += 1
                first = self._first[number]
                self._first[number] = seed if first is None else min(first, seed)

    def figures(self, mutants: Mapping[str, Sequence[str]]) -> Figures:
        """Return the figures so far; ``mutants`` are the bugs that replace a rule, by its name."""
        functions = [self._of(rule, tuple(mutants.get(rule.name, ()))) for rule in self._rules]
        functions.sort(key=lambda each: each.name)
        return Figures(
            runs=self._runs,
            rules=_totals(each for each in functions if each.mutants),
            modules=_totals(functions),
            functions=tuple(functions),
        )

    def _of(self, rule: Rule, mutants: tuple[str, ...]) -> FunctionFigures:
        number = rule.function.number
        argued = ARGUED.get(rule.name, {})
        branches = [
            BranchFigures(
                line=branch.line,
                condition=branch.text,
                outcome=branch.outcome,
                runs=self._counts[place],
                first_seed=self._first[place],
                argued=argued.get(f"{branch.text}: {branch.outcome}", ""),
            )
            for place, branch in enumerate(rule.function.branches, number + 1)
        ]
        return FunctionFigures(
            name=rule.name,
            line=rule.function.line,
            mutants=mutants,
            runs=self._counts[number],
            first_seed=self._first[number],
            branches=tuple(branches),
        )


def write(figures: Figures, folder: Path) -> None:
    """Write ``coverage.json`` into a folder."""
    document = msgspec.json.format(msgspec.json.encode(figures), indent=2)
    files.replace(folder / FILE, document + b"\n")


def read(folder: Path) -> Figures:
    """Return the figures in a folder's ``coverage.json``."""
    return msgspec.json.decode((folder / FILE).read_bytes(), type=Figures)


def describe(figures: Figures) -> str:
    """Return a table of the functions that have branches which no run reached, rules first."""
    missing = [each for each in figures.functions if each.missing or not each.runs]
    missing.sort(key=lambda each: (not each.mutants, each.runs, each.name))
    lines = [
        f"rules: {_of_all(figures.rules)}; their modules: {_of_all(figures.modules)};"
        f" {figures.runs:,} runs",
    ]
    if missing:
        lines.append(f"{'function':<58} {'runs':>6}  {'branches':>9}  not reached")
    lines += [_row(each) for each in missing[:ROWS_MAX]]
    if len(missing) > ROWS_MAX:
        lines.append(f"… and {len(missing) - ROWS_MAX} more functions in {FILE}")
    return "\n".join(lines)


def _row(each: FunctionFigures) -> str:
    name = each.name.removeprefix(PREFIX) + ("*" if each.mutants else "")
    reached = sum(branch.runs > 0 for branch in each.branches)
    share = f"{reached}/{reached + len(each.missing)}"
    if each.runs:
        shown = "; ".join(f"{one.line} {one.condition}: {one.outcome}" for one in each.missing[:3])
    else:
        shown = "never called"
    more = f"; {len(each.missing) - 3} more" if each.runs and len(each.missing) > 3 else ""
    return f"{name:<58} {each.runs:>6}  {share:>9}  {shown}{more}"


def _of_all(totals: Totals) -> str:
    possible, percent = totals.branches - totals.branches_argued, 100 * totals.share
    return (
        f"{totals.functions_reached:,} of {totals.functions:,} functions and"
        f" {totals.branches_reached:,} of {possible:,} branches reached ({percent:.1f} %)"
    )


def _totals(functions: Iterable[FunctionFigures]) -> Totals:
    functions = list(functions)
    branches = [branch for each in functions for branch in each.branches]
    return Totals(
        functions=len(functions),
        functions_reached=sum(each.runs > 0 for each in functions),
        branches=len(branches),
        branches_reached=sum(branch.runs > 0 for branch in branches),
        branches_argued=sum(bool(branch.argued) and not branch.runs for branch in branches),
    )
