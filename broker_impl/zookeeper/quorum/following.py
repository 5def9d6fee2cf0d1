"""A server as follower or observer: its connection to the leader, and its own clients' writes."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import assert_never

from broker_impl.errors import StorageError, WireError
from broker_impl.zookeeper import zxids
from broker_impl.zookeeper.history import OutOfOrder
from broker_impl.zookeeper.pipeline import Pipeline, Request
from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.ensemble import Member
from broker_impl.zookeeper.quorum.learner import (
    Arrived,
    Commit,
    Connected,
    Effect,
    Event,
    Learner,
    Leave,
    Paused,
    Pinged,
    ReadState,
    Send,
    Serve,
    StateArrived,
    Synced,
    Validity,
)
from broker_impl.zookeeper.quorum.membership import Membership
from broker_impl.zookeeper.quorum.packets import Packet, PacketReader, Type
from broker_impl.zookeeper.quorum.sessions import LearnerSessions
from broker_impl.zookeeper.records import Op
from broker_impl.zookeeper.sessions import shared_password
from broker_impl.zookeeper.state_stream import StateReader

log = logging.getLogger(__name__)

_SNAPSHOT_END = packets.SNAPSHOT_END
CONNECT_TRIES = 5
CONNECT_PAUSE_S = 0.1
"""How often a learner tries to reach its leader, and how long it waits in between: a leader may
have decided later than its follower. A connection that ends before the leader has sent anything
counts as such a try, because a proxy accepts connections before it knows whether there is a server.
"""


class Following:
    """Runs a learner until it leaves its leader; also the orderer of its own clients' writes."""

    def __init__(self, site: Membership, on_epoch: Callable[[int], None]) -> None:
        """``on_epoch`` is called when the server begins to serve in an epoch."""
        self._site = site
        self._on_epoch = on_epoch
        self._observes = site.ensemble.members[site.me].observes
        self._learner = Learner(site.me, site.history, observes=self._observes)
        self._sessions = LearnerSessions(site.server.tick_ms, {})
        self._pipeline: Pipeline | None = None
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._link: _LeaderLink | None = None
        self._leader = site.me
        self._state: StateReader | None = None
        self._syncs: deque[Request] = deque()
        self._unsent = bytearray()
        self._heard = 0.0
        self._is_answered = False
        """Has the leader sent anything?"""
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, leader: Member) -> str:
        """Follow a leader, and return why the server does not follow it any more."""
        for tries in reversed(range(CONNECT_TRIES)):
            try:
                reason = await self._follow(leader)
            except OSError as error:
                reason = f"the leader, server {leader.id}, cannot be reached: {error}"
            if self._is_answered or not tries:
                break
            await asyncio.sleep(CONNECT_PAUSE_S)
        return reason

    async def _follow(self, leader: Member) -> str:
        """Follow a leader over one connection; raises OSError if there is none."""
        self._over = asyncio.get_running_loop().create_future()
        self._learner = Learner(self._site.me, self._site.history, observes=self._observes)
        self._link = link = await self._connect(leader)
        self._leader = leader.id
        try:
            self._heard = self._site.clock()
            self._schedule_check()
            self._handle(Connected())
            return await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()
            link.abort()

    @property
    def state(self) -> Learner:
        """The state of the learner."""
        return self._learner

    # --- the orderer of the pipeline

    def submit(self, request: Request) -> None:
        """Forward a write or a sync to the leader."""
        forwarded = packets.Request(request.session_id, request.xid, request.op, request.raw)
        self._unsent += packets.encode_request(forwarded, request.ids)
        if request.op == Op.SYNC:
            self._syncs.append(request)

    def flush(self) -> None:
        """Send what was submitted."""
        if self._unsent and self._link is not None:
            self._link.send(bytes(self._unsent))
            self._unsent.clear()

    def revalidate(self, session_id: int, timeout_ms: int) -> None:
        """Ask the leader whether a session lives that a client has brought here."""
        data = packets.encode_session(session_id, timeout_ms)
        self._unsent += packets.encode(Packet(Type.REVALIDATE, -1, data))
        self._site.server.schedule()

    # --- for the connection to the leader

    def received(self, reader: PacketReader) -> None:
        """Bytes of the leader have arrived."""
        self._heard = self._site.clock()
        self._is_answered = True
        try:
            while not self._over.done():
                if self._state is not None:
                    self._state.receive(reader.rest())
                    if not self._end_state(reader, self._state):
                        return
                elif (packet := reader.next()) is not None:
                    self._handle(Arrived(packet))
                else:
                    break
        except (WireError, StorageError) as error:
            self._leave(f"the leader has sent something unreadable: {error}")
        self._handle(Paused())

    def lost(self, link: "_LeaderLink") -> None:
        """A connection has ended."""
        if link is self._link:
            self._leave("the connection to the leader has ended")

    # --- implementation

    async def _connect(self, leader: Member) -> "_LeaderLink":
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._site.limits.initialization):
            _, link = await loop.create_connection(
                lambda: _LeaderLink(self), leader.host, leader.quorum_port
            )
        return link

    def _handle(self, event: Event) -> None:
        if self._over.done():
            return
        try:
            if effects := self._learner.handle(event):
                self._carry_out(effects)
        except OutOfOrder as error:
            self._leave(str(error))
        except StorageError as error:
            self._site.server.fail(error)

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(data):
                    assert self._link is not None, "a learner has a connection"
                    self._link.send(data)
                case Commit(zxid):
                    self._site.history.commit(zxid)
                case Pinged(zxid):
                    self._answer_ping(zxid)
                case Synced():
                    self._synced()
                case Validity(session_id, is_valid):
                    if self._pipeline is not None:
                        self._pipeline.revalidated(session_id, is_valid)
                case ReadState(zxid):
                    self._state = StateReader(zxid)
                case Serve(epoch):
                    self._serve(epoch)
                case Leave(reason):
                    self._leave(reason)
                    return
                case _:
                    assert_never(effect)

    def _leave(self, reason: str) -> None:
        if not self._over.done():
            self._over.set_result(reason)

    def _end_state(self, reader: PacketReader, state: StateReader) -> bool:
        """Return whether the leader's state has arrived, so that packets follow."""
        rest = state.rest()
        if not state.is_complete or len(rest) < len(_SNAPSHOT_END):
            return False
        if not rest.startswith(_SNAPSHOT_END):
            raise WireError("the state does not end with its signature")
        self._state = None
        reader.receive(rest[len(_SNAPSHOT_END) :])
        self._handle(StateArrived(state.database))
        return True

    def _serve(self, epoch: int) -> None:
        site = self._site
        sessions = site.history.database.sessions
        self._sessions = LearnerSessions(site.server.tick_ms, sessions)
        self._pipeline = Pipeline(
            site.history,
            self,
            self._sessions,
            password=shared_password,
            wall_ms=site.wall_ms,
            clock=site.clock,
            server_id=site.me,
            zxid=zxids.first_of(epoch),
            mode="observer" if self._observes else "follower",
        )
        self._pipeline.role = lambda: site.role(self._leader)
        self._on_epoch(epoch)
        site.server.serve(self._pipeline)

    def _answer_ping(self, zxid: int) -> None:
        assert self._link is not None, "a learner has a connection"
        data = packets.encode_sessions(self._sessions.take())
        self._link.send(packets.encode(Packet(Type.PING, zxid, data)))

    def _synced(self) -> None:
        if not self._syncs:
            self._leave("SYNC has arrived, but no sync was forwarded")
        elif self._pipeline is not None:
            self._pipeline.synced(self._syncs.popleft())

    def _schedule_check(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._site.tick_s / 2, self._check)

    def _check(self) -> None:
        """Leave a leader that is silent for too long."""
        limits = self._site.limits
        limit = limits.silence if self._learner.has_history else limits.initialization
        if self._site.clock() - self._heard > limit:
            self._leave("the leader has been silent for too long")
        elif not self._over.done():
            self._schedule_check()


class _LeaderLink(asyncio.Protocol):
    """The connection to the leader."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._reader = PacketReader()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "a stream"
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._reader.receive(data)
        self._following.received(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        self._following.lost(self)

    def send(self, data: bytes) -> None:
        """Send encoded packets."""
        self._transport.write(data)

    def abort(self) -> None:
        """Close the connection now."""
        self._transport.abort()
