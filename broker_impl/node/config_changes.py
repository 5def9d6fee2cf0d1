"""Dynamic settings: written to ZooKeeper, and followed by every broker.

A broker that changes settings of a topic or a broker writes them to their znode, together with a
notification. Each broker follows the notifications (``change_notices``) and reads the settings that
they name.
"""

from collections.abc import Callable, Mapping

from broker_impl.node import change_notices, zk_paths
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NoNode
from broker_impl.zookeeper.multi import Create, SetData

Alter = Callable[[Mapping[str, str]], dict[str, str]]


async def read(zk: ZooKeeper, entity: str) -> dict[str, str]:
    """Read settings of ``topics/T``, ``brokers/N`` or ``brokers/<default>``; can raise BadZnode."""
    path = zk_paths.config(entity)
    try:
        data, _ = await zk.get(path)
    except NoNode:
        return {}
    return zk_paths.decode(path, data, zk_paths.ConfigZnode).config


async def alter(zk: ZooKeeper, entity: str, change: Alter, now_ms: int) -> None:
    """Write the settings that ``change`` returns and announce them, in one transaction.

    So what a broker changes that crashes meanwhile is changed on all brokers, or on none. A
    concurrent change is not lost: the settings are read again, and ``change`` is applied to them.
    """
    path = zk_paths.config(entity)
    notice = zk_paths.encode(zk_paths.ConfigChangeZnode(entity_path=entity))
    announcement = Create(zk_paths.CONFIG_CHANGE_PREFIX, notice, sequential=True)
    while True:
        write: Create | SetData
        try:
            data, stat = await zk.get(path)
            before = zk_paths.decode(path, data, zk_paths.ConfigZnode).config
            after = zk_paths.ConfigZnode(config=change(before))
            write = SetData(path, zk_paths.encode(after), stat.version)
        except NoNode:
            write = Create(path, zk_paths.encode(zk_paths.ConfigZnode(config=change({}))))
        if await change_notices.announce(zk, write, announcement):
            await change_notices.forget_old(zk, zk_paths.CONFIG_CHANGES, now_ms)
            return


def entity(path: str, data: bytes) -> str:
    """Parse a notification: the entity whose settings changed; raises BadZnode."""
    return zk_paths.decode(path, data, zk_paths.ConfigChangeZnode).entity_path
