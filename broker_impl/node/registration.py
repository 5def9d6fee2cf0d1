"""What a broker reads from ZooKeeper at its start, and what it writes there about itself."""

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from broker_impl.config import BrokerConfig, Endpoint
from broker_impl.coordinator import records, transaction_records
from broker_impl.node import zk_paths
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NodeExists, NoNode

LOG = logging.getLogger(__name__)

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


_PARTITIONS_OF: Final = {
    records.TOPIC: "offsets_topic_num_partitions",
    transaction_records.TOPIC: "transaction_state_log_num_partitions",
}
"""The settings of how many partitions the internal topics have, if they are created."""


async def with_internal_topic_sizes(zk: ZooKeeper, config: BrokerConfig) -> BrokerConfig:
    """Return the settings with the numbers of partitions that the internal topics have.

    A group or a transactional id belongs to a partition by that number, so a setting that was
    changed since the topic was created would lead to a coordinator that has not loaded the group.
    """
    found = {}
    for topic, setting in _PARTITIONS_OF.items():
        path = zk_paths.topic(topic)
        try:
            data, _ = await zk.get(path)
            count = len(zk_paths.decode(path, data, zk_paths.TopicZnode).partitions)
        except NoNode:
            continue
        except zk_paths.BadZnode as error:
            LOG.warning("the number of partitions of %s cannot be read: %s", topic, error)
            continue
        if count:
            found[setting] = count
    return replace(config, **found)  # type: ignore[arg-type]  # each of these settings is a number


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
