"""One-shot watches: each change is notified once, and before the session can read it.

Clients read znodes, some with a watch, and write them. A session has at most one watch on a znode
at a time, so that every event belongs to one registration.
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
    """Return the znodes of a plan."""
    return [f"{common.root(plan)}/w{number}" for number in range(int(plan.options["znodes"]))]


def choose(
    write_p: float, znodes: list[str], ctx: Context, process: int, number: int, notes: None
) -> Choice:
    """Write a znode, or read it, mostly with a watch."""
    del process, notes
    path = ctx.rng.choice(znodes)
    if ctx.rng.random() < write_p:
        return "set", {"path": path, "data": str(number), "version": -1}
    if ctx.rng.random() < 0.7:
        return "get", {"path": path, "watch": number}
    return "get", {"path": path, "sync": ctx.rng.random() < 0.5}


def main(plan: Plan) -> Generator:
    """Write, read and watch until the time limit."""
    chosen = partial(choose, float(plan.options["write_p"]), paths(plan))
    return generators.main(plan, Mixed(chosen))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read every znode."""
    del keys
    return generators.final(until_s, [generators.synced(path) for path in paths(plan)])


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"znodes": 1, "write_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of znodes, and the share of writes."""
    return {"options": {"znodes": rng.choice((1, 3, 10)), "write_p": rng.choice((0.1, 0.3))}}


WORKLOAD = Workload(
    name="zk-watches",
    service="zookeeper",
    rate_hz=200.0,
    # The share of writes.
    options={**common.OPTIONS, "znodes": 3, "write_p": 0.25},
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
