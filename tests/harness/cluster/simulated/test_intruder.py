"""The intruder: correct brokers refuse it, and each planted bug makes it report something."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from broker_impl import mutants
from broker_impl.config import BrokerConfig
from broker_impl.errors import ErrorCode
from broker_impl.security import scram, sessions
from broker_impl.security.credentials import Credentials
from broker_impl.security.sessions import Limits, SaslSession
from broker_impl.wire.messages.metadata_response import MetadataResponse
from broker_impl.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from broker_impl.wire.messages.sasl_handshake_response import SaslHandshakeResponse
from harness.cluster import security
from harness.cluster.address import Address
from harness.cluster.simulated import intruder
from harness.cluster.simulated.intruder import Intruder

WRONG_PASSWORD, EXPIRED = "wrong password", "expired"
MECHANISM = "SCRAM-SHA-256"
Attempt = Literal["guess", "guess_again", "cut_short", "stay", "stay_in_exchange"]
ATTEMPTS: tuple[Attempt, ...] = ("guess", "guess_again", "cut_short", "stay", "stay_in_exchange")


class Broker:
    """The authentication of one connection, by the broker's own clock."""

    def __init__(self, lifetime_s: float, password: str) -> None:
        salted = scram.salted(MECHANISM, password, b"salt", 4096)
        users = Credentials(BrokerConfig(), lambda: "server")
        known = {MECHANISM: scram.credential(MECHANISM, salted, b"salt", 4096)}
        users.replace(security.USER, known)
        limits = Limits((MECHANISM,), 1 << 20, lifetime_s, 0.0)
        self.session = SaslSession("CLIENT", limits, users)
        self.now_s = 100.0
        self.rate = 1.0

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds * self.rate

    async def ask(self, api: tuple[int, int], request: Any) -> Any:
        self.session.check(api[0], self.now_s)
        match api[0]:
            case 17:
                error, enabled = self.session.handshake(request.mechanism, 1)
                return SaslHandshakeResponse(error_code=error, mechanisms=list(enabled))
            case 36:
                answer = self.session.token(bytes(request.auth_bytes), self.now_s)
                return SaslAuthenticateResponse(
                    error_code=answer.error,
                    auth_bytes=answer.token,
                    session_lifetime_ms=answer.lifetime_ms,
                )
            case _:
                return MetadataResponse()


async def visit(
    attempt: Attempt,
    monkeypatch: pytest.MonkeyPatch,
    password: str = security.PASSWORD,
    rate: float = 1.0,
    lifetime_s: float = 5.0,
) -> tuple[list[str], int]:
    """Return what an attempt reports, and how often the broker refused it."""
    broker = Broker(lifetime_s, password)
    broker.rate = rate

    @asynccontextmanager
    async def connected(address: Address) -> AsyncIterator[Broker]:
        yield broker

    monkeypatch.setattr(intruder, "connected", connected)
    monkeypatch.setattr(asyncio, "sleep", broker.sleep)
    found: list[str] = []
    visitor = Intruder(
        {1: Address("h", 1)},
        MECHANISM,
        random.Random(1),
        lambda *_: found.append(WRONG_PASSWORD),
        lambda *_: found.append(EXPIRED),
        lambda _: broker.now_s,
    )
    await visitor.visit(1, getattr(visitor, attempt))
    return found, visitor.refused


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_a_correct_broker_refuses(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt is refused once, and nothing is reported."""
    assert await visit(attempt, monkeypatch) == ([], 1)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("login-never-expires", {"stay": EXPIRED}),  # nothing is served within an exchange
        ("served-while-it-authenticates-again", {"stay_in_exchange": EXPIRED}),
        (
            "proof-of-password-unchecked",
            {"guess": WRONG_PASSWORD, "guess_again": WRONG_PASSWORD},
        ),
    ],
)
@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_a_planted_bug_is_reported(
    attempt: Attempt, name: str, found: dict[Attempt, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug is reported by the attempts that it lets pass, and by no others."""
    mutant = mutants.get(name)
    module = {"sessions": sessions, "scram": scram}[mutant.of.split(":")[0].split(".")[-1]]
    monkeypatch.setattr(module, mutant.of.split(":")[1], mutant.rule)
    reported, _ = await visit(attempt, monkeypatch)
    assert reported == ([found[attempt]] if attempt in found else [])


async def test_a_part_of_a_proof_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that compares only as many bytes as it receives is reported."""

    def proves(mechanism: str, stored_key: bytes, messages: bytes, proof: bytes) -> bool:
        return len(proof) == intruder.CUT_BYTES

    monkeypatch.setattr(scram, "proves", proves)
    assert await visit("cut_short", monkeypatch) == ([WRONG_PASSWORD], 0)


@pytest.mark.parametrize("attempt", ["stay", "stay_in_exchange"])
async def test_a_slow_clock_is_no_error(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login that is still valid by the broker's clock may be served."""
    assert await visit(attempt, monkeypatch, rate=0.5) == ([], 0)


@pytest.mark.parametrize("attempt", ["stay", "stay_in_exchange"])
async def test_a_login_without_end(attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is expected of a broker whose logins do not expire."""
    assert await visit(attempt, monkeypatch, lifetime_s=0) == ([], 0)


@pytest.mark.parametrize("attempt", ["guess_again", "stay", "stay_in_exchange"])
async def test_while_the_password_is_another(
    attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a fault has changed the password, the intruder cannot log in, and reports nothing."""
    assert await visit(attempt, monkeypatch, password=security.WRONG_PASSWORD) == ([], 0)


async def test_an_error_of_the_handshake_is_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not know the mechanism has not accepted a password."""
    monkeypatch.setattr(
        SaslSession,
        "handshake",
        lambda self, name, version: (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ()),
    )
    assert await visit("guess", monkeypatch) == ([], 1)
