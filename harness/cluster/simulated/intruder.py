"""A client that brokers must not serve: it does not know the password, or its login has expired.

Where clients authenticate (the option ``security``), the intruder visits one broker after the
other. It tries a password that no user ever had, on a new connection or on one that is
authenticated already, and the right one with a proof that is cut short. Or it logs in by the right
password, does not authenticate again in time (KIP-368), and then sends a request. It reports only
what is certain: no user ever had its guess as the password, and by the broker's own clock the login
expired before the request was sent.
"""

import asyncio
import base64
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from importlib import import_module
from typing import Any, Final

from broker_impl.config import Login
from broker_impl.node.peer_security import PeerSecurity
from broker_impl.security.exchanges import Refused
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from broker_impl.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from harness.cluster import security
from harness.cluster.address import Address
from harness.cluster.observe.invariant_monitor import Watcher
from harness.cluster.observe.kafka_request import FAILURES, Connection, connected
from harness.cluster.simulated import node_settings
from harness.simulation.host import Host
from harness.simulation.process import Process
from model import roles
from model.layout import Layout
from model.plan import Plan

NAME: Final = "intruder"
GUESS: Final = "a-guess"
"""The password that is never valid."""
PAUSE_S: Final = 1.0
"""The mean pause between the begins of two visits."""
EXCHANGE_S: Final = 3.0
"""How long a login may take."""
TOKENS: Final = 2
"""How many tokens the server accepts in a login by SCRAM."""
CUT_BYTES: Final = 5
"""The bytes that are left of a proof that is cut short."""
AGAIN_S: Final = 1.1
"""How long a client must be authenticated before it may authenticate again."""
_METADATA, _HANDSHAKE = (3, 9), (17, 1)

Served = Callable[[int, str], None]
"""Called with the broker that served it, and the argument."""


