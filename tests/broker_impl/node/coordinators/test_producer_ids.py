from typing import Any

import pytest

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node import zk_paths
from broker_impl.node.coordinators.producer_ids import BLOCK_SIZE, ProducerIds
from broker_impl.zookeeper.errors import BadVersion, ConnectionLoss, NodeExists, NoNode


class FakeZooKeeper:
    """One znode; the connection may be lost before or after the next write takes effect."""

    def __init__(self) -> None:
        self.data: bytes | None = None
        self.version = 0
        self.lose: str = ""
        self.rival = False

    async def get(self, path: str) -> tuple[bytes, Any]:
        assert path == zk_paths.PRODUCER_ID_BLOCK
        if self.data is None:
            raise NoNode(path)
        return self.data, self

    def _write(self, data: bytes) -> None:
        lose, self.lose = self.lose, ""
        if lose == "before":
            raise ConnectionLoss("before")
        self.data = data
        self.version += 1
        if lose == "after":
            raise ConnectionLoss("after")

    async def create(self, path: str, data: bytes) -> None:
        if self.rival:
            self.rival = False
            self._write(data)
        if self.data is not None:
            raise NodeExists(path)
        self._write(data)

    async def set(self, path: str, data: bytes, version: int) -> None:
        if self.rival:
            self.rival = False
            self._write(data)
        if version != self.version:
            raise BadVersion(path)
        self._write(data)


async def take(ids: ProducerIds, count: int) -> list[int]:
    return [await ids.next() for _ in range(count)]


async def test_blocks_follow_each_other() -> None:
    """Each broker claims blocks of ids that follow the last claimed one, so that ids are unique."""
    zk: Any = FakeZooKeeper()
    one, two = ProducerIds(1, lambda: zk), ProducerIds(2, lambda: zk)
    assert await take(one, 2) == [0, 1]
    assert await take(two, 2) == [BLOCK_SIZE, BLOCK_SIZE + 1]
    assert (await take(one, BLOCK_SIZE))[-2:] == [2 * BLOCK_SIZE, 2 * BLOCK_SIZE + 1]


@pytest.mark.parametrize("claimed", [False, True])
async def test_another_broker_was_quicker(claimed: bool) -> None:
    """A claim that loses against another broker is repeated from the new value."""
    zk: Any = FakeZooKeeper()
    if claimed:
        await ProducerIds(9, lambda: zk).next()
    zk.rival = True
    assert await ProducerIds(1, lambda: zk).next() == BLOCK_SIZE * (2 if claimed else 1)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("claimed", [False, True])
async def test_a_block_in_doubt_is_not_used(when: str, claimed: bool) -> None:
    """A claim with unknown outcome fails the request, and its block is never used."""
    zk: Any = FakeZooKeeper()
    other = ProducerIds(9, lambda: zk)
    first = await other.next() if claimed else -1
    ids = ProducerIds(1, lambda: zk)
    zk.lose = when
    with pytest.raises(ApiError) as refused:
        await ids.next()
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    mine, theirs = await take(ids, 1500), await take(other, 1500)
    assert len({first, *mine, *theirs}) == 3001
