"""A test in its order: the workload under faults, then healing and recovery, then the final reads.

Everything in it is handed in (cluster, nemesis, clients, recorder), so that the same test runs in
every world.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from harness.engine import stumbles
from harness.engine.crashes import Crashes
from harness.engine.faults import Faults, Nemesis
from harness.engine.interpreter import Interpreter
from harness.engine.recorder import Recorder
from harness.engine.tally import Tally
from model.op import NEMESIS, RECOVER
from model.plan import Plan
from model.roles import Cluster
from workloads.package import Workload

RECOVERY_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run itself went; whether the broker kept its promises is for the checkers to say."""

    recovered: bool
    """Every node up, every partition led by a broker with a full ISR, in time."""


async def carry_out(
    plan: Plan,
    workload: Workload,
    cluster: Cluster,
    nemesis: Nemesis,
    recorder: Recorder,
    tally: Tally,
    schedule_path: Path,
) -> Ending:
    """Both phases of a test, on a cluster that is up.

    ``tally`` must observe ``recorder``. Whatever happens, clients are closed at the end; the
    cluster is the caller's.
    """
    schedule = plan.schedule or ()
    faults = Faults(recorder, nemesis, schedule, schedule_path, beginning=tally.beginning)
    interpreter = Interpreter(
        recorder,
        lambda process: workload.client(plan, cluster.bootstrap(), process),
        concurrency=plan.concurrency,
        rng=random.Random(f"{plan.seed}:generator"),
        op_timeout_s=workload.op_timeout_s(plan),
        overtime_s=lambda: faults.overtime_s(plan.time_limit_s),
    )
    stumbles.tell(interpreter.stumbled)
    try:
        async with _watched(Crashes(recorder, cluster)):
            tally.phase = "main"
            ending = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                group.create_task(faults.run(ending))
                await interpreter.run(workload.main(plan), on_exhausted=ending.set)
            tally.phase = "healing"
            await nemesis.heal_all()
            # Readers begin as new processes, at the beginning; nobody adds to what they read.
            await interpreter.retire_all()
            recovered = await _recover(cluster, recorder)
            tally.phase = "final reads"
            until_s = recorder.now_ns() / 1e9 + float(plan.options["final_time_limit_s"])
            await interpreter.run(workload.final(plan, tuple(tally.keys), until_s))
            return Ending(recovered=recovered)
    finally:
        faults.close()  # first: a second interruption would not wait for the clients
        await interpreter.close()


async def _recover(cluster: Cluster, recorder: Recorder) -> bool:
    """In the history, because what is read of a cluster that has not recovered proves little."""
    recorder.record(NEMESIS, "invoke", RECOVER)
    recovered = await cluster.recover(RECOVERY_TIMEOUT_S)
    recorder.record(NEMESIS, "info", RECOVER, {"recovered": recovered})
    return recovered


@contextlib.asynccontextmanager
async def _watched(crashes: Crashes) -> AsyncIterator[None]:
    """Whatever ends by itself meanwhile is recorded."""
    watching = asyncio.create_task(crashes.run(), name="watch for crashes")
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        crashes.note()
