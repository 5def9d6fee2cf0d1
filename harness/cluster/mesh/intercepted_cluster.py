"""The base of the targets that intercept single messages, as far as their links are proxied.

If the plan has a fault of the package ``messages``, the harness listens in front of the Toxiproxy
proxy of every link from clients to a broker, and brokers advertise these addresses. If such a fault
names another sender than clients, the links between brokers have such proxies, too. Probes of links
bypass them.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from broker_impl.wire.messages.apis import APIS
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.mesh.message_interception import Interceptors
from harness.cluster.mesh.message_proxy import MessageProxy
from harness.cluster.mesh.proxied_cluster import ProxiedCluster
from harness.cluster.mesh.toxiproxy import Link, MeshError
from model import roles
from model.capabilities.network import Interception, Selection
from model.plan import Plan
from model.roles import CLIENTS, NodeId
from nemesis import messages


def openers(plan: Plan) -> tuple[NodeId, ...]:
    """The parties whose links to brokers need a message proxy for the faults of a plan."""
    if plan.schedule is None:
        return (CLIENTS,) if messages.PACKAGE.name in plan.nemesis else ()
    faults = [each for each in plan.schedule if each.fault in messages.PACKAGE.names]
    if not faults:
        return ()
    if all(each.options.get("from", CLIENTS) == CLIENTS for each in faults):
        return (CLIENTS,)
    return (CLIENTS, *(roles.broker(number) for number in range(1, plan.brokers + 1)))


class InterceptedCluster(ProxiedCluster):
    """A cluster whose clients and brokers can reach the harness's own listeners."""

    def __init__(self, plan: Plan, *arguments: Any, **options: Any) -> None:
        """As :class:`ProxiedCluster`."""
        super().__init__(plan, *arguments, **options)
        self._openers = openers(plan)
        self._interceptors = Interceptors()
        self._message_proxies: list[MessageProxy] = []
        self._entrances: dict[tuple[NodeId, NodeId], Address] = {}

    async def stop(self) -> None:
        try:
            await super().stop()
        finally:
            await asyncio.gather(*(proxy.close() for proxy in self._message_proxies))

    # --- CanInterceptMessages

    @classmethod
    def apis(cls) -> Sequence[str]:
        return [api.name for api in APIS.values()]

    @classmethod
    def intercepts_brokers(cls) -> bool:
        return True

    async def intercept(
        self, links: Sequence[tuple[NodeId, NodeId]], selection: Selection, what: Interception
    ) -> int:
        for link in links:
            if link not in self._entrances:
                raise MeshError("messages of {} to {} are not intercepted".format(*link))
        return self._interceptors.add(links, selection, what)

    async def caught(self, number: int) -> str | None:
        return self._interceptors[number].caught

    async def is_held(self, number: int) -> bool:
        return self._interceptors[number].is_holding

    async def release(self, number: int) -> None:
        self._interceptors[number].release()

    async def release_all(self) -> None:
        self._interceptors.release_all()

    # --- implementation

    async def _add_link(self, wanted: LinkSpec) -> None:
        opener, acceptor, *_ = wanted
        if opener not in self._openers or acceptor not in self.brokers:
            await super()._add_link(wanted)
            return
        # The address that belongs to the acceptor's name is the message proxy's, not Toxiproxy's.
        await super()._add_link(wanted._replace(by_name=False))
        named = self._endpoint(wanted) if wanted.by_name else None
        [link] = [each for each in self.mesh.links if (each.opener, each.acceptor) == wanted[:2]]
        way = (opener, acceptor)
        proxy = MessageProxy(way, super()._entrance(link), self._interceptors)
        self._message_proxies.append(proxy)
        self._entrances[way] = await proxy.start(named.binds if named is not None else None)

    def _entrance(self, link: Link) -> Address:
        return self._entrances.get((link.opener, link.acceptor)) or super()._entrance(link)
