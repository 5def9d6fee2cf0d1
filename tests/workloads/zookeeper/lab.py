"""Runs a workload of ZooKeeper in a simulated world against servers of this project."""

import asyncio
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from broker_impl.errors import StorageError
from broker_impl.zookeeper.program import Program, Settings
from broker_impl.zookeeper.quorum.ensemble import Member
from checkers import table_builder
from checkers.events import Event, table
from checkers.expectations import Contract
from checkers.findings import findings
from checkers.overview import Whole
from checkers.verdict import Verdict, conclude
from checkers.zookeeper import judging
from harness.app import catalogue
from harness.engine.interpreter import Interpreter
from harness.engine.recorder import Recorder
from harness.simulation.disk import SimDisk
from harness.simulation.process import Process
from harness.simulation.world import World
from model import history
from model.connection import Connection
from model.op import Op
from model.plan import Plan

PORT, QUORUM_PORT, ELECTION_PORT = 2181, 2888, 3888
TICK_MS = 500


class Ran(NamedTuple):
    """What a run recorded, and how it is judged."""

    events: list[Op]
    whole: Whole
    verdict: Verdict
    anomalies: dict[str, int]


def plan_of(workload: str, **fields: Any) -> Plan:
    """Return a plan with the workload's defaults."""
    given = {"time_limit_s": 20.0, "rate_hz": 20.0, "concurrency": 5, "seed": 1, **fields}
    options = {
        **catalogue.WORKLOADS[workload].options,
        "zk_client": "asyncio",
        "session_timeout_s": 3.0,
        "final_time_limit_s": 20.0,
        **given.pop("options", {}),
    }
    return Plan(workload=workload, target="simulated", system="zookeeper", options=options, **given)


def judge(events: Iterable[Op], run: Plan | None = None) -> tuple[Whole, Verdict]:
    """Judge a history as ``faultline check`` does."""
    ops = list(events)
    tables = table_builder.of_history(
        table(
            Event(
                index=op.index,
                time_ns=op.time_ns,
                process=op.process,
                type=op.type,
                f=op.f,
                value=op.value,
            )
            for op in ops
        )
    )
    whole = judging.whole(tables, ops)
    results = findings(whole.found.found, whole.overview, Contract())
    verdict = conclude(
        whole.overview,
        whole.reports,
        results,
        run=run,
        plan={},
        of_history=whole.found.checker_runs,
    )
    return whole, verdict


class Lab:
    """A world with servers and with the host of the clients."""

    def __init__(self, world: World, plan: Plan, folder: Path, servers: int) -> None:
        self.world = world
        self._plan, self._folder = plan, folder
        self._hosts = [world.host(f"zookeeper-{number}") for number in range(1, servers + 1)]
        self._clients = world.host("clients")
        self._disks = [SimDisk(random.Random(number), StorageError) for number in range(servers)]
        self._members = tuple(
            Member(number, host.ip, QUORUM_PORT, ELECTION_PORT)
            for number, host in enumerate(self._hosts, start=1)
        )
        self._running: dict[int, Process] = {}

    def start(self, number: int) -> None:
        """Start a server; the first one has the number 0."""
        host, disk = self._hosts[number], self._disks[number]

        async def serve() -> None:
            process = self._running[number]
            access = disk.attach(busy=process.busy, is_ended=lambda: process.is_done)
            program = Program(
                Settings(
                    host="0.0.0.0",
                    port=PORT,
                    tick_ms=TICK_MS,
                    connections_max=0,
                    me=number + 1 if len(self._hosts) > 1 else 0,
                    members=self._members if len(self._hosts) > 1 else (),
                ),
                access,
                wall_ms=lambda: 1_700_000_000_000 + int(self.world.now * 1000),
                entropy=random.Random(7).randbytes,
            )
            await program.start()
            await program.run()

        self._running[number] = host.spawn(serve, "server")

    def pause(self, number: int) -> None:
        """Freeze a server, so that requests are left without an answer."""
        self._running[number].pause()

    def kill(self, number: int) -> None:
        """Kill a server; what it has not synced is kept, as after a SIGKILL."""
        self._running[number].kill()

    def run(self, disturb: "Disturb | None" = None) -> list[Op]:
        """Run the workload and its final reads, and return the history."""
        for number in range(len(self._hosts)):
            self.start(number)
        path = self._folder / "history.jsonl"
        plan, workload = self._plan, catalogue.WORKLOADS[self._plan.workload]
        connection = Connection(",".join(f"{host.ip}:{PORT}" for host in self._hosts))

        async def main() -> None:
            recorder = Recorder(path, lambda: int(self.world.now * 1e9))
            interpreter = Interpreter(
                recorder,
                lambda process: workload.client(plan, connection, process),
                concurrency=plan.concurrency,
                rng=random.Random(plan.seed),
                op_timeout_s=workload.op_timeout_s(plan),
            )
            disturbing = asyncio.create_task(_disturbing(self, disturb))
            await interpreter.run(workload.main(plan))
            await disturbing
            await interpreter.retire_all()
            await asyncio.sleep(5.0)
            until_s = self.world.now + float(plan.options["final_time_limit_s"])
            await interpreter.run(workload.final(plan, (), until_s))
            await interpreter.close()
            recorder.close()

        self.world.run(self._clients.spawn(main, "clients"), 600)
        return list(history.read(path))


Disturb = Callable[[Lab], Any]


async def _disturbing(lab: Lab, disturb: Disturb | None) -> None:
    if disturb is not None:
        await disturb(lab)


def ran(
    folder: Path, workload: str, servers: int = 1, disturb: Disturb | None = None, **fields: Any
) -> Ran:
    """Run a workload, and judge its history."""
    plan = plan_of(workload, **fields)
    with World(plan.seed) as world:
        events = Lab(world, plan, folder, servers).run(disturb)
        world.take_failures()
    whole, verdict = judge(events, run=plan)
    return Ran(events, whole, verdict, dict(verdict.anomalies))
