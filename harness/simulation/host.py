"""A simulated machine: an address, clocks, a kernel and processes; on or off."""

from typing import Protocol

from harness.simulation.clock import HostClock
from harness.simulation.process import Main, Process, ProcessWorld
from harness.simulation.stack import Stack
from harness.simulation.tracing import Trace


class HostWorld(ProcessWorld, Protocol):
    """What a host, and the programs on it, ask of their world."""

    seed: int
    trace: Trace

    def spawn(self, host: "Host", main: Main, name: str) -> Process:
        """Start a process; see :meth:`Host.spawn`."""


class Host:
    """One machine of a world. It has no disk: a program that needs one creates a ``SimDisk``."""

    def __init__(self, world: HostWorld, stack: Stack, clock: HostClock) -> None:
        self.world = world
        self.stack = stack
        self.clock = clock
        self.processes: list[Process] = []
        """The processes that have not ended."""

    def __repr__(self) -> str:
        return f"<Host {self.name} {self.ip}>"

    @property
    def name(self) -> str:
        """The host's name, also on the network."""
        return self.stack.name

    @property
    def ip(self) -> str:
        """The host's IP address."""
        return self.stack.ip

    @property
    def is_on(self) -> bool:
        """Return whether the host is switched on."""
        return self.stack.is_on

    def spawn(self, main: Main, name: str | None = None) -> Process:
        """Start a process; it runs ``main()`` in its own loop, from the next step on."""
        if not self.is_on:
            raise RuntimeError(f"{self.name} is off")
        self.processes = [process for process in self.processes if not process.is_done]
        process = self.world.spawn(self, main, name or self.name)
        self.processes.append(process)
        return process

    def power_off(self) -> None:
        """Lose power: all processes and all memory are gone; peers are not notified."""
        if self.is_on:
            self.world.note(f"{self.name} off")
            for process in self.processes:
                process.lose_power()
            self.processes = []
            self.stack.power_off()

    def power_on(self) -> None:
        """Start an empty machine: it resets its former connections when their peers send."""
        if not self.is_on:
            self.world.note(f"{self.name} on")
            self.stack.is_on = True
