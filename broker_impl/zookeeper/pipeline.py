"""The order of all requests: request → proposal → log → commit → apply → events and replies.

All requests of all connections go through one queue. A turn takes the requests that have arrived,
proposes the writes, makes them durable with one sync (group commit), and only then applies and
answers, in order of arrival. A standalone server is its own quorum: what is logged is committed.
Reads use the same queue, so a client sees its own writes and its requests take effect in order.
"""

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker_impl.zookeeper import acl as acls
from broker_impl.zookeeper import reads, sessions
from broker_impl.zookeeper.errors import ZooKeeperError
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.proposer import WRITES, Proposer
from broker_impl.zookeeper.records import (
    MULTI_END,
    PASSWORD_BYTES,
    SYNC_CONNECTED,
    XID_EVENT,
    AuthRequest,
    ConnectRequest,
    ConnectResponse,
    Create2Response,
    Id,
    MultiHeader,
    MultiRequest,
    Nothing,
    Number,
    Op,
    PathRequest,
    PathResponse,
    ReplyHeader,
    RequestHeader,
    SetWatches,
    SetWatches2,
    StatResponse,
    WatcherEvent,
)
from broker_impl.zookeeper.sessions import SessionTracker
from broker_impl.zookeeper.tree import Change, Database, Outcome
from broker_impl.zookeeper.txn_records import CreateSessionTxn, Proposal
from broker_impl.zookeeper.watches import WatchTable


class Client(Protocol):
    """A client's connection, as the pipeline uses it."""

    session_id: int
    """0 until the session is established."""
    ids: tuple[Id, ...]
    """The connection's identities, for ACLs."""
    is_open: bool
    """False once it is closed or lost."""

    def send(self, *parts: Record) -> None:
        """Send one packet; ignored if the connection is lost."""

    def close(self) -> None:
        """Close the connection after the packets that were sent."""


class Ledger(Protocol):
    """Stores transactions."""

    def append(self, proposals: Sequence[Proposal]) -> None:
        """Store these transactions, durable on return.

        Raises:
            StorageError: it is unknown whether they are stored; the server must stop.
        """

    def applied(self, database: Database) -> None:
        """The database has applied all that was appended."""


@dataclass(slots=True)
class _Request:
    client: Client | None
    session_id: int
    ids: tuple[Id, ...]
    xid: int
    op: int
    body: Record | None
    received: float
    proposal: Proposal | None = None


@dataclass(slots=True)
class Latency:
    """The time from a request's arrival to its answer, in milliseconds."""

    count: int = 0
    total_ms: float = 0.0
    min_ms: int = 0
    max_ms: int = 0

    @property
    def mean_ms(self) -> float:
        """The mean; 0 before the first request."""
        return self.total_ms / self.count if self.count else 0.0

    def add(self, seconds: float) -> None:
        """Add the latency of one request."""
        ms = seconds * 1000
        self.min_ms = min(self.min_ms, int(ms)) if self.count else int(ms)
        self.max_ms = max(self.max_ms, int(ms))
        self.total_ms += ms
        self.count += 1


