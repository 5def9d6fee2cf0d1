"""Authenticates one new connection to a broker, and measures whether the broker accepts it."""

import asyncio
import ssl
from importlib import import_module
from typing import Any

from broker_impl.config import Login
from broker_impl.errors import WireError
from broker_impl.node.peer_security import PeerSecurity
from broker_impl.security.exchanges import Refused
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import response_module
from harness.cluster.address import Address
from model.capabilities import security
from model.capabilities.security import Handshake

TIMEOUT_S = 2.0
_NONCE = "a-nonce-that-need-not-be-secret"
_CLIENT_ID = "faultline"


async def login(
    broker: Address,
    mechanism: str,
    user: str,
    password: str,
    context: ssl.SSLContext | None = None,
    timeout_s: float = TIMEOUT_S,
) -> security.Login:
    """Return the outcome of an authentication; ``context``: that of an encrypted connection."""
    protection = PeerSecurity(context, mechanism, Login(user, password, {}), lambda: _NONCE)
    number = 0
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(
                *broker, **protection.arguments(broker.host)
            )

            async def ask(message: Any, version: int) -> Any:
                nonlocal number
                number += 1
                module = import_module(type(message).__module__)
                header = RequestHeader(module.API_KEY, version, number, _CLIENT_ID)
                writer.writelines(encode_request(header, module.encode(message, version)))
                size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
                frame = memoryview(await reader.readexactly(size))
                _, body = decode_response(frame, module.API_KEY, version)
                return response_module(module.API_KEY).decode(body, version)

            try:
                await protection.authenticate(ask)
            finally:
                writer.close()
    except Refused:
        return "refused"
    except (OSError, TimeoutError, asyncio.IncompleteReadError, WireError):
        return "silence"
    return "accepted"


async def handshake(
    broker: Address, context: ssl.SSLContext, timeout_s: float = TIMEOUT_S
) -> Handshake:
    """Return whether a client with this context accepts the broker's certificate."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(
                *broker, ssl=context, server_hostname=broker.host
            )
    except ssl.SSLCertVerificationError:
        return "rejected"
    except (OSError, TimeoutError):
        return "silence"
    writer.close()
    return "verified"
