"""Reads and writes of ZooKeeper on behalf of a client's request, which must be answered in time.

A broker that has no connection at the moment waits for one, as Kafka does. A read whose connection
is lost is repeated. A write is not, because it may have been applied.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node.zk_paths import BadZnode
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import (
    BadArguments,
    ConnectionLoss,
    SessionExpired,
    ZooKeeperError,
)

T = TypeVar("T")

_RETRY_S = 0.2


async def read(ask: Callable[[], Coroutine[None, None, T]], timeout_s: float) -> T:
    """Return what ZooKeeper returns; ``ask`` is called again after a lost connection or session.

    Raises ApiError: REQUEST_TIMED_OUT if that fails, INVALID_REQUEST if the request has a name that
    no znode can have.
    """
    async with _in_time("read from", timeout_s):
        while True:
            try:
                return await ask()
            except (ConnectionLoss, SessionExpired):
                await asyncio.sleep(_RETRY_S)


async def write(
    zk: Callable[[], ZooKeeper],
    ask: Callable[[ZooKeeper], Coroutine[None, None, T]],
    timeout_s: float,
) -> T:
    """Write once there is a connection, and return the result; raises what :func:`read` raises.

    ``zk`` returns the client of the current session. After REQUEST_TIMED_OUT it is unknown whether
    the write was applied.
    """
    async with _in_time("write to", timeout_s):
        return await ask(await _connected(zk))


async def _connected(zk: Callable[[], ZooKeeper]) -> ZooKeeper:
    """Wait for a connection, in the next session if the current one expires."""
    while True:
        current = zk()
        try:
            await current.connected()
        except SessionExpired:
            await asyncio.sleep(_RETRY_S)
        else:
            return current


@asynccontextmanager
async def _in_time(what: str, timeout_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except BadArguments as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no znode can have this name") from error
    except (ZooKeeperError, TimeoutError, BadZnode) as error:
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT, f"cannot {what} ZooKeeper: {error!r}"
        ) from error
