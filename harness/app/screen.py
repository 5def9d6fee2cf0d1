"""What a user sees while a run goes on: on stderr, a live line on a terminal, else a line a while.

Standard output is left to the verdict.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.status import Status

from harness.engine.tally import Tally

LIVE_S = 0.25
SPARSE_S = 10.0


class Screen:
    """Progress of one command."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._console = Console(file=stream or sys.stderr, highlight=False)
        self._live = self._console.is_terminal
        self._step = ""

    def say(self, line: str) -> None:
        """One line that stays."""
        self._console.print(line, markup=False, soft_wrap=True)

    def step(self, step: str, done: float) -> None:
        """Progress of the judgement: each step's name once, when it begins."""
        if step != self._step:
            self._step = step
            self.say(f"{step} …")
        del done

    @contextmanager
    def status(self) -> Iterator[Status | None]:
        """A live line on a terminal; ``None`` elsewhere."""
        if self._live:
            with self._console.status("") as status:
                yield status
        else:
            yield None

    async def follow(self, tally: Tally, now_s: Callable[[], float], limit_s: float) -> None:
        """Show the run's progress until cancelled."""
        with self.status() as status:
            while True:
                line = progress(tally, now_s(), limit_s)
                if status is not None:
                    status.update(line)
                else:
                    self.say(line)
                await asyncio.sleep(LIVE_S if self._live else SPARSE_S)


def progress(tally: Tally, now_s: float, limit_s: float) -> str:
    """A run's state in one line."""
    faults = ", ".join(tally.active.values()) or "none"
    return (
        f"{now_s:4.0f} s of {limit_s:.0f} · {tally.phase} · {tally.acked:,} acknowledged,"
        f" {tally.read:,} read, {tally.info:,} in doubt · faults: {tally.faults}, now {faults}"
    )
