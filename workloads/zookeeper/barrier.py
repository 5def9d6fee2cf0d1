"""Barriers, which clients pass only when as many have entered as they need.

Each barrier is used once: processes enter it one after the other, and wait for each other.
"""

import random
from functools import partial
from typing import Any

import msgspec

from model.generator import Context, Generator
from model.op import Op
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import Choice, Mixed


class Barrier(msgspec.Struct, frozen=True):
    """The barrier of the moment, and how many clients have tried to enter it."""

    number: int = 0
    entered: int = 0


def note(size: int, barrier: Barrier, event: Op) -> Barrier:
    """Count the clients; a barrier that enough have tried to enter is followed by the next."""
    if event.f != "enter" or event.type != "invoke":
        return barrier
    is_full = barrier.entered + 1 == size
    return Barrier(barrier.number + is_full, 0 if is_full else barrier.entered + 1)


def choose(
    root: str, size: int, ctx: Context, process: int, number: int, barrier: Barrier
) -> Choice:
    """Enter the barrier of the moment."""
    del ctx
    value = {"path": f"{root}/b{barrier.number}", "place": root, "size": size}
    return "enter", {**value, "member": f"m{process}-{number}"}


def main(plan: Plan) -> Generator:
    """Enter one barrier after the other until the time limit."""
    size = int(plan.options["size"])
    chosen = partial(choose, common.root(plan), size)
    return generators.main(plan, Mixed(chosen, partial(note, size), Barrier()))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """List the barriers."""
    del keys
    root = common.root(plan)
    asked = {"path": root, "place": root, "sync": True, "final": True}
    return generators.final(until_s, [("children", asked)])


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"size": 2}, concurrency=max(2, int(plan.options["size"])))


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the size of barriers."""
    return {"options": {"size": rng.choice((2, 3))}}


WORKLOAD = Workload(
    name="zk-barrier",
    service="zookeeper",
    rate_hz=100.0,
    # How many clients a barrier needs.
    options={**common.OPTIONS, "size": 3},
    refuse=refuse,
    main=main,
    final=final,
    client=common.client_below(),
    op_timeout_s=common.op_timeout_s,
    topics=lambda plan: (),
    asked=lambda plan: (),
    needs=lambda plan: common.NO_NEEDS,
    vary=vary,
)
"""The workload."""
