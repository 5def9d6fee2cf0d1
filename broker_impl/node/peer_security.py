"""How this broker connects and authenticates to other brokers: TLS, and SASL as a client."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from broker_impl.config import BrokerConfig, Login
from broker_impl.errors import ErrorCode
from broker_impl.security import tls
from broker_impl.security.exchanges import Refused, client_side
from broker_impl.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from broker_impl.wire.messages.sasl_handshake_request import SaslHandshakeRequest

_HANDSHAKE_VERSION, _AUTHENTICATE_VERSION = 1, 2


@dataclass(frozen=True)
class PeerSecurity:
    """The protection of connections to the inter-broker listener of other brokers."""

    context: ssl.SSLContext | None
    """None: connections are not encrypted."""
    mechanism: str | None
    """The mechanism of SASL; None: brokers do not authenticate."""
    login: Login
    nonce: Callable[[], str]

    def arguments(self, host: str) -> dict[str, Any]:
        """The arguments of ``create_connection`` that encrypt a connection to this host."""
        if self.context is None:
            return {}
        return {
            "ssl": self.context,
            "server_hostname": host,
            "ssl_handshake_timeout": tls.HANDSHAKE_S,
            "ssl_shutdown_timeout": tls.SHUTDOWN_S,
        }

    async def authenticate(self, ask: Callable[[Any, int], Awaitable[Any]]) -> float:
        """Authenticate over a connection; return for how many seconds, 0: without end.

        ask: sends a request in a version and returns the response. Raises Refused.
        """
        assert self.mechanism is not None, "the inter-broker listener has SASL"
        chosen = await ask(SaslHandshakeRequest(mechanism=self.mechanism), _HANDSHAKE_VERSION)
        if chosen.error_code:
            raise Refused(f"{_name(chosen.error_code)}: enabled are {chosen.mechanisms}")
        exchange = client_side(self.mechanism, self.login, self.nonce())
        lifetime_ms = 0
        token = exchange.next(b"")
        while token is not None:
            answer = await ask(SaslAuthenticateRequest(auth_bytes=token), _AUTHENTICATE_VERSION)
            if answer.error_code:
                raise Refused(answer.error_message or _name(answer.error_code))
            lifetime_ms = answer.session_lifetime_ms
            token = exchange.next(bytes(answer.auth_bytes))
        return lifetime_ms / 1000


def _name(error: int) -> str:
    """Return the name of an error, or its number if this broker does not know it."""
    return ErrorCode(error).name if error in ErrorCode.__members__.values() else f"error {error}"


UNPROTECTED: Final = PeerSecurity(None, None, Login("", "", {}), lambda: "")
"""Connections without encryption and authentication."""


def of(config: BrokerConfig, nonce: Callable[[], str]) -> PeerSecurity:
    """Return the protection that the inter-broker listener needs; raises ConfigError."""
    listener = config.inter_broker_listener()
    mechanism = None
    if config.has_sasl(listener):
        mechanism = config.sasl_mechanism_inter_broker_protocol
    login = config.login(listener, mechanism) if mechanism else UNPROTECTED.login
    return PeerSecurity(tls.peer_context(config), mechanism, login, nonce)
