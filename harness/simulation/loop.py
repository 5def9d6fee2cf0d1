"""The event loop of one simulated process: asyncio's own, driven by the world.

Callbacks run in the order in which they became ready, as in every asyncio loop; the world selects
the process that takes the next step.
"""

import asyncio
import random
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any, Generic, NoReturn, TypeVar, TypeVarTuple

from harness.simulation.clock import HostClock
from harness.simulation.network import LOOPBACK
from harness.simulation.segment import Address
from harness.simulation.server import SimServer
from harness.simulation.stack import Stack
from harness.simulation.tasks import SimFuture, SimTask
from harness.simulation.timeline import Timeline, Timer
from harness.simulation.transport import SimTransport, TransportLoop

_Args = TypeVarTuple("_Args")
_Process = TypeVar("_Process")

_EXECUTOR_S = (1e-5, 1e-3)
"""How long a call passed to an executor takes, at least and at most."""


class SimLoop(asyncio.BaseEventLoop, TransportLoop, Generic[_Process]):
    """An event loop on virtual time, with a simulated network."""

    def __init__(
        self,
        process: _Process,
        *,
        timeline: Timeline,
        runnable: "list[SimLoop[_Process]]",
        clock: HostClock,
        stack: Stack,
        rng: random.Random,
        next_number: Callable[[], int],
    ) -> None:
        """``runnable``: the world's list of loops that have something to run."""
        super().__init__()
        self.set_debug(False)  # even if the environment asks for it
        self.process = process
        self.clock = clock
        self.ready: deque[asyncio.Handle] = deque()
        self.is_queued = False
        """True if the loop is in ``runnable``; also while it is halted, so that it stays out."""
        self.is_over = False
        """True once the process will never run again and none of its connections is open."""
        self.tasks: list[SimTask] = []
        """All tasks that may not have ended; asyncio holds them only weakly and could lose them."""
        self.next_number = next_number
        self._timeline = timeline
        self._runnable = runnable
        self._stack = stack
        self._rng = rng

    # Called by the world.

    def enqueue(self, handle: asyncio.Handle) -> None:
        """Run ``handle`` after those that are ready."""
        self.ready.append(handle)
        if not self.is_queued:
            self.is_queued = True
            self._runnable.append(self)

    def report(self, handle: asyncio.Handle, name: str, error: BaseException) -> None:
        """Report an exception raised by the callback ``name`` to the loop's exception handler."""
        message = f"Exception in callback {name}"
        self.call_exception_handler({"message": message, "exception": error, "handle": handle})

    def halt(self) -> None:
        """Stop running callbacks; those that become ready wait."""
        if self in self._runnable:
            self._runnable.remove(self)
        self.is_queued = True

    def go_on(self) -> None:
        """Run callbacks again."""
        self.is_queued = bool(self.ready)
        if self.is_queued:
            self._runnable.append(self)

    def forget_timers(self) -> None:
        """Drop the timers of a process that has ended."""
        self._timeline.forget(self)

    def forget_done_tasks(self) -> None:
        """Drop the references to tasks that have ended."""
        self.tasks = [task for task in self.tasks if not task.done()]

    def discard(self) -> None:
        """Close the coroutines of unfinished tasks without reporting errors.

        The world is over, or makes sure that the ``finally`` blocks of a killed process have no
        visible effect.
        """
        for task in self.tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with suppress(BaseException):
                    task.get_coro().close()
        self.tasks.clear()
        self.ready.clear()
        self._closed = True

    # asyncio's interface: time and callbacks.

    def time(self) -> float:
        return self.clock.monotonic()

    get_debug = bool  # False; every future and handle calls it

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self

    def call_soon(
        self,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.ready.append(handle)
        if not self.is_queued:
            self.is_queued = True
            self._runnable.append(self)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = Timer(when, callback, args, self, context)
        timer.loop = self
        self._timeline.add_timer(self.clock.due(when), timer)
        return timer

    def _timer_handle_cancelled(self, handle: Timer) -> None:
        if handle.is_waiting:
            self._timeline.timer_cancelled()

    def create_future(self) -> "asyncio.Future[Any]":
        return SimFuture(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, **options: Any) -> SimTask:
        number = self.next_number()
        name = f"Task-{number}" if name is None else str(name)
        task = SimTask(coro, loop=self, number=number, name=name, **options)
        self.tasks.append(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Run ``func`` in the loop a little later, because there are no threads."""
        future = self.create_future()

        def work() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - given to the waiting task
                future.set_exception(error)

        self.call_later(self._rng.uniform(*_EXECUTOR_S), work)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: there is no executor."""

    # asyncio's interface: the network.

    async def getaddrinfo(  # type: ignore[override]
        self, host: Any, port: Any, **hints: int
    ) -> list[tuple[Any, Any, int, str, tuple[str, int]]]:
        ip = LOOPBACK if not host else self._stack.network.resolve(_text(host))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, int(port or 0)))]

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        return str(sockaddr[0]), str(sockaddr[1])

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        local_addr: Any = None,
        **ignored: Any,
    ) -> tuple[SimTransport, asyncio.BaseProtocol]:
        """Connect by TCP, without TLS, from an address that the kernel selects."""
        if ssl or sock is not None or local_addr is not None:
            raise NotImplementedError(
                "simulated connections do not support ssl, sock or local_addr"
            )
        address = Address(self._stack.network.resolve(_text(host or "localhost")), int(port))
        connection = self._stack.connect(address, self.process)
        connected = self.create_future()

        def on_connected(error: OSError | None) -> None:
            if connected.done():
                return
            if error is None:
                connected.set_result(None)
            else:
                text = f"Connect call failed {tuple(address)}"
                connected.set_exception(OSError(error.errno, text))

        connection.on_connected = on_connected
        try:
            await connected
        except BaseException:
            connection.close()
            raise
        protocol = protocol_factory()
        waiter = self.create_future()
        transport = SimTransport(self, connection, protocol, waiter=waiter)
        try:
            await waiter
        except BaseException:
            transport.close()
            raise
        return transport, protocol

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        backlog: int = 100,
        start_serving: bool = True,
        **ignored: Any,
    ) -> SimServer:
        """Listen on one address, or on all."""
        if ssl or sock is not None:
            raise NotImplementedError("simulated servers do not support ssl or sock")
        if isinstance(host, list | tuple):
            (host,) = host
        server = SimServer(
            self,
            protocol_factory,
            lambda on_ready: self._stack.listen(
                host and _text(host), int(port or 0), backlog, on_ready, self.process
            ),
        )
        if start_serving:
            await server.start_serving()
        return server

    # What a simulated process cannot do.

    def run_forever(self) -> NoReturn:
        raise RuntimeError("only the simulated world runs this event loop")

    def run_until_complete(self, future: Any) -> NoReturn:
        raise RuntimeError("only the simulated world runs this event loop")

    def stop(self) -> NoReturn:
        raise RuntimeError("only the simulated world runs this event loop")

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> NoReturn:  # type: ignore[override]
        raise NotImplementedError("simulated processes receive no signals: use kill() or pause()")

    async def create_datagram_endpoint(self, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError("the simulated network supports only TCP")

    async def start_tls(self, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError("simulated connections do not support TLS")


def _text(host: str | bytes) -> str:
    return host.decode() if isinstance(host, bytes) else host