class Intruder:
    """Visits brokers, and reports those that serve it."""

    def __init__(
        self,
        brokers: Mapping[int, Address],
        mechanism: str,
        rng: random.Random,
        accepted: Served,
        expired: Served,
        clock_s: Callable[[int], float],
    ) -> None:
        """``brokers``: where clients reach each broker; ``clock_s``: its monotonic clock.

        ``accepted`` is called for a wrong password that was accepted, ``expired`` for an expired
        login that was served.
        """
        self._brokers = brokers
        self._mechanism = mechanism
        self._rng = rng
        self._accepted = accepted
        self._expired = expired
        self._clock_s = clock_s
        self._attempts = (
            *(self.guess, self.guess_again, self.cut_short, self.stay),
            self.stay_in_exchange,
        )
        self.refused = 0
        """How often a broker did not serve it, for whatever reason."""

    async def run(self) -> None:
        """Begin visits, some of which last longer than a login, until the process ends."""
        async with asyncio.TaskGroup() as visits:
            while True:
                await asyncio.sleep(PAUSE_S * self._rng.uniform(0.5, 1.5))
                attempt = self._rng.choice(self._attempts)
                visits.create_task(self.visit(self._rng.choice(sorted(self._brokers)), attempt))

    async def visit(self, broker: int, attempt: Callable[[int, Connection], Any]) -> None:
        """Make an attempt at a broker; one that cannot be finished shows nothing."""
        with suppress(*FAILURES):
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(EXCHANGE_S):
                    line = await stack.enter_async_context(connected(self._brokers[broker]))
                await attempt(broker, line)

    async def guess(self, broker: int, connection: Connection) -> None:
        """Log in by the guess."""
        await self._guess(broker, connection, "a new connection")

    async def guess_again(self, broker: int, connection: Connection) -> None:
        """Log in by the password, then authenticate again by the guess."""
        if await self._login(connection, security.PASSWORD) is None:
            return
        await asyncio.sleep(AGAIN_S)
        await self._guess(broker, connection, "a connection that was authenticated before")

    async def cut_short(self, broker: int, connection: Connection) -> None:
        """Log in by the password, with the first bytes of its proof only (RFC 5802)."""
        where = "a new connection"
        self._judge(broker, await self._login(connection, security.PASSWORD, cut=True), where)

    async def stay(self, broker: int, connection: Connection) -> None:
        """Send a request after the login has expired."""
        await self._stay(broker, connection, in_exchange=False)

    async def stay_in_exchange(self, broker: int, connection: Connection) -> None:
        """The same, after authenticating again has begun, and without its end."""
        await self._stay(broker, connection, in_exchange=True)

    async def _stay(self, broker: int, connection: Connection, *, in_exchange: bool) -> None:
        lifetime_s = await self._login(connection, security.PASSWORD)
        if not lifetime_s:
            return
        expires_s = self._clock_s(broker) + lifetime_s
        await asyncio.sleep(lifetime_s * self._rng.uniform(1.1, 1.5))
        if in_exchange:
            chosen = SaslHandshakeRequest(mechanism=self._mechanism)
            await self._ask(connection, _HANDSHAKE, chosen)
        sent_s = self._clock_s(broker)
        if sent_s <= expires_s:
            return
        try:
            await self._ask(connection, _METADATA, MetadataRequest(topics=None))
        except FAILURES:
            self.refused += 1
            return
        self._expired(
            broker,
            f"broker {broker} answered a request of User:{security.USER} whose login had expired "
            f"{sent_s - expires_s:.1f} s before it was sent",
        )

    async def _ask(self, connection: Connection, api: tuple[int, int], request: Any) -> Any:
        async with asyncio.timeout(EXCHANGE_S):
            return await connection.ask(api, request)

    async def _login(
        self, connection: Connection, password: str, *, cut: bool = False
    ) -> float | None:
        """Return for how many seconds the broker accepts the password; None if it refuses it.

        The broker may accept a password for which it cannot prove that it knows it. cut: most of
        the proof is left out.
        """
        login = Login(security.USER, password, {})
        nonce = partial("{:024x}".format, self._rng.getrandbits(96))
        accepted: list[float] = []

        async def ask(request: Any, version: int) -> Any:
            if cut and isinstance(request, SaslAuthenticateRequest):
                request.auth_bytes = _cut(bytes(request.auth_bytes))
            key: int = import_module(type(request).__module__).API_KEY
            answer = await connection.ask((key, version), request)
            if isinstance(request, SaslAuthenticateRequest) and not answer.error_code:
                accepted.append(answer.session_lifetime_ms / 1000)
            return answer

        with suppress(Refused):
            async with asyncio.timeout(EXCHANGE_S):
                await PeerSecurity(None, self._mechanism, login, nonce).authenticate(ask)
        return accepted[-1] if len(accepted) == TOKENS else None

    async def _guess(self, broker: int, connection: Connection, where: str) -> None:
        self._judge(broker, await self._login(connection, GUESS), where)

    def _judge(self, broker: int, lifetime_s: float | None, where: str) -> None:
        if lifetime_s is None:
            self.refused += 1
            return
        self._accepted(
            broker,
            f"broker {broker} authenticated User:{security.USER} on {where} by a password that "
            "the user never had",
        )


def _cut(token: bytes) -> bytes:
    """Return a client's token with the first bytes of its proof only, if it has one."""
    head, mark, proof = token.partition(b",p=")
    return head + mark + base64.b64encode(base64.b64decode(proof)[:CUT_BYTES])


def begin(
    host: Host, plan: Plan, layout: Layout, watcher: Watcher, clock_s: Callable[[int], float]
) -> list[Process]:
    """Start the intruder on this host, where clients of the plan authenticate."""
    protection = security.of(plan)
    if protection is None:
        return []
    brokers = {roles.number(name): node_settings.address(layout, name) for name in layout.brokers}
    intruder = Intruder(
        *(brokers, protection.mechanism, random.Random(f"{plan.seed}:{NAME}")),
        *(watcher.wrong_password_accepted, watcher.expired_login_served, clock_s),
    )
    return [host.spawn(intruder.run, NAME)]
