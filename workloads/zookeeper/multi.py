"""Groups of znodes that are always written together: all or none.

Each multi sets every znode of a group to the same data. Some have a condition that never holds, and
must be rejected as a whole. A reader must never see that a part of a multi was executed.
"""

import random
from functools import partial
from typing import Any

from model.generator import Context, Generator
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import Choice, Mixed

IMPOSSIBLE = 1 << 30
"""A version that no znode reaches."""


def groups(plan: Plan) -> list[list[str]]:
    """Return the paths of each group."""
    return [
        [f"{place}/m{member}" for member in range(int(plan.options["members"]))]
        for place in places(plan)
    ]


def places(plan: Plan) -> list[str]:
    """Return the parents of the groups."""
    return [f"{common.root(plan)}/g{number}" for number in range(int(plan.options["groups"]))]


def parents(plan: Plan) -> list[str]:
    """Return what must exist: the parents and the members of all groups."""
    return [*places(plan), *(path for group in groups(plan) for path in group)]


def choose(
    reject_p: float, known: list[list[str]], ctx: Context, process: int, number: int, notes: None
) -> Choice:
    """Choose a group, and write it, fail to, or read one of its znodes."""
    del process, notes
    group = ctx.rng.choice(known)
    place = group[0].rpartition("/")[0]
    if ctx.rng.random() < 0.5:
        is_synced = ctx.rng.random() < 0.3
        return "get", {"path": ctx.rng.choice(group), "place": place, "sync": is_synced}
    parts: list[list[Any]] = [["set", path, str(number), -1] for path in group]
    if ctx.rng.random() < reject_p:
        parts.insert(ctx.rng.randint(0, len(parts)), ["check", group[0], IMPOSSIBLE])
    return "multi", {"path": place, "place": place, "parts": parts}


def main(plan: Plan) -> Generator:
    """Write and read the groups until the time limit."""
    chosen = partial(choose, float(plan.options["reject_p"]), groups(plan))
    return generators.main(plan, Mixed(chosen))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read every znode of every group."""
    del keys
    readings: list[Choice] = [
        ("get", {"path": path, "place": path.rpartition("/")[0], "sync": True, "final": True})
        for group in groups(plan)
        for path in group
    ]
    return generators.final(until_s, readings)


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"groups": 1, "members": 2, "reject_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of groups and of their members."""
    return {"options": {"groups": rng.choice((1, 2)), "members": rng.choice((2, 3, 10))}}


WORKLOAD = Workload(
    name="zk-multi",
    service="zookeeper",
    rate_hz=150.0,
    # The share of multis that must be rejected.
    options={**common.OPTIONS, "groups": 2, "members": 3, "reject_p": 0.2},
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
