"""Runs the phases of a test: the workload under faults, healing and recovery, then the final reads.

The cluster, the nemesis, the clients and the recorder are passed in, so that the same test runs on
every target.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.engine import client_crashes
from harness.engine.crash_monitor import Crashes
from harness.engine.early_end import EarlyEnd
from harness.engine.faults import Faults, Nemesis
from harness.engine.interpreter import Interpreter
from harness.engine.progress import Tally
from harness.engine.recorder import Recorder
from model.capabilities.cluster import Cluster, HasConnection
from model.capabilities.processes import CanProbe
from model.connection import Connection
from model.generator import Generator
from model.op import NEMESIS, RECOVER, UNRESPONSIVE
from model.plan import Plan
from model.roles import Client
from workloads import asking
from workloads.client.prefixed import Prefixed
from workloads.package import Workload

RECOVERY_TIMEOUT_S = 60.0
ANSWER_WITHIN_S = 30.0
"""How long after the recovery a node may leave probes unanswered."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run itself ended; the checkers judge whether the broker kept its guarantees."""

    recovered: bool
    """Whether, in time, every node was up and every partition had a leader and a full ISR."""
    is_early: bool = False
    """Whether the test was ended before its time, so that nothing was recovered and read."""


async def run_test(
    plan: Plan,
    workload: Workload,
    cluster: Cluster,
    nemesis: Nemesis,
    recorder: Recorder,
    tally: Tally,
    schedule_path: Path,
    early_end: EarlyEnd | None = None,
) -> Ending:
    """Run all phases of a test on a cluster that is up.

    ``tally`` must observe ``recorder``. Clients are closed at the end in any case; the caller owns
    the cluster. If ``early_end`` ends the main phase, the other phases are left out.
    """
    schedule = plan.schedule or ()
    faults = Faults(recorder, nemesis, schedule, schedule_path, beginning=tally.beginning)
    interpreter = Interpreter(
        recorder,
        lambda process: _client(plan, workload, cluster, process),
        concurrency=plan.concurrency,
        rng=random.Random(f"{plan.seed}:generator"),
        op_timeout_s=workload.op_timeout_s(plan),
        overtime_s=lambda: faults.overtime_s(plan.time_limit_s),
    )
    askers = _askers(plan, cluster, recorder)
    client_crashes.report_errors(_failed_in(interpreter, askers))
    try:
        async with _watched(Crashes(recorder, cluster)):
            tally.phase = "main"
            early_end = early_end or EarlyEnd()
            questions = _asked(plan, askers, tally)
            main = _main(interpreter, workload.main(plan), faults, questions)
            if not await early_end.run(main):
                if early_end.heals:
                    await nemesis.heal_all()
                return Ending(recovered=True, is_early=True)
            tally.phase = "healing"
            await nemesis.heal_all()
            # Readers are new processes that read from the beginning; no client writes any more.
            await interpreter.retire_all()
            recovered = await _recover(cluster, recorder)
            tally.phase = "final reads"
            until_s = recorder.now_ns() / 1e9 + float(plan.options["final_time_limit_s"])
            await interpreter.run(workload.final(plan, tuple(tally.keys), until_s))
            return Ending(recovered=recovered)
    finally:
        faults.close()  # first: a second interruption would not wait for the clients
        await asyncio.gather(*(each.close() for each in (interpreter, askers) if each is not None))


async def _main(
    interpreter: Interpreter,
    generator: Generator,
    faults: Faults,
    questions: Coroutine[Any, Any, None] | None,
) -> None:
    """Run the main phase: operations and faults, and questions meanwhile."""
    ending = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(faults.run(ending))
        if questions is not None:
            group.create_task(questions)
        await interpreter.run(generator, on_exhausted=ending.set)


def _askers(plan: Plan, cluster: Cluster, recorder: Recorder) -> Interpreter | None:
    """Return what runs the processes that only ask, if the plan has any.

    Their operations are drawn from a random generator of their own, and their numbers are above
    those of all other processes.
    """
    threads = asking.count(plan)
    if not threads:
        return None
    return Interpreter(
        recorder,
        lambda process: _named(cluster, lambda to: asking.client(plan, to, process)),
        concurrency=threads,
        rng=random.Random(f"{plan.seed}:questions"),
        op_timeout_s=asking.TIMEOUT_S,
        first=asking.first_process(threads),
    )


def _asked(
    plan: Plan, askers: Interpreter | None, tally: Tally
) -> Coroutine[Any, Any, None] | None:
    """Return what asks questions about the partitions of the run, and then closes the askers."""
    return None if askers is None else _ask(askers, asking.main(plan, tally.keys))


async def _ask(askers: Interpreter, generator: Generator) -> None:
    await askers.run(generator)
    await askers.retire_all()


def _failed_in(interpreter: Interpreter, askers: Interpreter | None) -> Callable[[int, str], None]:
    """Return what gives up the client of a process, whichever interpreter runs it."""
    if askers is None:
        return interpreter.client_failed

    def failed(process: int, error: str) -> None:
        is_asker = process >= asking.FIRST_PROCESS
        (askers if is_asker else interpreter).client_failed(process, error)

    return failed


def _client(plan: Plan, workload: Workload, cluster: Cluster, process: int) -> Client:
    """Return the client of a process of the workload."""
    return _named(cluster, lambda connection: workload.client(plan, connection, process))


def _named(cluster: Cluster, make: Callable[[Connection], Client]) -> Client:
    """Return a client that uses the history's names, whatever those on brokers."""
    if not isinstance(cluster, HasConnection):
        return make(Connection(cluster.bootstrap()))
    connection = cluster.connection()
    client = make(connection)
    return Prefixed(client, connection.prefix) if connection.prefix else client


async def _recover(cluster: Cluster, recorder: Recorder) -> bool:
    """Wait for the cluster to recover, and record whether it did.

    Reads from a cluster that has not recovered prove little.
    """
    recorder.record(NEMESIS, "invoke", RECOVER)
    recovered = await cluster.recover(RECOVERY_TIMEOUT_S)
    recorder.record(NEMESIS, "info", RECOVER, {"recovered": recovered})
    if isinstance(cluster, CanProbe):
        for node in await cluster.unresponsive(ANSWER_WITHIN_S):
            value = {"node": node, "for_s": ANSWER_WITHIN_S}
            recorder.record(NEMESIS, "info", UNRESPONSIVE, value)
    return recovered


@contextlib.asynccontextmanager
async def _watched(crashes: Crashes) -> AsyncIterator[None]:
    """Record unexpected exits for as long as the context lasts."""
    watching = asyncio.create_task(crashes.run(), name="watch for crashes")
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        crashes.note()
