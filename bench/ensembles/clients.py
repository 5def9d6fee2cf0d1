"""Clients of an ensemble: they write and read a few znodes, and record what they were answered."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import (
    BadVersion,
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionExpired,
    ZooKeeperError,
)
from broker_impl.zookeeper.multi import Check, MultiFailed, SetData
from broker_impl.zookeeper.records import Op, PathRequest, WatcherEvent

REGISTER, LEFT, RIGHT = "/register", "/pair-left", "/pair-right"
QUEUE, OWNED, MINE = "/queue", "/owned", "/mine"
FORBIDDEN = b"never"
"""What a multi writes whose last operation is rejected, so that no read may ever return it."""
NO_VERSION = 1_000_000
OPERATION_S_MAX = 3.0
UNNOTICED_TICKS = 8
"""How long a server may answer while the leader does not hear of its clients: five ticks until it
leaves the leader (``syncLimit``), and the time between two looks at both ends."""
PAUSE_S = (0.005, 0.12)
"""The pause of a client between two operations."""


class Seen(NamedTuple):
    """An operation of a client, and its outcome."""

    client: int
    session: int
    """The number of the client's session, from 1 on."""
    what: str
    began: float
    ended: float
    outcome: str
    """``ok``, ``no`` (it was rejected), or ``unknown``."""
    value: Any = None


@dataclass(slots=True)
class Observations:
    """What all clients have seen, in the order in which their operations ended."""

    seen: list[Seen] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    """What is wrong whatever else was seen, as ``name: reason``."""


class WatchingClient(ZooKeeper):
    """A client that notices events for which it has no watch, and when it last was answered."""

    spurious = 0
    heard_s = 0.0

    async def sync(self, path: str) -> None:
        """Wait until the server has applied what the leader had committed before this request."""
        await self._call(Op.SYNC, PathRequest(path))

    def notified(self, event: WatcherEvent, zxid: int) -> None:
        """Count an event of which no watch is waiting any more."""
        if not self._watches.has(event.path):
            self.spurious += 1
        super().notified(event, zxid)


