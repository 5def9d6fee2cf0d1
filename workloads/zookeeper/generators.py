"""Generators that several of ZooKeeper's workloads use: random choices, and final reads."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from model.generator import PENDING, Answer, Context, Generator, Invocation, Stagger, Until, Wait
from model.op import Op
from model.plan import Plan

Choice = tuple[str, dict[str, Any]]
"""The name of an operation, and the value of its invocation."""
RETRY_S = 0.5
"""How long after a final read without an answer to try again."""


class Mixed(msgspec.Struct, frozen=True):
    """Lets a free process do what ``choose`` returns for it.

    ``choose`` receives the context, the process, the number of the choice, which makes values
    unique, and what ``note`` has made of all events so far.
    """

    choose: Callable[[Context, int, int, Any], Choice | None]
    note: Callable[[Any, Op], Any] = lambda notes, event: notes
    notes: Any = None
    number: int = 1

    def op(self, ctx: Context) -> Answer:
        if not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        choice = self.choose(ctx, process, self.number, self.notes)
        if choice is None:
            return Wait(ctx.now_s + RETRY_S), self
        f, value = choice
        later = msgspec.structs.replace(self, number=self.number + 1)
        return Invocation(process=process, f=f, value=value), later

    def update(self, event: Op) -> Generator:
        notes = self.note(self.notes, event)
        return self if notes is self.notes else msgspec.structs.replace(self, notes=notes)


def main(plan: Plan, mixed: Generator) -> Generator:
    """Run a generator at the plan's rate, until its time limit."""
    return Until(plan.time_limit_s, Stagger(1 / plan.rate_hz, mixed))


class Readings(msgspec.Struct, frozen=True):
    """Does each of these operations once successfully, on any process."""

    left: tuple[Choice, ...]
    running: Mapping[int, Choice] = msgspec.field(default_factory=dict)
    """The operation of each process."""
    due_s: float = 0.0
    """When to try again after a failure."""

    def op(self, ctx: Context) -> Answer:
        if not self.left:
            return (PENDING if self.running else None), self
        if ctx.now_s < self.due_s:
            return Wait(self.due_s), self
        free = [process for process in ctx.free if process not in self.running]
        if not free:
            return PENDING, self
        f, value = self.left[0]
        return Invocation(process=ctx.rng.choice(free), f=f, value=value), self

    def update(self, event: Op) -> Generator:
        if event.type == "invoke":
            choice = next((each for each in self.left if each == (event.f, event.value)), None)
            if choice is None:
                return self
            left = list(self.left)
            left.remove(choice)
            running = {**self.running, event.process: choice}
            return Readings(tuple(left), running, self.due_s)
        if event.process not in self.running:
            return self
        running = dict(self.running)
        choice = running.pop(event.process)
        if event.type == "ok":
            return Readings(self.left, running, self.due_s)
        return Readings((*self.left, choice), running, event.time_ns / 1e9 + RETRY_S)


def final(until_s: float, readings: list[Choice]) -> Generator:
    """Do these operations, until that time of the run."""
    return Until(until_s, Readings(tuple(readings)))


def synced(path: str) -> Choice:
    """Return the read of a znode after ``sync``."""
    return "get", {"path": path, "sync": True, "final": True}


class Later(msgspec.Struct, frozen=True):
    """Begins after a delay, which is counted from the first time that it is asked."""

    delay_s: float
    of: Generator
    begin_s: float | None = None

    def op(self, ctx: Context) -> Answer:
        begin_s = ctx.now_s + self.delay_s if self.begin_s is None else self.begin_s
        if ctx.now_s < begin_s:
            return Wait(begin_s), Later(self.delay_s, self.of, begin_s)
        answer, of = self.of.op(ctx)
        return answer, Later(self.delay_s, of, begin_s)

    def update(self, event: Op) -> Generator:
        return Later(self.delay_s, self.of.update(event), self.begin_s)
