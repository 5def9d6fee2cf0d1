"""A machine: an address, clocks, a kernel, processes; on or off."""

from typing import TYPE_CHECKING

from harness.simulation.clock import HostClock
from harness.simulation.process import Main, Process
from harness.simulation.stack import Stack

if TYPE_CHECKING:
    from harness.simulation.world import World


class Host:
    """One of the machines of a world. Its disk is the business of whoever has one."""

    def __init__(self, world: "World", stack: Stack, clock: HostClock) -> None:
        self.world = world
        self.stack = stack
        self.clock = clock
        self.processes: list[Process] = []
        """Those that have not ended."""

    def __repr__(self) -> str:
        return f"<Host {self.name} {self.ip}>"

    @property
    def name(self) -> str:
        """Also its name on the network."""
        return self.stack.name

    @property
    def ip(self) -> str:
        """Its address."""
        return self.stack.ip

    @property
    def is_on(self) -> bool:
        """Has it power?"""
        return self.stack.is_on

    def spawn(self, main: Main, name: str | None = None) -> Process:
        """Start a process; it runs ``main()`` in a loop of its own, from the next step on."""
        if not self.is_on:
            raise RuntimeError(f"{self.name} is off")
        self.processes = [process for process in self.processes if not process.is_done]
        process = self.world.spawn(self, main, name or self.name)
        self.processes.append(process)
        return process

    def power_off(self) -> None:
        """Everything that runs or is in memory is gone, and nobody is told."""
        if self.is_on:
            self.world.note(f"{self.name} off")
            for process in self.processes:
                process.lose_power()
            self.processes = []
            self.stack.power_off()

    def power_on(self) -> None:
        """An empty machine: peers of its former connections are reset when they speak."""
        if not self.is_on:
            self.world.note(f"{self.name} on")
            self.stack.is_on = True
