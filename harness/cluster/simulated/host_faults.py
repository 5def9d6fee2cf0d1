"""Faults of the machines of a simulated world: of their power, their disks and their clocks.

All effects are measured from outside, as on the other targets: by a probe that only a machine with
power answers, or by a process on the machine that uses its disk or reads its clock.
"""

import abc
import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from broker_impl.errors import WireError
from broker_impl.wire.batch import batches, check_crc, parse_header
from harness.cluster.address import Address
from harness.cluster.expected_exits import ExpectedExits
from harness.cluster.guarded_cluster import GuardedCluster
from harness.cluster.links import HARNESS
from harness.cluster.simulated import node_settings
from harness.cluster.simulated.simulated_node import SimulatedNode, save_data
from harness.simulation.disk import Place, SimDisk
from harness.simulation.host import Host
from harness.simulation.process import ProcessKilled
from model import data_directories
from model.capabilities.machines import Flip
from model.roles import NodeId

Result = TypeVar("Result")

DISK_BYTES = 1 << 40
"""The free space of a disk that no fault has filled."""
LEFT_BYTES = 10
"""The free space of a full disk: no file fits, and a batch that is written then is torn."""
INTERRUPT_WITHIN_S = 1.0
"""How soon the power is cut even if the disk was asked for fewer operations than planned."""
SILENCE_S = 0.1
"""A machine that refuses a probe within this time has power: no fault slows that link."""
LOG_SUFFIX = ".log"
CRC_COVERS_FROM = 21
"""The first byte of a batch that its CRC covers."""
PROBED_PATH = "meta.properties"
"""The path that a probe of a disk looks up; it need not exist."""


