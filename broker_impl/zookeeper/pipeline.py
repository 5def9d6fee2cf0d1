"""What a server does with the requests of its clients: reads here, writes through one order.

Writes and syncs go to an ``Orderer`` as they arrive: it puts the writes of all servers into one
order. Each comes back once it is committed and applied here, and is answered then. The requests of
a connection are answered in the order in which they arrived, so a read waits for the earlier writes
of its own connection, and sees them; it does not wait for those of others.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from broker_impl.zookeeper import acl, authentication, reads, sessions
from broker_impl.zookeeper.authentication import Credentials, Identified
from broker_impl.zookeeper.errors import Code, ZooKeeperError
from broker_impl.zookeeper.figures import Latency
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.proposer import WRITES
from broker_impl.zookeeper.records import (
    NO_ZXID,
    PASSWORD_BYTES,
    SYNC_CONNECTED,
    XID_EVENT,
    ConnectRequest,
    ConnectResponse,
    Id,
    Nothing,
    Op,
    PathRequest,
    PathResponse,
    PathVersion,
    Perm,
    ReplyHeader,
    RequestHeader,
    SetWatches,
    SetWatches2,
    WatcherEvent,
)
from broker_impl.zookeeper.responses import response
from broker_impl.zookeeper.tree import Applied, Change, Outcome
from broker_impl.zookeeper.txn_records import CreateSessionTxn, Proposal
from broker_impl.zookeeper.watches import WatchTable


class Client(Identified, Protocol):
    """A client's connection, as the pipeline uses it."""

    session_id: int
    """0 until the session is established."""
    is_open: bool
    """False once it is closed or lost."""

    def send(self, *parts: Record) -> None:
        """Send one packet; ignored if the connection is lost."""

    def close(self) -> None:
        """Close the connection after the packets that were sent."""

    def answered(self, op: int, xid: int, zxid: int, now: float, seconds: float) -> None:
        """Count an answer that was sent, with the seconds since its request arrived."""


class Request(msgspec.Struct, eq=False):
    """A request of a client, or of the server itself (without a client)."""

    client: Client | None
    session_id: int
    ids: tuple[Id, ...]
    xid: int
    op: int
    body: Record | None
    """None if the operation is unknown."""
    raw: bytes
    """The body as the client sent it, to be forwarded to a leader."""
    received: float
    is_done: bool = False
    """Has the orderer completed it?"""


class Orderer(Protocol):
    """Puts writes and syncs into one order, and hands over each when its turn has come.

    It calls ``Pipeline.applied`` for each transaction, also for those of other servers' clients,
    ``Pipeline.synced`` for each sync, and ``Pipeline.revalidated`` for each question.
    """

    def submit(self, request: Request) -> None:
        """Take a write or a sync."""

    def flush(self) -> None:
        """Handle everything that was submitted: no more requests have arrived.

        Raises:
            StorageError: it is unknown which transactions are stored; the server must stop.
        """

    def revalidate(self, session_id: int, timeout_ms: int) -> None:
        """Ask whether a session lives that a client has brought to this server."""


class Tracker(Protocol):
    """Learns which sessions show signs of life; times in seconds of the loop's clock."""

    tick_ms: int

    def negotiate(self, timeout_ms: int) -> int:
        """Return the timeout that is granted in place of the requested one."""

    def add(self, session_id: int, timeout_ms: int, now: float) -> None:
        """Start to track a session, or change its timeout."""

    def touch(self, session_id: int, now: float) -> None:
        """Extend a session after a sign of life."""

    def touch_all(self, now: float) -> None:
        """Extend all sessions."""

    def remove(self, session_id: int) -> None:
        """Stop tracking a session."""

    def expired(self, now: float) -> list[int]:
        """Remove and return the sessions whose timeout has passed."""


OUTSTANDING_MAX = 1000
"""With more requests than this in the order no more are read (``globalOutstandingLimit``)."""

_OF_SESSIONS = (Op.CREATE_SESSION, Op.CLOSE_SESSION)

ORDERING = ("standalone", "leader")
"""The modes of servers that put the writes into one order."""


def deliver(trigger: Callable[[], None], answer: Callable[[], None]) -> None:
    """Send the events of a change, then the reply to its client.

    A client sees an event before any reply that shows the change, also before its own write's.
    """
    trigger()
    answer()


