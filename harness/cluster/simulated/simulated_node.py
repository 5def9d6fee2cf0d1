"""A node that is a process of a simulated world, with its own host and disk.

It runs the same code as a real node: the functions here make the choices that ``python -m
broker_impl`` and ``python -m broker_impl.zookeeper`` make, but for a world.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from broker_impl import config as configuration
from broker_impl.errors import BrokerError, StorageError
from broker_impl.node.broker import Broker
from broker_impl.node.exit_status import FAILED, OK, STORAGE_FAILED, exit_status
from broker_impl.zookeeper.program import Program as ZooKeeper
from broker_impl.zookeeper.program import Settings
from harness.cluster.node import Exit, NodeError
from harness.cluster.simulated.node_logs import NodeLogs
from harness.simulation import disk_directory
from harness.simulation.disk import SimDisk
from harness.simulation.disk_access import DiskAccess
from harness.simulation.host import Host
from harness.simulation.process import Process
from model.roles import NodeId

KILLED = -9
Stop = Callable[[], None]
"""A callback that does what SIGTERM does."""


class Program(Protocol):
    """The program that a node runs."""

    def __call__(
        self,
        disk: DiskAccess,
        rng: random.Random,
        wall_ms: Callable[[], int],
        on_stop: Callable[[Stop], None],
    ) -> Awaitable[int]:
        """Run from start to end and return the exit status.

        ``on_stop`` is called at once with the callback that stops the program.
        """
        ...


def broker(
    broker_settings: Mapping[str, str], on_life: Callable[[Broker], object] = lambda broker: None
) -> Program:
    """A broker with these settings; ``on_life`` is called with each new life of the broker."""

    async def run(
        disk: DiskAccess,
        rng: random.Random,
        wall_ms: Callable[[], int],
        on_stop: Callable[[Stop], None],
    ) -> int:
        try:
            config = configuration.parse(broker_settings)
            disks = disk_directory.disks(disk, config.log_directories())
            program = Broker(config, disks=disks, rng=rng, wall_ms=wall_ms)
            on_life(program)
            on_stop(program.stop)
            await program.start()
            await program.run()
        except Exception as error:  # noqa: BLE001 - any failure is reported
            await _end_other_tasks()
            return exit_status(error)
        return OK

    return run


async def _end_other_tasks() -> None:
    """Cancel all other tasks, as ``asyncio.run`` does before it raises the exception of its main.

    What they log therefore comes first.
    """
    me = asyncio.current_task()
    others = sorted((task for task in asyncio.all_tasks() if task is not me), key=hash)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)  # and for callbacks that are ready


def zookeeper(
    zookeeper_settings: Settings, on_life: Callable[[ZooKeeper], object] = lambda program: None
) -> Program:
    """A ZooKeeper server; ``on_life`` is called with each new life of the server."""

    async def run(
        disk: DiskAccess,
        rng: random.Random,
        wall_ms: Callable[[], int],
        on_stop: Callable[[Stop], None],
    ) -> int:
        try:
            program = ZooKeeper(zookeeper_settings, disk, wall_ms=wall_ms, entropy=rng.randbytes)
            on_life(program)
            on_stop(program.stop)
            await program.start()
            await program.run()
        except (BrokerError, OSError) as error:
            logging.getLogger("broker_impl.zookeeper").error("%s", error)
            return STORAGE_FAILED if isinstance(error, StorageError) else FAILED
        return OK

    return run


class SimulatedNode:
    """Starts, stops and freezes one process at a time."""

    def __init__(
        self,
        host: Host,
        program: Program,
        disk: SimDisk,
        logs: NodeLogs,
        on_exit: Callable[[Exit], None],
    ) -> None:
        """``on_exit`` is called for unexpected exits."""
        self.host = host
        self.disk = disk
        self._program = program
        self._logs = logs
        self._on_exit = on_exit
        self._lives = 0
        self._process: Process | None = None
        self._stop: Stop | None = None
        self._status = 0
        self._asked_to_end = False
        self._watcher: asyncio.Task[None] | None = None
        self.lost_bytes = 0
        """The bytes that were not synced when the power was last lost."""

    async def start(self) -> None:
        if await self.is_up():
            raise NodeError(f"{self.host.name} already runs")
        if not self.host.is_on:
            raise NodeError(f"{self.host.name} has no power")
        self._asked_to_end = False
        self._stop = None
        self._lives += 1
        process = self._process = self.host.spawn(self._live)
        self._watcher = asyncio.create_task(self._watch(process), name=f"watch {process.name}")

    async def kill(self) -> None:
        if (process := self._running()) is not None:
            self._asked_to_end = True
            process.kill()
        await self._ended()

    def lose_power(self) -> None:
        """Cut the machine's power at once, losing what is not synced; no effect if it is off."""
        if self.host.is_on:
            self._asked_to_end = True
            self.lost_bytes = self.disk.unsynced_bytes
            self.host.power_off()
            self.disk.power_loss()

    async def stop(self, timeout_s: float) -> int:
        if (process := self._running()) is not None:
            self._asked_to_end = True
            process.call(self._terminate)
            process.resume()  # a frozen process takes no SIGTERM
        try:
            async with asyncio.timeout(timeout_s):
                await self._ended()
        except TimeoutError:
            await self.kill()
        return self._status

    async def pause(self) -> None:
        self._living().pause()

    async def resume(self) -> None:
        self._living().resume()

    async def is_up(self) -> bool:
        return self._running() is not None

    async def is_paused(self) -> bool:
        process = self._running()
        return process is not None and process.is_paused

    async def last_line(self) -> str:
        return self._logs.last_line(self.host.name)

    def _running(self) -> Process | None:
        process = self._process
        return process if process is not None and not process.is_done else None

    def _living(self) -> Process:
        process = self._running()
        if process is None:
            raise NodeError(f"{self.host.name} does not run")
        return process

    def _terminate(self) -> None:
        if self._stop is not None:
            self._stop()

    async def _ended(self) -> None:
        if self._watcher is not None:
            await asyncio.shield(self._watcher)

    async def _watch(self, process: Process) -> None:
        await process.ended()
        self._status = KILLED if process.was_killed else process.result()
        if not self._asked_to_end:
            name = self.host.name
            self._on_exit(Exit(name, self._status, self._logs.last_line(name)))

    async def _live(self) -> int:
        """Run one life of the process, on the host."""
        process = self._process
        assert process is not None, "a process is created before it runs"
        clock = self.host.clock

        def on_stop(stop: Stop) -> None:
            self._stop = stop

        return await self._program(
            self.disk.attach(busy=process.busy, is_ended=lambda: process.is_done),
            random.Random(f"{self.host.world.seed} {process.name} {self._lives}"),
            lambda: int(clock.wall() * 1000),
            on_stop,
        )


def save_data(folder: Path, machines: Mapping[NodeId, SimulatedNode]) -> None:
    """Copy the files of the simulated disks to ``nodes/NAME/data`` of a run's folder."""
    for name, machine in machines.items():
        for path in machine.disk.paths():
            copy = folder / "nodes" / name / "data" / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(machine.disk.peek(path))
