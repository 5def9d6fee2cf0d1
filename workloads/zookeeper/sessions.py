"""Ephemeral znodes exist exactly as long as their sessions.

Processes create ephemeral znodes, look for their own and for those of others, and end: in order, or
without a word, so that the session expires. Now and then one asks for the session of another one
with a wrong password, in vain. At the end, when every session must have ended, no
ephemeral znode may be left.
"""

import random
from collections.abc import Mapping
from functools import partial
from typing import Any

from model.generator import Context, Generator, Until
from model.op import Op
from model.plan import Plan
from workloads.package import Workload
from workloads.zookeeper import common, generators
from workloads.zookeeper.generators import Choice, Later, Mixed, Readings

INTRUDERS = 0.03
"""The share of operations that ask for the session of another process."""
RECENT = 20
"""How many of the latest znodes are looked for."""


class Notes:
    """What is known of ephemeral znodes; immutable."""

    def __init__(
        self,
        own: Mapping[int, tuple[str, ...]] | None = None,
        recent: tuple[str, ...] = (),
        sessions: Mapping[int, int] | None = None,
    ) -> None:
        self.own: Mapping[int, tuple[str, ...]] = own or {}
        """The znodes of each live process."""
        self.recent = recent
        """The latest znodes of all processes."""
        self.sessions: Mapping[int, int] = sessions or {}
        """The session of each live process."""


def note(notes: Notes, event: Op) -> Notes:
    """Keep who created what, and forget processes that have ended."""
    if event.type == "info" or event.f == "close":
        own = {process: paths for process, paths in notes.own.items() if process != event.process}
        left = {process: id_ for process, id_ in notes.sessions.items() if process != event.process}
        return Notes(own, notes.recent, left)
    if event.f == "create" and event.type == "ok":
        path = event.value["created"]
        mine = (*notes.own.get(event.process, ()), path)
        recent = (*notes.recent, path)[-RECENT:]
        sessions = {**notes.sessions, event.process: event.value["session"]}
        return Notes({**notes.own, event.process: mine}, recent, sessions)
    return notes


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
    mine = own if own and chance < 0.7 else notes.recent
    return "get", {"path": ctx.rng.choice(mine), "place": root, "sync": chance < 0.85}


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
