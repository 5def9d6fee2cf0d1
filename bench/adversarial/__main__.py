"""``python -m bench.adversarial``: histories that are hard to judge get a right verdict, or none.

Many clients write few values at the same time, and many writes crash. Each history is judged in a
process of its own, whose memory must not grow by more than ``--memory`` and a slack. Whether it is
linearizable is known from how it was generated. Exit status 1: a wrong verdict, or a budget that
was exceeded.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import msgspec

from bench.adversarial.executions import Shape
from bench.adversarial.judge import Judged
from bench.adversarial.objects import KINDS
from bench.nodes import ROOT
from bench.table import Bar

CLIENTS, OPERATIONS = 50, 1_000
CRASHED = (0.0, 0.3)
VALUES = (3, 0)
SPOILED = ("", "impossible", "order")
STEPS, MEMORY_MB = 1_000_000, 256
SLACK_MB = 64.0
"""What the memory may grow by besides the budget: the operations, pages that the allocator keeps,
and what a search takes between two looks at its memory."""


class Case(NamedTuple):
    """A history, and what our checker says about it."""

    shape: Shape
    judged: Judged

    @property
    def is_wrong(self) -> bool:
        """Whether the verdict contradicts how the history was generated."""
        return self.judged.verdict == str(bool(self.shape.spoiled))


def shapes(operations: int, clients: int) -> Iterator[Shape]:
    """Yield what is judged: first with few values, then with values that are written once."""
    for values, kind, crashed, spoiled in product(VALUES, KINDS, CRASHED, SPOILED):
        yield Shape(kind, operations, clients, crashed, values, spoiled)


def judged(shape: Shape, steps: int, memory: int) -> Judged:
    """Judge an execution in a process of its own."""
    text = msgspec.json.encode(shape).decode()
    command = [sys.executable, "-m", "bench.adversarial.judge", text, str(steps), str(memory)]
    out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return msgspec.json.decode(out, type=Judged)


def summary(cases: Sequence[Case]) -> Iterator[str]:
    """Yield a line for each kind."""
    yield "| object | histories | decided | slowest | steps | memory |"
    yield "|---|---:|---:|---:|---:|---:|"
    for kind in KINDS:
        mine = [each for each in cases if each.shape.kind == kind]
        if mine:
            decided = sum(each.judged.verdict != "unknown" for each in mine)
            yield (
                f"| {kind} | {len(mine)} | {decided}"
                f" | {max(each.judged.seconds for each in mine):.1f} s"
                f" | {max(each.judged.steps for each in mine):,}"
                f" | {max(each.judged.growth_mb for each in mine):.0f} MiB |"
            )


def bars(cases: Sequence[Case], steps: int, memory: int) -> list[Bar]:
    """Return what must hold."""
    wrong = sum(each.is_wrong for each in cases)
    most = max(each.judged.steps for each in cases)
    growth = max(each.judged.growth_mb for each in cases)
    return [
        Bar("wrong verdicts", "histories", wrong, 0, at_most=True),
        Bar("steps of a search", "", most, steps, at_most=True),
        Bar("growth of the memory", "MiB", growth, memory + SLACK_MB, at_most=True),
    ]


def main() -> int:
    """Judge all histories, and print each verdict as soon as it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--steps", type=int, default=STEPS, help="budget of a history (1,000,000)")
    parser.add_argument("--memory", type=int, default=MEMORY_MB, help="budget in MiB (256)")
    parser.add_argument("--only", default="", help="judge histories whose names contain this text")
    asked = parser.parse_args()
    cases = []
    for shape in shapes(asked.operations, asked.clients):
        if asked.only not in shape.name:
            continue
        case = Case(shape, judged(shape, asked.steps, asked.memory))
        cases.append(case)
        found = case.judged
        print(
            f"{shape.name}: {found.verdict}{' WRONG' * case.is_wrong}, {found.seconds:.2f} s,"
            f" {found.steps:,} steps, {found.growth_mb:.0f} MiB",
            flush=True,
        )
    if not cases:
        parser.error(f"no history has {asked.only!r} in its name")
    print("\n".join(summary(cases)))
    limits = bars(cases, asked.steps, asked.memory)
    for bar in limits:
        verdict = "met   " if bar.is_met else "MISSED"
        print(f"{verdict} {bar.what}: {bar.figure:,.0f} {bar.unit}".rstrip() + f" ({bar.wanted})")
    return int(not all(bar.is_met for bar in limits))


if __name__ == "__main__":
    sys.exit(main())
