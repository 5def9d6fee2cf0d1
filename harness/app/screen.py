"""What a user sees while a run goes on: on stderr, a live bar on a terminal, else a line a while.

Standard output is left to the verdict.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from harness.engine.tally import Tally

LIVE_S = 0.25
SPARSE_S = 10.0


class Screen:
    """Progress of one command."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._console = Console(file=stream or sys.stderr, highlight=False)
        self._live = self._console.is_terminal

    def say(self, line: str) -> None:
        """One line that stays."""
        self._console.print(line, markup=False, soft_wrap=True)

    async def follow(self, tally: Tally, now_s: Callable[[], float], limit_s: float) -> None:
        """Show a run's progress until cancelled."""
        with self._bar(limit_s) as show:
            while True:
                show(min(now_s(), limit_s), progress(tally, now_s(), limit_s))
                await asyncio.sleep(LIVE_S if self._live else SPARSE_S)

    @contextmanager
    def steps(self) -> Iterator[Callable[[str, float], None]]:
        """Takes the steps of a judgement, and how much of each is done (0 to 1); without a
        terminal a step is told once, when it begins."""
        told = ""

        def tell(step: str, done: float) -> None:
            nonlocal told
            if self._live or step != told:
                show(done, f"{step} …")
            told = step

        with self._bar(1.0) as show:
            yield tell

    @contextmanager
    def _bar(self, total: float) -> Iterator[Callable[[float, str], None]]:
        """Shows how much of ``total`` is done, and a line beside it."""
        if not self._live:
            yield lambda _, line: self.say(line)
            return
        text = TextColumn(
            "{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)
        )
        with Progress(
            BarColumn(20), text, console=self._console, transient=True, expand=True
        ) as bar:
            task = bar.add_task("", total=total)
            yield lambda done, line: bar.update(task, completed=done, description=line)


def progress(tally: Tally, now_s: float, limit_s: float) -> str:
    """A run's state in one line."""
    faults = ", ".join(tally.active.values()) or "none"
    return (
        f"{now_s:.0f} s of {limit_s:.0f} · {tally.phase} · {tally.acked:,} acknowledged,"
        f" {tally.read:,} read, {tally.info:,} in doubt · {tally.faults} faults, now {faults}"
    )
