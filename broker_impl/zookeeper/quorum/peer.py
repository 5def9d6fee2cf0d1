"""A server of an ensemble: it looks for a leader, leads or follows, and looks again.

What a server does in each state is in ``election``, ``leading`` and ``following``; this module goes
from one to the next. Between two roles it closes its clients' connections, and its state becomes
that of its whole log.
"""

import asyncio
import logging
from typing import assert_never

from broker_impl.zookeeper.quorum import role_rules
from broker_impl.zookeeper.quorum.election import (
    Decided,
    Election,
    Event,
    Heard,
    Look,
    Notify,
    Reconnect,
    Silence,
    Synchronized,
    Wait,
)
from broker_impl.zookeeper.quorum.election_links import ElectionLinks
from broker_impl.zookeeper.quorum.following import Following
from broker_impl.zookeeper.quorum.leading import Leading
from broker_impl.zookeeper.quorum.membership import Membership
from broker_impl.zookeeper.quorum.notifications import Notification, State

log = logging.getLogger(__name__)

NOTIFICATION_WAIT_S_MAX = 60.0
"""The longest wait between two notifications of an election (``maxNotificationInterval``)."""

PAUSE_S = 0.05
"""The time between a role and the next election, so that a failure that repeats itself does not
keep the server busy."""


class Peer:
    """Runs one server of an ensemble; its client port is served by the site's ``Server``."""

    def __init__(self, site: Membership, *, wait_max_s: float = NOTIFICATION_WAIT_S_MAX) -> None:
        self.state = State.LOOKING
        self.role: Leading | Following | None = None
        """What the server does now; None while it looks for a leader."""
        self._site = site
        self._election = Election(site.me, site.ensemble, wait_max_s)
        self._links = ElectionLinks(site.me, site.ensemble, self._heard)
        self._decided: asyncio.Future[Decided] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Run until the server's ``ended`` is done; raises StorageError, OSError."""
        me = self._site.ensemble.members[self._site.me]
        host = self._site.listen_host or me.host
        await self._links.start(host, me.election_port, reuse_port=self._site.reuse_port)
        ended = self._site.server.ended
        roles = asyncio.get_running_loop().create_task(self._roles())
        roles.add_done_callback(self._roles_ended)
        try:
            await ended
        finally:
            roles.cancel()
            await asyncio.gather(roles, return_exceptions=True)
            self._stop_timer()
            await self._links.stop()

    def _roles_ended(self, roles: asyncio.Task[None]) -> None:
        """End the server with the error that its roles have ended with."""
        ended = self._site.server.ended
        if not roles.cancelled() and (error := roles.exception()) and not ended.done():
            ended.set_exception(error)

    async def _roles(self) -> None:
        site = self._site
        while True:
            self.state = State.LOOKING
            decided = await self._elect()
            self.state = decided.state
            log.info("server %d: %s, the leader is %d", site.me, decided.state.name, decided.leader)
            try:
                if decided.state is State.LEADING:
                    self.role = leading = Leading(site, self._on_epoch)
                    reason = await leading.run()
                else:
                    leader = site.ensemble.members[decided.leader]
                    self.role = following = Following(site, self._on_epoch)
                    reason = await following.run(leader)
            finally:
                self.role = None
                role_rules.leave(site.server, site.history)
            log.info("server %d leaves its role: %s", site.me, reason)
            await asyncio.sleep(PAUSE_S)

    async def _elect(self) -> Decided:
        self._decided = asyncio.get_running_loop().create_future()
        history = self._site.history
        self._handle(Look(history.ledger.current_epoch, history.last_zxid))
        try:
            return await self._decided
        finally:
            self._stop_timer()

    def _on_epoch(self, epoch: int) -> None:
        """The server begins to serve in an epoch."""
        self._handle(Synchronized(epoch))

    def _heard(self, notification: Notification) -> None:
        self._handle(Heard(notification))

    def _handle(self, event: Event) -> None:
        for effect in self._election.handle(event):
            match effect:
                case Notify(receiver, notification):
                    self._links.send(receiver, notification)
                case Wait(seconds):
                    self._stop_timer()
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(seconds, self._handle, Silence())
                case Reconnect():
                    self._links.connect_all()
                case Decided():
                    self._stop_timer()
                    if self._decided is not None and not self._decided.done():
                        self._decided.set_result(effect)
                case _:
                    assert_never(effect)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
