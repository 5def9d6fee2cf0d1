"""A ZooKeeper server from start to end, alone or as a member of an ensemble.

The clock, the randomness and the disk are given, so that the same program runs as a process and in
a simulation.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker_impl.errors import ConfigError
from broker_impl.zookeeper import standalone
from broker_impl.zookeeper.admin import Admin
from broker_impl.zookeeper.digest_md5 import ServerExchange
from broker_impl.zookeeper.history import WINDOW, History
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.membership import INIT_LIMIT, SYNC_LIMIT, Membership
from broker_impl.zookeeper.quorum.peer import Peer
from broker_impl.zookeeper.server import Server
from broker_impl.zookeeper.store import FOLDER, Store, StoreDisk

NONCE_BYTES = 20
"""The random bytes in the challenge to a client that authenticates."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a server."""

    host: str
    """The address to bind."""
    port: int
    """The port for clients; 0 selects a free one."""
    tick_ms: int = 2000
    """Session timeouts are 2 to 20 ticks."""
    snap_count: int = 100_000
    """The number of transactions between two snapshots."""
    window: int = WINDOW
    """The number of committed transactions that are kept for learners (``commitLogCount``)."""
    connections_max: int = 60
    """The maximum number of connections from one address; 0 is no limit."""
    reuse_port: bool = False
    """Bind the ports with SO_REUSEPORT."""
    me: int = 0
    """The server's id in its ensemble."""
    members: tuple[Member, ...] = ()
    """The servers of the ensemble; none if the server is alone."""
    init_limit: int = INIT_LIMIT
    """How many ticks a learner may take to get the leader's history."""
    sync_limit: int = SYNC_LIMIT
    """How many ticks leader and learners may be silent."""
    election_wait_max_s: float = 60.0
    """The longest wait between two notifications of an election."""
    admin: tuple[str, int] | None = None
    """Where operators are answered over HTTP; port 0 selects a free one."""
    folder: str = ""
    """The path of the data directory, for operators."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The passwords of the clients that authenticate by SASL, by user."""


class Program:
    """One life of a server."""

    def __init__(
        self,
        settings: Settings,
        disk: StoreDisk,
        *,
        wall_ms: Callable[[], int],
        entropy: Callable[[int], bytes],
    ) -> None:
        """Recover the state; raises StorageError, and ConfigError if the ensemble is invalid."""
        self.settings = settings
        self._wall_ms = wall_ms
        self._clock = asyncio.get_running_loop().time
        self._ensemble = Ensemble(settings.members) if settings.members else None
        if self._ensemble is not None and settings.me not in self._ensemble.members:
            raise ConfigError(f"no server of the ensemble has the id {settings.me}")
        self._store = Store(disk, snap_count=settings.snap_count)
        configuration = None if self._ensemble is None else self._ensemble.configuration()
        self.history = History(self._store, configuration, window=settings.window)
        self.peer: Peer | None = None
        """Its part in the ensemble, while it runs; None if it is alone."""
        pipeline = None
        if self._ensemble is None:
            pipeline = standalone.pipeline(
                self.history,
                secret=self._store.secret(entropy),
                tick_ms=settings.tick_ms,
                wall_ms=wall_ms,
                clock=self._clock,
            )
        self.server = Server(
            pipeline, tick_ms=settings.tick_ms, connections_max=settings.connections_max
        )
        self.server.server_id = settings.me
        self.server.logins = lambda: ServerExchange(
            settings.users, lambda: entropy(NONCE_BYTES).hex()
        )
        self.server.wall_ms = wall_ms
        self.admin_port = 0
        """The port for operators, once it listens."""
        self._admin = Admin(self.server.facts)

    async def start(self) -> int:
        """Listen for clients, and return the port."""
        settings = self.settings
        port = await self.server.start(settings.host, settings.port, reuse_port=settings.reuse_port)
        self.server.places = [("clientPort", str(port))]
        if settings.folder:
            data = f"{settings.folder}/{FOLDER}"
            self.server.places += [("dataDir", data), ("dataLogDir", data)]
        if self._ensemble is not None:
            self.server.memberships = self._memberships(self._ensemble)
        if settings.admin is not None:
            self.admin_port = await self._admin.start(*settings.admin)
        return port

    def _memberships(self, ensemble: Ensemble) -> list[tuple[str, str]]:
        """The settings of a member, as operators see them."""
        me = ensemble.members[self.settings.me]
        return [
            ("initLimit", str(self.settings.init_limit)),
            ("syncLimit", str(self.settings.sync_limit)),
            ("electionAlg", "3"),
            ("electionPort", str(me.election_port)),
            ("quorumPort", str(me.quorum_port)),
            ("peerType", str(int(me.observes))),
            ("membership", ensemble.configuration()),
        ]

    def stop(self) -> None:
        """Request a clean end."""
        self.server.end()

    async def run(self) -> None:
        """Serve until `stop`; raises StorageError and OSError."""
        try:
            if self._ensemble is None:
                await self.server.ended
            else:
                site = Membership(
                    self.settings.me,
                    self._ensemble,
                    self.history,
                    self.server,
                    self._wall_ms,
                    self._clock,
                    init_limit=self.settings.init_limit,
                    sync_limit=self.settings.sync_limit,
                    reuse_port=self.settings.reuse_port,
                    listen_host=self.settings.host,
                )
                wait_max_s = self.settings.election_wait_max_s
                self.peer = Peer(site, wait_max_s=wait_max_s)
                await self.peer.run()
        finally:
            await self._admin.stop()
            await self.server.stop()
        self._store.close()
