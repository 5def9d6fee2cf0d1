"""Shows the progress of a run on stderr: a live bar on a terminal, else a line every few seconds.

Standard output is left to the verdict.
"""

import asyncio
import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from harness.app import terminal
from harness.engine.progress import Tally
from harness.simulation import determinism

LIVE_S = 0.25
SPARSE_S = 10.0


class Screen:
    """The progress display of one command."""

    def __init__(self, stream: TextIO | None = None) -> None:
        # The bar needs control sequences; the text in it is filtered here.
        beneath = terminal.unfiltered(stream or sys.stderr)
        self._console = Console(file=beneath, highlight=False)
        self._live = self._console.is_terminal
        self._part: str | None = None

    def part(self, name: str) -> "Screen":
        """Return a screen for one of several runs in a row.

        On a terminal it shows the run's name before its progress, elsewhere it is silent. Permanent
        lines are left to the screen of the whole series.
        """
        part = copy.copy(self)
        part._part = name
        return part

    def say(self, line: str) -> None:
        """Print one permanent line."""
        if self._part is None:
            self._console.print(terminal.line(line), markup=False, soft_wrap=True)

    async def follow(self, tally: Tally, now_s: Callable[[], float], limit_s: float) -> None:
        """Show a run's progress until cancelled."""
        with self._bar(limit_s) as show:
            while True:
                show(min(now_s(), limit_s), progress(tally, now_s(), limit_s))
                await asyncio.sleep(LIVE_S if self._live else SPARSE_S)

    @contextmanager
    def simulated(
        self, tally: Tally, now_s: Callable[[], float], limit_s: float
    ) -> Iterator[Callable[[], None]]:
        """Yield a function that shows a simulated run's progress when called, at a limited rate."""
        began_s = shown_s = determinism.real_s()
        with self._bar(limit_s, of_itself=False) as show:

            def look() -> None:
                nonlocal shown_s
                real_s = determinism.real_s()
                if real_s - shown_s >= (LIVE_S if self._live else SPARSE_S):
                    shown_s = real_s
                    speed = now_s() / (real_s - began_s)
                    line = progress(tally, now_s(), limit_s)
                    show(min(now_s(), limit_s), f"{line} · {speed:.0f} times real time")

            yield look

    @contextmanager
    def many(self, total: float) -> Iterator[Callable[[float, str], None]]:
        """Yield a function that shows the progress of many runs out of ``total``, and a line.

        The function may be called often; it updates the display at a limited rate.
        """
        shown_s = determinism.real_s()
        with self._bar(total, of_itself=False) as show:

            def look(done: float, line: str) -> None:
                nonlocal shown_s
                if determinism.real_s() - shown_s >= (LIVE_S if self._live else SPARSE_S):
                    shown_s = determinism.real_s()
                    show(min(done, total), line)

            yield look

    @contextmanager
    def steps(self) -> Iterator[Callable[[str, float], None]]:
        """Yield a function that shows the step of a judgement, and how much of it is done (0 to 1).

        Without a terminal, each step is printed once, when it begins.
        """
        last_step = ""

        def show_step(step: str, done: float) -> None:
            nonlocal last_step
            if self._live or step != last_step:
                show(done, f"{step} …")
            last_step = step

        with self._bar(1.0) as show:
            yield show_step

    @contextmanager
    def _bar(
        self, total: float, *, of_itself: bool = True
    ) -> Iterator[Callable[[float, str], None]]:
        """Yield a function that shows how much of ``total`` is done, and a line.

        With ``of_itself`` a thread also refreshes the bar between two calls.
        """
        if not self._live:
            yield lambda _, line: self.say(line)
            return
        text = TextColumn(
            "{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)
        )
        with Progress(
            BarColumn(20),
            text,
            console=self._console,
            transient=True,
            expand=True,
            auto_refresh=of_itself,
            redirect_stdout=False,  # redirection would bypass the filter
            redirect_stderr=False,
        ) as bar:
            task = bar.add_task("", total=total)
            before = "" if self._part is None else f"{self._part} · "
            yield lambda done, line: bar.update(
                task,
                completed=done,
                description=terminal.line(before + line),
                refresh=not of_itself,
            )


def progress(tally: Tally, now_s: float, limit_s: float) -> str:
    """Return a run's state in one line."""
    faults = ", ".join(tally.active.values()) or "none"
    return (
        f"{now_s:.0f} s of {limit_s:.0f} · {tally.phase} · {tally.acked:,} acknowledged,"
        f" {tally.read:,} read, {tally.info:,} in doubt · {tally.faults} faults, active: {faults}"
    )
