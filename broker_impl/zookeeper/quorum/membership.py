"""What the roles of a server have in common: its ensemble, its history, its clocks and limits."""

from collections.abc import Callable
from dataclasses import dataclass

from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.quorum.ensemble import Ensemble, ServerId
from broker_impl.zookeeper.quorum.leader import Limits
from broker_impl.zookeeper.server import Server

INIT_LIMIT = 10
SYNC_LIMIT = 5
"""The default limits of initialization and silence, in ticks."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A server of an ensemble, as its roles see it."""

    me: ServerId
    ensemble: Ensemble
    history: History
    server: Server
    """Its clients."""
    wall_ms: Callable[[], int]
    """The wall clock in milliseconds."""
    clock: Callable[[], float]
    """The loop's clock in seconds."""
    init_limit: int = INIT_LIMIT
    """How many ticks discovery and synchronization may take (``initLimit``)."""
    sync_limit: int = SYNC_LIMIT
    """How many ticks leader and learners may be silent (``syncLimit``)."""
    reuse_port: bool = False
    """Bind the ports with SO_REUSEPORT."""
    listen_host: str | None = None
    """The address to bind, if that is not the one at which the others reach this server."""

    @property
    def tick_s(self) -> float:
        """The length of a tick in seconds."""
        return self.server.tick_ms / 1000

    def role(self, leader: ServerId) -> dict[str, object]:
        """Who leads, as operators see it."""
        return {
            "is_leader": leader == self.me,
            "leader_id": leader,
            "leader_ip": self.ensemble.members[leader].host,
        }

    @property
    def limits(self) -> Limits:
        """The time limits in seconds."""
        return Limits(self.init_limit * self.tick_s, self.sync_limit * self.tick_s)
