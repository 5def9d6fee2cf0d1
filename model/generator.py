"""A generator is an immutable value that returns the next operation and is updated with each event.

``op`` returns an invocation, :class:`Wait` (nothing to do yet) or ``None`` (nothing to do any
more), together with the generator to call next time. The caller may discard an answer if it keeps
the generator that it called: a generator has no effect until an invocation is carried out.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from model.op import Op


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation for a process, with the earliest time at which it starts."""

    process: int
    f: str
    value: Any = None
    at_s: float = 0.0
    """Seconds since the run began; a time in the past means now."""


class Wait(msgspec.Struct, frozen=True):
    """Nothing to do before ``until_s`` or the next event, whichever comes first."""

    until_s: float = math.inf


LOOK_EVERY_S = 0.5
"""How often a generator in overtime is called again, because overtime may end at any moment."""
PENDING = Wait()
"""Nothing to do before the next event."""


class Context(msgspec.Struct, frozen=True):
    """What a generator may use to choose the next operation."""

    now_s: float
    """Seconds since the run began."""
    free: tuple[int, ...]
    """The processes that are idle, in the order of their threads."""
    concurrency: int
    """How many threads there are; process p runs on thread ``p % concurrency``."""
    rng: random.Random
    overtime_s: float = 0.0
    """How long work may continue past its planned end, because faults planned for it are late."""

    def only(self, first: int, end: int) -> "Context":
        """Return this context restricted to the threads from ``first`` to before ``end``."""
        free = tuple(p for p in self.free if first <= p % self.concurrency < end)
        return Context(self.now_s, free, self.concurrency, self.rng, self.overtime_s)


Answer = tuple[Invocation | Wait | None, "Generator"]


class Generator(Protocol):
    """A source of operations; immutable."""

    def op(self, ctx: Context) -> Answer:
        """Return the next operation, for a process of ``ctx.free``. May draw from ``ctx.rng``."""
        ...

    def update(self, event: Op) -> "Generator":
        """Return the generator's state after this event, which is an invocation or a completion."""
        ...


class Repeat(msgspec.Struct, frozen=True):
    """Invokes the same operation without end, on any free process."""

    f: str
    value: Any = None

    def op(self, ctx: Context) -> Answer:
        if not ctx.free:
            return PENDING, self
        return Invocation(process=ctx.rng.choice(ctx.free), f=self.f, value=self.value), self

    def update(self, event: Op) -> Generator:
        return self


class Stagger(msgspec.Struct, frozen=True):
    """Spreads operations in time: the gaps between them are uniform in [0, 2 · ``every_s``].

    Operations that were missed while no process was free are not made up for.
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
    """Ends at ``end_s`` seconds of the run, plus any overtime, even if ``of`` could continue."""

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
    """Takes the earliest operation of several generators; of several earliest ones, the first."""

    parts: tuple[Generator, ...]

    def op(self, ctx: Context) -> Answer:
        return _soonest(self.parts, [ctx] * len(self.parts), AnyOf)

    def update(self, event: Op) -> Generator:
        return AnyOf(tuple(part.update(event) for part in self.parts))


class Reserve(msgspec.Struct, frozen=True):
    """Gives each generator threads of its own: the first ``count`` threads to the first, and so on.

    Every generator is updated with every event, because a generator may read what another writes.
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
    """Return the earliest invocation of ``parts``, else the shortest wait, else ``None``."""
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
