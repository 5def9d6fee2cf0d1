"""The election of the controller, and the end of its term."""

import asyncio
from typing import Any

import pytest

from broker_impl import failpoints
from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.node.controller.events import ControllerChanged
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import ConnectionLoss

T0 = TopicPartition("t", 0)


class AdoptedLate:
    """A client whose claim succeeds with a lost connection, and whose read of the epoch is delayed.

    The read of the epoch after the claim waits for `may_adopt`.
    """

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk
        self._is_claimed = False
        self.adopts = asyncio.Event()
        self.may_adopt = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._zk, name)

    async def multi(self, *arguments: Any) -> None:
        await self._zk.multi(*arguments)
        self._is_claimed = True
        raise ConnectionLoss("in doubt")

    async def get(self, path: str, *watch: Any) -> Any:
        if self._is_claimed and path == zk_paths.CONTROLLER_EPOCH:
            self.adopts.set()
            await self.may_adopt.wait()
        return await self._zk.get(path, *watch)


async def stored_epoch(world: Any) -> bytes:
    data, _ = await world.zk.get(zk_paths.CONTROLLER_EPOCH)
    return bytes(data)


async def test_one_is_elected(world: Any) -> None:
    """The first claim wins, with epoch 1, and the other candidates know the controller."""
    first = await world.contend(1)
    second = await world.contend(2)
    assert (first.runtime.is_active, second.runtime.is_active) == (True, False)
    assert (first.runtime.controller_id, second.runtime.controller_id) == (1, 1)
    assert first.runtime.controller_epoch == 1
    assert await stored_epoch(world) == b"1"
    data, _ = await world.zk.get(zk_paths.CONTROLLER)
    assert zk_paths.decode("", data, zk_paths.ControllerZnode).brokerid == 1


async def test_the_next_takes_over(world: Any) -> None:
    """When the controller's session ends another broker is elected, in the next epoch."""
    first = await world.contend(1)
    second, third = await world.contend(2), await world.contend(3)
    world.contenders.remove(first)
    await first.stop()
    assert not first.runtime.is_active
    assert first.runtime.controller_id == -1
    await world.until(lambda: second.runtime.is_active or third.runtime.is_active)
    winner, loser = (second, third) if second.runtime.is_active else (third, second)
    await world.until(lambda: loser.runtime.controller_id == winner.runtime.controller_id)
    assert winner.runtime.controller_epoch == 2
    assert not loser.runtime.is_active


async def test_taking_over_tells_everything(world: Any) -> None:
    """A new controller sends live brokers first (KAFKA-4443), then roles with unchanged epochs."""
    await world.come(1, 2)
    first = await world.contend(1)
    await world.topic("t", [1, 2])
    await world.led(T0, 1, 1, 2)
    world.contenders.remove(first)
    await first.stop()
    second = await world.contend(2)
    told = second.peers.told
    await world.until(lambda: bool(second.peers.metadata(1, T0)))
    assert isinstance(told[1][0], UpdateMetadataRequest)
    assert [broker.id for broker in told[1][0].live_brokers] == [1, 2]
    assert told[1][0].topic_states == []
    for broker in (1, 2):
        [role] = second.peers.roles(broker, T0)
        assert (role.leader, role.leader_epoch, role.isr) == (1, 0, [1, 2])
        assert not role.is_new
    assert {order.controller_epoch for order in told[1]} == {2}
    assert second.peers.addresses == {1: ("127.0.0.1", 1), 2: ("127.0.0.1", 2)}


@pytest.mark.parametrize(("back", "after"), [((1,), (2, 2, 3)), ((2,), (1, 1, 3))])
async def test_taking_over_distrusts_who_has_returned(
    world: Any, back: tuple[int, ...], after: tuple[int, ...]
) -> None:
    """At takeover, a broker that registered after the ISR was written leaves the ISR.

    It may have lost records that the others have.
    """
    await world.come(1, 2, 3)
    first = await world.contend(1)
    await world.topic("t", [1, 2, 3])
    await world.led(T0, 1, 1, 2, 3)
    world.contenders.remove(first)
    await first.stop()
    await world.go(*back)
    await world.come(*back)
    await world.contend(2)
    assert await world.led(T0, *after) == 1


