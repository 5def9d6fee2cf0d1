"""A ZooKeeper client for asyncio: one session, over one connection at a time.

The connection may be lost and restored any number of times; the session, its ephemeral nodes and
its watches exist until the server says that they are gone. A request that is interrupted by a lost
connection raises ``ConnectionLoss``: only a read can show whether it was executed. An expired
client cannot be used any more; its owner creates another.

Everything runs on the running loop. Callbacks are plain functions, called from the loop, in the
order in which the server sent; a watch event arrives before any reply that shows the change.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from enum import Enum
from typing import assert_never

from broker_impl.errors import WireError
from broker_impl.zookeeper import paths
from broker_impl.zookeeper.client_watches import ClientWatches, Kind, Watch, WatchEvent
from broker_impl.zookeeper.connection import Connection
from broker_impl.zookeeper.digest_md5 import Login
from broker_impl.zookeeper.errors import (
    AuthFailed,
    Code,
    ConnectionLoss,
    NodeExists,
    NoNode,
    SessionExpired,
    ZooKeeperError,
    error_for,
)
from broker_impl.zookeeper.jute import Reader, Record
from broker_impl.zookeeper.multi import Check, Create, Delete, MultiFailed, MultiResult, SetData
from broker_impl.zookeeper.records import (
    EPHEMERAL,
    OPEN_ACL,
    PASSWORD_BYTES,
    SEQUENTIAL,
    Acl,
    AddWatch,
    ConnectRequest,
    Create2Response,
    CreateRequest,
    EventType,
    GetChildren2Response,
    GetChildrenResponse,
    GetDataResponse,
    MultiHeader,
    MultiRequest,
    Nothing,
    Number,
    Op,
    PathRequest,
    PathResponse,
    PathVersion,
    PathWatch,
    PathWatcherType,
    SetDataRequest,
    Stat,
    StatResponse,
    WatcherEvent,
    WatcherType,
    WatchMode,
)

log = logging.getLogger(__name__)

DEFAULT_PORT = 2181
SET_WATCHES_BYTES_MAX = 128 * 1024
"""The size of the paths in one SetWatches, far below ``jute.maxbuffer``."""
ATTEMPTS_PER_SESSION = 3
"""All servers can be tried so many times before a session's timeout has passed."""
_DIVISOR = 1000 * ATTEMPTS_PER_SESSION
"""Divides the timeout of a session (ms) to the time of one attempt on all servers (s)."""
BACKOFF_S_MIN = 0.05
BACKOFF_S_MAX = 1.0


