"""Reads of registers that others write, by sessions that move between servers.

A session must never see an older state than it has seen, on whichever server, and must see its own
writes. Some reads follow ``sync``.
"""

import random
from functools import partial
from typing import Any

from model.generator import Context, Generator
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators, register
from workloads.zookeeper.generators import Choice, Mixed
from workloads.zookeeper.register import Versions


def choose(
    write_p: float,
    registers: list[str],
    ctx: Context,
    process: int,
    number: int,
    versions: Versions,
) -> Choice:
    """Choose a register, and create, write or read it."""
    del process
    path, chance = ctx.rng.choice(registers), ctx.rng.random()
    if path not in versions:
        return "create", {"path": path, "data": str(number)}
    if chance < write_p:
        return "set", {"path": path, "data": str(number), "version": -1}
    return "get", {"path": path, "sync": ctx.rng.random() < 0.3}


def main(plan: Plan) -> Generator:
    """Write and read the registers until the time limit."""
    chosen = partial(choose, float(plan.options["write_p"]), register.paths(plan))
    return generators.main(plan, Mixed(chosen, register.note, {}))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"registers": 1, "write_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of registers and the share of writes."""
    return {"options": {"registers": rng.choice((1, 4)), "write_p": rng.choice((0.1, 0.3))}}


WORKLOAD = Workload(
    name="zk-reads",
    service="zookeeper",
    rate_hz=300.0,
    # The share of writes.
    options={**common.OPTIONS, "registers": 4, "write_p": 0.2},
    refuse=refuse,
    main=main,
    final=register.final,
    client=common.client_below(),
    op_timeout_s=common.op_timeout_s,
    topics=lambda plan: (),
    asked=lambda plan: (),
    needs=lambda plan: common.NO_NEEDS,
    vary=vary,
)
"""The workload."""
