from itertools import product

import pytest

from broker_impl import config as configuration
from broker_impl.errors import ErrorCode, WireError
from broker_impl.security.credentials import Credentials
from broker_impl.security.sessions import (
    TRANSITIONS,
    Event,
    Limits,
    OpenSession,
    SaslSession,
    State,
)

PRODUCE, METADATA, HANDSHAKE, VERSIONS, TOKEN = 0, 3, 17, 18, 36
USERS = 'user_alice="a-secret" user_bob="b-secret"'
CREDENTIALS = Credentials(
    configuration.parse(
        {
            "broker.id": "1",
            "zookeeper.connect": "h:1",
            "listener.name.door.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain."
            f"PlainLoginModule required {USERS};",
        }
    ),
    lambda: "nonce",
)
ALICE, BOB = b"\0alice\0a-secret", b"\0bob\0b-secret"


def session(lifetime_s: float = 0, mechanisms: tuple[str, ...] = ("PLAIN",)) -> SaslSession:
    return SaslSession("DOOR", Limits(mechanisms, 1000, lifetime_s, 0.1), CREDENTIALS)


def authenticated(lifetime_s: float = 0) -> SaslSession:
    own = session(lifetime_s, ("PLAIN", "SCRAM-SHA-256"))
    own.check(HANDSHAKE, 0)
    assert own.handshake("PLAIN", 1)[0] is ErrorCode.NONE
    own.check(TOKEN, 0)
    assert own.token(ALICE, 0).error is ErrorCode.NONE
    return own


def test_a_client_authenticates() -> None:
    """Versions, handshake and token, in this order; then every request is served."""
    own = session()
    own.check(VERSIONS, 0)
    own.check(HANDSHAKE, 0)
    assert own.handshake("PLAIN", 1) == (ErrorCode.NONE, ("PLAIN",))
    own.check(TOKEN, 0)
    assert (own.principal, own.bytes_max) == ("User:ANONYMOUS", 1000)
    assert own.token(ALICE, 0).error is ErrorCode.NONE
    assert (own.principal, own.bytes_max, own.state) == ("User:alice", None, State.READY)
    for key in (PRODUCE, METADATA, VERSIONS):
        own.check(key, 10.0**9)
    assert own.token(ALICE, 5).error is ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    ("requests", "refused"),
    [
        ([], PRODUCE),
        ([], TOKEN),
        ([VERSIONS], METADATA),
        ([VERSIONS], VERSIONS),
        ([VERSIONS], TOKEN),
        ([HANDSHAKE], HANDSHAKE),
        ([HANDSHAKE], VERSIONS),
        ([HANDSHAKE], PRODUCE),
    ],
)
def test_another_request_closes(requests: list[int], refused: int) -> None:
    """Before the end of the authentication, a request out of order raises WireError."""
    own = session()
    for key in requests:
        own.check(key, 0)
    with pytest.raises(WireError, match=f"API {refused} was requested"):
        own.check(refused, 0)
    assert own.principal == "User:ANONYMOUS"


def test_the_table_serves_requests_only_after_authentication() -> None:
    """In the table, only READY has requests that are not part of an authentication."""
    others = [state for state, event in TRANSITIONS if event is Event.OTHER]
    assert others == [State.READY]
    dead = [pair for pair in product([State.FAILED], Event) if pair in TRANSITIONS]
    assert dead == []


def test_versions_that_are_not_served_may_be_requested_again() -> None:
    """After an ApiVersions of a version that is not served, another one is answered (KIP-511)."""
    own = session()
    own.check(VERSIONS, 0)
    own.versions_refused()
    own.check(VERSIONS, 0)
    own.check(HANDSHAKE, 0)
    assert own.state is State.EXCHANGE


