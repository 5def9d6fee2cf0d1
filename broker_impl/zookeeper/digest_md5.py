"""SASL's mechanism DIGEST-MD5 (RFC 2831), as clients and servers of ZooKeeper use it.

The server sends a challenge with a nonce. The client answers with a hash of it and of the password,
and the server with another, so that each has proved to the other that it knows the password, which
is never sent. ZooKeeper uses a fixed realm and service, and protects nothing after the exchange.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from broker_impl.zookeeper.errors import AuthFailed

REALM: Final = "zk-sasl-md5"
URI: Final = f"zookeeper/{REALM}"
"""The service and the host that a response names, whatever the server's address is."""
QOP: Final = "auth"
COUNT: Final = "00000001"
"""How often the nonce was used: no exchange is ever repeated."""
_AUTHENTICATE: Final = "AUTHENTICATE"
_FIELD: Final = re.compile(r'\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))\s*(?:,|$)')
_NEEDED: Final = ("username", "nonce", "cnonce", "nc", "response", "digest-uri")


class Login(NamedTuple):
    """A user and its password."""

    user: str
    password: str


class _State(Enum):
    NEW = "new"
    CHALLENGED = "challenged"
    ENDED = "ended"


class ServerExchange:
    """The exchange of one connection, on the server's side.

    Args:
        users: the passwords, by user.
        nonce: returns a text that was never used before.
    """

    def __init__(self, users: Mapping[str, str], nonce: Callable[[], str]) -> None:
        self._users = users
        self._draw = nonce
        self._nonce = ""
        self._state = _State.NEW
        self.user: str | None = None
        """The user, once it has proved that it knows the password."""

    def step(self, token: bytes) -> bytes:
        """Return the answer to a token of the client.

        Raises:
            AuthFailed: the token is malformed or out of order, or the password is wrong.
        """
        state, self._state = self._state, _State.ENDED
        if state is _State.NEW and not token:
            self._state = _State.CHALLENGED
            self._nonce = self._draw()
            challenge = f'realm="{REALM}",nonce="{self._nonce}",qop="{QOP}"'
            return f"{challenge},charset=utf-8,algorithm=md5-sess".encode()
        if state is not _State.CHALLENGED:
            raise AuthFailed("the SASL token is out of order")
        return self._verify(fields(token))

    def _verify(self, given: Mapping[str, str]) -> bytes:
        if any(name not in given for name in _NEEDED):
            raise AuthFailed("the SASL response lacks a field")
        login = Login(given["username"], self._users.get(given["username"], ""))
        wanted = hashed(login, given, _AUTHENTICATE)
        is_right = (
            login.user in self._users
            and given["nonce"] == self._nonce
            and given["nc"] == COUNT
            and given.get("realm", "") == REALM
            and given["digest-uri"] == URI
            and given.get("qop", QOP) == QOP
            and given.get("authzid", login.user) == login.user
            and hmac.compare_digest(given["response"].encode(), wanted.encode())
        )
        if not is_right:
            raise AuthFailed(f"the SASL login of {login.user!r} is wrong")
        self.user = login.user
        return f"rspauth={hashed(login, given, '')}".encode()


class ClientExchange:
    """The exchange of one connection, on the client's side; ``cnonce`` was never used before."""

    def __init__(self, login: Login, cnonce: str) -> None:
        self._login = login
        self._cnonce = cnonce
        self._sent: dict[str, str] = {}

    def response(self, challenge: bytes) -> bytes:
        """Return the token that answers the server's challenge; raises AuthFailed."""
        given = fields(challenge)
        if "nonce" not in given:
            raise AuthFailed("the SASL challenge has no nonce")
        sent = {
            "username": self._login.user,
            "realm": given.get("realm", REALM),
            "nonce": given["nonce"],
            "cnonce": self._cnonce,
            "nc": COUNT,
            "qop": QOP,
            "digest-uri": URI,
        }
        self._sent = sent
        bare = ("nc", "qop")
        text = ",".join(
            f"{name}={value}" if name in bare else f'{name}="{_escaped(value)}"'
            for name, value in sent.items()
        )
        proof = hashed(self._login, sent, _AUTHENTICATE)
        return f"charset=utf-8,{text},maxbuf=65536,response={proof}".encode()

    def check(self, answer: bytes) -> None:
        """Check that the server knows the password; raises AuthFailed."""
        proof = fields(answer).get("rspauth", "")
        if not hmac.compare_digest(proof.encode(), hashed(self._login, self._sent, "").encode()):
            raise AuthFailed("the server has not proved that it knows the password")


def hashed(login: Login, given: Mapping[str, str], method: str) -> str:
    """Return the proof for the fields of a response; ``method`` is empty for the server's."""
    parts_of_secret = (login.user, given.get("realm", ""), login.password)
    secret = _md5(b":".join(map(_hashed_form, parts_of_secret)))
    known = secret + f":{given['nonce']}:{given['cnonce']}".encode()
    if "authzid" in given:
        known += f":{given['authzid']}".encode()
    parts = (
        _md5(known).hex(),
        *(given["nonce"], given["nc"], given["cnonce"], given.get("qop", QOP)),
        _md5(f"{method}:{given['digest-uri']}".encode()).hex(),
    )
    return _md5(":".join(parts).encode()).hex()


def fields(token: bytes) -> dict[str, str]:
    """Return the fields ``name=value,name="value"`` of a token, with names in lower case.

    Raises:
        AuthFailed: it has another form, or a field twice.
    """
    try:
        text = token.decode()
    except UnicodeDecodeError:
        raise AuthFailed("the SASL token is not UTF-8") from None
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is None or field[1].lower() in found:
            raise AuthFailed("the SASL token is malformed")
        quoted = field[2]
        value = field[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        found[field[1].lower()] = value
        at = field.end()
    return found


def _hashed_form(text: str) -> bytes:
    """Return a user, realm or password in ISO 8859-1 if it can have this form, or else UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _escaped(value: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", value)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
