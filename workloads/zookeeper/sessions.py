"""Ephemeral znodes exist exactly as long as their sessions.

Processes create ephemeral znodes, look for their own and for those of others, and end: in order, or
without a word, so that the session expires. Now and then one asks for the session of another one
with a wrong password, in vain. At the end, when every session must have ended, no
ephemeral znode may be left.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from model.generator import Context, Generator, Until
from model.op import Op
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import Choice, Later, Mixed, Readings

T = TypeVar("T")
INTRUDERS = 0.03
"""The share of operations that ask for the session of another process."""
RECENT = 20
"""How many of the latest znodes are looked for."""
LEFT = 10
"""How many of the latest abandoned znodes are looked for."""
LEFT_P = 0.3
"""The share of reads that look for them, to see when their sessions expire."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What is known of ephemeral znodes and sessions."""

    own: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The znodes of each live process."""
    recent: tuple[str, ...] = ()
    """The latest znodes of all processes."""
    left: tuple[str, ...] = ()
    """The latest znodes of processes that have abandoned their sessions."""
    sessions: Mapping[int, int] = field(default_factory=dict)
    """The session of each live process."""


def note(notes: Notes, event: Op) -> Notes:
    """Keep who created what, and forget processes that have ended."""
    if event.type == "info" or event.f == "close":
        left = notes.own.get(event.process, ())[-1:] if event.f == "abandon" else ()
        return Notes(
            _without(event.process, notes.own),
            notes.recent,
            (*notes.left, *left)[-LEFT:],
            _without(event.process, notes.sessions),
        )
    if event.f == "create" and event.type == "ok":
        path = event.value["created"]
        mine = (*notes.own.get(event.process, ()), path)
        return Notes(
            {**notes.own, event.process: mine},
            (*notes.recent, path)[-RECENT:],
            notes.left,
            {**notes.sessions, event.process: event.value["session"]},
        )
    return notes


def _without(process: int, of: Mapping[int, T]) -> dict[int, T]:
    """Return a mapping without a process."""
    return {other: value for other, value in of.items() if other != process}


def choose(
    root: str, end_p: float, ctx: Context, process: int, number: int, notes: Notes
) -> Choice:
    """Choose what a process does next."""
    chance = ctx.rng.random()
    own = notes.own.get(process, ())
    if own and chance < end_p:
        f = "close" if ctx.rng.random() < 0.5 else "abandon"
        return f, {"place": root}
    others = [id_ for owner, id_ in notes.sessions.items() if owner != process]
    if others and chance >= 1 - INTRUDERS:
        return "intrude", {"place": root, "victim": ctx.rng.choice(others)}
    if not notes.recent or chance < 0.5:
        path = f"{root}/e{number}"
        return "create", {"path": path, "place": root, "data": str(process), "ephemeral": True}
    if notes.left and ctx.rng.random() < LEFT_P:
        shown = notes.left
    else:
        shown = own if own and chance < 0.7 else notes.recent
    return "get", {"path": ctx.rng.choice(shown), "place": root, "sync": chance < 0.85}


def main(plan: Plan) -> Generator:
    """Create, look for and abandon ephemeral znodes until the time limit."""
    end_p = float(plan.options["end_p"])
    return generators.main(plan, Mixed(partial(choose, common.root(plan), end_p), note, Notes()))


def final(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """List what is left when the sessions must have ended: they are twice their timeout old."""
    del keys
    root = common.root(plan)
    delay_s = 2 * float(plan.options["session_timeout_s"]) + 5.0
    value = {"path": root, "place": root, "sync": True, "final": True, "expired": True}
    return Until(until_s, Later(delay_s, Readings((("children", value),))))


def refuse(plan: Plan) -> str | None:
    """Return why this plan cannot be run, or ``None``."""
    longest_s = 2 * float(plan.options["session_timeout_s"]) + 5.0
    if float(plan.options["final_time_limit_s"]) <= longest_s:
        return (
            f"options: final_time_limit_s={plan.options['final_time_limit_s']}: must be above"
            f" {longest_s:g}, when the last session has expired"
        )
    return common.refusal(plan, {"end_p": 0.0})


def vary(rng: random.Random) -> dict[str, dict[str, Any]]:
    """Draw how often processes end."""
    return {"options": {"end_p": rng.choice((0.02, 0.1, 0.3))}}


WORKLOAD = Workload(
    name="zk-sessions",
    service="zookeeper",
    rate_hz=100.0,
    # How likely it is that a process with a znode ends instead of its next operation.
    options={**common.OPTIONS, "end_p": 0.05},
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
