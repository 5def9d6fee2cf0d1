"""Plays many cases, and keeps the frames that reach new lines of the broker."""

import contextlib
import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import broker_impl
from bench.frames import cases, checks, rig
from bench.frames.cases import Case
from bench.frames.lines import Lines

CASES_PER_BROKER: Final = 1000
"""The cases after which a new broker is started: what earlier ones have created is gone then."""
KEPT_MAX: Final = 3000
"""The number of frames that are kept."""
TRACED_ALL: Final = 20_000
"""The first cases, whose lines are traced; later ones rarely reach new lines."""
TRACED_EVERY: Final = 4
"""Of the later cases, one of so many is traced, because that makes a case twice as slow."""
_LOGGERS: Final = ("broker_impl", "asyncio")


@dataclass(slots=True)
class Finding:
    """A problem that one case or several showed."""

    problem: str
    case: Case
    """The first case that showed it."""
    count: int = 1
    is_reported: bool = False
    """Whether it was reported while the campaign goes on."""


@dataclass(slots=True)
class Summary:
    """What a campaign has done and found."""

    seed: int
    cases: Counter[str] = field(default_factory=Counter)
    """Cases by mode."""
    frames: int = 0
    answers: int = 0
    closed: int = 0
    brokers: int = 0
    kept: list[bytes] = field(default_factory=list)
    lines: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)
    digest: Any = field(default_factory=sha256)
    """The hash of everything that was sent and answered."""

    def add(self, case: Case, frames: list[bytes], result: checks.Result) -> None:
        """Count a case and its result."""
        self.cases[case.mode] += 1
        self.frames += len(frames)
        self.answers += result.answers
        self.closed += result.is_closed
        self.digest.update(case.data + result.written)
        for problem in result.problems:
            kind = re.sub(r"\d+", "#", problem)
            if kind in self.findings:
                self.findings[kind].count += 1
            else:
                self.findings[kind] = Finding(problem, case)


def run(
    seed: int,
    frames: int,
    *,
    guided: bool = True,
    on_broker: Callable[[Summary], object] = lambda _: None,
) -> Summary:
    """Play cases until so many frames were sent.

    guided: keep frames that reach new lines; on_broker: called when a broker has ended.
    """
    summary = Summary(seed)
    lines = Lines(str(Path(broker_impl.__file__).parent)) if guided else None
    with _errors() as errors:
        while summary.frames < frames:
            name = f"{seed} {summary.brokers}"
            summary.brokers += 1
            rng = random.Random(f"{name} cases")

            async def play(each: rig.Rig, rng: random.Random = rng) -> None:
                await _play(each, rng, errors, summary, frames, lines)

            rig.run(name, play)
            on_broker(summary)
    return summary


async def _play(
    each: rig.Rig,
    rng: random.Random,
    errors: checks.Errors,
    summary: Summary,
    frames_max: int,
    lines: Lines | None,
) -> None:
    """Play the cases of one broker, until it has ended."""
    for _ in range(CASES_PER_BROKER):
        if summary.frames >= frames_max or each.broker._failure is not None:
            return
        case, frames = cases.draw(rng, summary.kept, each.known)
        with _tracing(lines if _is_traced(summary.cases.total()) else None):
            result = await checks.play(each, case, errors)
        summary.add(case, frames, result)
        if lines is not None and lines.count > summary.lines:
            summary.lines = lines.count
            summary.kept = [*summary.kept, *filter(None, frames)][-KEPT_MAX:]


def replay(case: Case, before: Callable[[], object] = lambda: None) -> checks.Result:
    """Play one case against a new broker; ``before`` is called once the broker is ready."""
    with _errors() as errors:

        async def play(each: rig.Rig) -> checks.Result:
            before()
            return await checks.play(each, case, errors)

        result: checks.Result = rig.run("replay", play)
        return result


def _is_traced(number: int) -> bool:
    return number < TRACED_ALL or number % TRACED_EVERY == 0


def _tracing(lines: Lines | None) -> AbstractContextManager[None]:
    return contextlib.nullcontext() if lines is None else lines.tracing()


@contextlib.contextmanager
def _errors() -> Iterator[checks.Errors]:
    """Collect the errors that the broker logs, and drop what else it logs."""
    errors = checks.Errors()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.addHandler(errors)
        logger.propagate = False
        logger.setLevel(logging.ERROR)
    try:
        yield errors
    finally:
        for logger, (propagate, level) in zip(loggers, before, strict=True):
            logger.removeHandler(errors)
            logger.propagate = propagate
            logger.setLevel(level)
