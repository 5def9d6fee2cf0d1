"""A simulated interpreter for the generators of workloads."""

import heapq
import itertools
import random
from collections.abc import Callable

import msgspec

from model.generator import Context, Generator, Invocation, Wait
from model.op import Op
from model.plan import Plan
from workloads.idempotent import WORKLOAD

Answer = Callable[[Op], Op]

PLAN = Plan(
    time_limit_s=30.0,
    rate_hz=50.0,
    concurrency=5,
    options=dict(WORKLOAD.options),
    producer=dict(WORKLOAD.producer),
    consumer=dict(WORKLOAD.consumer),
)
"""A plan of the workload ``idempotent``, with its default settings."""


def yes(op: Op) -> Op:
    """Every operation succeeds, and polls return no records."""
    match op.f:
        case "crash":
            return msgspec.structs.replace(op, type="info")
        case "poll":
            return msgspec.structs.replace(op, type="ok", value=[["poll", {}]])
        case _:
            return msgspec.structs.replace(op, type="ok")


def simulate(generator: Generator, answer: Answer = yes, threads: int = 5) -> list[Op]:
    """Return the history of an interpreter whose operations take about 10 ms each.

    A process ends with an operation in doubt, and when it has closed its session of ZooKeeper.
    """
    rng = random.Random(4)
    processes = list(range(threads))
    running: list[tuple[float, int, int, Op]] = []
    history: list[Op] = []
    index = itertools.count()
    now = 0.0

    def record(op: Op) -> Op:
        event = msgspec.structs.replace(op, index=next(index), time_ns=int(now * 1e9))
        history.append(event)
        return event

    while True:
        busy = {thread for _, _, thread, _ in running}
        free = tuple(p for thread, p in enumerate(processes) if thread not in busy)
        asked, later = generator.op(Context(now, free, threads, rng))
        due = asked.at_s if isinstance(asked, Invocation) else float("inf")
        if isinstance(asked, Invocation) and due <= now:
            op = record(
                Op(index=0, time_ns=0, process=asked.process, type="invoke", f=asked.f,
                   value=asked.value)
            )  # fmt: skip
            heapq.heappush(
                running, (now + rng.uniform(0.005, 0.015), op.index, op.process % threads, op)
            )
            generator = later.update(op)
            continue
        if isinstance(asked, Wait):
            generator, due = later, asked.until_s
        if asked is None and not running:
            return history
        if running and running[0][0] <= due:
            now, _, thread, op = heapq.heappop(running)
            done = record(answer(op))
            if done.type == "info" or done.f == "close":
                processes[thread] += threads
            generator = generator.update(done)
        else:
            assert due < float("inf"), "the generator waits for nothing"
            now = due


def sends(history: list[Op]) -> list[Op]:
    """Return the invocations of sends."""
    return [op for op in history if op.f == "send" and op.type == "invoke"]
