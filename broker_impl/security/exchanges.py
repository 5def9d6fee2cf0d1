"""SASL exchanges: tokens of one side in, tokens of the other side out.

A server's exchange ends with the user's name; a client's exchange ends when it has verified the
server, as far as the mechanism can.
"""

import hmac
from typing import Final, NamedTuple, Protocol

from broker_impl.config import Login
from broker_impl.errors import BrokerError
from broker_impl.security import scram
from broker_impl.security.credentials import Credentials


class Refused(BrokerError):
    """The authentication failed; the message is for this broker's log only."""


class Step(NamedTuple):
    """The result of one token of a client."""

    token: bytes
    """The server's next token."""
    user: str | None
    """The name of the authenticated user; None while the exchange continues."""


class ServerSide(Protocol):
    """The server's side of one authentication."""

    def step(self, token: bytes) -> Step:
        """Process the client's next token; raises Refused."""


class ClientSide(Protocol):
    """The client's side of one authentication."""

    def next(self, token: bytes) -> bytes | None:
        """Return the next token after the server's; None at the end. Raises Refused."""


class _Plain:
    """PLAIN (RFC 4616): the client sends the password."""

    def __init__(self, listener: str, credentials: Credentials) -> None:
        self._listener = listener
        self._credentials = credentials

    def step(self, token: bytes) -> Step:
        parts = token.split(b"\0")
        if len(parts) != 3:
            raise Refused("a token of PLAIN has three parts")
        try:
            acts_for, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            raise Refused("a token is not in UTF-8") from None
        known = self._credentials.password(self._listener, user)
        given = password.encode()
        if not user or known is None or not hmac.compare_digest(given, known.encode()):
            raise Refused("the user or the password is wrong")
        if acts_for not in ("", user):
            raise Refused("a client cannot act for another user")
        return Step(b"", user)


class _Scram:
    """SCRAM: the client proves that it knows the password."""

    def __init__(self, mechanism: str, credentials: Credentials) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._exchange: scram.ServerExchange | None = None

    def step(self, token: bytes) -> Step:
        try:
            if self._exchange is not None:
                return Step(self._exchange.finish(token), self._exchange.user)
            first = scram.ClientFirst(token)
            known = self._credentials.of_user(first.user).get(self._mechanism)
            if known is None:
                raise Refused(f"user {first.user!r} has no credential of {self._mechanism}")
            self._exchange = scram.ServerExchange(
                self._mechanism, first, known, self._credentials.nonce()
            )
        except scram.ScramError as error:
            raise Refused(str(error)) from error
        return Step(self._exchange.challenge.encode(), None)


class _PlainClient:
    """The client's side of PLAIN: one token."""

    def __init__(self, login: Login) -> None:
        self._token: bytes | None = f"\0{login.username}\0{login.password}".encode()

    def next(self, token: bytes) -> bytes | None:
        result, self._token = self._token, None
        return result


class _ScramClient:
    """The client's side of SCRAM: two tokens, then the server's is verified."""

    def __init__(self, mechanism: str, login: Login, nonce: str) -> None:
        self._exchange = scram.ClientExchange(mechanism, login.username, login.password, nonce)
        self._sent = 0

    def next(self, token: bytes) -> bytes | None:
        self._sent += 1
        try:
            if self._sent == 1:
                return self._exchange.first
            if self._sent == 2:
                return self._exchange.answer(token)
            self._exchange.verify(token)
        except scram.ScramError as error:
            raise Refused(str(error)) from error
        return None


_PLAIN: Final = "PLAIN"


def server_side(mechanism: str, listener: str, credentials: Credentials) -> ServerSide:
    """Return the server's side of a mechanism."""
    if mechanism == _PLAIN:
        return _Plain(listener, credentials)
    return _Scram(mechanism, credentials)


def client_side(mechanism: str, login: Login, nonce: str) -> ClientSide:
    """Return the client's side of a mechanism."""
    if mechanism == _PLAIN:
        return _PlainClient(login)
    return _ScramClient(mechanism, login, nonce)
