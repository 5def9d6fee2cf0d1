"""A node that is a container. Whatever is said of it, the engine was asked."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.cluster.engine import CONFLICT, Engine, EngineError
from harness.cluster.node import Exit, NodeError
from harness.cluster.waiting import until
from model.roles import NodeId

log = logging.getLogger(__name__)

KILL_TIMEOUT_S = 15.0
OOM_LATE_S = 1.0
"""How much later than an end by SIGKILL its reason may be with the engine: another event tells."""
_SIGNALLED = 128
"""An exit status above this: the number of the signal that ended it, added."""
_KILLED = -9
_NEVER = "0001-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class State:
    """What the engine says of a container."""

    is_up: bool
    """Frozen or not."""
    is_paused: bool
    status: int
    """Of its last end; negative: the signal that ended it."""
    oom_killed: bool
    """Ended by the kernel for want of memory, in its present or last life."""
    life: str
    """Tells its lives apart: when this one began; empty before the first."""

    @classmethod
    def told(cls, state: dict[str, Any]) -> "State":
        """From the ``State`` of an inspection."""
        status, began = state["ExitCode"], state["StartedAt"]
        return cls(
            is_up=state["Running"],
            is_paused=state["Paused"],
            status=_SIGNALLED - status if status > _SIGNALLED else status,
            oom_killed=state["OOMKilled"],
            life="" if began == _NEVER else began,
        )


class Container:
    """Starts, signals and watches a container that has been created; its log is kept."""

    def __init__(
        self,
        name: NodeId,
        identity: str,
        engine: Engine,
        on_exit: Callable[[Exit, State], None],
    ) -> None:
        """``on_exit`` hears of ends that were not asked for, once each."""
        self.name = name
        self.identity = identity
        self._engine = engine
        self._api = engine.client.api
        self._on_exit = on_exit
        self._asked_to_end = False
        self._over = ""
        """The last life whose end has been noticed."""
        self._telling = asyncio.Lock()

    async def start(self) -> None:
        """A new life; :class:`NodeError` when the last one still goes on."""
        state = await self.look()
        if state.is_up:
            raise NodeError(f"{self.name} already runs in container {self.identity[:12]}")
        self._asked_to_end = False
        await self._engine.call(self._api.start, self.identity)

    async def kill(self) -> None:
        """SIGKILL, and wait until it has gone; nothing to do when it has."""
        await self._signal("SIGKILL")
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await until(self._is_down)
        except TimeoutError:
            raise NodeError(f"{self.name} lives, {KILL_TIMEOUT_S:g} s after SIGKILL") from None

    async def stop(self, timeout_s: float) -> int:
        """SIGTERM; the exit status, that of SIGKILL (-9) when it did not end in time."""
        await self._signal("SIGTERM")
        with contextlib.suppress(NodeError):  # the engine may have done it: it takes no SIGTERM
            if (await self.state()).is_paused:
                await self.resume()
        try:
            async with asyncio.timeout(timeout_s):
                await until(self._is_down)
        except TimeoutError:
            await self.kill()
        return (await self.state()).status

    async def pause(self) -> None:
        """The kernel's freezer; :class:`NodeError` when nothing runs, or it is frozen already."""
        await self._ask(self._api.pause)

    async def resume(self) -> None:
        """:class:`NodeError` when it is not frozen."""
        await self._ask(self._api.unpause)

    async def is_up(self) -> bool:
        return (await self.state()).is_up

    async def is_paused(self) -> bool:
        return (await self.state()).is_paused

    async def inspect(self) -> dict[str, Any]:
        """All that the engine knows of it."""
        found: dict[str, Any] = await self._engine.call(self._api.inspect_container, self.identity)
        return found

    async def state(self) -> State:
        return State.told((await self.inspect())["State"])

    async def look(self) -> State:
        """Its state now; an end that was not asked for is told, before whoever looks goes on."""
        state = await self.state()
        async with self._telling:
            if state.life and not state.is_up and state.life != self._over:
                self._over = state.life
                if not self._asked_to_end:
                    await self._tell(state)
        return state

    async def _tell(self, state: State) -> None:
        """Its end, whatever more can be had of it and however long that is waited for."""
        said = ""
        try:
            said = await self.last_line()
            if state.status == _KILLED and not state.oom_killed:
                await asyncio.sleep(OOM_LATE_S)
                late = await self.state()
                state = late if late.life == state.life else state
        except EngineError as error:
            log.warning("%s: more of its end could not be had: %s", self.name, error)
        finally:
            if state.oom_killed:
                said = f"out of memory, said the kernel; before that: {said}"
            self._on_exit(Exit(self.name, state.status, said), state)

    async def last_line(self) -> str:
        """What it said last, empty if nothing."""
        tail: bytes = await self._engine.call(self._api.logs, self.identity, tail=5)
        lines = [line for line in tail.decode(errors="replace").splitlines() if line]
        return lines[-1] if lines else ""

    async def run(self, command: Sequence[str]) -> str:
        """What a command prints in it; :class:`NodeError` when that ends with another status than
        0. For commands that are quick: a thread waits."""
        made = await self._engine.call(self._api.exec_create, self.identity, list(command))
        said: bytes = await self._engine.call(self._api.exec_start, made["Id"])
        ended = await self._engine.call(self._api.exec_inspect, made["Id"])
        text = said.decode(errors="replace").strip()
        if ended["ExitCode"] != 0:
            raise NodeError(f"{self.name}: {command[0]} ended with {ended['ExitCode']}: {text}")
        return text

    async def _ask(self, what: Callable[[str], object]) -> None:
        try:
            await self._engine.call(what, self.identity)
        except EngineError as error:
            if error.status != CONFLICT:
                raise
            raise NodeError(f"{self.name}: {error}") from error

    async def _signal(self, which: str) -> None:
        """Send it, and expect its end; an end that came before that was its own."""
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
