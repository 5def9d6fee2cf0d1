"""A simulation lasts as long as the phases of its test may last."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from harness.app import plan_resolution, runtime
from harness.app.progress import Screen
from harness.simulation.deadlock import OutOfTime
from model.plan import Plan

LIMIT_S, FINAL_S = 10.0, 700.0


def _lasts(folder: Path, seconds: float) -> object:
    """Simulate a test that lasts this long, and return its result."""
    plan = plan_resolution.resolve(
        Plan(target="simulated", time_limit_s=LIMIT_S, options={"final_time_limit_s": FINAL_S})
    )
    done: Any = object()

    async def test(*_: object) -> Any:
        await asyncio.sleep(seconds)
        return done

    return runtime.in_a_world(plan, folder, lambda **_: done, test, Screen(io.StringIO())) is done


def test_final_reads_have_their_own_time(tmp_path: Path) -> None:
    """Their limit may be longer than the patience with all other phases, as in a soak."""
    assert runtime.PATIENCE_S < FINAL_S
    assert _lasts(tmp_path, LIMIT_S + FINAL_S + runtime.PATIENCE_S / 2)


def test_a_test_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    """Beyond all limits a simulation ends with an error."""
    with pytest.raises(OutOfTime):
        _lasts(tmp_path, LIMIT_S + FINAL_S + runtime.PATIENCE_S + 1)
