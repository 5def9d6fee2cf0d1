"""A broker announces that a log directory has failed."""

import json
import random

from broker_impl.node import directory_notices, zk_paths
from broker_impl.zookeeper.client import ZooKeeper
from tests.broker_impl.conftest import ZooKeeperInLoop


async def test_a_notice_is_that_of_kafka(zookeeper: ZooKeeperInLoop) -> None:
    """Each notice is a numbered znode, which stays when the session ends, with Kafka's content."""
    client = ZooKeeper(zookeeper.address, session_timeout_ms=5000, rng=random.Random(0))
    await client.start()
    for path in zk_paths.PERSISTENT_PATHS:
        await client.ensure_path(path)
    for broker in (2, 3):
        await directory_notices.announce(client, broker)
    names = sorted(await client.children("/log_dir_event_notification"))
    assert names == ["log_dir_event_0000000000", "log_dir_event_0000000001"]
    data, stat = await client.get(f"/log_dir_event_notification/{names[0]}")
    assert json.loads(data) == {"version": 1, "broker": 2, "event": 1}
    assert stat.ephemeral_owner == 0
    await client.close()
