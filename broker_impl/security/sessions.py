"""The security of one connection: a table of states, from the first request to the last.

Before a client is authenticated, the broker answers ApiVersions, SaslHandshake and SaslAuthenticate
only, in this order; any other request closes the connection. A client may authenticate again on the
same connection (KIP-368), by the same mechanism and as the same user.
"""

from enum import Enum, auto
from typing import Final, NamedTuple

from broker_impl.config import BrokerConfig
from broker_impl.errors import ErrorCode, WireError
from broker_impl.security import principals
from broker_impl.security.credentials import Credentials
from broker_impl.security.exchanges import Refused, ServerSide, server_side

_API_VERSIONS, _HANDSHAKE, _AUTHENTICATE = 18, 17, 36
_AGAIN_AFTER_S: Final = 1.0
"""Within this time after an authentication, a client may not authenticate again."""


class State(Enum):
    """Where the authentication of a connection is."""

    NEW = auto()
    """Nothing was requested."""
    VERSIONED = auto()
    """The versions were requested; the handshake comes next."""
    EXCHANGE = auto()
    """A mechanism was chosen; tokens are exchanged."""
    RAW = auto()
    """A mechanism was chosen by SaslHandshake v0; tokens without headers are exchanged."""
    READY = auto()
    """The client is authenticated: every request is served."""
    AGAIN = auto()
    """An authenticated client exchanges tokens again."""
    FAILED = auto()
    """The authentication failed; the connection closes after the response."""


class Event(Enum):
    """A kind of request, as far as authentication is concerned."""

    VERSIONS = auto()
    HANDSHAKE = auto()
    TOKEN = auto()
    OTHER = auto()


TRANSITIONS: Final = {
    (State.NEW, Event.VERSIONS): State.VERSIONED,
    (State.NEW, Event.HANDSHAKE): State.EXCHANGE,
    (State.VERSIONED, Event.HANDSHAKE): State.EXCHANGE,
    (State.EXCHANGE, Event.TOKEN): State.EXCHANGE,
    (State.RAW, Event.TOKEN): State.RAW,
    (State.READY, Event.VERSIONS): State.READY,
    (State.READY, Event.HANDSHAKE): State.AGAIN,
    (State.READY, Event.TOKEN): State.READY,
    (State.READY, Event.OTHER): State.READY,
    (State.AGAIN, Event.TOKEN): State.AGAIN,
}
"""The requests that are answered in each state, and the state after them; all others close.

A token that ends an exchange leads to READY, and one that is refused to FAILED.
"""
_EVENTS: Final = {
    _API_VERSIONS: Event.VERSIONS,
    _HANDSHAKE: Event.HANDSHAKE,
    _AUTHENTICATE: Event.TOKEN,
}


def following(state: State, event: Event) -> State | None:
    """Return the state after a request; None if the connection must close in place of a response.

    While a client authenticates again, only the tokens of that exchange are answered.
    """
    return TRANSITIONS.get((state, event))


def is_expired(since: float | None, lifetime_s: float, now: float) -> bool:
    """Return whether a client must have authenticated again by now (KIP-368).

    since: when it was authenticated; None: it is not. lifetime_s: 0 is without end.
    """
    return bool(lifetime_s) and since is not None and now - since > lifetime_s


class Limits(NamedTuple):
    """The settings of a listener that concern authentication."""

    mechanisms: tuple[str, ...]
    receive_bytes_max: int
    lifetime_s: float
    """How long an authentication is valid; 0: without end."""
    failure_delay_s: float

    @classmethod
    def of(cls, config: BrokerConfig) -> "Limits":
        """Return the limits of a listener, from the configuration with the listener's settings."""
        return cls(
            mechanisms=config.sasl_enabled_mechanisms,
            receive_bytes_max=config.sasl_server_max_receive_size,
            lifetime_s=config.connections_max_reauth_ms / 1000,
            failure_delay_s=config.connection_failed_authentication_delay_ms / 1000,
        )


class TokenAnswer(NamedTuple):
    """The response to a token."""

    token: bytes = b""
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    lifetime_ms: int = 0


