"""Judges the histories of a manifest with our checker, as the program in ``judge`` does.

    python -m bench.porcupine.ours manifest.json

The output has one line for each history: its verdict, and the seconds of reading and of checking.
"""

import argparse
import sys
import time
from pathlib import Path

import msgspec

from bench.porcupine.histories import Entry
from checkers import objects, recorded
from checkers.linearizability import judging, operations

STEPS = 20_000_000
"""What the search of one history may use."""
VERDICTS: dict[object, str] = {True: "valid", False: "invalid", "unknown": "unknown"}


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What a checker says about a history."""

    name: str
    verdict: str
    read_s: float
    check_s: float
    steps: int = 0


def judged(entry: Entry, folder: Path, steps: int) -> Judged:
    """Judge one history."""
    begin = time.perf_counter()
    asked = operations.of_events(recorded.read(folder / entry.file).events)
    initial = objects.UNSET if entry.initial is None else entry.initial
    model = objects.model_of(entry.model, initial)
    ready = time.perf_counter()
    found = judging.judge(asked, model, judging.Budget(steps=steps))
    end = time.perf_counter()
    return Judged(
        name=entry.name,
        verdict=VERDICTS[found.valid],
        read_s=ready - begin,
        check_s=end - ready,
        steps=sum(part.steps for part in found.parts),
    )


def main() -> int:
    """Judge all histories of a manifest."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    asked = parser.parse_args()
    for entry in msgspec.json.decode(asked.manifest.read_bytes(), type=list[Entry]):
        found = judged(entry, asked.manifest.parent, asked.steps)
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