async def test_taking_over_begins_an_epoch_where_nobody_stayed(world: Any) -> None:
    """At takeover, if no member of the ISR stayed registered, the same leader gets a new epoch.

    It must not give offsets of its old epoch to other records.
    """
    await world.come(1, 2)
    first = await world.contend(1)
    await world.topic("t", [1, 2])
    await world.led(T0, 1, 1, 2)
    world.contenders.remove(first)
    await first.stop()
    await world.go(1, 2)
    await world.come(1, 2)
    second = await world.contend(2)
    await world.until(lambda: bool(second.peers.roles(1, T0)))
    state = await world.state(T0)
    assert (state.leader, state.leader_epoch, state.isr) == (1, 1, [1, 2])


async def test_taking_over_elects(world: Any) -> None:
    """A new controller replaces leaders that died while there was no controller."""
    await world.come(1, 2)
    first = await world.contend(1)
    await world.topic("t", [1, 2])
    await world.led(T0, 1, 1, 2)
    world.contenders.remove(first)
    await first.stop()
    await world.go(1)
    await world.contend(2)
    assert await world.led(T0, 2, 2) == 1
    assert (await world.state(T0)).controller_epoch == 2


async def test_a_later_epoch_ends_the_term(world: Any) -> None:
    """Once /controller_epoch has changed, no write of the old term takes effect (KAFKA-6082)."""
    await world.come(1, 2)
    contender = await world.contend(1)
    await world.topic("t", [1, 2])
    await world.led(T0, 1, 1, 2)
    await world.until(lambda: bool(contender.peers.metadata(2, T0)))
    before = len(contender.peers.told[2])
    await world.zk.set(zk_paths.CONTROLLER_EPOCH, b"5")
    await world.go(1)
    # The election of the old term is refused; the same broker repeats it in its next term.
    assert await world.led(T0, 2, 2) == 1
    assert (await world.state(T0)).controller_epoch == 6
    assert contender.runtime.controller_epoch == 6
    await world.until(lambda: bool(contender.peers.roles(2, T0)[1:]))
    assert {order.controller_epoch for order in contender.peers.told[2][before:]} == {6}


async def test_no_claim_by_an_epoch_that_has_been_raised(world: Any) -> None:
    """A claim fails if the epoch was raised after it was read, and the candidate tries again."""
    held = asyncio.Event()
    go_on = asyncio.Event()

    async def hold(name: str) -> None:
        if name == failpoints.CONTROLLER_CLAIM and not held.is_set():
            held.set()
            await go_on.wait()

    failpoints.hold_by(hold)
    try:
        coming = asyncio.create_task(world.contend(1))
        await asyncio.wait_for(held.wait(), 10)
        await world.zk.set(zk_paths.CONTROLLER_EPOCH, b"7")
        go_on.set()
        contender = await coming
    finally:
        failpoints.hold_by(None)
    assert contender.runtime.controller_epoch == 8


async def test_a_stale_epoch_in_an_answer_ends_the_term(world: Any) -> None:
    """A broker that answers STALE_CONTROLLER_EPOCH ends the controller's term."""
    await world.come(1)
    contender = await world.contend(1)
    contender.peers.refusing[1] = ErrorCode.STALE_CONTROLLER_EPOCH
    await world.topic("t", [1])
    await world.until(lambda: contender.runtime.controller_epoch > 1)
    contender.peers.refusing.clear()
    await world.until(lambda: contender.runtime.is_active)
    assert await world.led(T0, 1, 1) == 0


async def test_a_claim_taken_away(world: Any) -> None:
    """A controller whose znode belongs to another broker is inactive, though its session lives."""
    contender = await world.contend(1)
    znode = zk_paths.ControllerZnode(brokerid=9, timestamp="0")
    await world.zk.delete(zk_paths.CONTROLLER)
    await world.zk.create(zk_paths.CONTROLLER, zk_paths.encode(znode), ephemeral=True)
    await world.until(lambda: contender.runtime.controller_id == 9)
    assert not contender.runtime.is_active


