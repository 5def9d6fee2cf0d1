"""Znodes that are created, read, set and deleted by many clients.

A deleted znode is created again under the same path, and then is another one with another
``czxid``, so that a znode which returns by itself shows.
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

Present = Mapping[str, bool]
"""Whether the latest answer about a path showed a znode there."""


def paths(plan: Plan) -> list[str]:
    """Return the paths of a plan's znodes."""
    return [f"{common.root(plan)}/k{number}" for number in range(int(plan.options["keys"]))]


def note(present: Present, event: Op) -> Present:
    """Keep whether a path has a znode."""
    if event.type not in ("ok", "fail") or not isinstance(event.value, dict):
        return present
    path = str(event.value["path"])
    if event.type == "fail":
        known = {"no-node": False, "node-exists": True}.get(event.error or "")
        return present if known is None else {**present, path: known}
    if event.f == "get":
        return {**present, path: event.value["stat"] is not None}
    return {**present, path: event.f != "delete"}


def choose(keys: list[str], ctx: Context, process: int, number: int, present: Present) -> Choice:
    """Choose a path, and create, read, set or delete its znode."""
    del process
    path, chance = ctx.rng.choice(keys), ctx.rng.random()
    if chance < 0.3:
        return "get", {"path": path, "sync": chance < 0.1}
    if not present.get(path, False) or chance < 0.35:
        return "create", {"path": path, "data": str(number)}
    if chance < 0.8:
        return "set", {"path": path, "data": str(number), "version": -1}
    return "delete", {"path": path, "version": -1}


def main(plan: Plan) -> Generator:
    """Use the znodes until the time limit."""
    return generators.main(plan, Mixed(partial(choose, paths(plan)), note, {}))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read every path."""
    del keys
    return generators.final(until_s, [generators.synced(path) for path in paths(plan)])


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"keys": 1})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of paths."""
    return {"options": {"keys": rng.choice((2, 8, 40))}}


WORKLOAD = Workload(
    name="zk-kv",
    service="zookeeper",
    rate_hz=200.0,
    options={**common.OPTIONS, "keys": 8},
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
