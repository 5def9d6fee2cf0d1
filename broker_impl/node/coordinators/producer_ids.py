"""Producer ids, allocated from blocks that a broker claims in ZooKeeper.

A block is claimed by a conditional write, so that no two brokers hold the same one. The rest of a
block is lost when its broker ends (KIP-98).
"""

import asyncio
from collections.abc import Callable

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node import zk_paths
from broker_impl.wire.types import BrokerId
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import BadVersion, NodeExists, NoNode, ZooKeeperError

BLOCK_SIZE = 1000


class ProducerIds:
    """The producer ids of one broker."""

    def __init__(self, broker_id: BrokerId, zk: Callable[[], ZooKeeper]) -> None:
        self._broker_id = broker_id
        self._zk = zk
        self._lock = asyncio.Lock()
        self._next = 0
        self._end = 0

    async def next(self) -> int:
        """Return an id that was never allocated before; raises ApiError if ZooKeeper fails."""
        async with self._lock:
            if self._next == self._end:
                try:
                    self._next = await self._claim()
                except ZooKeeperError as error:
                    raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
                self._end = self._next + BLOCK_SIZE
            self._next += 1
            return self._next - 1

    async def _claim(self) -> int:
        """Claim a block that no other broker has, and return its first id."""
        path, zk = zk_paths.PRODUCER_ID_BLOCK, self._zk()
        while True:
            try:
                data, stat = await zk.get(path)
            except NoNode:
                start, version = 0, None
            else:
                block = zk_paths.decode(path, data, zk_paths.ProducerIdBlockZnode)
                start, version = int(block.block_end) + 1, stat.version
            claimed = zk_paths.encode(
                zk_paths.ProducerIdBlockZnode(
                    broker=self._broker_id,
                    block_start=str(start),
                    block_end=str(start + BLOCK_SIZE - 1),
                )
            )
            try:
                if version is None:
                    await zk.create(path, claimed)
                else:
                    await zk.set(path, claimed, version)
            except (NodeExists, BadVersion, NoNode):
                continue  # another broker was faster
            return start
