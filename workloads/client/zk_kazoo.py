"""Adapts kazoo, ZooKeeper's client for Python, to a session.

kazoo runs one thread for each client. That thread calls what :class:`_Inline` hands it, so that
watch events and replies reach the event loop in the order in which the server sent them; kazoo's
own handler has one more thread for each of the two, and no order between them. kazoo replaces an
expired session by a new one, and this adapter then ends the client.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import connection
from kazoo.protocol.serialization import Close
from kazoo.protocol.states import EventType, KazooState, WatchedEvent, ZnodeStat

from workloads.client.confluent_threads import Worker, call_in_loop, resolve
from workloads.client.zk_intruder import is_let_in
from workloads.client.zk_session import (
    WATCH_LOST,
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

REFUSED = (
    exceptions.BadArgumentsError,
    exceptions.BadVersionError,
    exceptions.NoAuthError,
    exceptions.NoChildrenForEphemeralsError,
    exceptions.NodeExistsError,
    exceptions.NoNodeError,
    exceptions.NotEmptyError,
)
"""Errors with which a server answers, so that the request was not executed."""
NOT_TRIED = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
EVENTS = {
    EventType.CREATED: "created",
    EventType.CHANGED: "changed",
    EventType.DELETED: "deleted",
    EventType.CHILD: "child",
    EventType.NONE: WATCH_LOST,
}
RECONNECTING = {"max_tries": -1, "delay": 0.05, "max_delay": 1.0}
"""kazoo waits twice as long after each round over all servers, by default up to a minute, so that a
client would be without a server for long after all faults were healed."""
STOP_TIMEOUT_S = 10.0
"""How long the library's thread may take to end."""
_LOGGER = logging.getLogger(f"{__name__}.library")
_LOGGER.addHandler(logging.NullHandler())
_LOGGER.propagate = False  # lost connections are a part of every run


class _Inline(SequentialThreadingHandler):  # type: ignore[misc]
    """Calls everything in the thread of the connection. kazoo does so for a handler that does not
    run."""

    def start(self) -> None:
        """Start no threads."""

    def stop(self) -> None:
        """Stop nothing."""

    def dispatch_callback(self, callback: Any) -> None:
        """Call a watch."""
        callback.func(*callback.args)


class _ConfirmedClose(Close):  # type: ignore[misc]
    """The request that ends a session, with a result, so that its reply can be awaited."""

    def __bool__(self) -> bool:
        """Return true: kazoo sets the result of a true request only, and a tuple without fields is
        false."""
        return True

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> bool:
        """Return the result of the confirmation, which has no body."""
        del data, offset
        return True