class OpenSession:
    """The session of a connection to a listener without SASL: every request is served."""

    bytes_max: int | None = None
    failure_delay_s = 0.0
    is_failed = False
    is_raw = False

    def __init__(self, principal: str = principals.ANONYMOUS) -> None:
        self.principal = principal

    def check(self, api_key: int, now: float) -> None:
        """Accept every request."""

    def handshake(self, mechanism: str, version: int) -> tuple[ErrorCode, tuple[str, ...]]:
        """Refuse the handshake: this listener has no SASL."""
        return ErrorCode.ILLEGAL_SASL_STATE, ()

    def token(self, token: bytes, now: float) -> TokenAnswer:
        """Refuse the token: there was no handshake."""
        return _ILLEGAL

    def versions_refused(self) -> None:
        """Note that the versions were requested in a version that this broker does not serve."""


class SaslSession:
    """The session of a connection to a listener with SASL."""

    def __init__(self, listener: str, limits: Limits, credentials: Credentials) -> None:
        self.principal = principals.ANONYMOUS
        self.state = State.NEW
        self._listener = listener
        self._limits = limits
        self._credentials = credentials
        self._exchange: ServerSide | None = None
        self._mechanism = ""
        self._since: float | None = None
        """When the client was authenticated; None before."""
        self._refuses_again = False

    @property
    def bytes_max(self) -> int | None:
        """The maximum size of the next request; None: that of all requests."""
        return self._limits.receive_bytes_max if self._since is None else None

    @property
    def is_failed(self) -> bool:
        """Whether the connection must close after the response."""
        return self.state is State.FAILED

    @property
    def is_raw(self) -> bool:
        """Whether each frame is a token without a header."""
        return self.state is State.RAW

    @property
    def failure_delay_s(self) -> float:
        """How long the response to a failed authentication is delayed."""
        return self._limits.failure_delay_s

    def check(self, api_key: int, now: float) -> None:
        """Move to the next state; raises WireError if the request is not allowed in this one."""
        event = _EVENTS.get(api_key, Event.OTHER)
        after = following(self.state, event)
        if after is None:
            raise WireError(
                f"API {api_key} was requested in authentication state {self.state.name}"
            )
        if after is State.READY and is_expired(self._since, self._limits.lifetime_s, now):
            raise WireError(f"the authentication of {self.principal} has expired")
        self._refuses_again = (
            after is State.AGAIN
            and event is Event.HANDSHAKE
            and self._since is not None
            and now - self._since < _AGAIN_AFTER_S
        )
        if not self._refuses_again:
            self.state = after

    def versions_refused(self) -> None:
        """Let the client request the versions once more, in a version that this broker serves."""
        if self.state is State.VERSIONED:
            self.state = State.NEW

    def handshake(self, mechanism: str, version: int) -> tuple[ErrorCode, tuple[str, ...]]:
        """Choose the mechanism; return an error, and the mechanisms of this listener.

        After version 0, which cannot be used to authenticate again, tokens have no headers.
        """
        if self._refuses_again:
            return ErrorCode.ILLEGAL_SASL_STATE, ()
        is_raw = version == 0
        if is_raw and self.state is State.AGAIN:
            self.state = State.FAILED
            return ErrorCode.ILLEGAL_SASL_STATE, ()
        enabled = self._limits.mechanisms
        if self.state is State.AGAIN:
            enabled = (self._mechanism,)
        if mechanism not in enabled:
            self.state = State.FAILED
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, self._limits.mechanisms
        self._mechanism = mechanism
        self._exchange = server_side(mechanism, self._listener, self._credentials)
        if is_raw:
            self.state = State.RAW
        return ErrorCode.NONE, self._limits.mechanisms

    def token(self, token: bytes, now: float) -> TokenAnswer:
        """Process a token of the client."""
        if self.state is State.READY or self._exchange is None:
            return _ILLEGAL
        try:
            step = self._exchange.step(token)
            if step.user is not None:
                self._admit(principals.user(step.user), now)
        except Refused:
            self.state = State.FAILED
            return TokenAnswer(
                error=ErrorCode.SASL_AUTHENTICATION_FAILED,
                message="Authentication failed during authentication due to invalid credentials "
                f"with SASL mechanism {self._mechanism}",
            )
        lifetime_ms = 0 if step.user is None else int(self._limits.lifetime_s * 1000)
        return TokenAnswer(step.token, lifetime_ms=lifetime_ms)

    def _admit(self, principal: str, now: float) -> None:
        if self.state is State.AGAIN and principal != self.principal:
            raise Refused("the principal changed")
        self.principal = principal
        self.state = State.READY
        self._since = now
        self._exchange = None


Session = OpenSession | SaslSession
_ILLEGAL: Final = TokenAnswer(
    error=ErrorCode.ILLEGAL_SASL_STATE,
    message="SaslAuthenticate was requested without a SaslHandshake",
)
