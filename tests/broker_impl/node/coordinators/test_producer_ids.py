import random
from collections.abc import AsyncIterator, Callable

import pytest

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node import zk_paths
from broker_impl.node.coordinators.producer_ids import BLOCK_SIZE, ProducerIds
from broker_impl.zookeeper.client import ZooKeeper
from tests.broker_impl.conftest import ZooKeeperInLoop
from tests.broker_impl.zookeeper_requests import (
    Step,
    SteppedZooKeeper,
    answer_lost,
    lost,
    preceded,
    sent,
)

Make = Callable[[int], ProducerIds]


@pytest.fixture
async def zk(zookeeper: ZooKeeperInLoop) -> AsyncIterator[SteppedZooKeeper]:
    client = ZooKeeper(zookeeper.address, session_timeout_ms=5000, rng=random.Random(0))
    await client.start()
    for path in zk_paths.PERSISTENT_PATHS:
        await client.ensure_path(path)
    yield SteppedZooKeeper(client)
    await client.close()


@pytest.fixture
def make(zk: SteppedZooKeeper) -> Make:
    return lambda broker: ProducerIds(broker, lambda: zk)  # type: ignore[arg-type, return-value]


async def take(ids: ProducerIds, count: int) -> list[int]:
    return [await ids.next() for _ in range(count)]


async def test_blocks_follow_each_other(make: Make) -> None:
    """Each broker claims blocks of ids that follow the last claimed one, so that ids are unique."""
    one, two = make(1), make(2)
    assert await take(one, 2) == [0, 1]
    assert await take(two, 2) == [BLOCK_SIZE, BLOCK_SIZE + 1]
    assert (await take(one, BLOCK_SIZE))[-2:] == [2 * BLOCK_SIZE, 2 * BLOCK_SIZE + 1]


@pytest.mark.parametrize("claimed", [False, True])
async def test_another_broker_was_quicker(make: Make, zk: SteppedZooKeeper, claimed: bool) -> None:
    """A claim that loses against another broker is repeated from the new value."""
    if claimed:
        await make(9).next()
    rival = make(2)
    zk.steps.extend([sent, preceded(rival.next)])  # between the read and the write
    assert await make(1).next() == BLOCK_SIZE * (2 if claimed else 1)
    assert await rival.next() == BLOCK_SIZE * claimed + 1


@pytest.mark.parametrize("step", [lost, answer_lost])
@pytest.mark.parametrize("claimed", [False, True])
async def test_a_block_in_doubt_is_not_used(
    make: Make, zk: SteppedZooKeeper, step: Step, claimed: bool
) -> None:
    """A claim with unknown outcome fails the request, and its block is never used."""
    other = make(9)
    first = await other.next() if claimed else -1
    ids = make(1)
    zk.steps.extend([sent, step])
    with pytest.raises(ApiError) as refused:
        await ids.next()
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    mine, theirs = await take(ids, 1500), await take(other, 1500)
    assert len({first, *mine, *theirs}) == 3001
