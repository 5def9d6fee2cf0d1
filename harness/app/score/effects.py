"""Counts the runs in which a planted bug changed what happened.

A simulation repeats itself exactly. So a bug has had an effect in a run only if the same seed, run
without the bug, has other steps or messages. A bug that was not found had either no effect at all
in the runs of a search, or one that no check has seen.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.app.search.outcome import RunResult

Each = Callable[[int, Mapping[str, Any], Path], RunResult]
"""Runs a seed with the pinned fields in a folder."""
Search = Callable[[Mapping[str, Any], int, int, Each], None]
"""Runs a number of seeds with the pinned fields, from a first one on, all by this function."""


class Effects:
    """What happened in runs with a bug, and in the same runs without it.

    The latter are run once for all bugs that are searched in the same way.
    """

    def __init__(self, place: Path, each: Each, search: Search) -> None:
        """``place``: a folder for what runs leave, which happen in other processes."""
        self._place = place
        self._each = each
        self._search = search
        self._correct = defaultdict[bytes, dict[int, str]](dict)
        """The traces of runs without bugs, by the pinned fields and the seed."""

    def each(self, seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        """Run a seed, and leave its trace."""
        ran = self._each(seed, pinned, folder)
        self._file(seed).write_text(ran.trace)
        return ran

    def reached(self, correct: Mapping[str, Any], first: int, runs: int) -> int:
        """Return in how many of the runs of a search just done the bug had an effect.

        ``correct``: what was pinned for the search, without the bug. A run without a trace counts
        as one with an effect: its process has crashed, or its simulation has failed.
        """
        seeds = range(first, first + runs)
        planted = {seed: self._taken(seed) for seed in seeds}
        known = self._correct[msgspec.json.encode(correct, order="deterministic")]
        if missing := [seed for seed in seeds if seed not in known]:
            self._search(correct, missing[0], len(missing), self.each)
            known |= {seed: self._taken(seed) for seed in missing}
        return sum(not planted[seed] or planted[seed] != known[seed] for seed in seeds)

    def _taken(self, seed: int) -> str:
        path = self._file(seed)
        if not path.exists():
            return ""
        trace = path.read_text()
        path.unlink()
        return trace

    def _file(self, seed: int) -> Path:
        return self._place / f"trace{seed}"
