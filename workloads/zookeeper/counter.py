"""Counters, to which clients add by reading them and setting them if the version is the same.

The sum of all acknowledged additions is a lower bound of the last value, and the sum of those that
may have happened an upper one.
"""

import random
from functools import partial
from typing import Any

from model.generator import Context, Generator
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import Choice, Mixed


def paths(plan: Plan) -> list[str]:
    """Return the counters of a plan."""
    return [f"{common.root(plan)}/c{number}" for number in range(int(plan.options["counters"]))]


def choose(counters: list[str], ctx: Context, process: int, number: int, notes: None) -> Choice:
    """Choose a counter, and add to it or read it."""
    del process, number, notes
    path = ctx.rng.choice(counters)
    if ctx.rng.random() < 0.7:
        return "add", {"path": path, "delta": ctx.rng.randint(1, 5)}
    return "read", {"path": path, "sync": ctx.rng.random() < 0.3}


def main(plan: Plan) -> Generator:
    """Use the counters until the time limit."""
    return generators.main(plan, Mixed(partial(choose, paths(plan))))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read every counter."""
    del keys
    readings: list[Choice] = [
        ("read", {"path": path, "sync": True, "final": True}) for path in paths(plan)
    ]
    return generators.final(until_s, readings)


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"counters": 1})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of counters."""
    return {"options": {"counters": rng.choice((1, 2, 5))}}


WORKLOAD = Workload(
    name="zk-counter",
    service="zookeeper",
    rate_hz=100.0,
    options={**common.OPTIONS, "counters": 2},
    refuse=refuse,
    main=main,
    final=final,
    client=common.client_below(paths),
    op_timeout_s=common.op_timeout_s,
    topics=lambda plan: (),
    asked=lambda plan: (),
    needs=lambda plan: common.NO_NEEDS,
    vary=vary,
)
"""The workload."""
