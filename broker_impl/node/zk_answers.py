"""Reads and writes of ZooKeeper on behalf of a client's request, which must be answered in time."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node.zk_paths import BadZnode
from broker_impl.zookeeper.errors import BadArguments, ZooKeeperError

T = TypeVar("T")


async def in_time(asked: Coroutine[None, None, T], timeout_s: float) -> T:
    """Return what ZooKeeper returns; raises ApiError REQUEST_TIMED_OUT if that fails.

    INVALID_REQUEST: the request has a name that no znode can have.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await asked
    except BadArguments as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no znode can have this name") from error
    except (ZooKeeperError, TimeoutError, BadZnode) as error:
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT, f"cannot read from ZooKeeper: {error!r}"
        ) from error