class SessionState(Enum):
    """The state of a client's session."""

    CONNECTING = "connecting"
    """There is no session yet."""
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The connection is lost. Only the server knows whether the session still exists."""
    EXPIRED = "expired"
    """The server has said that the session has expired. Final."""
    CLOSED = "closed"
    """The owner has closed it. Final."""


class ZooKeeper:
    """One session with one of several servers.

    Args:
        connect: ``host:port,host:port/chroot``; the servers are tried in an order drawn once.
        session_timeout_ms: the requested timeout; the server may grant another.
        rng: draws the order of servers, and the jitter of the pauses between attempts.
        on_state: called with every new state, in order.
        on_stray: called with every event for which the client has no watch.
        on_contact: called with the loop's time at which each answered request, ping or handshake
            was sent, and whether it was a handshake.
        login: the user as which each connection authenticates by SASL; None: it does not.
        acl_of: returns the ACL of a node that is created, by its path.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        rng: random.Random,
        on_state: Callable[[SessionState], None] | None = None,
        on_stray: Watch | None = None,
        on_contact: Callable[[float, bool], None] = lambda sent, is_handshake: None,
        login: Login | None = None,
        acl_of: Callable[[str], tuple[Acl, ...]] = lambda path: OPEN_ACL,
    ) -> None:
        servers, slash, chroot = connect.partition("/")
        self.state = SessionState.CONNECTING
        self.session_id = 0
        """0 until there is a session."""
        self.session_timeout_ms = session_timeout_ms
        """The timeout that the server granted, once there is a session."""
        self.last_zxid = 0
        """The latest zxid that the client has seen; a server that is behind it rejects the
        client."""
        self.reply_zxid = 0
        """The zxid of the latest reply; the server must not let it go back."""
        self.watched_zxid = 0
        """The zxid up to which all events have arrived: watches set again miss nothing after it."""
        self.connections = 0
        """How many connections have carried the session."""
        self.servers = [_address(server) for server in servers.split(",")]
        """The servers' addresses, in the order in which they are tried."""
        self._chroot = (slash + chroot).rstrip("/")
        paths.check(self._chroot or "/")
        self._rng = rng
        self._on_state = on_state
        self._on_stray = on_stray
        self._on_contact = on_contact
        self._login = login
        self._acl_of = acl_of
        self._password: bytes | None = bytes(PASSWORD_BYTES)
        self._connection: Connection | None = None
        self._watches = ClientWatches()
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        rng.shuffle(self.servers)

    async def start(self) -> None:
        """Start the session and return once it exists; retries without a time limit."""
        assert self._task is None, "a client must be started only once"
        self._task = asyncio.get_running_loop().create_task(self._run())
        await self.connected()

    async def close(self) -> bool:
        """End the session and its ephemeral nodes, if a server is connected; else only stop.

        Returns whether the server has confirmed the end of the session.
        """
        connection, self._connection = self._connection, None
        is_confirmed = False
        if connection is not None:
            try:
                async with asyncio.timeout(self.session_timeout_ms / _DIVISOR):
                    await connection.request(Op.CLOSE_SESSION, Nothing(), None)
                    is_confirmed = True
            except (TimeoutError, ConnectionLoss):
                log.info("session %#x could not be closed, and will expire", self.session_id)
            connection.drop()
        await self.abandon()
        return is_confirmed

    async def abandon(self) -> None:
        """Stop without ending the session, as a client does that is killed: it will expire."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.drop()
        if self._task is not None:
            self._task.cancel()
            [end] = await asyncio.gather(self._task, return_exceptions=True)
            if isinstance(end, Exception):
                raise end
        if self.state is not SessionState.EXPIRED:
            self._enter(SessionState.CLOSED)

    async def connected(self) -> None:
        """Wait until requests can be sent.

        Raises:
            SessionExpired: the client is expired or closed, so they never can be sent.
        """
        while self.state is not SessionState.CONNECTED:
            if self.state in (SessionState.EXPIRED, SessionState.CLOSED):
                raise SessionExpired(f"the session {self.session_id:#x} is {self.state.value}")
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    # Requests. Each raises ConnectionLoss if the connection is, or gets, lost; SessionExpired if
    # the client is expired or closed; and the ZooKeeperError that the server answers.

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node; return its path, including the number of a sequential node."""
        request = self._create(Create(path, data, ephemeral, sequential))
        reply = await self._call(Op.CREATE, request)
        return self._inside(PathResponse.read(reply).path)

    async def create2(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, Stat]:
        """Create a node; return its path and Stat (its czxid can serve as a fencing token)."""
        request = self._create(Create(path, data, ephemeral, sequential))
        reply = Create2Response.read(await self._call(Op.CREATE2, request))
        return self._inside(reply.path), reply.stat

    async def ensure_path(self, path: str) -> None:
        """Create a persistent node and all missing nodes above it, the chroot included."""
        missing = [self._outside(path)]
        while missing:
            acl = self._acl_of(self._inside(missing[-1]))
            request = CreateRequest(missing[-1], b"", acl, 0)
            try:
                if missing[-1] != "/":
                    await self._call(Op.CREATE, request)
                missing.pop()
            except NodeExists:
                missing.pop()
            except NoNode:
                missing.append(paths.parent_of(missing[-1]))

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        """A node's data and Stat; ``watch`` is called once, when either has changed."""
        reply = GetDataResponse.read(await self._look(Op.GET_DATA, path, watch, Kind.DATA))
        return reply.data or b"", reply.stat

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        """Set a node's data, if it has that version; -1 matches any."""
        request = SetDataRequest(self._outside(path), data, version)
        return StatResponse.read(await self._call(Op.SET_DATA, request)).stat

    async def delete(self, path: str, version: int = -1) -> None:
        """Delete a node, if it has that version; -1 matches any."""
        await self._call(Op.DELETE, PathVersion(self._outside(path), version))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """A node's Stat, or None if there is none; ``watch`` is called once, when that changes."""
        try:
            reply = await self._look(Op.EXISTS, path, watch, Kind.DATA)
        except NoNode:
            return None
        return StatResponse.read(reply).stat

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names of a node's children, sorted; ``watch`` is called once, when they change."""
        reply = await self._look(Op.GET_CHILDREN, path, watch, Kind.CHILD)
        return sorted(GetChildrenResponse.read(reply).children)

    async def children2(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
        """The names of a node's children, sorted, and the node's Stat."""
        look = await self._look(Op.GET_CHILDREN2, path, watch, Kind.CHILD)
        reply = GetChildren2Response.read(look)
        return sorted(reply.children), reply.stat

    async def add_watch(self, path: str, watch: Watch, *, recursive: bool = False) -> None:
        """Set a persistent watch (ZooKeeper 3.6): ``watch`` is called at each change of the node.

        It is called for changes of the list of children as well; with ``recursive``, for changes of
        all nodes below instead. It misses the changes between two connections.
        """
        outside = self._outside(path)
        kind = Kind.RECURSIVE if recursive else Kind.PERSISTENT
        mode = WatchMode.PERSISTENT_RECURSIVE if recursive else WatchMode.PERSISTENT

        def on_reply(error: int) -> None:
            if error == Code.OK:
                self._watches.add(kind, outside, watch)

        await self._call(Op.ADD_WATCH, AddWatch(outside, mode), on_reply)

    async def remove_watches(self, path: str) -> None:
        """Remove all watches on a node, of whatever kind.

        Raises:
            NoWatcher: the server has none.
        """
        outside = self._outside(path)

        def on_reply(error: int) -> None:
            if error in (Code.OK, Code.NO_WATCHER):
                self._watches.remove(outside)

        request = PathWatcherType(outside, WatcherType.ANY)
        await self._call(Op.REMOVE_WATCHES, request, on_reply)

    async def sync(self, path: str) -> None:
        """Wait until the server has applied what the leader had committed.

        A read after it is up to date unless the leader was replaced meanwhile (ZOOKEEPER-1675).
        """
        await self._call(Op.SYNC, PathRequest(self._outside(path)))

    async def multi(self, ops: Sequence[Create | SetData | Delete | Check]) -> list[MultiResult]:
        """Execute all of these operations, or none.

        Raises:
            MultiFailed: one was rejected.
        """
        request = MultiRequest(tuple(self._part(op) for op in ops))
        reply = await self._call(Op.MULTI, request)
        results: list[MultiResult] = []
        errors: list[ZooKeeperError | None] = []
        while not (header := MultiHeader.read(reply)).done:
            match header.type:
                case Op.ERROR:
                    code = Number.read(reply).value
                    errors.append(error_for(code) if code else None)
                case Op.CREATE:
                    results.append(self._inside(PathResponse.read(reply).path))
                case Op.SET_DATA:
                    results.append(StatResponse.read(reply).stat)
                case _:
                    results.append(None)
        if errors:
            raise MultiFailed(errors)
        return results

    # Paths

    def _outside(self, path: str) -> str:
        """The server's path for a path of the client: with the chroot."""
        paths.check(path)
        return path if not self._chroot else self._chroot + path.rstrip("/")

    def _inside(self, path: str) -> str:
        """The client's path for a path of the server: without the chroot."""
        return path.removeprefix(self._chroot) or "/"

    # Sending requests

    def _create(self, op: Create) -> CreateRequest:
        flags = EPHEMERAL * op.ephemeral | SEQUENTIAL * op.sequential
        # The name of a sequential node may be empty: then it is only the number.
        path = self._outside(op.path + "0" * op.sequential).removesuffix("0" * op.sequential)
        return CreateRequest(path, op.data, self._acl_of(op.path), flags)

    def _part(self, op: Create | SetData | Delete | Check) -> tuple[int, Record]:
        match op:
            case Create():
                return Op.CREATE, self._create(op)
            case SetData(path, data, version):
                return Op.SET_DATA, SetDataRequest(self._outside(path), data, version)
            case Delete(path, version):
                return Op.DELETE, PathVersion(self._outside(path), version)
            case Check(path, version):
                return Op.CHECK, PathVersion(self._outside(path), version)
            case _:
                assert_never(op)

    async def _look(self, op: Op, path: str, watch: Watch | None, kind: Kind) -> Reader:
        outside = self._outside(path)

        def on_reply(error: int) -> None:
            # Registered here, not after the await: the event may be in the next packet.
            if watch is not None and error == Code.OK:
                self._watches.add(kind, outside, watch)
            elif watch is not None and error == Code.NO_NODE and op is Op.EXISTS:
                self._watches.add(Kind.EXIST, outside, watch)

        return await self._call(op, PathWatch(outside, watch is not None), on_reply)

    async def _call(
        self, op: Op, request: Record, on_reply: Callable[[int], None] | None = None
    ) -> Reader:
        if self.state in (SessionState.EXPIRED, SessionState.CLOSED):
            raise SessionExpired(f"the session {self.session_id:#x} is {self.state.value}")
        if self._connection is None:
            raise ConnectionLoss("the client is not connected")
        return await self._connection.request(op, request, on_reply)

    # Session and connections

    async def _run(self) -> None:
        """Connect to the servers again and again, until the session expires or `close` cancels."""
        rounds = 0
        while True:
            for host, port in self.servers:
                if await self._attempt(host, port):
                    rounds = 0
                if self.state is SessionState.EXPIRED:
                    return
            pause = min(BACKOFF_S_MAX, BACKOFF_S_MIN * 2**rounds)
            rounds = min(rounds + 1, 10)
            await asyncio.sleep(pause * self._rng.uniform(0.5, 1.0))

    async def _attempt(self, host: str, port: int) -> bool:
        """Run one connection until it ends; False if it never carried the session."""
        connection = Connection(self)
        try:
            async with asyncio.timeout(self.session_timeout_ms / _DIVISOR / len(self.servers)):
                loop = asyncio.get_running_loop()
                await loop.create_connection(lambda: connection, host, port)
                sent = loop.time()
                response = await connection.shake_hands(
                    ConnectRequest(
                        protocol_version=0,
                        last_zxid_seen=self.last_zxid,
                        timeout_ms=self.session_timeout_ms,
                        session_id=self.session_id,
                        password=self._password,
                        read_only=False,
                    )
                )
            if response.timeout_ms <= 0:
                self._watches.clear()
                self._enter(SessionState.EXPIRED)
                return False
            self.session_id = response.session_id
            self.session_timeout_ms = response.timeout_ms
            self._password = response.password
            if connection.lost.done():
                return False
            if self._login is not None:
                async with asyncio.timeout(self.session_timeout_ms / _DIVISOR):
                    await connection.log_in(self._login, f"{self._rng.getrandbits(160):x}")
            self._connection = connection
            self.connections += 1
            self._on_contact(sent, True)
            watches = self._watches.again(self.watched_zxid, SET_WATCHES_BYTES_MAX)
            connection.begin(response.timeout_ms / 1000, watches)
            self._enter(SessionState.CONNECTED)
            await connection.lost
            return True
        except AuthFailed as error:
            log.warning("%s:%d: the client could not authenticate: %s", host, port, error)
            return False
        except (OSError, TimeoutError, WireError, ZooKeeperError) as error:
            # The answer to a login can be malformed, or any error of a server without SASL.
            log.info("%s:%d: the client got no session: %r", host, port, error)
            return False
        finally:
            connection.drop()

    def answered(self, sent: float) -> None:
        """Handle the answer to a request or a ping that was sent at this time."""
        self._on_contact(sent, False)

    def lose(self, connection: Connection) -> None:
        """Handle the end of a connection; if it was the session's, no request can be sent now."""
        if connection is self._connection:
            self._connection = None
            self._enter(SessionState.SUSPENDED)

    def _enter(self, state: SessionState) -> None:
        if state is self.state:
            return
        self.state = state
        loop = asyncio.get_running_loop()
        if self._on_state is not None:
            loop.call_soon(self._on_state, state)
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def notified(self, event: WatcherEvent, zxid: int) -> None:
        """Handle a watch event: call each callback of the watches that it triggers once."""
        try:
            type_ = EventType(event.type)
        except ValueError:
            raise WireError(f"an event has the unknown type {event.type}") from None
        seen = WatchEvent(type_, self._inside(event.path), zxid)
        loop = asyncio.get_running_loop()
        called = self._watches.triggered(type_, event.path)
        if not called and self._on_stray is not None:
            loop.call_soon(self._on_stray, seen)
        for watch in called:
            loop.call_soon(watch, seen)


def _address(server: str) -> tuple[str, int]:
    host, colon, port = server.strip().rpartition(":")
    if not colon:
        return port.strip("[]"), DEFAULT_PORT
    return host.strip("[]"), int(port)
