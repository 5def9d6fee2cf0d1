"""Sequential znodes: their numbers are never used twice, and no znode is lost or returns.

Clients create children with sequential names, delete some of them, and list them.
"""

import random
from functools import partial
from typing import Any

from model.generator import Context, Generator
from model.op import Op
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import Choice, Mixed

Made = tuple[tuple[str, str], ...]
"""Children that were created and not yet deleted, each with its parent."""


def parents(plan: Plan) -> list[str]:
    """Return the parents of a plan."""
    return [f"{common.root(plan)}/p{number}" for number in range(int(plan.options["parents"]))]


def note(made: Made, event: Op) -> Made:
    """Keep which children exist."""
    if event.f == "create" and event.type == "ok":
        return (*made, (event.value["created"], event.value["place"]))
    if event.f == "delete" and event.type == "invoke":
        return tuple(each for each in made if each[0] != event.value["path"])
    return made


def choose(
    delete_p: float, places: list[str], ctx: Context, process: int, number: int, made: Made
) -> Choice:
    """Choose a parent, and create, delete or list children."""
    del process
    chance = ctx.rng.random()
    parent = ctx.rng.choice(places)
    if chance < 0.15:
        return "children", {"path": parent, "place": parent, "sync": chance < 0.07}
    if made and ctx.rng.random() < delete_p:
        path, place = ctx.rng.choice(made)
        return "delete", {"path": path, "place": place}
    path = f"{parent}/n-"
    return "create", {"path": path, "place": parent, "data": str(number), "sequential": True}


def main(plan: Plan) -> Generator:
    """Create and delete children until the time limit."""
    chosen = partial(choose, float(plan.options["delete_p"]), parents(plan))
    return generators.main(plan, Mixed(chosen, note, ()))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """List the children of every parent."""
    del keys
    readings: list[Choice] = [
        ("children", {"path": path, "place": path, "sync": True, "final": True})
        for path in parents(plan)
    ]
    return generators.final(until_s, readings)


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"parents": 1, "delete_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of parents, and how many children are deleted."""
    return {"options": {"parents": rng.choice((1, 3)), "delete_p": rng.choice((0.0, 0.3, 0.5))}}


WORKLOAD = Workload(
    name="zk-children",
    service="zookeeper",
    rate_hz=150.0,
    # The share of deletions among deletions and creations.
    options={**common.OPTIONS, "parents": 2, "delete_p": 0.4},
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
