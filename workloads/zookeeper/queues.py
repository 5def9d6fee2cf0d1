"""Queues of sequential znodes, from which clients take elements by deleting them.

At the end, the queues are emptied and listed, so that every element must have been taken once.
"""

import random
from functools import partial
from typing import Any

import msgspec

from model.generator import PENDING, Answer, Context, Generator, Invocation, Until, Wait
from model.op import Op
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import RETRY_S, Choice, Mixed, Readings


def queues(plan: Plan) -> list[str]:
    """Return the queues of a plan."""
    return [f"{common.root(plan)}/q{number}" for number in range(int(plan.options["queues"]))]


def choose(
    take_p: float, paths: list[str], ctx: Context, process: int, number: int, notes: None
) -> Choice:
    """Append an element to a queue, or take one."""
    del process, notes
    path = ctx.rng.choice(paths)
    if ctx.rng.random() < take_p:
        return "dequeue", {"path": path}
    return "enqueue", {"path": path, "data": str(number), "sequential": True}


class Drain(msgspec.Struct, frozen=True):
    """Takes elements of these queues until each was found empty."""

    left: tuple[str, ...]
    is_busy: bool = False
    due_s: float = 0.0
    """When to try again after a failure."""

    def op(self, ctx: Context) -> Answer:
        if not self.left:
            return None, self
        if ctx.now_s < self.due_s:
            return Wait(self.due_s), self
        if self.is_busy or not ctx.free:
            return PENDING, self
        value = {"path": self.left[0]}
        return Invocation(process=ctx.rng.choice(ctx.free), f="dequeue", value=value), self

    def update(self, event: Op) -> Generator:
        if event.f != "dequeue":
            return self
        if event.type == "invoke":
            return Drain(self.left, True)
        if event.type != "ok":
            return Drain(self.left, False, event.time_ns / 1e9 + RETRY_S)
        is_empty = event.value["deleted"] is None
        return Drain(self.left[1:] if is_empty else self.left)


class Then(msgspec.Struct, frozen=True):
    """Runs one generator after the other."""

    parts: tuple[Generator, ...]

    def op(self, ctx: Context) -> Answer:
        if not self.parts:
            return None, self
        answer, first = self.parts[0].op(ctx)
        if answer is None:
            return Then(self.parts[1:]).op(ctx)
        return answer, Then((first, *self.parts[1:]))

    def update(self, event: Op) -> Generator:
        return Then((self.parts[0].update(event), *self.parts[1:])) if self.parts else self


def main(plan: Plan) -> Generator:
    """Append and take elements until the time limit."""
    return generators.main(
        plan, Mixed(partial(choose, float(plan.options["take_p"]), queues(plan)))
    )


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Empty every queue, and list what is left."""
    del keys
    paths = queues(plan)
    readings: list[Choice] = [
        ("children", {"path": path, "place": path, "sync": True, "final": True}) for path in paths
    ]
    return Until(until_s, Then((Drain(tuple(paths)), Readings(tuple(readings)))))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"queues": 1, "take_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of queues, and the share of operations that take elements."""
    return {"options": {"queues": rng.choice((1, 2)), "take_p": rng.choice((0.4, 0.5, 0.7))}}


WORKLOAD = Workload(
    name="zk-queue",
    service="zookeeper",
    rate_hz=100.0,
    # The share of operations that take elements.
    options={**common.OPTIONS, "queues": 1, "take_p": 0.5},
    refuse=refuse,
    main=main,
    final=final,
    client=common.client_below(queues),
    op_timeout_s=common.op_timeout_s,
    topics=lambda plan: (),
    asked=lambda plan: (),
    needs=lambda plan: common.NO_NEEDS,
    vary=vary,
)
"""The workload."""