class KazooSession:
    """A session of a :class:`kazoo.client.KazooClient`."""

    def __init__(self, servers: str, *, timeout_ms: int) -> None:
        self._zk = KazooClient(
            servers,
            timeout=timeout_ms / 1000,
            connection_retry=RECONNECTING,
            handler=_Inline(),
            logger=_LOGGER,
        )
        self._zk.add_listener(self._changed)
        self._loop = asyncio.get_running_loop()
        self._worker = Worker("kazoo")
        self._is_connected = asyncio.Event()
        self._close_timeout_s = timeout_ms / 3000
        self.id = 0
        self.connections = 0
        self.has_ended = False
        self.has_expired = False
        self.unasked: list[Event] = []
        """Always empty: kazoo ignores events without a watch."""
        self.zxid = 0
        self._servers = servers

    @property
    def timeout_ms(self) -> int:
        """The timeout of the session that the server has granted."""
        return int(self._zk._session_timeout)

    async def open(self) -> None:
        """Start the session; return once it exists."""
        self._zk.start_async()
        await self._is_connected.wait()

    async def connected(self, timeout_s: float) -> None:
        """Wait until requests can be sent; raises :class:`NotSent` if they cannot in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_connected.wait()
        except TimeoutError:
            raise NotSent("the session is suspended") from None
        if self.has_ended:
            raise NotSent("the session has ended")

    async def close(self) -> bool:
        """End the session; return whether the server has confirmed that."""
        is_confirmed = False
        if self._is_connected.is_set() and not self.has_ended:
            result = self._zk.handler.async_result()
            self._zk._call(_ConfirmedClose(), result)
            try:
                async with asyncio.timeout(self._close_timeout_s):
                    is_confirmed = bool(await self._result(result))
            except (TimeoutError, exceptions.KazooException):
                is_confirmed = False
        self._end()
        return is_confirmed

    async def abandon(self) -> None:
        """Stop without ending the session, as a killed client does."""
        self._zk._stopped.set()
        if self._is_connected.is_set() and not self.has_ended:
            self._zk._call(connection._CONNECTION_DROP, self._zk.handler.async_result())
        self._end()

    def _end(self) -> None:
        """Stop the library in its own time; a thread may wait for a server that does not answer."""
        self.has_ended = True
        self._worker.last(self._stop)

    def _stop(self) -> None:
        """Stop and close the library. An abandoned client counts as stopped while its thread still
        runs, and its sockets can be closed only after that."""
        self._zk.stop()
        self._zk._connection.stop(STOP_TIMEOUT_S)
        self._zk.close()

    async def create(self, path: str, data: str, *, ephemeral: bool, sequential: bool) -> str:
        """Create a znode and return its path."""
        return str(
            await self._asked(
                lambda: self._zk.create_async(
                    path, data.encode(), ephemeral=ephemeral, sequence=sequential
                )
            )
        )

    async def delete(self, path: str, version: int = -1) -> None:
        """Delete a znode of that version; -1 matches any."""
        await self._asked(lambda: self._zk.delete_async(path, version))

    async def set(self, path: str, data: str, version: int = -1) -> Stat:
        """Set the data of a znode of that version; -1 matches any."""
        return _stat(await self._asked(lambda: self._zk.set_async(path, data.encode(), version)))

    async def get(self, path: str, watch: Watch | None = None) -> tuple[str, Stat]:
        """Return a znode's data and Stat."""
        data, stat = await self._asked(lambda: self._zk.get_async(path, self._watch(watch)))
        return data.decode(), _stat(stat)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return a znode's Stat; ``None`` if there is none."""
        stat = await self._asked(lambda: self._zk.exists_async(path, self._watch(watch)))
        return None if stat is None else _stat(stat)

    async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        """Return the names of a znode's children, sorted, and its Stat."""
        names, stat = await self._asked(
            lambda: self._zk.get_children_async(path, self._watch(watch), include_data=True)
        )
        return sorted(names), _stat(stat)

    async def multi(self, parts: Sequence[Part]) -> list[Stat | str | None]:
        """Execute all parts or none; return the Stat of a set, the path of a creation."""
        results = await self._asked(lambda: self._transaction(parts).commit_async())
        for number, each in enumerate(results):
            if isinstance(each, Exception) and not isinstance(each, NOT_TRIED):
                raise Rejected(f"{_name(each)} of part {number}")
        return [
            _stat(each) if isinstance(each, ZnodeStat) else each if isinstance(each, str) else None
            for each in results
        ]

    def _transaction(self, parts: Sequence[Part]) -> Any:
        transaction = self._zk.transaction()
        for part in parts:
            match part:
                case Create(path, data, ephemeral):
                    transaction.create(path, data.encode(), ephemeral=ephemeral)
                case SetData(path, data, version):
                    transaction.set_data(path, data.encode(), version)
                case Delete(path, version):
                    transaction.delete(path, version)
                case Check(path, version):
                    transaction.check(path, version)
        return transaction

    async def intrude(self, session: int) -> bool:
        """Ask for another session with a wrong password; return whether a server gives it away."""
        first, *_ = self._servers.split(",")
        return await is_let_in(first, session, timeout_ms=self.timeout_ms)

    async def sync(self, path: str) -> None:
        """Wait until the server has applied what the leader had committed."""
        await self._asked(lambda: self._zk.sync_async(path))

    async def _asked(self, request: Callable[[], Any]) -> Any:
        if not self._is_connected.is_set() or self.has_ended:
            raise NotSent("the session is suspended")
        try:
            return await self._result(request())
        except REFUSED as error:
            raise Rejected(_name(error)) from None
        except exceptions.KazooException as error:
            raise Unknown(_name(error)) from None

    async def _result(self, result: Any) -> Any:
        """Wait for a result of the library, with the zxid that came with it."""
        answer: asyncio.Future[int] = self._loop.create_future()
        result.rawlink(lambda _: call_in_loop(self._loop, resolve, answer, self._zk.last_zxid or 0))
        zxid = await answer
        if result.successful() or isinstance(result.exception, REFUSED):
            self.zxid = zxid
        return result.get_nowait()

    def _watch(self, watch: Watch | None) -> Callable[[WatchedEvent], None] | None:
        if watch is None:
            return None
        return lambda event: call_in_loop(self._loop, watch, (EVENTS[event.type], event.path or ""))

    def _changed(self, state: KazooState) -> None:
        """Report a state of the session to the event loop, from the library's thread."""
        call_in_loop(self._loop, self._enter, state, self._zk._session_id or 0)

    def _enter(self, state: KazooState, session: int) -> None:
        if self.has_ended:
            return
        if state == KazooState.CONNECTED:
            self.id = session
            self.connections += 1
            self._is_connected.set()
        elif state == KazooState.SUSPENDED:
            self._is_connected.clear()
        else:
            self.has_expired = True
            self._end()
            self._is_connected.set()


def _name(error: Exception) -> str:
    """Return ``no-node`` for ``NoNodeError``."""
    name = type(error).__name__.removesuffix("Error")
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def _stat(stat: ZnodeStat) -> Stat:
    zxids = (stat.czxid, stat.mzxid, stat.pzxid)
    return Stat(*zxids, stat.version, stat.cversion, stat.ephemeralOwner)
