"""Watches: each change is notified once, and before the session can read it.

Clients read znodes, some with a one-shot watch, and write them. Other znodes, with children, have
persistent watches, which are set and removed; clients change and read these znodes as well. A
session has at most one watch on a znode at a time, so that every event belongs to one registration.

kazoo has no persistent watches, nor has Apache ZooKeeper before 3.6: there only one-shot watches
are used.
"""

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from model.generator import Context, Generator
from model.op import Op
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import Choice, Mixed

CHILDREN = 3
"""The number of children that a znode with persistent watches may have."""
UNWATCH_P = 0.08
"""The share of operations on such a znode that remove the process's watch."""

Watched = Mapping[int, frozenset[str]]
"""The znodes on which each process has a persistent watch."""


def paths(plan: Plan) -> list[str]:
    """Return the znodes with one-shot watches."""
    return [f"{common.root(plan)}/w{number}" for number in range(int(plan.options["znodes"]))]


def observed(plan: Plan) -> list[str]:
    """Return the znodes with persistent watches; none if client or server has no such watches."""
    if not common.has_persistent_watches(plan) or not plan.options["persistent_p"]:
        return []
    return [f"{common.root(plan)}/p{number}" for number in range(int(plan.options["znodes"]))]


def parents(plan: Plan) -> list[str]:
    """Return the znodes that exist from the start."""
    return [*paths(plan), *observed(plan)]


class Choices(NamedTuple):
    """What is chosen from."""

    write_p: float
    persistent_p: float
    znodes: list[str]
    observed: list[str]

    def choose(self, ctx: Context, process: int, number: int, watched: Watched) -> Choice:
        """Choose a znode, and write, read or watch it."""
        if self.observed and ctx.rng.random() < self.persistent_p:
            path = ctx.rng.choice(self.observed)
            return self._of_observed(path, ctx.rng, number, watched.get(process, frozenset()))
        path = ctx.rng.choice(self.znodes)
        if ctx.rng.random() < self.write_p:
            return "set", {"path": path, "data": str(number), "version": -1}
        if ctx.rng.random() < 0.7:
            return "get", {"path": path, "watch": number}
        return "get", {"path": path, "sync": ctx.rng.random() < 0.5}

    def _of_observed(
        self, path: str, rng: random.Random, number: int, mine: frozenset[str]
    ) -> Choice:
        """Set or remove a persistent watch, or change or read the znode or a child of it."""
        chance = rng.random()
        if path not in mine and chance < 0.5:
            return "watch", {"path": path, "watch": number, "recursive": rng.random() < 0.5}
        if path in mine and chance < UNWATCH_P:
            return "unwatch", {"path": path}
        is_write = rng.random() < self.write_p
        if rng.random() < 0.5:
            path = f"{path}/c{rng.randrange(CHILDREN)}"
            f = rng.choice(("create", "set", "delete"))
        else:
            f = "set"
        if not is_write:
            return "get", {"path": path}
        data = {} if f == "delete" else {"data": str(number)}
        return f, {"path": path, **data, **({} if f == "create" else {"version": -1})}


def note(watched: Watched, event: Op) -> Watched:
    """Keep which process has a persistent watch on which znode."""
    mine = watched.get(event.process, frozenset())
    if event.type == "info":
        return {process: each for process, each in watched.items() if process != event.process}
    if event.f == "watch" and event.type == "ok":
        return {**watched, event.process: mine | {event.value["path"]}}
    is_gone = event.type == "ok" or event.error == "no-watcher"
    if event.f == "unwatch" and event.type != "invoke" and is_gone:
        return {**watched, event.process: mine - {event.value["path"]}}
    return watched


def main(plan: Plan) -> Generator:
    """Write, read and watch until the time limit."""
    options = plan.options
    shares = (float(options["write_p"]), float(options["persistent_p"]))
    choices = Choices(*shares, paths(plan), observed(plan))
    return generators.main(plan, Mixed(choices.choose, note, {}))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read every znode."""
    del keys
    below = [f"{path}/c{number}" for path in observed(plan) for number in range(CHILDREN)]
    return generators.final(until_s, [*map(generators.synced, [*parents(plan), *below])])


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"znodes": 1, "write_p": 0.0, "persistent_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of znodes, and the shares of writes and of persistent watches."""
    options = {"znodes": rng.choice((1, 3, 10)), "write_p": rng.choice((0.1, 0.3))}
    return {"options": {**options, "persistent_p": rng.choice((0.0, 0.4, 0.8))}}


WORKLOAD = Workload(
    name="zk-watches",
    service="zookeeper",
    rate_hz=200.0,
    # The shares of writes, and of operations on znodes with persistent watches.
    options={**common.OPTIONS, "znodes": 3, "write_p": 0.25, "persistent_p": 0.4},
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