class Pipeline:
    """A serving server without its sockets: requests in, packets out through each ``Client``.

    Args:
        history: the log and the state; the pipeline becomes the listener of its transactions.
        orderer: orders the writes.
        tracker: gets every sign of life of a session.
        password: returns the password of a session; all servers of an ensemble agree on it.
        wall_ms: wall clock in milliseconds.
        clock: the loop's clock in seconds.
        server_id: part of the ids of the sessions that begin here.
        zxid: the zxid that clients see at least: that of the beginning of the leader's epoch.
        mode: the server's role, as the four-letter words name it.
    """

    def __init__(
        self,
        history: History,
        orderer: Orderer,
        tracker: Tracker,
        *,
        password: Callable[[int], bytes],
        wall_ms: Callable[[], int],
        clock: Callable[[], float],
        server_id: int = 1,
        zxid: int = 0,
        mode: str = "standalone",
    ) -> None:
        self.database = history.database
        self.watches: WatchTable[Client] = WatchTable()
        self.tracker = tracker
        self.clients: dict[int, Client] = {}
        """The connection of each session that has one."""
        self.latency = Latency()
        self.rejected_identities = 0
        """How often a client has presented credentials in vain."""
        self.server_id = server_id
        self.mode = mode
        self.role_figures: Callable[[], Mapping[str, object]] = dict
        """Returns the figures that only a server of this role has, by their names in ``mntr``."""
        self.role: Callable[[], Mapping[str, object]] = lambda: {
            "error": "server is not initialized"
        }
        """Returns who leads, for a member of an ensemble."""
        self._history = history
        self._orderer = orderer
        self._password = password
        self._wall_ms = wall_ms
        self._clock = clock
        self._least_zxid = zxid
        self._queue: list[Request] = []
        self._ordered = 0
        """The number of writes and syncs that the orderer has not returned."""
        self._unanswered: dict[Client, deque[Request]] = {}
        """The requests of each connection that waits for a write or a sync, in order."""
        self._writes: dict[int, deque[Request]] = {}
        """The writes of each session that are not applied yet, in order."""
        self._returning: dict[int, list[tuple[Client, int]]] = {}
        """The connections that wait for the validity of their sessions, with their timeouts."""
        self._next_session_id = sessions.first_id(server_id, wall_ms(), self.database.sessions)
        history.listener = self.applied

    def __len__(self) -> int:
        """The number of requests that are not answered."""
        return len(self._queue) + sum(map(len, self._unanswered.values()))

    def unanswered(self, client: Client) -> int:
        """The number of requests of a connection that wait for a write or a sync."""
        return len(self._unanswered.get(client, ()))

    @property
    def is_full(self) -> bool:
        """Are there so many requests that no more should be read from connections?"""
        return self._ordered + len(self._queue) > OUTSTANDING_MAX

    @property
    def last_zxid(self) -> int:
        """The zxid of the state that clients see."""
        return max(self.database.last_zxid, self._least_zxid)

    def wall_ms_at(self, second: float) -> int:
        """Return the wall clock (ms) at a second of the loop's clock."""
        return self._wall_ms() + int((second - self._clock()) * 1000)

    # --- what clients do

    def connect(self, client: Client, request: ConnectRequest) -> None:
        """Handle the first packet of a connection, for a new session or an existing one."""
        timeout_ms = self.tracker.negotiate(request.timeout_ms)
        if request.last_zxid_seen > self.last_zxid:
            client.close()  # it has seen a later state than this server: it must try another
        elif request.session_id == 0:
            session_id = self._next_session_id
            self._next_session_id = sessions.next_id(session_id)
            create = CreateSessionTxn(timeout_ms)
            self._enqueue(client, session_id, 0, Op.CREATE_SESSION, create, create.encode())
        elif not sessions.is_password(self._password(request.session_id), request.password):
            self._reject(client)
        else:
            former = self.clients.get(request.session_id)
            if former is not None:
                former.close()
            # What has arrived over the former connection comes before the question: a write takes
            # effect before the client reads over the new connection, or never.
            self.hand_over()
            self._returning.setdefault(request.session_id, []).append((client, timeout_ms))
            self._orderer.revalidate(request.session_id, timeout_ms)

    def submit(
        self, client: Client, header: RequestHeader, body: Record | None, raw: bytes = b""
    ) -> None:
        """Queue any later packet; ``body`` is None for an unknown operation."""
        self.tracker.touch(client.session_id, self._clock())
        if isinstance(body, Credentials):
            self._authenticate(client, header, body)
            return
        self._enqueue(client, client.session_id, header.xid, header.op, body, raw)

    def disconnected(self, client: Client) -> None:
        """Handle a lost connection; its session exists until it expires."""
        self.watches.forget(client)
        self._unanswered.pop(client, None)
        if self.clients.get(client.session_id) is client:
            del self.clients[client.session_id]
            if sessions.ends_with_connection():
                self._enqueue(None, client.session_id, 0, Op.CLOSE_SESSION, Nothing(), b"")

    def expire(self) -> None:
        """End the sessions that were silent for too long."""
        for session_id in self.tracker.expired(self._clock()):
            self._enqueue(None, session_id, 0, Op.CLOSE_SESSION, Nothing(), b"")

    def delete_unused(self) -> None:
        """Delete containers that had children and have none, and nodes that outlived their time.

        Only a server that orders writes does this (ZOOKEEPER-2163, 2169).
        """
        if self.mode not in ORDERING:
            return
        for path in self.database.unused(self._wall_ms()):
            self._enqueue(None, 0, 0, Op.DELETE_CONTAINER, PathVersion(path, -1), b"")

    def hand_over(self) -> None:
        """Give the queued writes and syncs to the orderer, and answer the queued reads."""
        batch, self._queue = self._queue, []
        for request in batch:
            self._take(request)

    def turn(self) -> bool:
        """Handle all queued requests; what is ordered meanwhile is answered.

        Returns whether another turn is due without requests, because a snapshot is being written.

        Raises:
            StorageError: it is unknown which transactions are stored; the server must stop.
        """
        self.hand_over()
        self._orderer.flush()
        return self._history.rest()

    # --- what the orderer returns

    def applied(self, proposal: Proposal, applied: Applied) -> None:
        """Answer a write that is applied now, if it is from a client of this server."""
        if not self._writes and not self.watches and proposal.header.type not in _OF_SESSIONS:
            return
        deliver(
            lambda: self._trigger(applied.changes, proposal.header.zxid),
            lambda: self._answer(proposal, applied),
        )

    def _trigger(self, changes: Sequence[Change], zxid: int) -> None:
        for change in changes:
            for watcher in self.watches.trigger(change):
                if acl.may(change.acl, Perm.READ, watcher.ids):
                    self._notify(watcher, change, zxid)

    def _answer(self, proposal: Proposal, applied: Applied) -> None:
        header = proposal.header
        if header.type == Op.CREATE_SESSION:
            timeout_ms = self.database.sessions[header.session_id]
            self.tracker.add(header.session_id, timeout_ms, self._clock())
        elif header.type == Op.CLOSE_SESSION:
            self.tracker.remove(header.session_id)
        request = self._pop_write(header.session_id, header.cxid)
        if request is not None:
            self._answer_write(request, proposal, applied.outcome)
            self._done(request)
        if header.type == Op.CLOSE_SESSION:
            attached = self.clients.pop(header.session_id, None)
            if attached is not None:
                attached.close()

    def synced(self, request: Request) -> None:
        """Answer a sync: everything is applied that was ordered before it."""
        if request.client is not None and isinstance(request.body, PathRequest):
            header = ReplyHeader(request.xid, self.last_zxid, Code.OK)
            request.client.send(header, PathResponse(request.body.path))
        self._done(request)

    def revalidated(self, session_id: int, is_valid: bool) -> None:
        """Attach the connection that has waited longest for this session, or reject it."""
        waiting = self._returning.get(session_id)
        if not waiting:
            return
        client, timeout_ms = waiting.pop(0)
        if not waiting:
            del self._returning[session_id]
        if not client.is_open:
            return
        if not is_valid:
            self._reject(client)
            return
        before = self.clients.get(session_id)
        if before is not None:
            before.close()
        self.tracker.add(session_id, timeout_ms, self._clock())
        self._attach(client, session_id, timeout_ms)

    # --- implementation

    def _enqueue(
        self,
        client: Client | None,
        session_id: int,
        xid: int,
        op: int,
        body: Record | None,
        raw: bytes,
    ) -> None:
        ids = client.ids if client is not None else ()
        request = Request(client, session_id, ids, xid, op, body, raw, self._clock())
        self._queue.append(request)

    def _take(self, request: Request) -> None:
        client = request.client
        is_write = request.op in WRITES and request.body is not None
        if is_write or (request.op == Op.SYNC and request.body is not None):
            if is_write:
                self._writes.setdefault(request.session_id, deque()).append(request)
            if client is not None and client.is_open:
                self._unanswered.setdefault(client, deque()).append(request)
            self._ordered += 1
            self._orderer.submit(request)
        elif client is None or not client.is_open:
            return
        elif client in self._unanswered:
            self._unanswered[client].append(request)
        else:
            self._read(request, client)

    def _pop_write(self, session_id: int, xid: int) -> Request | None:
        """Remove the oldest write of a session; None if the transaction is not from here."""
        writes = self._writes.get(session_id)
        if not writes or writes[0].xid != xid:
            return None
        request = writes.popleft()
        if not writes:
            del self._writes[session_id]
        return request

    def _answer_write(self, request: Request, proposal: Proposal, outcome: Outcome) -> None:
        client, zxid = request.client, proposal.header.zxid
        if client is None:
            return
        if request.op == Op.CREATE_SESSION and not outcome.error:
            timeout_ms = self.database.sessions[request.session_id]
            self._attach(client, request.session_id, timeout_ms)
        elif outcome.error == Code.SESSION_MOVED:
            client.close()  # the client has another connection (ZOOKEEPER-710)
        else:
            header = ReplyHeader(request.xid, zxid, outcome.error)
            body = Nothing() if outcome.error else response(request.op, request.body, outcome)
            client.send(header, body)

    def _done(self, request: Request) -> None:
        """Answer the reads that have waited for a write or a sync."""
        request.is_done = True
        self._ordered -= 1
        self._measure(request)
        client = request.client
        if client is None or (unanswered := self._unanswered.get(client)) is None:
            return
        while unanswered and client.is_open:
            first = unanswered[0]
            if first.is_done:
                unanswered.popleft()
            elif first.op in WRITES or first.op == Op.SYNC:
                return
            else:
                unanswered.popleft()
                self._read(first, client)
        self._unanswered.pop(client, None)

    def _measure(self, request: Request) -> None:
        """Count a request that was answered."""
        now = self._clock()
        seconds = now - request.received
        self.latency.add(seconds)
        if request.client is not None:
            request.client.answered(request.op, request.xid, self.last_zxid, now, seconds)

    def _read(self, request: Request, client: Client) -> None:
        body = request.body
        error, answer = 0, Nothing()  # type: tuple[int, Record]
        try:
            if isinstance(body, SetWatches | SetWatches2):
                for change in reads.set_again(self.database, self.watches, client, body):
                    self._notify(client, change, NO_ZXID)
            elif isinstance(body, PathRequest) and request.op == Op.GET_EPHEMERALS:
                answer = reads.ephemerals(self.database, request.session_id, body.path)
            elif request.op == Op.WHO_AM_I:
                answer = reads.who_am_i(request.ids)
            elif request.op != Op.PING:
                answer = reads.answer(
                    self.database, self.watches, client, request.ids, request.op, body
                )
        except ZooKeeperError as refusal:
            error = refusal.code
        client.send(ReplyHeader(request.xid, self.last_zxid, error), answer)
        self._measure(request)
        if body is None:
            client.close()  # unknown operation: later packets may be misunderstood as well

    def _attach(self, client: Client, session_id: int, timeout_ms: int) -> None:
        if not client.is_open:
            return
        client.session_id = session_id
        self.clients[session_id] = client
        proof = self._password(session_id)
        client.send(ConnectResponse(0, timeout_ms, session_id, proof, False))

    def _reject(self, client: Client) -> None:
        """Tell a client that its session has expired."""
        client.send(ConnectResponse(0, 0, 0, bytes(PASSWORD_BYTES), False))
        client.close()

    def _authenticate(self, client: Client, header: RequestHeader, given: Credentials) -> None:
        try:
            answer = authentication.answer(client, given)
        except ZooKeeperError as refusal:
            self.rejected_identities += 1
            client.send(ReplyHeader(header.xid, self.last_zxid, refusal.code))
            client.close()
            return
        client.send(ReplyHeader(header.xid, self.last_zxid, 0), *answer)

    def _notify(self, client: Client, change: Change, zxid: int) -> None:
        client.send(
            ReplyHeader(XID_EVENT, zxid, 0),
            WatcherEvent(change.type, SYNC_CONNECTED, change.path),
        )
