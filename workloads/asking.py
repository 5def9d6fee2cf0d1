"""Questions that some processes ask during any workload of brokers, while faults last.

With the option ``askers``, so many further threads ask questions about the partitions of the
workload: see :mod:`workloads.client.asking`. They change no record, so the operations of the
workload are the same with and without them. Questions are asked at ``asks_hz``. The answers are in
the history as text (``ask``); in simulation they are judged when they are given
(:mod:`checkers.invariants`), and watermarks, which they request too, are judged from the history.
"""

import dataclasses
import random
from collections.abc import Mapping
from typing import Any

import msgspec

from model import data_directories, options, racks
from model.connection import Connection
from model.generator import (
    LOOK_EVERY_S,
    PENDING,
    Answer,
    Context,
    Generator,
    Invocation,
    Stagger,
    Until,
    Wait,
)
from model.op import Op
from model.plan import Plan
from model.roles import Client
from workloads.client.asking.asker import Asker
from workloads.client.common import Settings
from workloads.package import Workload

ASKERS, RATE, ONLY = "askers", "asks_hz", "asks_only"
OPTIONS: Mapping[str, Any] = {ASKERS: 0, RATE: 8.0, ONLY: "", racks.OPTION: 0}
LEAST: Mapping[str, float] = {ASKERS: 0, RATE: 0.01, racks.OPTION: 0}
"""The smallest number of each option."""
WATERMARKS = "watermarks"
"""The question for the ends of a log, whose answers are judged from the history on every target."""
MOVE = "log-directory"
"""The order to move a replica, which is given only if brokers have several data directories."""
FIRST_PROCESS = 1_000_000
"""The number of the first asking process: no other process of a run gets as far."""
TIMEOUT_S = 20.0
"""When an operation is given up that has not ended by its own time limit."""
QUESTIONS: Mapping[str, int] = {
    "list-offsets": 10,
    "epoch-end": 4,
    "read": 10,
    "follow": 5,
    "group": 2,
    "deleted-group": 2,
    "offsets": 2,
    "transaction": 3,
    "topic": 3,
    "deleted-topic": 1,
    "retention": 2,
    WATERMARKS: 3,
    MOVE: 4,
    "membership": 2,
}
"""The questions, each with how often it is asked in relation to the others."""


class Questions(msgspec.Struct, frozen=True):
    """Asks about partitions that clients have written, or tried to write."""

    keys: Mapping[str, None]
    """The partitions, in the order of their first writes; it grows while the run lasts."""
    only: str = ""
    """The only question that is asked; empty: all of them."""
    watches: bool = True
    """Whether watermarks are requested: not of topics that are created again under their names."""
    moves: bool = False
    """Whether replicas are moved between the data directories of a broker."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys:
            return Wait(ctx.now_s + LOOK_EVERY_S), self
        if not ctx.free:
            return PENDING, self
        process, key = ctx.rng.choice(ctx.free), ctx.rng.choice(list(self.keys))
        possible = [name for name in QUESTIONS if self.moves or name != MOVE]
        questions = [name for name in possible if self.only in ("", name)]
        [question] = ctx.rng.choices(questions, [QUESTIONS[name] for name in questions])
        if question == WATERMARKS and self.watches:
            value = [[WATERMARKS, key]]
            return Invocation(process=process, f=WATERMARKS, value=value), self
        question = "list-offsets" if question == WATERMARKS else question
        value = [["ask", key, question]]
        return Invocation(process=process, f="ask", value=value), self

    def update(self, event: Op) -> Generator:
        return self


def count(plan: Plan) -> int:
    """Return how many threads ask questions."""
    return int(plan.options.get(ASKERS, 0))


def first_process(threads: int) -> int:
    """Return the number of the first asking process, a multiple of the number of threads."""
    return FIRST_PROCESS + -FIRST_PROCESS % threads


def main(plan: Plan, keys: Mapping[str, None]) -> Generator:
    """Ask questions about partitions of ``keys``, which may grow, until the time limit."""
    every_s = 1 / float(plan.options[RATE])
    questions = Questions(
        keys,
        str(plan.options[ONLY]),
        watches="life_s" not in plan.options,
        moves=data_directories.count(plan.options) > 1,
    )
    return Until(plan.time_limit_s, Stagger(every_s, questions))


def client(plan: Plan, connection: Connection, process: int) -> Client:
    """Return the client of an asking process."""
    settings = Settings.of(plan, connection, process, {})
    rng = random.Random(f"{plan.seed}:asker:{process}")
    return Asker(settings, rng, int(plan.options["replication_factor"]))


def draw(rng: random.Random) -> dict[str, Any]:
    """Draw for a search how many threads ask, how often, and the number of racks."""
    return {
        ASKERS: rng.choice((0, 1, 1, 1)),
        RATE: rng.choice((4.0, 8.0, 16.0)),
        racks.OPTION: rng.choice((0, 2, 3)),
    }


def refuse_only(plan: Plan) -> str | None:
    """Return why there is no such question, or ``None``."""
    only = plan.options[ONLY]
    if only == MOVE and data_directories.count(plan.options) == 1:
        return f"options: {ONLY}={only}: needs brokers with several data directories"
    if only in ("", *QUESTIONS):
        return None
    return f"options: {ONLY}={only}: must be one of {', '.join(QUESTIONS)}, or empty"


def with_questions(workload: Workload) -> Workload:
    """Return the workload with the options of questions."""

    def refuse(plan: Plan) -> str | None:
        return options.refusal(plan.options, LEAST) or refuse_only(plan) or workload.refuse(plan)

    return dataclasses.replace(workload, options={**workload.options, **OPTIONS}, refuse=refuse)
