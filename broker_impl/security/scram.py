"""SCRAM (RFC 5802): the messages of both sides, and credentials in Kafka's format (KIP-84).

A server stores no password. From the salt, the iterations and the stored key it verifies a client's
proof, and its server key proves to the client that it has the credential.
"""

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

from broker_impl.errors import BrokerError

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash functions of the mechanisms."""
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_FIRST: Final = re.compile(
    r"(?P<gs2>[ny],(?:a=(?P<authzid>[^,]*))?,)(?P<bare>n=(?P<user>[^,]+),r=(?P<nonce>[^,]+))(?:,.*)?",
    re.S,
)
_FINAL: Final = re.compile(
    r"(?P<bare>c=(?P<binding>[^,]+),r=(?P<nonce>[^,]+)(?:,.*)?),p=(?P<proof>[^,]+)", re.S
)
_CHALLENGE: Final = re.compile(
    r"r=(?P<nonce>[^,]+),s=(?P<salt>[^,]+),i=(?P<iterations>[0-9]{1,9})(?:,.*)?", re.S
)


class ScramError(BrokerError):
    """A message is not valid, or the other side does not know the password."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a server stores of a user's password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def format(self) -> str:
        """Return the credential as text, as Kafka stores it in ZooKeeper."""
        return (
            f"salt={_encode(self.salt)},stored_key={_encode(self.stored_key)},"
            f"server_key={_encode(self.server_key)},iterations={self.iterations}"
        )


def parse_credential(text: str) -> Credential:
    """Parse the text of :meth:`Credential.format`; raises ScramError."""
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    if sorted(parts) != ["iterations", "salt", "server_key", "stored_key"]:
        raise ScramError("a credential has salt, stored_key, server_key and iterations")
    if re.fullmatch(r"[0-9]{1,9}", parts["iterations"]) is None:
        raise ScramError("the iterations of a credential are a number")
    return Credential(
        _decode(parts["salt"]),
        _decode(parts["stored_key"]),
        _decode(parts["server_key"]),
        int(parts["iterations"]),
    )


def salted(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password, from which all keys are derived."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def credential(mechanism: str, salted_password: bytes, salt: bytes, iterations: int) -> Credential:
    """Return the credential of a salted password."""
    client_key = _hmac(mechanism, salted_password, b"Client Key")
    return Credential(
        salt,
        hashlib.new(HASHES[mechanism], client_key).digest(),
        _hmac(mechanism, salted_password, b"Server Key"),
        iterations,
    )


class ClientFirst:
    """The first message of a client, parsed."""

    def __init__(self, message: bytes) -> None:
        found = _FIRST.fullmatch(_text(message))
        if found is None or _NONCE.fullmatch(found["nonce"]) is None:
            raise ScramError("the first message of the client is not valid")
        self.user = _name(found["user"])
        if found["authzid"] and _name(found["authzid"]) != self.user:
            raise ScramError("a client cannot act for another user")
        self.gs2 = found["gs2"]
        self.bare = found["bare"] + _text(message)[found.end("bare") :]
        self.nonce = found["nonce"]


class ServerExchange:
    """The server's side for one client, after the client's first message."""

    def __init__(self, mechanism: str, first: ClientFirst, known: Credential, nonce: str) -> None:
        """``nonce``: this server's part of the nonce."""
        self.user = first.user
        self._mechanism = mechanism
        self._known = known
        self._nonce = first.nonce + nonce
        self._gs2 = first.gs2
        self.challenge = f"r={self._nonce},s={_encode(known.salt)},i={known.iterations}"
        """The server's first message."""
        self._begun = f"{first.bare},{self.challenge}"

    def finish(self, message: bytes) -> bytes:
        """Verify the proof in the client's final message, and return the server's last message."""
        found = _FINAL.fullmatch(_text(message))
        if found is None:
            raise ScramError("the final message of the client is not valid")
        if _decode(found["binding"]) != self._gs2.encode() or found["nonce"] != self._nonce:
            raise ScramError("the final message of the client belongs to another exchange")
        all_messages = f"{self._begun},{found['bare']}".encode()
        proof = _decode(found["proof"])
        if not proves(self._mechanism, self._known.stored_key, all_messages, proof):
            raise ScramError("the password is wrong")
        verifier = _hmac(self._mechanism, self._known.server_key, all_messages)
        return f"v={_encode(verifier)}".encode()


def proves(mechanism: str, stored_key: bytes, messages: bytes, proof: bytes) -> bool:
    """Return whether a proof shows that the client knows the password (RFC 5802, section 3).

    messages: all messages of this exchange, so that the proof of an earlier one shows nothing.
    """
    signature = _hmac(mechanism, stored_key, messages)
    if len(proof) != len(signature):
        return False
    derived = hashlib.new(HASHES[mechanism], _xor(proof, signature)).digest()
    return hmac.compare_digest(derived, stored_key)


class ClientExchange:
    """The client's side, with which brokers authenticate to each other."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._verifier = b""
        self.first = f"n,,{self._bare}".encode()

    def answer(self, challenge: bytes) -> bytes:
        """Return the final message, with the proof."""
        text = _text(challenge)
        found = _CHALLENGE.fullmatch(text)
        if found is None or not found["nonce"].startswith(self._nonce):
            raise ScramError("the first message of the server is not valid")
        iterations = int(found["iterations"])
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise ScramError(f"{iterations} iterations are too few or too many")
        key = salted(self._mechanism, self._password, _decode(found["salt"]), iterations)
        known = credential(self._mechanism, key, b"", iterations)
        bare = f"c={_encode(b'n,,')},r={found['nonce']}"
        all_messages = f"{self._bare},{text},{bare}".encode()
        self._verifier = _hmac(self._mechanism, known.server_key, all_messages)
        proof = _xor(
            _hmac(self._mechanism, key, b"Client Key"),
            _hmac(self._mechanism, known.stored_key, all_messages),
        )
        return f"{bare},p={_encode(proof)}".encode()

    def verify(self, message: bytes) -> None:
        """Verify that the server has the user's credential."""
        name, _, value = _text(message).partition("=")
        if name != "v" or not hmac.compare_digest(_decode(value), self._verifier):
            raise ScramError("the server does not have the user's credential")


def _hmac(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, HASHES[mechanism])


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramError("a value is not in base64") from None


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a message is not in UTF-8") from None


def _name(text: str) -> str:
    """Return a user's name, in which ``=2C`` is a comma and ``=3D`` an equals sign."""
    if re.search(r"=(?!2C|3D)", text):
        raise ScramError("the name of the user is not valid")
    return text.replace("=2C", ",").replace("=3D", "=")
