"""Judges one generated execution in this process, and measures how much memory that takes.

    python -m bench.adversarial.judge SHAPE STEPS MEMORY

The shape is JSON; the output is one object with the verdict, the time, the steps and the memory.
"""

import gc
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from bench.adversarial.executions import Shape, generate
from bench.adversarial.objects import KINDS
from checkers import objects
from checkers.linearizability.judging import Budget

_PROCESS = Path("/proc/self")


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What our checker says about an execution."""

    verdict: str
    seconds: float
    steps: int
    growth_mb: float
    """By how much the peak of the memory was above what the process had before."""
    used_up: str | None


def _peak() -> int:
    """Return the peak of the resident memory in bytes, as Linux counts it."""
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise OSError("the peak of the memory is not known")


def _resident() -> int:
    """Return the resident memory in bytes, and let the peak begin there."""
    gc.collect()
    with suppress(OSError):
        (_PROCESS / "clear_refs").write_text("5")
    return int(psutil.Process().memory_info().rss)


def judged(shape: Shape, steps: int, memory: int) -> Judged:
    """Generate an execution, and judge it."""
    kind = KINDS[shape.kind]
    objects.check(generate(shape._replace(operations=20, spoiled="")), kind.model)
    history = generate(shape)
    before = _resident()
    begin = time.perf_counter()
    found = objects.judged(history, kind.model, budget=Budget(steps, memory << 20))
    seconds = time.perf_counter() - begin
    parts = () if found.judgement is None else found.judgement.parts
    return Judged(
        verdict=str(found.verdict.valid),
        seconds=seconds,
        steps=sum(part.steps for part in parts),
        growth_mb=max(_peak() - before, 0) / (1 << 20),
        used_up=found.verdict.unknown_because,
    )


def main() -> int:
    """Judge what is asked for."""
    shape = msgspec.json.decode(sys.argv[1], type=Shape)
    found = judged(shape, int(sys.argv[2]), int(sys.argv[3]))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
