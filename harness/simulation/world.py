"""A world: virtual time, hosts, a network, and the seed that decides whose turn it is.

Every step of a process costs a little virtual time, so that time never stands still; with nothing
to do it jumps to what is due next. All chance comes from one seed.
"""

import asyncio
import gc
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import Any, Self, TextIO

from harness.simulation import pins, stuck
from harness.simulation.clock import EPOCH_S, HostClock
from harness.simulation.host import Host
from harness.simulation.loop import SimLoop
from harness.simulation.network import Network
from harness.simulation.process import Failure, Main, Process
from harness.simulation.segment import TcpOptions
from harness.simulation.stack import Stack
from harness.simulation.tasks import number_gatherings
from harness.simulation.timeline import Timeline
from harness.simulation.tracing import Trace, name_of

STEP_S = (1e-6, 20e-6)
"""What a step costs, at least and at most."""
_COLLECT_EVERY = 20_000
"""Steps between two collections of garbage: the only moments at which finalizers run."""


class Unheard(Exception):
    """Failures of processes that nobody has asked for."""


class World:
    """Deterministic: the same seed and the same programs give the same trace.

    Use it as a context manager; at its end it raises :class:`Unheard` if processes have failed
    and nobody has looked at ``take_failures()`` or at their results.
    """

    def __init__(
        self,
        seed: int,
        *,
        tcp: TcpOptions | None = None,
        trace_text: TextIO | None = None,
        busy_steps_max: int = 500_000,
    ) -> None:
        """``busy_steps_max``: so many steps without an idle moment are a livelock."""
        self.seed = seed
        self.timeline = Timeline()
        self.trace = Trace(trace_text)
        self.network = Network(self.timeline, self.trace, random.Random(f"{seed} network"))
        self.steps = 0
        """Callbacks that have run."""
        self._tcp = tcp or TcpOptions()
        self._busy_steps_max = busy_steps_max
        self._rng = random.Random(f"{seed} turns")
        self._chance = pins.Chance(str(seed))
        self._hosts: dict[str, Host] = {}
        self._processes: list[Process] = []
        self._runnable: list[SimLoop] = []
        self._current: SimLoop | None = None
        self._numbers = count(1)
        self._failures: list[tuple[Failure, object]] = []
        self._collections = 0
        self._collect_at = _COLLECT_EVERY
        self._idle_at_step = 0
        self._is_closed = False
        self.glance: Callable[[], object] = lambda: None
        """Called several times in a second of real time, outside every process, while it runs; for
        somebody who watches, and must change nothing of what would happen."""
        self.lull: Callable[[], object] = lambda: None
        """Called whenever nobody has anything left to do just now, before time jumps to what is
        due next: a batch of events is over. Changes nothing, as ``glance``, and is no event: a
        world in which only somebody looks on is a deadlocked one."""
        number_gatherings()

    # What it is made of.

    @property
    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self.timeline.now

    @property
    def current(self) -> Process | None:
        """The process whose step this is."""
        return None if self._current is None else self._current.process

    def host(self, name: str, ip: str | None = None) -> Host:
        """A new machine, on; its name can be connected to."""
        ip = ip or f"10.0.0.{len(self._hosts) + 1}"
        stack = Stack(name, ip, self.network, self._tcp, self.network.rng)
        host = self._hosts[name] = Host(self, stack, HostClock(self.timeline))
        return host

    def spawn(self, host: Host, main: Main, name: str) -> Process:
        """Start a process; see :meth:`Host.spawn`."""
        process = Process(host, name, len(self._processes))
        self._processes.append(process)
        self.note(f"{name} starts on {host.name}")
        loop = SimLoop(
            process,
            timeline=self.timeline,
            runnable=self._runnable,
            clock=host.clock,
            stack=host.stack,
            rng=self._rng,
            next_number=lambda: next(self._numbers),
        )
        process.start(loop, main)
        return process

    # Clocks, as libraries see them.

    def wall_ns(self) -> int:
        """The wall clock of the process whose step this is."""
        clock = None if self._current is None else self._current.clock
        if clock is None:
            return EPOCH_S * 1_000_000_000 + int(self.timeline.now * 1e9)
        return EPOCH_S * 1_000_000_000 + int((clock.monotonic() + clock.skew_s) * 1e9)

    def monotonic_s(self) -> float:
        """The monotonic clock of the process whose step this is."""
        return self.timeline.now if self._current is None else self._current.clock.monotonic()

    # Running.

    def run(self, process: Process, limit_s: float | None = None) -> Any:
        """Drive everything until this process has ended; return what its main returned.

        ``limit_s``: virtual seconds that it may take from now.

        Raises:
            Deadlock, Livelock, OutOfTime: it does not end; the message names who waits, or spins.
            ProcessKilled: it was killed. Whatever its main raises is raised, too.
        """
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("a world runs outside every event loop")
        limit = None if limit_s is None else self.now + limit_s
        with self._running():
            self._drive(process, limit)
        return process.result()

    @contextmanager
    def _running(self) -> Iterator[None]:
        """In here it is this world's time, and garbage made in here goes in here."""
        hooks = sys.get_asyncgen_hooks()
        with pins.active(self, self._chance):
            try:
                yield
            finally:
                self._collect()
                gc.collect()
                self._current = None
                asyncio._set_running_loop(None)
                sys.set_asyncgen_hooks(*hooks)

    def _drive(self, process: Process, limit: float | None) -> None:
        timeline, heap, runnable = self.timeline, self.timeline.heap, self._runnable
        draw, trace = self._rng.random, self.trace
        cost_min, cost_span = STEP_S[0], STEP_S[1] - STEP_S[0]
        now = timeline.now
        while not process.is_done:
            if heap and heap[0][0] <= now:
                timeline.pass_due(now)
                continue
            if not runnable:
                if not heap:
                    raise stuck.Deadlock(
                        f"nothing can happen any more at {now:.6f} s; waiting:\n{self._waiting()}"
                    )
                self.lull()
                now = timeline.now = heap[0][0]
                self._idle_at_step = self.steps
                if limit is not None and now > limit:
                    break
                continue
            index = int(draw() * len(runnable)) if len(runnable) > 1 else 0
            loop = runnable[index]
            handle = loop.ready.popleft()
            if not loop.ready:
                loop.is_queued = False
                last = runnable.pop()
                if last is not loop:
                    runnable[index] = last
            if handle._cancelled:
                continue
            if loop is not self._current:
                self._enter(loop)
            owner = loop.process
            name = trace.step(now, owner.number, owner.name, handle._callback)  # type: ignore[attr-defined]
            try:  # as Handle._run does, for a call less
                handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - told, and the loop goes on
                loop.report(handle, name, error)
            self.steps += 1
            now = timeline.now = now + cost_min + cost_span * draw()
            if self.steps >= self._collect_at:
                self._collect()
                self._check_progress()
                self.glance()
                if limit is not None and now > limit:
                    break
        else:
            return
        raise stuck.OutOfTime(f"not done by {limit:.6f} s; waiting:\n{self._waiting()}")

    def _enter(self, loop: SimLoop) -> None:
        """This loop's turn."""
        self._current = loop
        asyncio._set_running_loop(loop)
        sys.set_asyncgen_hooks(loop._asyncgen_firstiter_hook, loop._asyncgen_finalizer_hook)  # type: ignore[attr-defined]

    def _collect(self) -> None:
        """Let go of what is not needed any more; finalizers run here and nowhere else."""
        self._collect_at = self.steps + _COLLECT_EVERY
        self._collections += 1
        for process in self._processes:
            if not process.is_done:
                process.loop.forget_done_tasks()
        gc.collect(2 if self._collections % 10 == 0 else 1)

    def _check_progress(self) -> None:
        busy = self.steps - self._idle_at_step
        if busy < self._busy_steps_max:
            return
        names: Counter[str] = Counter()
        for loop in self._runnable:
            for handle in loop.ready:
                names[f"{loop.process.name}: {name_of(handle._callback)}"] += 1  # type: ignore[attr-defined]
        raise stuck.Livelock(
            f"{busy} steps without an idle moment by {self.now:.6f} s; ready:\n"
            f"{stuck.spinning(names)}"
        )

    def _waiting(self) -> str:
        return stuck.told(self._processes)

    # Failures.

    def failed(self, failure: Failure, key: object = None) -> None:
        """A process has failed in a way that nobody in it hears of."""
        self.note(f"{failure.process} FAILED {failure.message} {type(failure.exception).__name__}")
        self._failures.append((failure, key))

    def heard(self, key: object) -> None:
        """Somebody has asked for what failed."""
        self._failures = [entry for entry in self._failures if entry[1] is not key]

    def take_failures(self) -> list[Failure]:
        """All failures since the last time."""
        taken, self._failures = self._failures, []
        return [failure for failure, _ in taken]

    def note(self, what: str) -> None:
        """Write something that was done to the world into its trace."""
        self.trace.note(self.now, what)

    # The end.

    def close(self) -> None:
        """Let go of everything. Processes that have not ended are not heard any more."""
        if self._is_closed:
            return
        self._is_closed = True
        with warnings.catch_warnings(), self._running():
            warnings.simplefilter("ignore")  # that things were not closed: they had no time for it
            for process in self._processes:
                process.discard()
                self._enter(process.loop)
                process.loop.discard()
            for host in self._hosts.values():
                host.stack.power_off()
            self._processes.clear()
            self._runnable.clear()
            self.timeline.heap.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        unheard = self.take_failures()
        if unheard and error is None:
            raise Unheard("\n".join(map(str, unheard))) from unheard[0].exception
