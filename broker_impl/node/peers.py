"""Connections to other brokers, over which requests are sent and answered.

Each peer has one connection, with responses in order. It is opened on first use and dropped on any
failure, because after a timeout a late response could be mistaken for the response to a later
request.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

from broker_impl.errors import BrokerError, WireError
from broker_impl.node.peer_security import UNPROTECTED, PeerSecurity
from broker_impl.security.exchanges import Refused
from broker_impl.wire.framing import FrameReader, RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import response_module
from broker_impl.wire.types import BrokerId

LOG = logging.getLogger(__name__)

_FRAME_BYTES_MAX = 2**31 - 1
_SCRATCH_BYTES = 64 * 1024
_EARLY = 0.8
"""The part of an authentication's lifetime after which the broker authenticates again."""


_module = cache(import_module)
"""The module with this name; that of a message's type has its API key and its encoder."""


class PeerError(BrokerError):
    """The request failed or was not answered; it may have taken effect."""


class _Link(asyncio.BufferedProtocol):
    """One connection to a peer; responses are matched to requests by correlation id."""

    def __init__(self, scratch: bytearray) -> None:
        self.transport: asyncio.Transport | None = None
        self.authenticate_at: float | None = None
        """When this broker must authenticate again (KIP-368); None: never."""
        self._reader = FrameReader(_FRAME_BYTES_MAX, scratch)
        self._waiting: dict[int, asyncio.Future[memoryview]] = {}
        self._next = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, count: int) -> None:
        self._reader.buffer_updated(count)
        try:
            for frame in self._reader.frames():
                number = int.from_bytes(frame[:4], "big", signed=True)
                future = self._waiting.pop(number, None)
                if future is not None and not future.done():
                    future.set_result(frame)
        except WireError as error:
            LOG.warning("the response of a broker cannot be read: %s", error)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(PeerError("the connection was lost"))

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def send(self, client_id: str, message: Any, version: int) -> "asyncio.Future[memoryview]":
        assert self.transport is not None
        module = _module(type(message).__module__)
        self._next = (self._next + 1) & 0x7FFFFFFF
        header = RequestHeader(module.API_KEY, version, self._next, client_id)
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = future
        self.transport.write(b"".join(encode_request(header, module.encode(message, version))))
        return future

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Peers:
    """The other brokers, as one component of this broker (controller, fetchers) reaches them."""

    def __init__(
        self,
        client_id: str,
        overrides: Mapping[BrokerId, tuple[str, int]],
        security: PeerSecurity = UNPROTECTED,
    ) -> None:
        self._client_id = client_id
        self._security = security
        self._overrides = overrides
        self._addresses: dict[BrokerId, tuple[str, int]] = {}
        self._links: dict[BrokerId, _Link] = {}
        self._scratch = bytearray(_SCRATCH_BYTES)
        self._connecting: dict[BrokerId, asyncio.Lock] = {}

    def update(self, brokers: Mapping[BrokerId, tuple[str, int]]) -> None:
        """Set the addresses of the live brokers; drop connections to any other address."""
        addresses = {number: self._overrides.get(number, brokers[number]) for number in brokers}
        for number in list(self._links):
            if addresses.get(number) != self._addresses.get(number):
                self.disconnect(number)
        self._addresses = addresses

    def disconnect(self, broker_id: BrokerId) -> None:
        """Drop the connection to a broker; requests in flight fail."""
        link = self._links.pop(broker_id, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        """Drop all connections."""
        for number in list(self._links):
            self.disconnect(number)

    async def request(
        self, broker_id: BrokerId, message: Any, version: int, *, timeout_s: float
    ) -> Any:
        """Return the peer's response to this message; PeerError if none arrives in time."""
        link: _Link | None = None
        try:
            async with asyncio.timeout(timeout_s):
                link = await self._link(broker_id)
                return await self._ask(link, message, version)
        except TimeoutError:
            self._drop(broker_id, link)
            raise PeerError(f"broker {broker_id} did not answer in {timeout_s:g} s") from None
        except asyncio.CancelledError:
            self._drop(broker_id, link)
            raise
        except OSError as error:
            raise PeerError(f"broker {broker_id}: {error}") from error
        except WireError as error:
            self._drop(broker_id, link)
            raise PeerError(f"broker {broker_id}: {error}") from error

    async def _ask(self, link: _Link, message: Any, version: int) -> Any:
        frame = await link.send(self._client_id, message, version)
        api_key = _module(type(message).__module__).API_KEY
        _, body = decode_response(frame, api_key, version)
        return response_module(api_key).decode(body, version)

    async def _link(self, broker_id: BrokerId) -> _Link:
        link = self._open_link(broker_id)
        if link is not None and link.authenticate_at is None:
            return link  # without the lock
        lock = self._connecting.setdefault(broker_id, asyncio.Lock())
        async with lock:
            link = self._open_link(broker_id)
            loop = asyncio.get_running_loop()
            if link is not None:
                if link.authenticate_at is not None and loop.time() >= link.authenticate_at:
                    await self._authenticate(broker_id, link)
                return link
            address = self._addresses.get(broker_id)
            if address is None:
                raise PeerError(f"broker {broker_id} is not known to be alive")
            _, link = await loop.create_connection(
                lambda: _Link(self._scratch), *address, **self._security.arguments(address[0])
            )
            await self._authenticate(broker_id, link)
            if self._addresses.get(broker_id) != address:
                link.close()  # another server may use that address now
                raise PeerError(f"broker {broker_id} has a new address")
            self._links[broker_id] = link
            return link

    def _open_link(self, broker_id: BrokerId) -> _Link | None:
        link = self._links.get(broker_id)
        return link if link is not None and link.is_open else None

    async def _authenticate(self, broker_id: BrokerId, link: _Link) -> None:
        """Authenticate this broker, if the inter-broker listener has SASL; PeerError if refused."""
        if self._security.mechanism is None:
            return
        try:
            lifetime_s = await self._security.authenticate(partial(self._ask, link))
        except BaseException as error:
            self._drop(broker_id, link)
            if isinstance(error, Refused):
                raise PeerError(f"broker {broker_id}: {error}") from error
            raise
        now = asyncio.get_running_loop().time()
        link.authenticate_at = now + lifetime_s * _EARLY if lifetime_s else None

    def _drop(self, broker_id: BrokerId, link: _Link | None) -> None:
        if link is None:
            return
        link.close()
        with contextlib.suppress(KeyError):
            if self._links[broker_id] is link:
                del self._links[broker_id]
