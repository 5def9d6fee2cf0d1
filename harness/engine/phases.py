"""A test in its order: the workload under faults, then healing and recovery, then the final reads.

Everything in it is handed in (cluster, nemesis, clients, recorder), so that the same test runs in
every world.
"""

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

from harness.engine.faults import Faults, Nemesis
from harness.engine.interpreter import Interpreter
from harness.engine.recorder import Recorder
from harness.engine.tally import Tally
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
    interpreter = Interpreter(
        recorder,
        lambda process: workload.client(plan, cluster.bootstrap(), process),
        concurrency=plan.concurrency,
        rng=random.Random(f"{plan.seed}:generator"),
        op_timeout_s=workload.op_timeout_s(plan),
    )
    faults = Faults(recorder, nemesis, plan.schedule or (), schedule_path)
    try:
        tally.phase = "main"
        ending = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(faults.run(ending))
            await interpreter.run(workload.main(plan), on_exhausted=ending.set)
        tally.phase = "healing"
        await nemesis.heal_all()
        # Readers begin as new processes, at the beginning; writers must not add to what they read.
        await interpreter.retire_all()
        recovered = await cluster.recover(RECOVERY_TIMEOUT_S)
        tally.phase = "final reads"
        until_s = recorder.now_ns() / 1e9 + float(plan.options["final_time_limit_s"])
        await interpreter.run(workload.final(plan, tuple(tally.keys), until_s))
        return Ending(recovered=recovered)
    finally:
        await interpreter.close()
        faults.close()