async def test_a_lost_connection_is_no_lost_term(world: Any) -> None:
    """A lost connection does not end the term while the session lives.

    The controller handles afterwards what happened meanwhile.
    """
    await world.come(1, 2)
    contender = await world.contend(1)
    await world.restart(down_s=0.05)
    assert contender.runtime.is_active
    await world.topic("t", [2, 1])
    await world.led(T0, 2, 2, 1)
    assert contender.runtime.controller_epoch == 1


async def test_nobody_is_sent_to_a_controller_to_be(world: Any) -> None:
    """A broker reports itself as controller when its term is active, not when its claim exists."""
    clients: list[AdoptedLate] = []

    def through(zk: ZooKeeper) -> AdoptedLate:
        clients.append(AdoptedLate(zk))
        return clients[0]

    contending = asyncio.create_task(world.contend(1, through=through))
    await world.until(lambda: bool(clients) and clients[0].adopts.is_set())
    [contender] = world.contenders
    assert (contender.runtime.controller_id, contender.runtime.is_active) == (-1, False)
    clients[0].may_adopt.set()
    await contending
    assert (contender.runtime.controller_id, contender.runtime.is_active) == (1, True)


async def test_an_expired_session_is_the_end(world: Any) -> None:
    """A controller whose session expired is inactive at once, and stops at its next event."""
    contender = await world.contend(1)
    other = await world.contend(2)
    await world.expire(contender.zk)
    await world.until(lambda: other.runtime.is_active)
    await world.until(lambda: not contender.runtime.is_active)
    contender.runtime._put(ControllerChanged())
    await world.until(contender.task.done)
    assert contender.task.exception() is None


async def test_who_is_no_controller_says_so(world: Any) -> None:
    """A broker that is not the controller answers every row of a request with NOT_CONTROLLER."""
    await world.contend(1)
    other = await world.contend(2)
    created = await other.runtime.create_topics(
        CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="b")])
    )
    assert [(row.name, row.error_code) for row in created.topics] == [("a", 41), ("b", 41)]
    deleted = await other.runtime.delete_topics(DeleteTopicsRequest(topic_names=["a"]))
    assert [(row.name, row.error_code) for row in deleted.responses] == [("a", 41)]
    left = await other.runtime.controlled_shutdown(ControlledShutdownRequest(broker_id=1))
    assert left.error_code == ErrorCode.NOT_CONTROLLER


async def test_whoever_waits_at_the_end_is_told(world: Any) -> None:
    """A request that is in progress when the term ends is answered with REQUEST_TIMED_OUT."""
    await world.come(1)
    contender = await world.contend(1)
    contender.peers.silent.add(1)
    asked = asyncio.ensure_future(
        contender.runtime.create_topics(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)],
                timeout_ms=60_000,
            )
        )
    )
    await world.led(T0, 1, 1)
    world.contenders.remove(contender)
    await contender.stop()
    [row] = (await asked).topics
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_a_request_that_was_not_begun_is_answered_at_the_end(world: Any) -> None:
    """A request that the controller is about to handle when its term ends is rejected."""
    await world.come(1)
    contender = await world.contend(1)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t")])
    await contender.runtime.create_topics(request)  # earlier events are handled before it
    held, never = asyncio.Event(), asyncio.Event()

    async def hold(name: str) -> None:
        if name == failpoints.CONTROLLER_EVENT:
            held.set()
            await never.wait()

    failpoints.hold_by(hold)
    try:
        asked = asyncio.ensure_future(contender.runtime.create_topics(request))
        await asyncio.wait_for(held.wait(), 10)
        world.contenders.remove(contender)
        await contender.stop()
        [row] = (await asyncio.wait_for(asked, 10)).topics
    finally:
        failpoints.hold_by(None)
    assert row.error_code == ErrorCode.NOT_CONTROLLER


async def test_an_unreadable_claim_is_somebody_elses(world: Any) -> None:
    """An unreadable /controller counts as another broker's claim, and the candidate waits."""
    await world.zk.create(zk_paths.CONTROLLER, b"?", ephemeral=True)
    contending = asyncio.ensure_future(world.contend(1))
    await asyncio.sleep(0.05)
    assert not contending.done()
    await world.zk.delete(zk_paths.CONTROLLER)
    contender = await contending
    assert contender.runtime.is_active
