"""Adapts this project's asyncio client for ZooKeeper, which can be simulated, to a session.

The client shares the definition of the wire format with this project's server; kazoo, the client of
all other targets, does not.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from broker_impl.zookeeper import client as library
from broker_impl.zookeeper import errors, multi, records
from broker_impl.zookeeper.client import SessionState, ZooKeeper
from workloads.client.zk_intruder import is_let_in
from workloads.client.zk_session import (
    Check,
    Create,
    Delete,
    Event,
    NotSent,
    Part,
    Rejected,
    SetData,
    Stat,
    Unknown,
    Watch,
)

T = TypeVar("T")

REFUSED = (
    errors.BadArguments,
    errors.BadVersion,
    errors.NoAuth,
    errors.NoChildrenForEphemerals,
    errors.NodeExists,
    errors.NoNode,
    errors.NotEmpty,
    multi.MultiFailed,
)
"""Errors with which a server answers, so that the request was not executed."""
EVENTS = {
    records.EventType.CREATED: "created",
    records.EventType.CHANGED: "changed",
    records.EventType.DELETED: "deleted",
    records.EventType.CHILD: "child",
}


class _NoticingClient(ZooKeeper):
    """A client that notes events for which it has no watch."""

    def __init__(self, servers: str, *, timeout_ms: int, rng: random.Random) -> None:
        super().__init__(servers, session_timeout_ms=timeout_ms, rng=rng)
        self.unasked: list[Event] = []

    def notified(self, event: records.WatcherEvent) -> None:
        """Handle a watch event."""
        if not any(path == event.path for _, path in self._watches):
            self.unasked.append((EVENTS[records.EventType(event.type)], event.path))
        super().notified(event)


class AsyncioSession:
    """A session of :class:`broker_impl.zookeeper.client.ZooKeeper`."""

    def __init__(self, servers: str, *, timeout_ms: int, rng: random.Random) -> None:
        self._zk = _NoticingClient(servers, timeout_ms=timeout_ms, rng=rng)

    @property
    def id(self) -> int:
        """The id that the server gave to the session."""
        return self._zk.session_id

    @property
    def zxid(self) -> int:
        """The zxid of the latest reply."""
        return self._zk.reply_zxid

    @property
    def connections(self) -> int:
        """How many connections have carried the session."""
        return self._zk.connections

    @property
    def timeout_ms(self) -> int:
        """The timeout of the session that the server has granted."""
        return self._zk.session_timeout_ms

    @property
    def has_expired(self) -> bool:
        """Whether a server has said that the session has expired."""
        return self._zk.state is SessionState.EXPIRED

    @property
    def unasked(self) -> list[Event]:
        """The events that came without a watch; the client removes those that it has recorded."""
        return self._zk.unasked

    @property
    def has_ended(self) -> bool:
        """Whether the session has expired or was closed."""
        return self._zk.state in (SessionState.EXPIRED, SessionState.CLOSED)

    async def open(self) -> None:
        """Start the session; return once it exists."""
        await self._zk.start()

    async def connected(self, timeout_s: float) -> None:
        """Wait until requests can be sent; raises :class:`NotSent` if they cannot in time."""
        if self._zk.state is SessionState.CONNECTED:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._zk.connected()
        except (TimeoutError, errors.SessionExpired):
            raise NotSent(f"the session is {self._zk.state.value}") from None

    async def close(self) -> bool:
        """End the session; return whether the server has confirmed that."""
        return await self._zk.close()

    async def abandon(self) -> None:
        """Stop without ending the session, as a killed client does."""
        await self._zk.abandon()

    async def create(self, path: str, data: str, *, ephemeral: bool, sequential: bool) -> str:
        """Create a znode and return its path."""
        return await self._asked(
            lambda: self._zk.create(path, data.encode(), ephemeral=ephemeral, sequential=sequential)
        )

    async def delete(self, path: str, version: int = -1) -> None:
        """Delete a znode of that version; -1 matches any."""
        await self._asked(lambda: self._zk.delete(path, version))

    async def set(self, path: str, data: str, version: int = -1) -> Stat:
        """Set the data of a znode of that version; -1 matches any."""
        return _stat(await self._asked(lambda: self._zk.set(path, data.encode(), version)))

    async def get(self, path: str, watch: Watch | None = None) -> tuple[str, Stat]:
        """Return a znode's data and Stat."""
        data, stat = await self._asked(lambda: self._zk.get(path, _watch(watch)))
        return data.decode(), _stat(stat)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return a znode's Stat; ``None`` if there is none."""
        stat = await self._asked(lambda: self._zk.exists(path, _watch(watch)))
        return None if stat is None else _stat(stat)

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        """Return the names of a znode's children, sorted, and its Stat."""
        names, stat = await self._asked(lambda: self._zk.children2(path, _watch(watch)))
        return names, _stat(stat)

    async def multi(self, parts: Sequence[Part]) -> list[Stat | str | None]:
        """Execute all parts or none; return the Stat of a set, the path of a creation."""
        results = await self._asked(lambda: self._zk.multi([*map(_part, parts)]))
        return [_stat(each) if isinstance(each, records.Stat) else each for each in results]

    async def intrude(self, session: int) -> bool:
        """Ask for another session with a wrong password; return whether a server gives it away."""
        host, port = self._zk.servers[0]
        return await is_let_in(f"{host}:{port}", session, timeout_ms=self.timeout_ms)

    async def sync(self, path: str) -> None:
        """Wait until the server has applied what the leader had committed."""
        await self._asked(lambda: self._zk.sync(path))

    async def _asked(self, request: Callable[[], Awaitable[T]]) -> T:
        """Send one request. What the library raises at once was not sent."""
        if self._zk.state is not SessionState.CONNECTED:
            raise NotSent(f"the session is {self._zk.state.value}")
        try:
            return await request()
        except REFUSED as error:
            raise Rejected(_name(error)) from None
        except errors.ZooKeeperError as error:
            raise Unknown(_name(error)) from None


def _name(error: errors.ZooKeeperError) -> str:
    if isinstance(error, multi.MultiFailed):
        return f"{_name(error.error)} of part {error.index}"
    return error.code.name.lower().replace("_", "-")


def _stat(stat: records.Stat) -> Stat:
    zxids = (stat.czxid, stat.mzxid, stat.pzxid)
    return Stat(*zxids, stat.version, stat.cversion, stat.ephemeral_owner)


def _watch(watch: Watch | None) -> library.Watch | None:
    if watch is None:
        return None
    return lambda event: watch((EVENTS[event.type], event.path))


def _part(part: Part) -> multi.Create | multi.SetData | multi.Delete | multi.Check:
    match part:
        case Create(path, data, ephemeral):
            return multi.Create(path, data.encode(), ephemeral)
        case SetData(path, data, version):
            return multi.SetData(path, data.encode(), version)
        case Delete(path, version):
            return multi.Delete(path, version)
        case Check(path, version):
            return multi.Check(path, version)
