"""A generator is a pure value that is asked what to do next and told what came of it.

``op`` answers with an invocation, with :class:`Wait` (nothing to do yet) or with ``None`` (nothing
to do ever again), each with the generator to ask next time. Whoever asks may throw an answer away,
as long as it keeps the generator it asked: so nothing happens until an invocation is carried out.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from model.op import Op


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """What a process shall do, and when at the earliest."""

    process: int
    f: str
    value: Any = None
    at_s: float = 0.0
    """Seconds since the run began; an earlier time than now means now."""


class Wait(msgspec.Struct, frozen=True):
    """Nothing to do before ``until_s`` or the next event, whichever comes first."""

    until_s: float = math.inf


LOOK_EVERY_S = 0.5
"""In overtime, which may end at any moment."""
PENDING = Wait()
"""Nothing to do before the next event."""


class Context(msgspec.Struct, frozen=True):
    """What a generator may know when it is asked."""

    now_s: float
    """Seconds since the run began."""
    free: tuple[int, ...]
    """The processes that wait for work, in the order of their threads."""
    concurrency: int
    """How many threads there are; process p runs on thread ``p % concurrency``."""
    rng: random.Random
    overtime_s: float = 0.0
    """For how long work may go on beyond its end, because what it is to be done under is late."""

    def only(self, first: int, end: int) -> "Context":
        """The same moment, seen by the threads from ``first`` to before ``end``."""
        free = tuple(p for p in self.free if first <= p % self.concurrency < end)
        return Context(self.now_s, free, self.concurrency, self.rng, self.overtime_s)


Answer = tuple[Invocation | Wait | None, "Generator"]


class Generator(Protocol):
    """Something to do; immutable."""

    def op(self, ctx: Context) -> Answer:
        """What is next; names a process of ``ctx.free``. May draw from ``ctx.rng``."""
        ...

    def update(self, event: Op) -> "Generator":
        """The generator that knows of this event, an invocation or a completion."""
        ...


class Repeat(msgspec.Struct, frozen=True):
    """The same operation, ever again, by any free process."""

    f: str
    value: Any = None

    def op(self, ctx: Context) -> Answer:
        if not ctx.free:
            return PENDING, self
        return Invocation(process=ctx.rng.choice(ctx.free), f=self.f, value=self.value), self

    def update(self, event: Op) -> Generator:
        return self


class Stagger(msgspec.Struct, frozen=True):
    """Spreads operations: the gaps between them are uniform in [0, 2 · ``every_s``].

    What was missed while nobody was free is not made up for.
    """

    every_s: float
    of: Generator
    next_s: float = 0.0

    def op(self, ctx: Context) -> Answer:
        answer, of = self.of.op(ctx)
        if not isinstance(answer, Invocation):
            return answer, Stagger(self.every_s, of, self.next_s)
        at_s = max(self.next_s, answer.at_s, ctx.now_s)
        next_s = at_s + ctx.rng.uniform(0, 2 * self.every_s)
        return msgspec.structs.replace(answer, at_s=at_s), Stagger(self.every_s, of, next_s)

    def update(self, event: Op) -> Generator:
        of = self.of.update(event)
        return self if of is self.of else Stagger(self.every_s, of, self.next_s)


class Until(msgspec.Struct, frozen=True):
    """Ends at ``end_s`` seconds after the run began, or with the overtime that there is then,
    whatever ``of`` still has to do."""

    end_s: float
    of: Generator

    def op(self, ctx: Context) -> Answer:
        end_s = self.end_s
        if ctx.now_s >= end_s:
            if ctx.now_s >= end_s + ctx.overtime_s:
                return None, self
            end_s = ctx.now_s + LOOK_EVERY_S
        answer, of = self.of.op(ctx)
        match answer:
            case Invocation(at_s=at_s) if at_s >= end_s:
                return Wait(end_s), self
            case Wait(until_s):
                return Wait(min(until_s, end_s)), Until(self.end_s, of)
            case _:
                return answer, Until(self.end_s, of)

    def update(self, event: Op) -> Generator:
        of = self.of.update(event)
        return self if of is self.of else Until(self.end_s, of)


class AnyOf(msgspec.Struct, frozen=True):
    """Whichever of several can act soonest; the first of them when several can."""

    parts: tuple[Generator, ...]

    def op(self, ctx: Context) -> Answer:
        return _soonest(self.parts, [ctx] * len(self.parts), AnyOf)

    def update(self, event: Op) -> Generator:
        return AnyOf(tuple(part.update(event) for part in self.parts))


class Reserve(msgspec.Struct, frozen=True):
    """Threads of their own for each part: the first ``count`` for the first, and so on.

    Every part hears of every event: what one writes another may want to read.
    """

    parts: tuple[tuple[int, Generator], ...]

    def op(self, ctx: Context) -> Answer:
        contexts = []
        first = 0
        for count, _ in self.parts:
            contexts.append(ctx.only(first, first + count))
            first += count
        counts = [count for count, _ in self.parts]
        return _soonest(
            tuple(part for _, part in self.parts),
            contexts,
            lambda parts: Reserve(tuple(zip(counts, parts, strict=True))),
        )

    def update(self, event: Op) -> Generator:
        return Reserve(tuple((count, part.update(event)) for count, part in self.parts))


def _soonest(
    parts: tuple[Generator, ...],
    contexts: Sequence[Context],
    rebuild: Callable[[tuple[Generator, ...]], Generator],
) -> Answer:
    """The earliest invocation of ``parts``; else how long to wait; else nothing any more."""
    kept = list(parts)
    first: tuple[int, Invocation, Generator] | None = None
    until_s: float | None = None
    for number, (part, ctx) in enumerate(zip(parts, contexts, strict=True)):
        answer, later = part.op(ctx)
        match answer:
            case None:
                pass
            case Wait():
                kept[number] = later
                until_s = answer.until_s if until_s is None else min(until_s, answer.until_s)
            case Invocation():
                at_s = max(answer.at_s, ctx.now_s)
                if first is None or at_s < max(first[1].at_s, ctx.now_s):
                    first = number, answer, later
    if first is None:
        return (None if until_s is None else Wait(until_s)), rebuild(tuple(kept))
    number, answer, later = first
    kept[number] = later
    return answer, rebuild(tuple(kept))
