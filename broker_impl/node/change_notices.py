"""Notifications of changes in ZooKeeper: numbered znodes, each of which names what changed.

Each broker watches them and reads what they name. A new session may have missed notifications, so
it starts by reading everything.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

from broker_impl.node.zk_paths import BadZnode
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import (
    BadVersion,
    NodeExists,
    NoNode,
    SessionExpired,
    ZooKeeperError,
)
from broker_impl.zookeeper.multi import Create, Delete, MultiFailed, SetData

LOG = logging.getLogger(__name__)

_NOTICE_MS: Final = 15 * 60_000  # Kafka's retention of notifications
_RETRY_S: Final = 0.2

Named = TypeVar("Named", bound=Hashable)


async def forget_old(zk: ZooKeeper, parent: str, now_ms: int) -> None:
    """Delete the notifications that are older than a quarter of an hour."""
    for name in sorted(await zk.children(parent)):
        path = f"{parent}/{name}"
        found = await zk.exists(path)
        if found is not None and now_ms - found.ctime <= _NOTICE_MS:
            return  # they are in the order in which they were written
        try:
            await zk.delete(path)
        except NoNode:
            LOG.debug("the znode %s does not exist", path)


async def announce(zk: ZooKeeper, write: Create | SetData | Delete, notice: Create) -> bool:
    """Write a znode and its notification, in one transaction: both of them, or neither.

    Returns False if the znode is no longer as ``write`` expects it, and nothing was written.
    """
    try:
        await zk.multi([write, notice])
    except MultiFailed as error:
        is_gone = isinstance(error.error, NoNode) and not isinstance(write, Create)
        is_changed = is_gone or isinstance(error.error, BadVersion | NodeExists)
        if is_changed and error.index == 0:
            return False
        raise
    return True


async def follow(
    zk: ZooKeeper,
    parent: str,
    named: Callable[[str, bytes], Named],
    everything: Callable[[], Awaitable[None]],
    one: Callable[[Named], Awaitable[None]],
) -> None:
    """Call ``everything`` once, then ``one`` for each notification, until the session ends.

    named: parses the path and the content of a notification; raises BadZnode. After an error,
    ``everything`` is called again.
    """
    news = asyncio.Event()
    watch = partial(_heard, news)
    known: dict[str, None] | None = None
    while True:
        news.clear()
        try:
            names = sorted(await zk.children(parent, watch))
            if known is None:
                await everything()
            else:
                paths = [f"{parent}/{name}" for name in unread(names, known)]
                for each in await _named(zk, paths, named):
                    await one(each)
        except SessionExpired:
            return
        except ZooKeeperError as error:
            LOG.info("the settings cannot be read, and are read again: %s", error)
            known = None
            await asyncio.sleep(_RETRY_S)
            continue
        known = dict.fromkeys(names)
        await news.wait()


def unread(names: Sequence[str], known: Collection[str]) -> list[str]:
    """The notifications, in their order, that have arrived since those that are known.

    ZooKeeper reports several changes that follow each other quickly by one event.
    """
    return [name for name in names if name not in known]


def _heard(news: asyncio.Event, seen: WatchEvent) -> None:
    news.set()


async def _named(
    zk: ZooKeeper, paths: Iterable[str], named: Callable[[str, bytes], Named]
) -> list[Named]:
    """Return what these notifications name, without duplicates."""
    found: dict[Named, None] = {}
    for path in paths:
        try:
            data, _ = await zk.get(path)
            found[named(path, data)] = None
        except (NoNode, BadZnode) as error:
            LOG.warning("an invalid change notification of settings is skipped: %s", error)
    return list(found)
