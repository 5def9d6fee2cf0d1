"""A cluster whose listeners a plan protects: its users, their rights, and what they connect with.

A target adds where the protected listener of a broker is. Without the option ``security`` the
cluster is open, and the methods about users must not be called.
"""

import abc
import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from harness.cluster import access, security, settings
from harness.cluster.access import WRITES, Grant
from harness.cluster.address import Address
from harness.cluster.base_cluster import BaseCluster
from harness.cluster.observe import login, probe
from harness.cluster.polling import until
from harness.cluster.security import Protection
from model.capabilities.security import Login, Right
from model.connection import Connection
from model.roles import NodeId

Said = TypeVar("Said")

PROBE_S = 0.5
"""How long a broker may take to answer a probe before an operator asks another one."""


class GuardedCluster(BaseCluster):
    """A cluster whose clients may have to authenticate."""

    # --- implemented by targets

    @abc.abstractmethod
    def _guarded(self, node: NodeId) -> Address:
        """The address of a broker's listener for clients, past all faults."""

    # --- HasConnection

    def connection(self) -> Connection:
        """What clients of workloads need."""
        properties = security.client_properties(self._plan, self._trust)
        return Connection(self.bootstrap(), properties)

    # --- CanChangeCredentials

    async def write_password(self, *, is_right: bool) -> bool:
        password = security.PASSWORD if is_right else security.WRONG_PASSWORD
        mechanism = self._protection.mechanism
        return await self._operate(lambda at: access.write_password(at, mechanism, password))

    async def logins(self) -> Mapping[NodeId, Login]:
        return await self._of_each(self._login)

    # --- CanChangeRights

    async def change_right(self, right: Right, *, is_granted: bool) -> bool:
        grant = WRITES[right]
        if is_granted:
            return await self._operate(lambda at: access.grant(at, [grant]))
        return await self._operate(lambda at: access.revoke(at, grant))

    async def has_right(self, right: Right) -> Mapping[NodeId, bool]:
        said = await self._has(WRITES[right])
        return {node: has for node, has in said.items() if has is not None}

    # --- implementation

    @property
    def _protection(self) -> Protection:
        found = security.of(self._plan)
        assert found is not None, "the plan protects the cluster"
        return found

    @property
    def _trust(self) -> Path:
        """The file with the authority that clients trust."""
        return self._folder.resolve() / "nodes" / security.TRUST_STORE

    async def _admit_clients(self) -> None:
        if security.of(self._plan) is None:
            return
        await until(lambda: self.write_password(is_right=True))
        await until(lambda: self._operate(lambda at: access.grant(at, access.GRANTS)))
        await until(self._is_admitted)
        bootstrap, properties, _ = self.connection()
        known = {"bootstrap.servers": bootstrap, **properties}
        settings.write(self._trust.with_name(security.CLIENT_FILE), known)

    async def _is_admitted(self) -> bool:
        """Does every broker know the user, and the rights that were given last?"""
        if set((await self.logins()).values()) != {"accepted"}:
            return False
        # The rights to a type of resources become known together.
        for one in {grant.resource: grant for grant in access.GRANTS}.values():
            if not all((await self._has(one)).values()):
                return False
        return True

    async def _has(self, right: Grant) -> dict[NodeId, bool | None]:
        return await self._of_each(lambda node: access.granted(self.direct(node), right))

    async def _login(self, node: NodeId) -> Login:
        mechanism, context = self._protection.mechanism, self._unverified
        user, password = security.USER, security.PASSWORD
        return await login.login(self._guarded(node), mechanism, user, password, context)

    @property
    def _unverified(self) -> ssl.SSLContext | None:
        """The context of measurements, which accept any certificate; ``None`` without TLS."""
        return probe.unverified() if self._protection.has_tls else None

    async def _operate(self, request: Callable[[Address], Awaitable[bool]]) -> bool:
        """Send an operator's request to one broker after the other until one confirms it.

        A broker that does not answer a probe is left out: it would serve the request late.
        """

        async def work() -> bool:
            for node in self.brokers:
                at = self.direct(node)
                if await probe.answers(at, "kafka", PROBE_S) and await request(at):
                    return True
            return False

        return await self._past_faults(work, "operator of users")

    async def _of_each(self, ask: Callable[[NodeId], Awaitable[Said]]) -> dict[NodeId, Said]:
        async def work() -> list[Said]:
            return list(await asyncio.gather(*(ask(node) for node in self.brokers)))

        return dict(zip(self.brokers, await self._past_faults(work, "question"), strict=True))
