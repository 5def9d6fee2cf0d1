"""``python -m bench.porcupine``: Porcupine and our checker judge the same histories.

Both read the same files: Porcupine's own histories, which come with its Go module, and twenty that
are generated. Each round starts a process of each checker, and the median of the rounds counts.
Exit status 1: the verdicts differ, or our checker took longer; 2: Porcupine cannot be built.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.nodes import ROOT
from bench.porcupine import histories
from bench.porcupine.histories import OF_PORCUPINE, OURS, Entry
from bench.porcupine.ours import STEPS, Judged
from bench.table import Bar

JUDGE = Path(__file__).resolve().parent / "judge"
MODULE = "github.com/anishathalye/porcupine"
TIMEOUT_S = 20.0
SHOWN = 12
"""How many of the histories are listed that took longest."""


class Run(NamedTuple):
    """What one checker said in one round, and how long its process ran."""

    wall_s: float
    judged: list[Judged]


class Compared(NamedTuple):
    """A history with the verdicts and the times of both checkers, medians over all rounds."""

    entry: Entry
    theirs: Judged
    ours: Judged

    @property
    def agree(self) -> bool:
        """Whether the verdicts are the same, or one of them is unknown."""
        verdicts = {self.theirs.verdict, self.ours.verdict}
        return len(verdicts) == 1 or "unknown" in verdicts


def built(folder: Path) -> Path:
    """Build the Go program, and return its path."""
    program = folder / "judge"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=JUDGE, check=True)
    return program


def data_of_module() -> Path:
    """Return the folder with Porcupine's own histories in its Go module."""
    asked = ["go", "list", "-m", "-f", "{{.Dir}}", MODULE]
    out = subprocess.run(asked, cwd=JUDGE, check=True, capture_output=True, text=True).stdout
    return Path(out.strip()) / "test_data"


def run(command: Sequence[str]) -> Run:
    """Start a checker, and return what it says."""
    begin = time.perf_counter()
    out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    wall_s = time.perf_counter() - begin
    return Run(wall_s, [msgspec.json.decode(line, type=Judged) for line in out.splitlines()])


def _typical(runs: Sequence[Run]) -> list[Judged]:
    """Return what a checker says about each history, with the median of the times."""
    return [
        msgspec.structs.replace(
            each[0],
            read_s=median(one.read_s for one in each),
            check_s=median(one.check_s for one in each),
        )
        for each in zip(*(one.judged for one in runs), strict=True)
    ]


def lines(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield the histories that took longest, and the sums of each group."""
    yield "| history | Porcupine | s | ours | s |"
    yield "|---|---|---:|---|---:|"
    slow = sorted(compared, key=lambda each: -max(each.theirs.check_s, each.ours.check_s))
    for entry, theirs, ours in slow[:SHOWN]:
        times = f"{theirs.verdict} | {theirs.check_s:.4f} | {ours.verdict} | {ours.check_s:.4f}"
        yield f"| {entry.name} | {times} |"
    yield ""
    yield (
        "| histories | number | Porcupine: checking | ours: checking | Porcupine: reading"
        " | ours: reading | ours is faster in | unknown: Porcupine, ours |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for group in (OF_PORCUPINE, OURS):
        mine = [each for each in compared if each.entry.group == group]
        faster = sum(each.ours.check_s < each.theirs.check_s for each in mine)
        doubts = [
            sum(each.theirs.verdict == "unknown" for each in mine),
            sum(each.ours.verdict == "unknown" for each in mine),
        ]
        yield (
            f"| {group} | {len(mine)} | {sum(each.theirs.check_s for each in mine):.3f} s"
            f" | {sum(each.ours.check_s for each in mine):.3f} s"
            f" | {sum(each.theirs.read_s for each in mine):.3f} s"
            f" | {sum(each.ours.read_s for each in mine):.3f} s"
            f" | {faster} | {doubts[0]}, {doubts[1]} |"
        )
    yield ""
    searched = [each.ours for each in compared if each.ours.steps > 10_000]
    if searched:
        rates = sorted(each.steps / each.check_s for each in searched)
        yield (
            f"Our search entered {rates[0]:,.0f} to {rates[-1]:,.0f} configurations per second,"
            f" in the {len(rates)} histories that needed more than 10,000."
        )


def bars(compared: Sequence[Compared], theirs: Sequence[Run], ours: Sequence[Run]) -> list[Bar]:
    """Return what must hold: the same verdicts, and no more time."""
    wrong = sum(not each.agree for each in compared)
    checking = sum(each.ours.check_s for each in compared)
    of_them = sum(each.theirs.check_s for each in compared)
    wall, of_their_wall = (median(each.wall_s for each in runs) for runs in (ours, theirs))
    figures = f"{checking:.2f} s and {of_them:.2f} s", f"{wall:.2f} s and {of_their_wall:.2f} s"
    return [
        Bar("verdicts that differ", "histories", wrong, 0, at_most=True),
        Bar(f"checking, ours and Porcupine: {figures[0]}", "", checking / of_them, 1, at_most=True),
        Bar(
            f"processes with start and reading: {figures[1]}",
            "",
            wall / of_their_wall,
            1,
            at_most=True,
        ),
    ]


def main() -> int:
    """Let both checkers judge, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with jepsen/ and kv/ (the Go module's)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="of Porcupine, in seconds")
    parser.add_argument("--steps", type=int, default=STEPS, help="of our search (20,000,000)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            program = built(folder)
            data = data_of_module() if asked.data is None else asked.data
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"Porcupine cannot be built: {error}", file=sys.stderr)
            return 2
        if not data.is_dir():
            print(f"Porcupine's own histories are left out: there is no folder {data}")
        entries = histories.write(folder, data if data.is_dir() else None)
        manifest = str(folder / "manifest.json")
        steps = ["--steps", str(asked.steps)]
        theirs, ours = list[Run](), list[Run]()
        for _ in range(asked.rounds):
            theirs.append(run([str(program), "--timeout", f"{asked.timeout}s", manifest]))
            ours.append(run([sys.executable, "-m", "bench.porcupine.ours", manifest, *steps]))
    compared = list(map(Compared, entries, _typical(theirs), _typical(ours)))
    print("\n".join(lines(compared)))
    for each in compared:
        if not each.agree:
            print(f"{each.entry.name}: Porcupine {each.theirs.verdict}, ours {each.ours.verdict}")
    found = bars(compared, theirs, ours)
    for bar in found:
        verdict = "met   " if bar.is_met else "MISSED"
        print(f"{verdict} {bar.what}: {bar.figure:.3g} {bar.unit}".rstrip() + f" ({bar.wanted})")
    return int(not all(bar.is_met for bar in found))


if __name__ == "__main__":
    sys.exit(main())
