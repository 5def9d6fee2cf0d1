"""Registers, which clients read, write, and compare and set by version.

The versions make it certain which write came after which, so that a write which is lost, or takes
effect twice, shows in the next one.
"""

import random
from collections.abc import Mapping
from functools import partial
from typing import Any

from model.generator import Context, Generator
from model.op import Op
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import Choice, Mixed

Versions = Mapping[str, int]
"""The latest version of each register that any client was answered."""


def paths(plan: Plan) -> list[str]:
    """Return the registers of a plan."""
    return [f"{common.root(plan)}/r{number}" for number in range(int(plan.options["registers"]))]


def note(versions: Versions, event: Op) -> Versions:
    """Keep the version of a register that an event shows."""
    if event.type == "fail" and event.error == "no-node":
        return {path: v for path, v in versions.items() if path != event.value["path"]}
    if event.type != "ok" or event.f not in ("create", "set", "get"):
        return versions
    if event.f == "create":
        return {**versions, event.value["created"]: 0}
    stat = event.value["stat"]
    return versions if stat is None else {**versions, event.value["path"]: stat["version"]}


def choose(
    registers: list[str], ctx: Context, process: int, number: int, versions: Versions
) -> Choice:
    """Choose a register, and create, read, write, or compare and set it."""
    del process
    path, chance = ctx.rng.choice(registers), ctx.rng.random()
    if path not in versions:
        return "create", {"path": path, "data": str(number)}
    if chance < 0.3:
        return "get", {"path": path, "sync": chance < 0.1}
    if chance < 0.5:
        return "set", {"path": path, "data": str(number), "version": -1}
    return "set", {"path": path, "data": str(number), "version": versions[path]}


def main(plan: Plan) -> Generator:
    """Use the registers until the time limit."""
    return generators.main(plan, Mixed(partial(choose, paths(plan)), note, {}))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read every register."""
    del keys
    return generators.final(until_s, [generators.synced(path) for path in paths(plan)])


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"registers": 1})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of registers: few, so that clients compete, or many."""
    return {"options": {"registers": rng.choice((1, 3, 10))}}


WORKLOAD = Workload(
    name="zk-register",
    service="zookeeper",
    rate_hz=200.0,
    options={**common.OPTIONS, "registers": 3},
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
