"""Locks by ZooKeeper's recipe, with the ``czxid`` of the holder's znode as its fencing token.

A client that has acquired a lock writes to a resource, on condition that its znode still exists,
and releases the lock. Clients also end while they hold a lock, which their session then releases.
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

Held = Mapping[int, dict[str, Any]]
"""By process, the lock that it holds: path, znode, token and resource."""


def locks(plan: Plan) -> list[str]:
    """Return the locks of a plan."""
    return [f"{common.root(plan)}/l{number}" for number in range(int(plan.options["locks"]))]


def resource(lock: str) -> str:
    """Return the znode that only holders of a lock write."""
    return f"{lock}-resource"


def parents(plan: Plan) -> list[str]:
    """Return what must exist."""
    return [path for lock in locks(plan) for path in (lock, resource(lock))]


def note(held: Held, event: Op) -> Held:
    """Keep which process holds which lock."""
    if event.f == "acquire" and event.type == "ok":
        path = event.value["path"]
        mine = {"path": path, "resource": resource(path)}
        mine |= {name: event.value[name] for name in ("node", "token")}
        return {**held, event.process: mine}
    is_over = event.type == "info" or (event.type != "invoke" and event.f == "release")
    if is_over or (event.type == "fail" and event.f == "guard"):
        return {process: mine for process, mine in held.items() if process != event.process}
    return held


def choose(
    crash_p: float, paths: list[str], ctx: Context, process: int, number: int, held: Held
) -> Choice:
    """Acquire a lock; write, release it, or end while holding it."""
    del number
    mine = held.get(process)
    if mine is None:
        return "acquire", {"path": ctx.rng.choice(paths)}
    chance = ctx.rng.random()
    if chance < crash_p:
        return "abandon", {"place": mine["path"]}
    return ("guard" if chance < 0.6 else "release"), dict(mine)


def main(plan: Plan) -> Generator:
    """Acquire, use and release locks until the time limit."""
    chosen = partial(choose, float(plan.options["crash_p"]), locks(plan))
    return generators.main(plan, Mixed(chosen, note, {}))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read the resource of every lock."""
    del keys
    asked = {"sync": True, "final": True}
    readings: list[Choice] = [
        ("read", {"path": resource(lock), "place": lock, **asked}) for lock in locks(plan)
    ]
    return generators.final(until_s, readings)


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"locks": 1, "crash_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of locks, and how often a holder ends."""
    return {"options": {"locks": rng.choice((1, 2)), "crash_p": rng.choice((0.0, 0.05, 0.2))}}


WORKLOAD = Workload(
    name="zk-lock",
    service="zookeeper",
    rate_hz=100.0,
    # How likely it is that a holder ends instead of its next operation.
    options={**common.OPTIONS, "locks": 1, "crash_p": 0.01},
    refuse=refuse,
    main=main,
    final=final,
    client=common.client_below(parents),
    op_timeout_s=common.op_timeout_s,
    topics=lambda plan: (),
    asked=lambda plan: (),
    needs=lambda plan: common.NO_NEEDS,
    vary=vary,
)
"""The workload."""
