"""Adapts this project's asyncio client for ZooKeeper, which can be simulated, to a session.

The client shares the definition of the wire format with this project's server; kazoo, the client of
all other targets, does not.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from broker_impl.zookeeper import client_watches as library
from broker_impl.zookeeper import errors, multi, records
from broker_impl.zookeeper.client import SessionState, ZooKeeper
from workloads.client.zk_intruder import is_let_in
from workloads.client.zk_life import SignsOfLife
from workloads.client.zk_session import (
    Change,
    Check,
    Create,
    Delete,
    NotSent,
    Observer,
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
    errors.NoWatcher,
    multi.MultiFailed,
)
"""Errors with which a server answers, so that the request was not executed."""
EVENTS = {
    records.EventType.CREATED: "created",
    records.EventType.CHANGED: "changed",
    records.EventType.DELETED: "deleted",
    records.EventType.CHILD: "child",
}


class AsyncioSession:
    """A session of :class:`broker_impl.zookeeper.client.ZooKeeper`."""

    def __init__(self, servers: str, *, timeout_ms: int, rng: random.Random) -> None:
        self.life = SignsOfLife()
        self._strays: list[Change] = []
        self._has_expired = False
        """Whether the end is known here, with the length of the silence before it."""
        self._zk = ZooKeeper(
            servers,
            session_timeout_ms=timeout_ms,
            rng=rng,
            on_state=self._entered,
            on_stray=lambda event: self._strays.append(_change(event)),
            on_contact=self._answered,
        )

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
    def has_ended(self) -> bool:
        """Whether the session has expired or was closed."""
        return self._has_expired or self._zk.state is SessionState.CLOSED

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
        return await is_let_in(f"{host}:{port}", session, timeout_ms=self._zk.session_timeout_ms)

    async def sync(self, path: str) -> None:
        """Wait until the server has applied what the leader had committed."""
        await self._asked(lambda: self._zk.sync(path))

    async def observe(self, path: str, observer: Observer, *, recursive: bool) -> None:
        """Set a persistent watch, also one on all znodes below."""
        await self._asked(
            lambda: self._zk.add_watch(
                path, lambda event: observer(_change(event)), recursive=recursive
            )
        )

    async def unobserve(self, path: str) -> None:
        """Remove all watches on a znode."""
        await self._asked(lambda: self._zk.remove_watches(path))

    def strays(self) -> list[Change]:
        """Return the events since the last call for which the session has no watch."""
        strays, self._strays = self._strays, []
        return strays

    def _answered(self, sent_s: float, is_handshake: bool) -> None:
        if is_handshake:
            self.life.connected(sent_s, self._zk.session_timeout_ms / 1000)
        else:
            self.life.answered(sent_s, asyncio.get_running_loop().time())

    def _entered(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self.life.expired(asyncio.get_running_loop().time())
            self._has_expired = True

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


def _change(event: library.WatchEvent) -> Change:
    return Change(EVENTS[event.type], event.path, event.zxid)


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