class HostFaultsCluster(GuardedCluster, abc.ABC):
    """A cluster whose every node has its own simulated host and disk."""

    _hosts: dict[NodeId, Host]
    """The hosts of all nodes, of the harness and of the clients."""
    _machines: dict[NodeId, SimulatedNode]
    _expected_exits: ExpectedExits

    # --- HasData

    def settle_data(self, *, keep: bool) -> None:
        """Write what the nodes' disks hold to the run's folder, if that is wanted.

        Most runs of a search need no second look, and have thousands of small files.
        """
        if keep:
            save_data(self._folder, self._machines)

    # --- HasTrace

    def trace(self) -> str:
        return self._hosts[HARNESS].world.trace.digest()

    # --- CanLosePower

    async def power_off(self, node: NodeId, after: int = 0, renaming: str = "") -> None:
        machine = self._machines[node]
        if (after or renaming) and await machine.is_up():
            disk, cut = machine.disk, machine.lose_power
            if renaming and after:
                disk.interrupt_rename(renaming, lambda: disk.interrupt(after, cut))
            elif renaming:
                disk.interrupt_rename(renaming, cut)
            else:
                disk.interrupt(after, cut)
            world = machine.host.world
            until_s = world.now + INTERRUPT_WITHIN_S
            while machine.host.is_on and world.now < until_s:  # noqa: ASYNC110 - power goes silently
                await asyncio.sleep(0.001)
            machine.disk.cancel_interrupt()
        machine.lose_power()

    async def power_on(self, node: NodeId) -> None:
        self._hosts[node].power_on()

    async def lost_bytes(self, node: NodeId) -> int | None:
        if not self._hosts[node].is_on:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SILENCE_S):
                    await self._answers(node)
                return None
            return self._machines[node].lost_bytes
        return None

    # --- CanFillDisk

    async def fill_disk(self, node: NodeId) -> None:
        self._expected_exits.begin(node, "disk")
        self._disk(node).fill(LEFT_BYTES)

    async def free_disk(self, node: NodeId) -> None:
        if self._expected_exits.expects(node, "disk"):
            self._disk(node).free()
            self._expected_exits.end(node, "disk")

    async def disk_free_bytes(self, node: NodeId) -> int:
        return self._disk(node).fits(DISK_BYTES)

    # --- CanFailDirectory

    def directory_count(self, node: NodeId) -> int:
        return data_directories.count(self._plan.options) if node in self.brokers else 1

    async def fail_directory(self, node: NodeId, number: int) -> None:
        self._expected_exits.begin(node, "directory")
        self._disk(node).fail_directory(data_directories.name(number))

    async def repair_directory(self, node: NodeId, number: int) -> None:
        if await self.failed_operations(node, number) is not None:
            self._disk(node).repair_directory(data_directories.name(number))
            self._expected_exits.end(node, "directory")

    async def failed_operations(self, node: NodeId, number: int) -> int | None:
        return self._disk(node).failed_operations(data_directories.name(number))

    async def probe_directory(self, node: NodeId, number: int) -> bool:
        disk = self._disk(node)
        try:
            disk.attach().list(data_directories.name(number))
        except disk.error:
            return False
        return True

    # --- CanSlowDisk

    async def slow_disk(self, node: NodeId, seconds: float) -> None:
        self._disk(node).slow(seconds)

    async def quicken_disk(self, node: NodeId) -> None:
        self._disk(node).slow(0.0)

    async def disk_takes_s(self, node: NodeId) -> float:
        host = self._hosts[node]

        async def look() -> None:
            [probe] = [each for each in host.processes if each.name == name]
            self._disk(node).attach(busy=probe.busy).exists(PROBED_PATH)
            await asyncio.sleep(0)

        name = f"disk probe of {node}"
        began_s = host.world.now
        await self._on(node, look, name)
        return host.world.now - began_s

    # --- CanFlipBits

    async def flip_bit(self, node: NodeId, key: str) -> Flip | None:
        disk = self._disk(node)
        stored = [
            (path, at, header)
            for path in disk.paths()
            if f"/{key}/" in f"/{path}" and path.endswith(LOG_SUFFIX)
            for at, header in batches(disk.peek(path), torn_tail=True)
        ]
        if not stored:
            return None
        path, batch_at, header = disk.rng.choice(stored)
        at = batch_at + disk.rng.randrange(CRC_COVERS_FROM, header.size)
        flip = Flip(path, at, disk.rng.randrange(8), batch_at)
        disk.turn_over(Place(path, at), flip.bit)
        return flip

    async def is_damaged(self, node: NodeId, flip: Flip) -> bool:
        disk = self._disk(node)
        if flip.path not in disk.paths():
            return False
        stored = disk.peek(flip.path)
        try:
            header = parse_header(stored, flip.batch_at)
        except WireError:
            return False
        whole = flip.batch_at + header.size <= len(stored)
        return whole and not check_crc(stored, flip.batch_at, header)

    async def flip_back(self, node: NodeId, flip: Flip) -> None:
        if await self.is_damaged(node, flip):
            self._disk(node).turn_over(Place(flip.path, flip.at), flip.bit)

    # --- CanSetClock

    async def jump_clock(self, node: NodeId, seconds: float) -> None:
        self._hosts[node].clock.jump(seconds)

    async def drift_clock(self, node: NodeId, rate: float) -> None:
        self._hosts[node].clock.drift(rate)

    async def correct_clock(self, node: NodeId) -> None:
        clock = self._hosts[node].clock
        if clock.rate != 1.0:
            clock.drift(1.0)
        clock.jump(self._hosts[HARNESS].clock.wall() - clock.wall())

    async def clock_ahead_s(self, node: NodeId) -> float:
        async def read() -> float:
            return time.time()  # noqa: TID251 - this clock is what is measured

        wall_s = await self._on(node, read, f"clock probe of {node}")
        return wall_s - self._hosts[HARNESS].clock.wall()

    # --- implementation

    def _guarded(self, node: NodeId) -> Address:
        return node_settings.address(self.layout, node)

    def _disk(self, node: NodeId) -> SimDisk:
        return self._machines[node].disk

    async def _on(
        self, host: NodeId, work: Callable[[], Coroutine[Any, Any, Result]], name: str
    ) -> Result:
        """Run ``work`` in a process on a host and return its result.

        Raises :class:`~harness.simulation.process.ProcessKilled` when the host is off, or loses
        power.
        """
        if not self._hosts[host].is_on:
            raise ProcessKilled(f"{host} is off")
        process = self._hosts[host].spawn(work, name)
        await process.ended()
        result: Result = process.result()
        return result
