"""Elections of a leader by an ephemeral znode and an epoch, as Kafka elects its controller.

A client becomes the leader by one multi, which creates the znode of the office and increments the
epoch. The leader writes on condition of its epoch, so that a former leader cannot write any more.
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

Leaders = Mapping[int, dict[str, Any]]
"""By process that believes to be a leader, what it must know: office, epoch and paths."""


def offices(plan: Plan) -> list[str]:
    """Return the offices of a plan."""
    return [f"{common.root(plan)}/o{number}" for number in range(int(plan.options["offices"]))]


def paths_of(office: str) -> dict[str, str]:
    """Return the znodes of an office that always exist: its epoch, and what its leader writes."""
    return {"epoch_path": f"{office}-epoch", "resource": f"{office}-resource"}


def parents(plan: Plan) -> list[str]:
    """Return what must exist."""
    return [path for office in offices(plan) for path in paths_of(office).values()]


def note(leaders: Leaders, event: Op) -> Leaders:
    """Keep which process believes to be a leader."""
    if event.f == "elect" and event.type == "ok":
        names = ("path", "epoch_path", "resource", "epoch", "node")
        mine = {name: event.value[name] for name in names}
        return {**leaders, event.process: mine}
    is_over = event.type == "info" or (event.type != "invoke" and event.f == "resign")
    if is_over or (event.type == "fail" and event.f == "lead"):
        return {process: mine for process, mine in leaders.items() if process != event.process}
    return leaders


def choose(
    crash_p: float, paths: list[str], ctx: Context, process: int, number: int, leaders: Leaders
) -> Choice:
    """Try to become a leader; write, resign, or end while being one."""
    del number
    mine = leaders.get(process)
    if mine is None:
        office = ctx.rng.choice(paths)
        return "elect", {"path": office, **paths_of(office)}
    chance = ctx.rng.random()
    if chance < crash_p:
        return "abandon", {"place": mine["path"]}
    return ("lead" if chance < 0.7 else "resign"), dict(mine)


def main(plan: Plan) -> Generator:
    """Elect leaders, which write and resign, until the time limit."""
    chosen = partial(choose, float(plan.options["crash_p"]), offices(plan))
    return generators.main(plan, Mixed(chosen, note, {}))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read what the leaders of every office have written, and its epoch."""
    del keys
    asked = {"sync": True, "final": True}
    readings: list[Choice] = [
        ("read", {"path": path, "place": office, **asked})
        for office in offices(plan)
        for path in paths_of(office).values()
    ]
    return generators.final(until_s, readings)


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    return common.refusal(plan, {"offices": 1, "crash_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw the number of offices, and how often a leader ends."""
    return {"options": {"offices": rng.choice((1, 2)), "crash_p": rng.choice((0.0, 0.05, 0.2))}}


WORKLOAD = Workload(
    name="zk-election",
    service="zookeeper",
    rate_hz=100.0,
    # How likely it is that a leader ends instead of its next operation.
    options={**common.OPTIONS, "offices": 1, "crash_p": 0.01},
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
