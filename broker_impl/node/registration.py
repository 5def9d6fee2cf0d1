"""What a broker writes into ZooKeeper about itself: the cluster's id, and its own addresses."""

import random
from collections.abc import Callable, Iterable, Sequence

from broker_impl.config import BrokerConfig, Endpoint
from broker_impl.node import zk_paths
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NodeExists

_BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


async def cluster_id(zk: ZooKeeper, rng: random.Random) -> str:
    """Return the cluster's id; the first broker of a cluster draws and stores it."""
    path = zk_paths.CLUSTER_ID
    fresh = "".join(rng.choices(_BASE64URL, k=22))
    try:
        await zk.create(path, zk_paths.encode(zk_paths.ClusterIdZnode(id=fresh)))
    except NodeExists:
        data, _ = await zk.get(path)
        return zk_paths.decode(path, data, zk_paths.ClusterIdZnode).id
    return fresh


def advertised(
    config: BrokerConfig, listening: Iterable[Endpoint], host_name: Callable[[], str]
) -> list[Endpoint]:
    """Return the endpoints that clients are given, one for each listener.

    A host or port that ``advertised.listeners`` leaves out is that of the listener; without any
    host it is ``host_name()``.
    """
    named = {endpoint.name: endpoint for endpoint in config.advertised()}
    endpoints = []
    for own in listening:
        host, port = named.get(own.name, own)[1:]
        endpoints.append(Endpoint(own.name, host or host_name(), port or own.port))
    return endpoints


def znode(config: BrokerConfig, endpoints: Sequence[Endpoint], now_ms: int) -> zk_paths.BrokerZnode:
    """Return the broker's ephemeral znode."""
    return zk_paths.BrokerZnode(
        host=endpoints[0].host,
        port=endpoints[0].port,
        endpoints=[str(endpoint) for endpoint in endpoints],
        listener_security_protocol_map=config.security_protocols(),
        timestamp=str(now_ms),
        rack=config.broker_rack or None,
    )
