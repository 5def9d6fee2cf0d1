"""A world: virtual time, hosts, a network, and a seed that selects which process takes each step.

Each step of a process takes a little virtual time, so that time never stands still. When no process
has anything to do, time jumps to the next event that is due. All randomness comes from one seed.
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

from harness.simulation import deadlock, determinism
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
"""The virtual time that one step takes, at least and at most."""
_COLLECT_EVERY = 20_000
"""Steps between two garbage collections: finalizers run at no other time."""
_KILLED_KEPT = 32
"""How many killed processes keep their memory, because that is cheap and changes nothing."""


class Unheard(Exception):
    """Processes failed, and the test looked neither at the failures nor at their results."""


class World:
    """A deterministic world: the same seed and the same programs give the same trace.

    Use it as a context manager; on exit it raises :class:`Unheard` if processes have failed and
    neither ``take_failures()`` nor their results were looked at.
    """

    def __init__(
        self,
        seed: int,
        *,
        tcp: TcpOptions | None = None,
        trace_text: TextIO | None = None,
        busy_steps_max: int = 500_000,
    ) -> None:
        """``busy_steps_max``: this many steps without an idle moment count as a livelock."""
        self.seed = seed
        self.timeline = Timeline()
        self.trace = Trace(trace_text)
        self.network = Network(self.timeline, self.trace, random.Random(f"{seed} network"))
        self.steps = 0
        """The number of callbacks that have run."""
        self._tcp = tcp or TcpOptions()
        self._busy_steps_max = busy_steps_max
        self._rng = random.Random(f"{seed} turns")
        self._chance = determinism.Chance(str(seed))
        self._hosts: dict[str, Host] = {}
        self._processes: list[Process] = []
        """Those that have not ended, and killed ones, whose coroutines are suspended for ever."""
        self._spawned = count()
        self._runnable: list[SimLoop[Process]] = []
        self._current: SimLoop[Process] | None = None
        self._numbers = count(1)
        self._failures: list[tuple[Failure, object]] = []
        self._collections = 0
        self._collect_at = _COLLECT_EVERY
        self._idle_at_step = 0
        self._is_closed = False
        self.on_progress: Callable[[], object] = lambda: None
        """An observer, called a few times per second of real time while the world runs.

        It is called outside every process and must not change anything.
        """
        self.on_idle: Callable[[], object] = lambda: None
        """An observer, called when all processes are idle, before time jumps to the next event.

        A batch of events is then over. Like ``on_progress``, it must not change anything and is no
        event: a world in which only an observer could still act is deadlocked.
        """
        number_gatherings()

    # Its parts.

    @property
    def now(self) -> float:
        """Virtual seconds since the world began."""
        return self.timeline.now

    @property
    def current(self) -> Process | None:
        """The process whose step is running."""
        return None if self._current is None else self._current.process

    def host(self, name: str, ip: str | None = None) -> Host:
        """Add a machine that is switched on; processes can connect to it by its name."""
        ip = ip or f"10.0.0.{len(self._hosts) + 1}"
        stack = Stack(name, ip, self.network, self._tcp, self.network.rng)
        host = self._hosts[name] = Host(self, stack, HostClock(self.timeline))
        return host

    def spawn(self, host: Host, main: Main, name: str) -> Process:
        """Start a process; see :meth:`Host.spawn`."""
        process = Process(host, name, next(self._spawned))
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

    # The clocks, as libraries see them.

    def wall_ns(self) -> int:
        """The wall clock of the process whose step is running."""
        clock = None if self._current is None else self._current.clock
        if clock is None:
            return EPOCH_S * 1_000_000_000 + int(self.timeline.now * 1e9)
        return EPOCH_S * 1_000_000_000 + int((clock.monotonic() + clock.skew_s) * 1e9)

    def monotonic_s(self) -> float:
        """The monotonic clock of the process whose step is running."""
        return self.timeline.now if self._current is None else self._current.clock.monotonic()

    # Running.

    def run(self, process: Process, limit_s: float | None = None) -> Any:
        """Run all processes until ``process`` has ended; return what its main returned.

        ``limit_s``: the most virtual seconds that it may take from now.

        Raises:
            Deadlock, Livelock, OutOfTime: it does not end; the message names what waits, or spins.
            ProcessKilled: it was killed. An exception of its main is raised, too.
        """
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("a simulated world cannot run inside of an event loop")
        limit = None if limit_s is None else self.now + limit_s
        with self._running():
            self._drive(process, limit)
        return process.result()

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Make this world's time current, and collect the garbage it creates before leaving."""
        hooks = sys.get_asyncgen_hooks()
        with determinism.active(self, self._chance):
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
                    raise deadlock.Deadlock(
                        f"every task waits and no timer is set at {now:.6f} s; waiting tasks:\n"
                        f"{self._waiting()}"
                    )
                self.on_idle()
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
            try:  # as Handle._run does, with one call less
                handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - reported, and the loop goes on
                loop.report(handle, name, error)
            self.steps += 1
            now = timeline.now = now + cost_min + cost_span * draw()
            if self.steps >= self._collect_at:
                self._collect()
                self._check_progress()
                self.on_progress()
                if limit is not None and now > limit:
                    break
        else:
            return
        raise deadlock.OutOfTime(
            f"the process has not ended by {limit:.6f} s; waiting tasks:\n{self._waiting()}"
        )

    def _enter(self, loop: SimLoop[Process]) -> None:
        """Make ``loop`` the running event loop."""
        self._current = loop
        asyncio._set_running_loop(loop)
        sys.set_asyncgen_hooks(loop._asyncgen_firstiter_hook, loop._asyncgen_finalizer_hook)  # type: ignore[attr-defined]

    def _collect(self) -> None:
        """Forget tasks that are done and collect garbage; finalizers run only here."""
        self._collect_at = self.steps + _COLLECT_EVERY
        self._collections += 1
        for process in self._processes:
            if not process.is_done:
                process.loop.forget_done_tasks()
        self._forget_processes()
        gc.collect(2 if self._collections % 10 == 0 else 1)

    def _forget_processes(self) -> None:
        """Forget processes that have ended, so that memory does not grow with their number."""
        kept, killed = [], 0
        for process in reversed(self._processes):
            killed += process.was_killed
            if not process.is_done or (process.was_killed and killed <= _KILLED_KEPT):
                kept.append(process)
            elif process.was_killed:
                self._close_coroutines(process)
            else:
                process.loop.discard()  # it has no unfinished tasks
        self._processes = kept[::-1]

    def _close_coroutines(self, process: Process) -> None:
        """Close the suspended coroutines of a killed process.

        Their ``finally`` blocks run now. The disk and the network refuse a process that has ended,
        and the randomness and the numbers that they use are given back, so nothing is changed.
        """
        process.loop.next_number = count().__next__
        sources = (self._rng, self.network.rng, self._chance.entropy)
        states = [source.getstate() for source in sources]
        module_state, current = random.getstate(), self._current
        self._enter(process.loop)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unclosed resources: it was killed
            process.loop.discard()
        for source, state in zip(sources, states, strict=True):
            source.setstate(state)
        random.setstate(module_state)
        if current is not None:
            self._enter(current)

    def _check_progress(self) -> None:
        busy = self.steps - self._idle_at_step
        if busy < self._busy_steps_max:
            return
        names: Counter[str] = Counter()
        for loop in self._runnable:
            for handle in loop.ready:
                names[f"{loop.process.name}: {name_of(handle._callback)}"] += 1  # type: ignore[attr-defined]
        raise deadlock.Livelock(
            f"{busy} callbacks ran without an idle moment by {self.now:.6f} s; ready callbacks:\n"
            f"{deadlock.spinning(names)}"
        )

    def _waiting(self) -> str:
        return deadlock.waiting_tasks(self._processes)

    # Failures.

    def failed(self, failure: Failure, key: object = None) -> None:
        """Record the failure of a process that its own code cannot handle."""
        self.note(f"{failure.process} FAILED {failure.message} {type(failure.exception).__name__}")
        self._failures.append((failure, key))

    def heard(self, key: object) -> None:
        """Discard the failure recorded under ``key``: a caller has retrieved it."""
        self._failures = [entry for entry in self._failures if entry[1] is not key]

    def take_failures(self) -> list[Failure]:
        """Return the failures recorded since the last call."""
        taken, self._failures = self._failures, []
        return [failure for failure, _ in taken]

    def note(self, what: str) -> None:
        """Write a change made to the world into its trace."""
        self.trace.note(self.now, what)

    # The end.

    def close(self) -> None:
        """Release everything. Errors of processes that have not ended are ignored."""
        if self._is_closed:
            return
        self._is_closed = True
        with warnings.catch_warnings(), self._running():
            warnings.simplefilter("ignore")  # unclosed resources: there was no time to close them
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
