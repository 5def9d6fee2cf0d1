"""A node that is a container; its state always comes from the container engine."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.cluster.containers.engine import CONFLICT, Engine, EngineError
from harness.cluster.node import Exit, NodeError
from harness.cluster.polling import until
from model.roles import NodeId

log = logging.getLogger(__name__)

KILL_TIMEOUT_S = 15.0
OOM_LATE_S = 1.0
"""How much later than an end by SIGKILL the engine may report its cause, which is another event."""
_SIGNALLED = 128
"""An exit status above this is this number plus the signal that ended the container."""
_KILLED = -9
_NEVER = "0001-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The state of a container, as the engine reports it."""

    is_up: bool
    """True also while the container is frozen."""
    is_paused: bool
    status: int
    """The status of the last exit; a negative one is the signal that ended the container."""
    oom_killed: bool
    """Whether the kernel's OOM killer ended the container, in its current or last life."""
    life: str
    """Identifies a life of the container by its start time; empty before the first start."""

    @classmethod
    def from_inspection(cls, state: dict[str, Any]) -> "ContainerState":
        """Convert the ``State`` of an inspection."""
        status, began = state["ExitCode"], state["StartedAt"]
        return cls(
            is_up=state["Running"],
            is_paused=state["Paused"],
            status=_signed(status),
            oom_killed=state["OOMKilled"],
            life="" if began == _NEVER else began,
        )


class Container:
    """Starts, signals and watches an existing container; its log is kept over restarts."""

    def __init__(
        self,
        name: NodeId,
        identity: str,
        engine: Engine,
        on_exit: Callable[[Exit, ContainerState], None],
        stopped_status: int = 0,
    ) -> None:
        """``on_exit`` is called once for each unexpected exit.

        ``stopped_status`` is the program's exit status after an orderly end that SIGTERM requested;
        :meth:`stop` returns 0 for it.
        """
        self.name = name
        self.identity = identity
        self._engine = engine
        self._api = engine.client.api
        self._on_exit = on_exit
        self._stopped_status = _signed(stopped_status)
        self._asked_to_end = False
        self._over = ""
        """The last life whose end has been handled."""
        self._report_lock = asyncio.Lock()

    async def start(self) -> None:
        """Start the container; :class:`NodeError` if it still runs."""
        state = await self.look()
        if state.is_up:
            raise NodeError(f"{self.name} already runs in container {self.identity[:12]}")
        self._asked_to_end = False
        await self._engine.call(self._api.start, self.identity)

    async def kill(self) -> None:
        """SIGKILL, and wait until the container has ended; do nothing if it has ended already."""
        await self._signal("SIGKILL")
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await until(self._is_down)
        except TimeoutError:
            raise NodeError(f"{self.name} still runs {KILL_TIMEOUT_S:g} s after SIGKILL") from None

    async def stop(self, timeout_s: float) -> int:
        """SIGTERM; return the exit status, that of SIGKILL (-9) if it did not end in time."""
        await self._signal("SIGTERM")
        with contextlib.suppress(NodeError):  # the engine may have resumed it for the SIGTERM
            if (await self.state()).is_paused:
                await self.resume()
        try:
            async with asyncio.timeout(timeout_s):
                await until(self._is_down)
        except TimeoutError:
            await self.kill()
        status = (await self.state()).status
        return 0 if status == self._stopped_status else status

    async def pause(self) -> None:
        """Freeze the container; :class:`NodeError` if it does not run, or is frozen already."""
        await self._ask(self._api.pause)

    async def resume(self) -> None:
        """Resume the container; :class:`NodeError` if it is not frozen."""
        await self._ask(self._api.unpause)

    async def is_up(self) -> bool:
        return (await self.state()).is_up

    async def is_paused(self) -> bool:
        return (await self.state()).is_paused

    async def inspect(self) -> dict[str, Any]:
        """Everything that the engine knows of the container."""
        found: dict[str, Any] = await self._engine.call(self._api.inspect_container, self.identity)
        return found

    async def state(self) -> ContainerState:
        return ContainerState.from_inspection((await self.inspect())["State"])

    async def look(self) -> ContainerState:
        """Return the current state; report an unexpected exit before returning."""
        state = await self.state()
        async with self._report_lock:
            if state.life and not state.is_up and state.life != self._over:
                self._over = state.life
                if not self._asked_to_end:
                    await self._report_exit(state)
        return state

    async def _report_exit(self, state: ContainerState) -> None:
        """Report an unexpected exit, with the last line of the log and the cause if possible."""
        said = ""
        try:
            said = await self.last_line()
            if state.status == _KILLED and not state.oom_killed:
                await asyncio.sleep(OOM_LATE_S)
                late = await self.state()
                state = late if late.life == state.life else state
        except EngineError as error:
            log.warning("%s: the reason why it ended may be incomplete: %s", self.name, error)
        finally:
            if state.oom_killed:
                said = f"killed by the kernel, out of memory; its last line was: {said}"
            self._on_exit(Exit(self.name, state.status, said), state)

    async def last_line(self) -> str:
        """The last line of the log, empty if there is none."""
        tail: bytes = await self._engine.call(self._api.logs, self.identity, tail=5)
        lines = [line for line in tail.decode(errors="replace").splitlines() if line]
        return lines[-1] if lines else ""

    async def run(self, command: Sequence[str]) -> str:
        """Run a command in the container and return its output.

        Raises :class:`NodeError` if the exit status is not 0. Only for quick commands, because a
        thread waits.
        """
        made = await self._engine.call(self._api.exec_create, self.identity, list(command))
        said: bytes = await self._engine.call(self._api.exec_start, made["Id"])
        ended = await self._engine.call(self._api.exec_inspect, made["Id"])
        text = said.decode(errors="replace").strip()
        if ended["ExitCode"] != 0:
            raise NodeError(f"{self.name}: {command[0]} exited with {ended['ExitCode']}: {text}")
        return text

    async def _ask(self, what: Callable[[str], object]) -> None:
        try:
            await self._engine.call(what, self.identity)
        except EngineError as error:
            if error.status != CONFLICT:
                raise
            raise NodeError(f"{self.name}: {error}") from error

    async def _signal(self, which: str) -> None:
        """Send a signal and expect an exit; an exit from before the signal is an unexpected one."""
        if not (await self.look()).is_up:
            return
        self._asked_to_end = True
        try:
            await self._engine.call(self._api.kill, self.identity, which)
        except EngineError as error:
            if error.status != CONFLICT:
                raise
            self._asked_to_end = False
            await self.look()

    async def _is_down(self) -> bool:
        return not (await self.look()).is_up


def _signed(status: int) -> int:
    """Return an exit status, negative if it stands for the signal that ended the program."""
    return _SIGNALLED - status if status > _SIGNALLED else status
