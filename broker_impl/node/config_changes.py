"""Dynamic settings: written to ZooKeeper, and followed by every broker.

A broker that changes settings of a topic or a broker writes them to their znode and then writes a
notification. Each broker watches the notifications and reads the settings that they name. A new
session may have missed notifications, so it starts by reading all settings.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

from broker_impl.node import zk_paths
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    SessionExpired,
    ZooKeeperError,
)

LOG = logging.getLogger(__name__)

_NOTICE_MS: Final = 15 * 60_000  # Kafka's retention of notifications
_RETRY_S: Final = 0.2

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
    """Write the settings that ``change`` returns, then a notification; delete old ones.

    A concurrent change is not lost: the settings are read again, and ``change`` is applied to them.
    """
    path = zk_paths.config(entity)
    while True:
        try:
            data, stat = await zk.get(path)
            before = zk_paths.decode(path, data, zk_paths.ConfigZnode).config
            znode = zk_paths.encode(zk_paths.ConfigZnode(config=change(before)))
            await zk.set(path, znode, stat.version)
        except NoNode:
            try:
                znode = zk_paths.encode(zk_paths.ConfigZnode(config=change({})))
                await zk.create(path, znode)
            except NodeExists:
                continue
        except BadVersion:
            continue
        break
    notice = zk_paths.encode(zk_paths.ConfigChangeZnode(entity_path=entity))
    await zk.create(zk_paths.CONFIG_CHANGE_PREFIX, notice, sequential=True)
    await _forget_old(zk, now_ms)


async def _forget_old(zk: ZooKeeper, now_ms: int) -> None:
    for name in sorted(await zk.children(zk_paths.CONFIG_CHANGES)):
        path = f"{zk_paths.CONFIG_CHANGES}/{name}"
        found = await zk.exists(path)
        if found is not None and now_ms - found.ctime <= _NOTICE_MS:
            return  # they are in the order in which they were written
        try:
            await zk.delete(path)
        except NoNode:
            LOG.debug("the znode %s does not exist", path)


async def follow(
    zk: ZooKeeper,
    everything: Callable[[], Awaitable[None]],
    one: Callable[[str], Awaitable[None]],
) -> None:
    """Call ``everything`` once, then ``one`` for each notification, until the session ends.

    After an error, ``everything`` is called again.
    """
    news = asyncio.Event()
    watch = partial(_heard, news)
    known: dict[str, None] | None = None
    while True:
        news.clear()
        try:
            names = sorted(await zk.children(zk_paths.CONFIG_CHANGES, watch))
            if known is None:
                await everything()
            else:
                for entity in await _entities(zk, [name for name in names if name not in known]):
                    await one(entity)
        except SessionExpired:
            return
        except ZooKeeperError as error:
            LOG.info("the settings cannot be read, and are read again: %s", error)
            known = None
            await asyncio.sleep(_RETRY_S)
            continue
        known = dict.fromkeys(names)
        await news.wait()


def _heard(news: asyncio.Event, seen: WatchEvent) -> None:
    news.set()


async def _entities(zk: ZooKeeper, names: Iterable[str]) -> list[str]:
    """Return the entities that these notifications name, without duplicates."""
    found: dict[str, None] = {}
    for name in names:
        path = f"{zk_paths.CONFIG_CHANGES}/{name}"
        try:
            data, _ = await zk.get(path)
            found[zk_paths.decode(path, data, zk_paths.ConfigChangeZnode).entity_path] = None
        except (NoNode, zk_paths.BadZnode) as error:
            LOG.warning("an invalid change notification of settings is skipped: %s", error)
    return list(found)