class Pipeline:
    """A server without its sockets: requests in, packets out through each ``Client``.

    Args:
        database: the state recovered from disk.
        ledger: stores the transactions.
        tracker: session expiry; it gets every sign of life.
        secret: session passwords are made from it.
        wall_ms: wall clock in milliseconds, for ctime and mtime.
        clock: the loop's clock in seconds.
        server_id: part of the session ids.
    """

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        tracker: SessionTracker,
        *,
        secret: bytes,
        wall_ms: Callable[[], int],
        clock: Callable[[], float],
        server_id: int = 1,
    ) -> None:
        self.database = database
        self.watches: WatchTable[Client] = WatchTable()
        self.tracker = tracker
        self.clients: dict[int, Client] = {}
        """The connection of each session that has one."""
        self.latency = Latency()
        self._ledger = ledger
        self._secret = secret
        self._wall_ms = wall_ms
        self._clock = clock
        self._proposer = Proposer(database)
        self._queue: list[_Request] = []
        self._next_session_id = sessions.first_id(server_id, wall_ms(), database.sessions)
        tracker.add_all(database.sessions, clock())

    def __len__(self) -> int:
        """The number of requests that wait for the next turn."""
        return len(self._queue)

    def connect(self, client: Client, request: ConnectRequest) -> None:
        """Handle the first packet of a connection, for a new session or an existing one."""
        timeout_ms = self.tracker.negotiate(request.timeout_ms)
        if request.last_zxid_seen > self.database.last_zxid:
            client.close()  # it has seen a later state than this server: it must try another
        elif request.session_id == 0:
            session_id = self._next_session_id
            self._next_session_id += 1
            self._enqueue(client, session_id, Op.CREATE_SESSION, CreateSessionTxn(timeout_ms))
        else:
            self._enqueue(client, request.session_id, _REATTACH, request)

    def submit(self, client: Client, header: RequestHeader, body: Record | None) -> None:
        """Queue any later packet; ``body`` is None for an unknown operation."""
        self.tracker.touch(client.session_id, self._clock())
        if isinstance(body, AuthRequest):
            self._authenticate(client, header, body)
            return
        self._enqueue(client, client.session_id, header.op, body, header.xid)

    def disconnected(self, client: Client) -> None:
        """Handle a lost connection; its session exists until it expires."""
        self.watches.forget(client)
        if self.clients.get(client.session_id) is client:
            del self.clients[client.session_id]

    def expire(self) -> None:
        """End the sessions that were silent for too long."""
        for session_id in self.tracker.expired(self._clock()):
            self._enqueue(None, session_id, Op.CLOSE_SESSION, Nothing())

    def turn(self) -> None:
        """Handle all queued requests, with one group commit.

        Raises:
            StorageError: the ledger failed, and no request was answered.
        """
        batch, self._queue = self._queue, []
        proposals = []
        for request in batch:
            if request.op in WRITES and request.body is not None:
                request.proposal = self._proposer.propose(
                    request.op,
                    request.body,
                    session_id=request.session_id,
                    cxid=request.xid,
                    ids=request.ids,
                    now_ms=self._wall_ms(),
                )
                proposals.append(request.proposal)
        if proposals:
            self._ledger.append(proposals)
        for request in batch:
            if request.proposal is not None:
                self._commit(request, request.proposal)
            elif request.client is not None and request.client.is_open:
                self._read(request, request.client)
        if proposals:
            self._ledger.applied(self.database)
        now = self._clock()
        for request in batch:
            self.latency.add(now - request.received)

    def _enqueue(
        self, client: Client | None, session_id: int, op: int, body: Record | None, xid: int = 0
    ) -> None:
        ids = client.ids if client is not None else ()
        self._queue.append(_Request(client, session_id, ids, xid, op, body, self._clock()))

    def _commit(self, request: _Request, proposal: Proposal) -> None:
        outcome, changes = self.database.apply(proposal)
        self._proposer.applied(proposal)
        for change in changes:
            for watcher in self.watches.trigger(change):
                self._notify(watcher, change, proposal.header.zxid)
        client = request.client
        if proposal.header.type == Op.CREATE_SESSION:
            assert client is not None, "a session is created by the request of a connection"
            timeout_ms = self.database.sessions[request.session_id]
            self._attach(client, request.session_id, timeout_ms)
        elif proposal.header.type == Op.CLOSE_SESSION:
            self._closed(request)
        elif client is not None:
            body = _response(request, outcome) if not outcome.error else Nothing()
            client.send(ReplyHeader(request.xid, proposal.header.zxid, outcome.error), body)

    def _closed(self, request: _Request) -> None:
        """Handle a closed session: its client asked for that, or was silent for too long."""
        self.tracker.remove(request.session_id)
        if request.client is not None:
            request.client.send(ReplyHeader(request.xid, self.database.last_zxid, 0))
        attached = self.clients.pop(request.session_id, None)
        if attached is not None:
            attached.close()

    def _read(self, request: _Request, client: Client) -> None:
        body = request.body
        if request.op == _REATTACH:
            assert isinstance(body, ConnectRequest), "a session is reattached by a connect request"
            self._reattach(client, body)
            return
        error, response = 0, Nothing()  # type: tuple[int, Record]
        try:
            if isinstance(body, SetWatches | SetWatches2):
                for change in reads.set_again(self.database, self.watches, client, body):
                    self._notify(client, change, self.database.last_zxid)
            elif isinstance(body, PathRequest) and request.op == Op.GET_EPHEMERALS:
                response = reads.ephemerals(self.database, request.session_id, body.path)
            elif request.op != Op.PING:
                response = reads.answer(
                    self.database, self.watches, client, request.ids, request.op, body
                )
        except ZooKeeperError as refusal:
            error = refusal.code
        client.send(ReplyHeader(request.xid, self.database.last_zxid, error), response)
        if body is None:
            client.close()  # unknown operation: later packets may be misunderstood as well

    def _reattach(self, client: Client, request: ConnectRequest) -> None:
        session_id = request.session_id
        proof = sessions.password(self._secret, session_id)
        if session_id not in self.database.sessions or not hmac.compare_digest(
            proof, request.password or b""
        ):
            client.send(ConnectResponse(0, 0, 0, bytes(PASSWORD_BYTES), False))
            client.close()
            return
        before = self.clients.get(session_id)
        if before is not None:
            before.close()
        self._attach(client, session_id, self.tracker.negotiate(request.timeout_ms))

    def _attach(self, client: Client, session_id: int, timeout_ms: int) -> None:
        self.tracker.add(session_id, timeout_ms, self._clock())
        if not client.is_open:
            return
        client.session_id = session_id
        self.clients[session_id] = client
        proof = sessions.password(self._secret, session_id)
        client.send(ConnectResponse(0, timeout_ms, session_id, proof, False))

    def _authenticate(self, client: Client, header: RequestHeader, request: AuthRequest) -> None:
        zxid = self.database.last_zxid
        try:
            identity = acls.identify(request.scheme, request.auth, client.ids)
        except ZooKeeperError as refusal:
            client.send(ReplyHeader(header.xid, zxid, refusal.code))
            client.close()
            return
        if identity not in client.ids:
            client.ids = (*client.ids, identity)
        client.send(ReplyHeader(header.xid, zxid, 0))

    def _notify(self, client: Client, change: Change, zxid: int) -> None:
        client.send(
            ReplyHeader(XID_EVENT, zxid, 0),
            WatcherEvent(change.type, SYNC_CONNECTED, change.path),
        )


_REATTACH = 0
"""The operation code of queued connect requests for an existing session; not a code of
ZooKeeper's."""


def _response(request: _Request, outcome: Outcome) -> Record:
    if isinstance(request.body, MultiRequest):
        return _MultiResponse(request.body, outcome.parts)
    return _single(request.op, outcome)


def _single(op: int, outcome: Outcome) -> Record:
    if op == Op.CREATE:
        return PathResponse(outcome.path)
    if outcome.stat is None:
        return Nothing()
    if op == Op.CREATE2:
        return Create2Response(outcome.path, outcome.stat)
    return StatResponse(outcome.stat)


class _MultiResponse(Record, frozen=True):
    """A result per operation; after a failure, an error per operation."""

    request: MultiRequest
    outcomes: tuple[Outcome, ...]

    def write(self, out: bytearray) -> None:
        failed = any(outcome.error for outcome in self.outcomes)
        for (op, _), outcome in zip(self.request.operations, self.outcomes, strict=True):
            if failed:
                MultiHeader(Op.ERROR, False, outcome.error).write(out)
                Number(outcome.error).write(out)
            else:
                MultiHeader(op, False, 0).write(out)
                _single(op, outcome).write(out)
        MULTI_END.write(out)
