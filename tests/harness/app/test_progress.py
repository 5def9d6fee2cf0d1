"""The progress that a user sees during a run."""

import asyncio
from io import StringIO
from typing import Any

import pytest

from harness.app.progress import SPARSE_S, Screen, progress
from harness.engine.progress import Tally


def test_progress() -> None:
    """Progress is one line with time, phase, counts and active faults."""
    tally = Tally(phase="main", acked=12345, read=9, info=2, faults=3, active={3: "kill"})
    assert progress(tally, 7.6, 60.0) == (
        "8 s of 60 · main · 12,345 acknowledged, 9 read, 2 in doubt · 3 faults, active: kill"
    )


def test_without_a_terminal_lines_are_sparse(virtually: Any) -> None:
    """Without a terminal, progress is an occasional line, not a line that is repainted."""
    stream = StringIO()

    async def main() -> None:
        screen = Screen(stream)
        task = asyncio.create_task(screen.follow(Tally(), lambda: 0.0, 60.0))
        await asyncio.sleep(3 * SPARSE_S + 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    virtually(main())
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert "\x1b" not in stream.getvalue()


def test_a_step_is_told_once() -> None:
    """Each step is printed once, however often its progress is reported."""
    stream = StringIO()
    with Screen(stream).steps() as tell:
        for step, done in (("reading", 0.1), ("reading", 0.9), ("judging", 0.0)):
            tell(step, done)
    assert stream.getvalue() == "reading …\njudging …\n"


def test_on_a_terminal_there_is_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, progress is one line of at most its width, which is erased at the end."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "50")
    stream = StringIO()
    with Screen(stream).steps() as tell:
        tell("reading " + "x" * 100, 0.5)
    shown = stream.getvalue()
    assert "reading" in shown
    assert "x" * 60 not in shown
    assert shown.endswith("\x1b[2K")


def test_a_part_is_silent_in_a_file_and_named_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a log file a case of a gate prints nothing itself; on a terminal its bar has its name."""
    stream = StringIO()
    part = Screen(stream).part("3 of 12 · kill")
    part.say("results/…")
    with part.steps() as tell:
        tell("reading", 0.5)
    assert stream.getvalue() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Screen(stream).part("3 of 12 · kill").steps() as tell:
        tell("reading", 0.5)
    assert "3 of 12 · kill · reading" in stream.getvalue()
