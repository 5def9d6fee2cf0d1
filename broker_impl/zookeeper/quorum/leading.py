"""A server as leader: the connections of its learners, its clock, and the order of all writes."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from broker_impl.errors import StorageError, WireError
from broker_impl.zookeeper import zxids
from broker_impl.zookeeper.errors import Code
from broker_impl.zookeeper.jute import Reader, Record
from broker_impl.zookeeper.pipeline import Pipeline, Request
from broker_impl.zookeeper.proposer import WRITES, Proposer
from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.leader import Leader
from broker_impl.zookeeper.quorum.leader_events import (
    Arrived,
    Commit,
    Connected,
    Drop,
    Effect,
    Event,
    Forwarded,
    Key,
    Left,
    Logged,
    Proposed,
    Resign,
    Returned,
    Returning,
    Revalidate,
    Send,
    SendState,
    Serve,
    StateSent,
    Synced,
    SyncRequested,
    Tick,
    Touched,
)
from broker_impl.zookeeper.quorum.learner_link import LearnerLink
from broker_impl.zookeeper.quorum.membership import Membership
from broker_impl.zookeeper.quorum.owners import Owners
from broker_impl.zookeeper.quorum.packets import Packet, Type
from broker_impl.zookeeper.records import REQUESTS, Id, Op
from broker_impl.zookeeper.sessions import SessionTracker, shared_password
from broker_impl.zookeeper.txn_records import CreateSessionTxn, Proposal

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Remote:
    """A request that a learner has forwarded."""

    key: Key
    request: packets.Request
    ids: tuple[Id, ...]
    refusal: Code


@dataclass(slots=True)
class _Return:
    """A client has brought its session to a learner, or to the leader (without a key)."""

    key: Key | None
    session_id: int


class Leading:
    """Runs a leader until it resigns; also the orderer of its own clients' writes."""

    def __init__(self, site: Membership, on_epoch: Callable[[int], None]) -> None:
        """``on_epoch`` is called when the server begins to serve in an epoch."""
        self._site = site
        self._on_epoch = on_epoch
        self._history = site.history
        self._leader = Leader(site.me, site.ensemble, site.history, site.limits, site.clock())
        self._links: dict[Key, LearnerLink] = {}
        self._keys = itertools.count(1)
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._tracker = SessionTracker(site.server.tick_ms)
        self._owners = Owners(site.me)
        self._pipeline: Pipeline | None = None
        self._proposer: Proposer
        self._queue: list[Request | _Remote | _Return] = []
        self._since = 0.0
        """When it has begun to serve."""
        self._own_syncs: dict[packets.Request, Request] = {}
        self._sync_numbers = itertools.count(1)

    async def run(self) -> str:
        """Lead, and return why the server does not lead any more; raises OSError."""
        loop = asyncio.get_running_loop()
        me = self._site.ensemble.members[self._site.me]
        listener = await loop.create_server(
            lambda: LearnerLink(self, next(self._keys)),
            self._site.listen_host or me.host,
            me.quorum_port,
            reuse_port=self._site.reuse_port or None,
        )
        try:
            self._carry_out(self._leader.start())
            self._schedule_tick()
            return await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for link in list(self._links.values()):
                link.abort()
            listener.close()
            await listener.wait_closed()

    @property
    def state(self) -> Leader:
        """The state of the leader."""
        return self._leader

    # --- the orderer of the pipeline

    def submit(self, request: Request) -> None:
        """Take a write or a sync of one of this server's own clients."""
        self._queue.append(request)

    def flush(self) -> None:
        """Propose what was submitted or forwarded, and log it; raises StorageError."""
        queue, self._queue = self._queue, []
        proposals: list[Proposal] = []
        for item in queue:
            if self._is_over():
                return
            if isinstance(item, _Return):
                self._propose(proposals)
                proposals = []
                self._carry_out(self._leader.handle(Returning(item.key, item.session_id)))
                continue
            request = item.request if isinstance(item, _Remote) else item
            if request.op == Op.SYNC:
                self._propose(proposals)
                proposals = []
                self._sync(item)
            elif zxids.is_exhausted(self._proposer.last_zxid + 1):
                self._propose(proposals)
                self._resign("the epoch has no more zxids")
            elif isinstance(item, _Remote):
                proposals.append(self._proposal_of_learner(item))
            else:
                proposals.append(self._proposal_of_client(item))
        self._propose(proposals)

    def revalidate(self, session_id: int, timeout_ms: int) -> None:
        """Take a session that a client has brought to the leader."""
        self._take_session(None, session_id, timeout_ms, self._site.me)

    # --- for the connections of learners

    def connected(self, link: LearnerLink) -> None:
        """A learner has connected."""
        self._links[link.key] = link
        self._handle(Connected(link.key, self._site.clock()))

    def arrived(self, key: Key, packet: Packet) -> None:
        """A packet of a learner has arrived."""
        self._handle(Arrived(key, packet, self._site.clock()))

    def state_sent(self, key: Key) -> None:
        """A learner was sent the state, and everything behind it."""
        self._handle(StateSent(key))

    def left(self, key: Key) -> None:
        """The connection of a learner has ended."""
        if self._links.pop(key, None) is not None:
            self._handle(Left(key))

    # --- implementation

    def _handle(self, event: Event) -> None:
        if self._is_over():
            return
        try:
            self._carry_out(self._leader.handle(event))
        except StorageError as error:
            self._site.server.fail(error)

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if self._is_over():
                return
            match effect:
                case Send(key, data):
                    self._send(key, data)
                case Commit(zxid):
                    self._commit(zxid)
                case Forwarded(key, server, request, ids):
                    self._forwarded(key, server, request, ids)
                case Touched(_, sessions):
                    self._touch(sessions)
                case Synced(request):
                    self._synced(request)
                case Revalidate(key, server, session_id, timeout_ms):
                    self._take_session(key, session_id, timeout_ms, server)
                case Returned(key, session_id):
                    self._returned(key, session_id)
                case SendState(key):
                    if (link := self._links.get(key)) is not None:
                        link.send_state(self._history.database)
                case Drop(key, reason):
                    self._drop(key, reason)
                case Serve(epoch):
                    self._serve(epoch)
                case Resign(reason):
                    self._resign(reason)
                case _:
                    assert_never(effect)

    def _is_over(self) -> bool:
        return self._over.done()

    def _resign(self, reason: str) -> None:
        if not self._over.done():
            self._over.set_result(reason)

    def _send(self, key: Key, data: bytes) -> None:
        if (link := self._links.get(key)) is not None:
            link.send(data)

    def _drop(self, key: Key, reason: str) -> None:
        log.warning("a learner is dropped: %s", reason)
        if (link := self._links.pop(key, None)) is not None:
            link.abort()

    def _serve(self, epoch: int) -> None:
        site = self._site
        first = zxids.first_of(epoch)
        self._proposer = Proposer(self._history.database, first)
        self._since = site.clock()
        self._tracker.add_all(self._history.database.sessions, site.clock())
        self._pipeline = Pipeline(
            self._history,
            self,
            self._tracker,
            password=shared_password,
            wall_ms=site.wall_ms,
            clock=site.clock,
            server_id=site.me,
            zxid=first,
            mode="leader",
        )
        self._pipeline.role_figures = self._figures
        self._pipeline.role = lambda: site.role(site.me)
        self._on_epoch(epoch)
        site.server.serve(self._pipeline)

    def _figures(self) -> dict[str, object]:
        synced = [learner for learner in self._leader.learners.values() if learner.has_history]
        observers = sum(learner.observes for learner in synced)
        sizes = self._leader.proposal_sizes
        return {
            "leader_uptime": int((self._site.clock() - self._since) * 1000),
            "learners": len(synced),
            "synced_followers": len(synced) - observers,
            "synced_non_voting_followers": 0,
            "synced_observers": observers,
            "pending_syncs": self._leader.waiting_syncs,
            "last_proposal_size": sizes.last,
            "max_proposal_size": sizes.max,
            "min_proposal_size": sizes.min,
        }

    def _forwarded(
        self, key: Key, server: int, request: packets.Request, ids: tuple[Id, ...]
    ) -> None:
        refusal = self._owners.refusal(request.session_id, server, request.op)
        self._queue.append(_Remote(key, request, ids, refusal))
        self._site.server.schedule()

    def _touch(self, sessions: Sequence[tuple[int, int]]) -> None:
        now = self._site.clock()
        for session_id, timeout_ms in sessions:
            if session_id in self._tracker:
                self._tracker.add(session_id, timeout_ms, now)

    def _take_session(self, key: Key | None, session_id: int, timeout_ms: int, server: int) -> None:
        """A client has brought its session to a server, and is there from now on."""
        if session_id in self._tracker:
            self._tracker.add(session_id, timeout_ms, self._site.clock())
            self._owners.move(session_id, server)
        elif self._pipeline is not None:
            self._pipeline.hand_over()  # perhaps the end of this session: its nodes go first
        self._queue.append(_Return(key, session_id))
        self._site.server.schedule()

    def _returned(self, key: Key | None, session_id: int) -> None:
        is_valid = session_id in self._tracker
        if key is None:
            assert self._pipeline is not None, "only a serving leader has clients"
            self._pipeline.revalidated(session_id, is_valid)
        else:
            answer = packets.encode_validity(session_id, is_valid)
            self._send(key, packets.encode(Packet(Type.REVALIDATE, -1, answer)))

    def _proposal_of_learner(self, remote: _Remote) -> Proposal:
        request = remote.request
        return self._proposer.propose(
            request.op,
            _body(request),
            session_id=request.session_id,
            cxid=request.xid,
            ids=remote.ids,
            now_ms=self._site.wall_ms(),
            refusal=remote.refusal,
        )

    def _proposal_of_client(self, request: Request) -> Proposal:
        refusal = Code.OK
        if request.client is not None:
            refusal = self._owners.refusal(request.session_id, self._site.me, request.op)
        return self._proposer.propose(
            request.op,
            request.body,
            session_id=request.session_id,
            cxid=request.xid,
            ids=request.ids,
            now_ms=self._site.wall_ms(),
            refusal=refusal,
        )

    def _propose(self, proposals: Sequence[Proposal]) -> None:
        """Send the transactions to the followers, and log them here meanwhile."""
        if not proposals:
            return
        self._carry_out(self._leader.handle(Proposed(proposals)))
        for link in self._links.values():
            link.flush()
        self._history.log(proposals)
        self._carry_out(self._leader.handle(Logged(proposals[-1].header.zxid)))

    def _commit(self, zxid: int) -> None:
        uncommitted = self._history.uncommitted
        while uncommitted and uncommitted[0].header.zxid <= zxid:
            proposal = uncommitted[0]
            self._history.commit(proposal.header.zxid)
            self._proposer.applied(proposal)
            if proposal.header.type == Op.CLOSE_SESSION:
                self._owners.forget(proposal.header.session_id)

    def _sync(self, item: Request | _Remote) -> None:
        if isinstance(item, _Remote):
            self._carry_out(self._leader.handle(SyncRequested(item.key, item.request)))
            return
        # The number makes each of them different, whatever xids their clients use.
        own = packets.Request(item.session_id, next(self._sync_numbers), Op.SYNC, b"")
        self._own_syncs[own] = item
        self._carry_out(self._leader.handle(SyncRequested(None, own)))

    def _synced(self, request: packets.Request) -> None:
        assert self._pipeline is not None, "only a serving leader has clients"
        self._pipeline.synced(self._own_syncs.pop(request))

    def _schedule_tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._site.tick_s / 2, self._on_tick)

    def _on_tick(self) -> None:
        self._handle(Tick(self._site.clock()))
        if not self._is_over():
            self._schedule_tick()


def _body(request: packets.Request) -> Record | None:
    """Decode a forwarded write; None if it cannot be read."""
    reader = Reader(request.body)
    try:
        if request.op == Op.CREATE_SESSION:
            return CreateSessionTxn.read(reader)
        known = REQUESTS.get(request.op)
        if known is None or request.op not in WRITES:
            return None
        return known.read(reader)
    except WireError:
        return None
