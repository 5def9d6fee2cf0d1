"""Faults of a simulated cluster's links: cut, refused, slow, disconnected, lossy."""

import asyncio

import pytest

from harness.cluster.node import ClusterError
from harness.cluster.simulated.simulated_cluster import Simulated
from model.roles import (
    CLIENTS,
    ZOOKEEPER,
)
from tests.harness.cluster.simulated.lab import ONE, THREE, TWO, Lab


@pytest.mark.parametrize(
    "way", [(ONE, TWO), (TWO, ONE), (CLIENTS, ONE), (ONE, CLIENTS), (ZOOKEEPER, ONE)]
)
def test_cut(lab: Lab, way: tuple[str, str]) -> None:
    """A cut link leaves probes unanswered in one direction, although both ends are alive.

    If an end is dead, the probe proves nothing.
    """

    async def work(cluster: Simulated) -> None:
        assert await cluster.is_cut(*way) is False
        await cluster.cut(*way)
        assert await cluster.is_cut(*way) is True
        assert await cluster.is_cut(TWO, THREE) is False
        await cluster.heal(*way)
        assert await cluster.is_cut(*way) is False
        await cluster.cut(*way)
        await cluster.heal_all()
        assert await cluster.is_cut(*way) is False
        if set(way) == {ONE, TWO}:
            await cluster.kill(ONE)
            await cluster.kill(TWO)
            assert await cluster.is_cut(*way) is None

    lab(work)


def test_a_link_is_whole_when_all_cuts_are_healed(lab: Lab) -> None:
    """A link works again only when all of its cuts are healed and no end is disconnected."""

    async def work(cluster: Simulated) -> None:
        await cluster.cut(ONE, TWO)
        await cluster.cut(ONE, TWO)
        await cluster.heal(ONE, TWO)
        assert await cluster.is_cut(ONE, TWO)
        await cluster.disconnect(TWO)
        await cluster.heal(ONE, TWO)
        assert await cluster.is_disconnected(TWO)
        await cluster.reconnect(TWO)
        assert await cluster.is_cut(ONE, TWO) is False

    lab(work)


def test_nothing_connects_clients_and_zookeeper(lab: Lab) -> None:
    """A pair of nodes without a link cannot be probed."""

    async def work(cluster: Simulated) -> None:
        with pytest.raises(ClusterError, match="there is no link between"):
            await cluster.is_cut(CLIENTS, ZOOKEEPER)

    lab(work)


def test_refuse(lab: Lab) -> None:
    """A refused link resets open connections and refuses new ones; a dead node's is not refused."""

    async def work(cluster: Simulated) -> None:
        reader, _ = await asyncio.open_connection(ONE, 9092)
        assert not await cluster.is_refused(CLIENTS, ONE)
        await cluster.refuse(CLIENTS, ONE)
        await cluster.refuse(ONE, CLIENTS)
        assert await cluster.is_refused(CLIENTS, ONE)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(ONE, 9092)
        await cluster.accept(CLIENTS, ONE)
        assert await cluster.is_refused(ONE, CLIENTS)
        await cluster.accept(CLIENTS, ONE)
        assert not await cluster.is_refused(CLIENTS, ONE)
        await cluster.kill(ONE)
        assert not await cluster.is_refused(CLIENTS, ONE)

    lab(work)


def test_slow(lab: Lab) -> None:
    """The largest latency of a link counts, and a cut is measured nevertheless."""

    async def work(cluster: Simulated) -> None:
        usual_s = await cluster.round_trip_s(ONE, TWO)
        assert usual_s is not None
        assert usual_s < 0.05
        await cluster.slow(ONE, TWO, 0.2)
        await cluster.slow(ONE, TWO, 0.5)
        took_s = await cluster.round_trip_s(ONE, TWO)
        assert took_s is not None
        assert 0.5 <= took_s < 0.7
        assert await cluster.is_cut(ONE, TWO) is False
        await cluster.quicken(ONE, TWO, 0.5)
        assert 0.2 <= (await cluster.round_trip_s(ONE, TWO) or 0) < 0.5
        await cluster.quicken(ONE, TWO, 0.2)
        assert (await cluster.round_trip_s(ONE, TWO) or 1) < 0.05
        await cluster.slow(ONE, TWO, 2.0)
        assert await cluster.is_cut(ONE, TWO) is False
        await cluster.cut(ONE, TWO)
        assert await cluster.is_cut(ONE, TWO) is True
        await cluster.heal(ONE, TWO)
        await cluster.slow(ONE, TWO, 6.5)
        assert await cluster.is_cut(ONE, TWO) is None
        await cluster.heal_all()
        assert (await cluster.round_trip_s(ONE, TWO) or 1) < 0.05
        await cluster.kill(TWO)
        await cluster.kill(ONE)
        assert await cluster.round_trip_s(ONE, TWO) is None

    lab(work)


def test_a_round_trip_is_there_and_back(lab: Lab) -> None:
    """A round trip counts two traversals of the link, not the four of a connect and a request.

    Otherwise a link with a high latency of its own could not be distinguished from a slowed one.
    """

    async def work(cluster: Simulated) -> None:
        took = [await cluster.round_trip_s(TWO, ZOOKEEPER) for _ in range(12)]
        assert all(each is not None and 0.006 < each < 0.031 for each in took)
        await cluster.slow(TWO, ZOOKEEPER, 0.025)
        took = [await cluster.round_trip_s(TWO, ZOOKEEPER) for _ in range(6)]
        assert all(each is not None and 0.031 < each < 0.056 for each in took)

    lab(work, options={"latency_ms": 3, "jitter_ms": 12})


@pytest.mark.parametrize("node", [TWO, ZOOKEEPER])
def test_disconnect(lab: Lab, node: str) -> None:
    """A disconnected node is cut off from all others and keeps running.

    Its connections continue after it is reconnected.
    """

    async def work(cluster: Simulated) -> None:
        assert not await cluster.is_disconnected(node)
        await cluster.disconnect(node)
        assert await cluster.is_disconnected(node)
        assert await cluster.is_running(node)
        await cluster.reconnect(node)
        await cluster.reconnect(node)
        assert not await cluster.is_disconnected(node)
        assert await cluster.recover(20.0)

    lab(work)


def test_drop_packets(lab: Lab) -> None:
    """A share of the packets is lost and counted, and the cluster recovers."""

    async def work(cluster: Simulated) -> None:
        assert await cluster.packets_dropped(THREE) is None
        await cluster.pass_packets(THREE)
        await cluster.drop_packets(THREE, 0.2)
        await asyncio.sleep(3.0)
        assert (await cluster.packets_dropped(THREE) or 0) > 5
        await cluster.pass_packets(THREE)
        assert await cluster.packets_dropped(THREE) is None
        assert await cluster.recover(20.0)

    lab(work)