class Client:
    """One client process: a session, and after its end another one."""

    def __init__(
        self,
        number: int,
        connect: str,
        rng: random.Random,
        observations: Observations,
        *,
        session_ms: int,
        tick_s: float,
        now: Callable[[], float],
    ) -> None:
        self.number = number
        self.zookeeper: WatchingClient | None = None
        self.is_over = False
        """Set from outside: end after the present operation."""
        self._connect = connect
        self._rng = rng
        self._observations = observations
        self._session_ms = session_ms
        self._tick_s = tick_s
        self._now = now
        self._session = 0
        self._values = itertools.count(1)
        self._owned: dict[str, None] = {}
        self._watched: int | None = None
        """The mzxid that the client saw when it set its watch on the register."""
        self._fired = True
        self._expired_s: float | None = None

    async def run(self) -> None:
        """Operate until ``is_over``; then close the session if a server is connected."""
        while not self.is_over:
            client = self.zookeeper = WatchingClient(
                self._connect,
                session_timeout_ms=self._session_ms,
                rng=self._rng,
                on_state=self._entered,
            )
            self._session += 1
            self._owned.clear()
            self._fired = True
            started = asyncio.create_task(client.start())
            while not self.is_over and not started.done():  # noqa: ASYNC110 - two conditions
                await asyncio.sleep(0.05)
            if not started.done():
                started.cancel()
            await asyncio.gather(started, return_exceptions=True)
            if client.state is SessionState.CONNECTED:
                client.heard_s = self._now()
            await self._operate(client)
            await self._close(client)

    async def _close(self, client: WatchingClient) -> None:
        try:
            await client.close()
        except ZooKeeperError as error:
            self._violate("client-error", f"closing a session failed: {error!r}")
        if client.spurious:
            self._violate("watch-twice", f"{client.spurious} events came without a watch")

    async def _operate(self, client: WatchingClient) -> None:
        operations = self._operations()
        names, weights = [*operations], [weight for _, weight in operations.values()]
        while not self.is_over and client.state is not SessionState.EXPIRED:
            await asyncio.sleep(self._rng.uniform(*PAUSE_S))
            if client.state is not SessionState.CONNECTED:
                continue
            [name] = self._rng.choices(names, weights)
            await self._do(client, name, operations[name][0])

    async def _do(
        self,
        client: WatchingClient,
        what: str,
        operation: Callable[[WatchingClient], Awaitable[Any]],
    ) -> None:
        began = self._now()
        outcome, value = "ok", None
        try:
            async with asyncio.timeout(OPERATION_S_MAX):
                value = await operation(client)
            client.heard_s = self._now()
        except (ConnectionLoss, SessionExpired, TimeoutError):
            outcome = "unknown"
        except (BadVersion, NoNode, NodeExists, MultiFailed) as error:
            client.heard_s = self._now()
            outcome, value = "no", type(error).__name__
        if what in ("append", "pair") and outcome == "unknown":
            value = self._sent
        self._observations.seen.append(
            Seen(self.number, self._session, what, began, self._now(), outcome, value)
        )

    _sent = b""
    """The value of the latest append or pair."""

    def _operations(
        self,
    ) -> dict[str, tuple[Callable[[WatchingClient], Awaitable[Any]], float]]:
        return {
            "append": (self._append, 4),
            "set": (self._set, 4),
            "get": (self._get, 4),
            "pair": (self._pair, 2),
            "forbidden": (self._forbidden, 1),
            "read-pair": (self._read_pair, 2),
            "own": (self._own, 1.5),
            "disown": (self._disown, 0.7),
            "owned": (self._look_owned, 1.5),
            "sync": (self._sync, 1),
            "count": (self._count_changes, 0.7),
        }

    def _value(self) -> bytes:
        return f"{self.number}.{next(self._values)}".encode()

    async def _append(self, client: WatchingClient) -> tuple[str, bytes]:
        sent = self._sent = self._value()
        path = await client.create(f"{QUEUE}/n-", sent, sequential=True)
        return path, sent

    async def _set(self, client: WatchingClient) -> tuple[int, int, bytes]:
        _, stat = await client.get(REGISTER)
        value = self._value()
        stat = await client.set(REGISTER, value, stat.version)
        if not self._fired and self._watched is not None and stat.mzxid > self._watched:
            self._violate(
                "event-after-reply",
                f"client {self.number} wrote the register, which it watches, and had no event",
            )
        return stat.version, stat.mzxid, value

    async def _get(self, client: WatchingClient) -> tuple[int, int, bytes]:
        watched = self._watched
        if self._fired:
            self._fired = False
            try:
                data, stat = await client.get(REGISTER, self._on_event)
            except (ConnectionLoss, SessionExpired, TimeoutError):
                self._fired = True  # whether the watch was set is not known
                raise
            self._watched = stat.mzxid
        else:
            data, stat = await client.get(REGISTER)
            if not self._fired and watched is not None and stat.mzxid > watched:
                self._violate(
                    "watch-missed",
                    f"client {self.number} read {stat.mzxid:#x} and had no event since "
                    f"{watched:#x}",
                )
                self._fired = True
        return stat.version, stat.mzxid, data

    def _on_event(self, event: WatchEvent) -> None:
        del event
        self._fired = True

    async def _pair(self, client: WatchingClient) -> bytes:
        value = self._sent = self._value()
        await client.multi([SetData(LEFT, value), SetData(RIGHT, value)])
        return value

    async def _forbidden(self, client: WatchingClient) -> None:
        await client.multi([SetData(LEFT, FORBIDDEN), Check(RIGHT, NO_VERSION)])

    async def _read_pair(self, client: WatchingClient) -> tuple[int, int, bytes, bytes]:
        left, stat = await client.get(LEFT)
        right, other = await client.get(RIGHT)
        return stat.mzxid, other.mzxid, left, right

    async def _own(self, client: WatchingClient) -> str:
        path = f"{OWNED}/{self.number}-{next(self._values)}"
        await client.create(path, str(client.session_id).encode(), ephemeral=True)
        self._owned[path] = None
        return path

    async def _disown(self, client: WatchingClient) -> str | None:
        if not self._owned:
            return None
        path = next(iter(self._owned))
        del self._owned[path]
        await client.delete(path)
        return path

    async def _look_owned(self, client: WatchingClient) -> str | None:
        """An ephemeral node exists as long as its session."""
        if not self._owned:
            return None
        path = self._rng.choice([*self._owned])
        stat = await client.exists(path)
        if stat is None and client.state is SessionState.CONNECTED:
            self._violate("ephemeral-lost", f"{path} is gone, but its session lives")
            del self._owned[path]
        return path

    async def _sync(self, client: WatchingClient) -> tuple[int, int, bytes]:
        await client.sync(REGISTER)
        data, stat = await client.get(REGISTER)
        return stat.version, stat.mzxid, data

    async def _count_changes(self, client: WatchingClient) -> None:
        """The ``cversion`` of a node counts the creations and deletions of its children."""
        parent = f"{MINE}-{self.number}"
        before = await client.exists(parent)
        child = f"{parent}/{next(self._values)}"
        await client.create(child)
        await client.delete(child)
        after = await client.exists(parent)
        if before is not None and after is not None and after.cversion != before.cversion + 2:
            self._violate(
                "cversion-skipped",
                f"the cversion of {parent} went from {before.cversion} to {after.cversion} with "
                "one creation and one deletion",
            )

    def _entered(self, state: SessionState) -> None:
        client = self.zookeeper
        if state is not SessionState.EXPIRED or client is None or not client.heard_s:
            return
        silent_s = self._now() - client.heard_s
        # A server that is cut off from the leader answers reads until it notices that.
        least_s = client.session_timeout_ms / 1000 - UNNOTICED_TICKS * self._tick_s
        if silent_s < least_s:
            self._violate(
                "expired-early",
                f"a session with a timeout of {client.session_timeout_ms} ms expired {silent_s:.3f}"
                " s after its client was answered",
            )

    def _violate(self, name: str, why: str) -> None:
        self._observations.violations.append(f"{name}: {why}")
