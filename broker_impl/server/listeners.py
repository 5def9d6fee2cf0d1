"""The listeners of a broker: connection limits, opening in stages, closing of idle connections."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress

from broker_impl.api.services import Services
from broker_impl.config import BrokerConfig, Endpoint
from broker_impl.security import principals, tls
from broker_impl.security.acls import Authorizer
from broker_impl.security.credentials import Credentials
from broker_impl.security.sessions import Limits, OpenSession, SaslSession, Session
from broker_impl.server import accepting
from broker_impl.server.connection import Connection, Witness
from broker_impl.server.frame_room import FROM_BROKERS, ORDINARY_BYTES, ORDINARY_ROOM, FrameRoom
from broker_impl.server.memory_limits import Bounds

LOG = logging.getLogger(__name__)

_SCRATCH_BYTES = 256 * 1024
_METADATA = 3


class Server:
    """All listeners of a broker.

    Requests of brokers are served after ``open_to_brokers``, those of clients after
    ``open_to_clients``; requests that arrive earlier wait.
    """

    def __init__(
        self,
        services: Services,
        config: BrokerConfig,
        on_fatal: Callable[[BaseException], None],
        credentials: Credentials | None = None,
        authorizer: Authorizer | None = None,
        key_stores: tls.KeyStores | None = None,
    ) -> None:
        """``credentials``: the users of listeners with SASL; ``authorizer``: their ACLs.

        ``key_stores``: the keys of listeners with TLS.
        """
        self.services = services
        self.config = config
        self.bounds = Bounds(config.queued_max_request_bytes)
        self.scratch = bytearray(_SCRATCH_BYTES)
        """The buffer into which all connections receive bytes before their frame is known."""
        self.inter_broker_listener = config.inter_broker_listener()
        self.fatal = on_fatal
        """Called when the broker cannot continue: a storage failure or a broken invariant."""
        self.witness: Witness | None = None
        """Sees every request and its answer, if a check of the broker's answers has set it."""
        self.authorizer = authorizer
        """The rules about requests; None: every client may do everything."""
        self._credentials = credentials
        self._key_stores = key_stores or tls.KeyStores()
        self._contexts: dict[str, ssl.SSLContext | None] = {}
        """The TLS contexts of the listeners."""
        self._limits: dict[str, Limits] = {}
        """The settings of the listeners with SASL."""
        self._has_private_listener = len(config.endpoints()) > 1
        self._servers: list[asyncio.Server] = []
        self._connections: dict[Connection, None] = {}
        self._admitted = 0
        self._per_address: dict[str, int] = {}
        self._rooms: dict[tuple[str, bool, bool], FrameRoom] = {}
        self._open_to_brokers = False
        self._open_to_clients = False
        self._reaper: asyncio.TimerHandle | None = None

    async def listen(self, endpoint: Endpoint, *, reuse_port: bool = False) -> Endpoint:
        """Listen on an endpoint; return it with the actual port if port 0 was requested."""
        self._contexts[endpoint.name] = self._key_stores.serve(self.config, endpoint.name)
        if self.config.has_sasl(endpoint.name):
            self._limits[endpoint.name] = Limits.of(self.config.for_listener(endpoint.name))
        if endpoint.host or endpoint.port:
            endpoint = await self._listen(endpoint, endpoint.host, reuse_port)
        else:  # use the same free port on every interface
            endpoint = await self._listen(endpoint, "0.0.0.0", reuse_port)
            with suppress(OSError):  # the port is free for IPv4; without IPv6, that is enough
                await self._listen(endpoint, "::", reuse_port)
        if self._reaper is None and self.config.connections_max_idle_ms >= 0:
            self._reap_idle()
        return endpoint

    async def _listen(self, endpoint: Endpoint, host: str, reuse_port: bool) -> Endpoint:
        server = await accepting.listen(
            lambda: Connection(self, endpoint.name),
            host,
            endpoint.port,
            reuse_port=reuse_port,
            context=self._contexts[endpoint.name],
        )
        self._servers.append(server)
        return endpoint._replace(port=server.sockets[0].getsockname()[1])

    def open_to_brokers(self) -> None:
        """Serve the inter-broker listener: this broker is ready for orders."""
        self._open_to_brokers = True
        self._advance_all()

    def open_to_clients(self) -> None:
        """Serve the clients' listeners too: this broker knows the state of the cluster.

        A client that was answered earlier would see a cluster without brokers or topics.
        """
        if not self._open_to_clients:
            self._open_to_clients = True
            self._advance_all()

    def serves(self, listener: str, api_key: int) -> bool:
        """Whether a request of this kind is served on this listener yet."""
        if self._open_to_clients:
            return True
        # If clients and brokers share a listener, Metadata is the first request of a client.
        is_for_brokers = listener == self.inter_broker_listener and api_key != _METADATA
        return self._open_to_brokers and is_for_brokers

    def room_for(self, listener: str, api_key: int, size: int) -> FrameRoom:
        """The room for a frame of this size whose request has this API key."""
        of_brokers = listener == self.inter_broker_listener and (
            self._has_private_listener or api_key in FROM_BROKERS
        )
        is_large = size > ORDINARY_BYTES
        key = listener, of_brokers, is_large
        if key not in self._rooms:
            largest = self.config.socket_request_max_bytes
            self._rooms[key] = FrameRoom(largest if is_large else ORDINARY_ROOM)
        return self._rooms[key]

    def is_crowded(self) -> bool:
        """Whether frames wait for room on any listener."""
        return any(room.is_crowded for room in self._rooms.values())

    def is_private(self, listener: str) -> bool:
        """Whether only brokers use this listener; clients cannot crowd them out there (KIP-402)."""
        return self._has_private_listener and listener == self.inter_broker_listener

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._reaper is not None:
            self._reaper.cancel()
        for server in self._servers:
            server.close()
        for connection in tuple(self._connections):
            connection.close()
        await asyncio.sleep(0)  # the transports close their sockets in the next turn

    def connection_counts(self) -> dict[str, int]:
        """The number of open connections, by listener."""
        counts = dict.fromkeys((endpoint.name for endpoint in self.config.endpoints()), 0)
        for connection in self._connections:
            counts[connection.listener] += 1
        return counts

    # Called by connections.

    def admit(self, connection: Connection) -> str | None:
        """Register a new connection, or return the reason for refusing it."""
        here = self._per_address.get(connection.address, 0)
        if here >= self.config.max_connections_per_ip:
            return (
                "the limit of open connections, "
                f"max.connections.per.ip={self.config.max_connections_per_ip}, is reached"
            )
        if len(self._connections) >= self.config.max_connections and not (
            self.is_private(connection.listener) and self._make_room()
        ):
            return (
                f"the limit of open connections, max.connections={self.config.max_connections}, "
                "is reached"
            )
        self._admitted += 1
        connection.number = self._admitted
        self._per_address[connection.address] = here + 1
        self._connections[connection] = None
        return None

    def session(self, listener: str, transport: asyncio.Transport) -> Session:
        """Return the authentication of a new connection."""
        limits = self._limits.get(listener)
        if limits is not None:
            assert self._credentials is not None, "a listener with SASL has users"
            return SaslSession(listener, limits, self._credentials)
        return OpenSession(principals.of_certificate(transport.get_extra_info("peercert")))

    def dismiss(self, connection: Connection) -> None:
        """Remove a registered connection that is closed."""
        del self._connections[connection]
        self._per_address[connection.address] -= 1
        if not self._per_address[connection.address]:
            del self._per_address[connection.address]

    def _make_room(self) -> bool:
        """Close the client connection that has been idle for longest, or else the oldest one."""
        clients = [c for c in self._connections if not self.is_private(c.listener)]
        idle = [(c.idle_since, c) for c in clients if c.idle_since is not None]
        if not clients:
            return False
        victim = min(idle, key=lambda pair: pair[0])[1] if idle else clients[0]
        LOG.warning("connection %s was closed to accept a connection of a broker", victim.name)
        victim.abort()
        return True

    def _advance_all(self) -> None:
        for connection in tuple(self._connections):
            connection.advance()

    def _reap_idle(self) -> None:
        loop = asyncio.get_running_loop()
        limit = self.config.connections_max_idle_ms / 1000
        for connection in tuple(self._connections):
            if connection.idle_since is not None and loop.time() - connection.idle_since >= limit:
                LOG.info("connection %s was idle for %g s and was closed", connection.name, limit)
                connection.abort()
        self._reaper = loop.call_later(max(limit / 4, 0.01), self._reap_idle)