@pytest.mark.parametrize(
    "token",
    [
        b"\0alice\0b-secret",
        b"\0carol\0a-secret",
        b"\0\0",
        b"bob\0alice\0a-secret",
        b"alice",
        b"\0alice\0a-secret\0",
        b"\0alice\0\xff",
    ],
)
def test_a_wrong_password_fails(token: bytes) -> None:
    """A wrong user, password or form is refused with one message, and the session fails."""
    own = session()
    own.check(HANDSHAKE, 0)
    own.handshake("PLAIN", 1)
    own.check(TOKEN, 0)
    answer = own.token(token, 0)
    assert answer.error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.message is not None
    assert "invalid credentials with SASL mechanism PLAIN" in answer.message
    assert own.is_failed
    assert own.principal == "User:ANONYMOUS"
    with pytest.raises(WireError):
        own.check(TOKEN, 0)


def test_a_mechanism_that_is_not_enabled_fails() -> None:
    """The response to another mechanism names the enabled ones, and the session fails."""
    own = session()
    own.check(HANDSHAKE, 0)
    assert own.handshake("SCRAM-SHA-256", 1) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ("PLAIN",))
    assert own.is_failed


def test_an_authentication_expires() -> None:
    """After its lifetime only a new authentication is possible, within it everything (KIP-368)."""
    own = authenticated(lifetime_s=10)
    own.check(PRODUCE, 10)
    with pytest.raises(WireError, match="User:alice has expired"):
        own.check(PRODUCE, 10.1)
    own.check(HANDSHAKE, 10.1)
    assert own.handshake("PLAIN", 1)[0] is ErrorCode.NONE
    own.check(TOKEN, 10.2)
    assert own.token(ALICE, 10.2).lifetime_ms == 10_000
    own.check(PRODUCE, 20.2)


def test_the_user_and_the_mechanism_stay_the_same() -> None:
    """A connection that authenticates again cannot change its user or its mechanism."""
    own = authenticated()
    own.check(HANDSHAKE, 5)
    assert own.handshake("SCRAM-SHA-256", 1)[0] is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert own.is_failed
    own = authenticated()
    own.check(HANDSHAKE, 5)
    own.handshake("PLAIN", 1)
    with pytest.raises(WireError):
        own.check(PRODUCE, 5)
    own.check(TOKEN, 5)
    assert own.token(BOB, 5).error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert (own.principal, own.is_failed) == ("User:alice", True)


def test_a_second_authentication_waits() -> None:
    """Within a second of an authentication, a handshake is refused and changes no state."""
    own = authenticated()
    own.check(HANDSHAKE, 0.9)
    assert own.handshake("PLAIN", 1) == (ErrorCode.ILLEGAL_SASL_STATE, ())
    own.check(PRODUCE, 0.9)
    own.check(HANDSHAKE, 1.0)
    assert own.handshake("PLAIN", 1)[0] is ErrorCode.NONE


def test_a_listener_without_sasl_has_no_handshake() -> None:
    """Without SASL every request is served, and handshake and token are errors."""
    own = OpenSession()
    own.check(PRODUCE, 0)
    assert own.handshake("PLAIN", 1) == (ErrorCode.ILLEGAL_SASL_STATE, ())
    assert own.token(ALICE, 0).error is ErrorCode.ILLEGAL_SASL_STATE
    assert not own.is_failed


def test_tokens_without_headers() -> None:
    """After SaslHandshake v0 only a token is allowed, and each frame is one until it succeeds."""
    own = session()
    assert not own.is_raw
    own.check(VERSIONS, 0)
    own.check(HANDSHAKE, 0)
    assert own.handshake("PLAIN", 0) == (ErrorCode.NONE, ("PLAIN",))
    assert own.is_raw
    for key in (PRODUCE, VERSIONS, HANDSHAKE):
        with pytest.raises(WireError):
            own.check(key, 0)
    own.check(TOKEN, 0)
    assert own.token(ALICE, 0).error is ErrorCode.NONE
    assert (own.is_raw, own.state) == (False, State.READY)


def test_no_client_authenticates_again_without_headers() -> None:
    """SaslHandshake v0 of an authenticated client ends the connection, also with its password."""
    own = authenticated()
    own.check(HANDSHAKE, 100)
    assert own.handshake("PLAIN", 0) == (ErrorCode.ILLEGAL_SASL_STATE, ())
    assert own.is_failed
    own = session()
    own.check(HANDSHAKE, 0)
    assert own.handshake("SCRAM-SHA-256", 0)[0] is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert (own.is_raw, own.is_failed) == (False, True)
