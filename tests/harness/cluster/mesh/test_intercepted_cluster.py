"""Message proxies are in front of the links that the faults of a plan need, and of no others."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path, PurePath
from typing import Any

import pytest

from harness.cluster import links
from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.mesh.intercepted_cluster import InterceptedCluster, openers
from harness.cluster.mesh.toxiproxy import Link, MeshError, ProxyEndpoint
from harness.cluster.node import Node
from harness.cluster.observe import probe
from harness.cluster.ports import HOST
from harness.cluster.settings import CLIENT_LISTENER
from harness.cluster.system import Place
from harness.systems.kafka.configuration import broker_settings
from harness.systems.kafka.system import Kafka
from model.capabilities.network import Selection
from model.plan import Plan, ScheduledFault
from model.roles import CLIENTS, NodeId, broker
from tests.harness.cluster.mesh.test_message_proxy import Broker

A, B = broker(1), broker(2)
RAW = probe.request_bytes("kafka")


def plan(*options: dict[str, Any], fault: str = "hold-request") -> Plan:
    """A plan of two brokers with a fault for each table of options."""
    schedule = tuple(
        ScheduledFault(
            id=number, at_s=1, duration_s=1, fault=fault, targets=[A], options={"api": "Fetch"} | of
        )
        for number, of in enumerate(options, start=1)
    )
    return Plan(brokers=2, nemesis=("messages",), schedule=schedule)


@pytest.mark.parametrize(
    ("of", "found"),
    [
        (Plan(), ()),
        (Plan(nemesis=("messages",)), (CLIENTS,)),
        (plan(), ()),
        (plan({}, fault="kill"), ()),
        (plan({}), (CLIENTS,)),
        (plan({"from": CLIENTS}, {}), (CLIENTS,)),
        (plan({}, {"from": "controller"}), (CLIENTS, A, B)),
        (plan({"from": B}), (CLIENTS, A, B)),
    ],
)
def test_openers(of: Plan, found: tuple[NodeId, ...]) -> None:
    """The faults of the schedule decide, and before it is drawn the nemeses do."""
    assert openers(of) == found


class FakeMesh:
    """A mesh without faults: every link's proxy is the server itself."""

    def __init__(self) -> None:
        self.links: list[Link] = []

    async def add(
        self,
        opener: NodeId,
        acceptor: NodeId,
        upstream: Address,
        past: Address,
        endpoint: ProxyEndpoint | None,
        *,
        has_tls: bool,
    ) -> None:
        link = Link(opener, acceptor, upstream, upstream, upstream, past, has_tls)
        self.links.append(link)

    def between(self, one: NodeId, other: NodeId) -> list[Link]:
        return [link for link in self.links if (link.opener, link.acceptor) == (one, other)]


class Cluster(InterceptedCluster):
    """A cluster of which only the links exist; all lead to one server."""

    def __init__(self, of: Plan, server: Address) -> None:
        super().__init__(of, Path("unused"), random.Random(1), system=Kafka())
        self.mesh = FakeMesh()  # type: ignore[assignment]
        self._server = server

    async def add_links(self) -> None:
        for wanted in links.between(self.layout, ()):
            self._ports.setdefault(wanted.acceptor, {})[wanted.listener] = self._server.port
            await self._add_link(wanted)

    def settings_of(self, number: int) -> dict[str, str]:
        return broker_settings(self._place_of(broker(number)), self._plan)

    async def _prepare(self) -> None: ...
    async def _begin(self) -> None: ...
    async def _end(self) -> None: ...
    def _past(self, node: NodeId, listener: str) -> Address:
        return self._server

    def _host_of(self, name: NodeId) -> str:
        return HOST

    def _listens(self, name: NodeId, port: int) -> Address:
        return Address(HOST, port)

    def _endpoint(self, wanted: LinkSpec) -> ProxyEndpoint | None:
        return None

    def _data_of(self, name: NodeId) -> PurePath:
        return PurePath(name)

    async def _make_node(self, place: Place) -> Node:
        raise NotImplementedError


@pytest.fixture
async def server() -> AsyncIterator[Address]:
    server = Broker()
    server.is_raw = True
    yield await server.start()
    server.close()


async def test_a_plan_without_such_faults_has_no_message_proxies(server: Address) -> None:
    """Clients and brokers enter the links directly, and no message can be intercepted."""
    cluster = Cluster(plan({}, fault="kill"), server)
    await cluster.add_links()
    assert cluster.bootstrap() == f"{server},{server}"
    assert cluster.settings_of(1)["faultline.peer.2"] == str(server)
    with pytest.raises(MeshError, match="messages of clients to broker-1 are not intercepted"):
        await cluster.intercept([(CLIENTS, A)], Selection(["Fetch"]), "hold-request")
    await cluster.stop()


async def test_clients_enter_through_message_proxies(server: Address) -> None:
    """Brokers advertise the proxies to clients; links between brokers have none."""
    cluster = Cluster(plan({}), server)
    await cluster.add_links()
    first, second = map(Address.of, cluster.bootstrap().split(","))
    assert len({first, second, server}) == 3
    settings = cluster.settings_of(1)
    assert f"{CLIENT_LISTENER}://{first}" in settings["advertised.listeners"]
    assert settings["faultline.peer.2"] == str(server)
    with pytest.raises(MeshError):
        await cluster.intercept([(A, B)], Selection(["Fetch"]), "hold-request")
    await cluster.stop()
    assert not await probe.accepts(first)


async def test_brokers_enter_through_message_proxies_if_a_fault_needs_them(
    server: Address,
) -> None:
    """Every ordered pair of brokers has its own proxy."""
    cluster = Cluster(plan({"from": "brokers"}), server)
    await cluster.add_links()
    one, other = cluster.settings_of(1), cluster.settings_of(2)
    peers = {one["faultline.peer.2"], other["faultline.peer.1"]}
    assert len({*peers, *cluster.bootstrap().split(","), str(server)}) == 5
    assert one["zookeeper.connect"] == str(server)
    await cluster.stop()


async def test_a_message_is_caught_held_and_released(server: Address) -> None:
    """What a nemesis asks for happens on the connections through the proxies."""
    cluster = Cluster(plan({}), server)
    await cluster.add_links()
    number = await cluster.intercept([(CLIENTS, B)], Selection(["ApiVersions"]), "hold-request")
    address = Address.of(cluster.bootstrap().split(",")[1])
    assert (await cluster.caught(number), await cluster.is_held(number)) == (None, False)
    assert await probe.sign(address, "kafka", 0.05) == "silence"
    assert await cluster.caught(number) == "ApiVersions of clients to broker-2"
    assert await cluster.is_held(number)
    await cluster.release(number)
    assert not await cluster.is_held(number)
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"x" * RAW)
    assert await reader.readexactly(RAW) == b"x" * RAW
    writer.close()
    await cluster.release_all()
    await cluster.stop()


def test_apis_have_names() -> None:
    """The APIs are those of Kafka's protocol; messages of brokers can be intercepted, too."""
    assert {"Produce", "EndTxn", "LeaderAndIsr"} <= set(Cluster.apis())
    assert Cluster.intercepts_brokers()
