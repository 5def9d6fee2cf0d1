"""Notifications of brokers to the controller that a log directory has failed (KIP-112)."""

from broker_impl.node import zk_paths
from broker_impl.wire.types import BrokerId
from broker_impl.zookeeper.client import ZooKeeper


async def announce(zk: ZooKeeper, broker_id: BrokerId) -> None:
    """Notify the controller that a log directory of this broker has failed.

    The notification does not name the directory: the broker's answers to LeaderAndIsr requests show
    which replicas are offline. A repetition after a lost connection therefore does no harm.
    """
    notice = zk_paths.encode(zk_paths.LogDirEventZnode(broker=broker_id))
    await zk.create(zk_paths.LOG_DIR_EVENT_PREFIX, notice, sequential=True)
