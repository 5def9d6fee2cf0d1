"""The controller changes leaders and ISRs as brokers come, die and shut down."""

import asyncio
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.replica import fencing
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
async def three(world: Any) -> Any:
    """Three brokers, the controller among them, and a topic with a replica on each."""
    await world.come(1, 2, 3)
    world.controller = await world.contend(3)
    world.peers = world.controller.peers
    await world.topic("t", [1, 2, 3])
    await world.led(T0, 1, 1, 2, 3)
    await world.until(lambda: all(world.peers.roles(number, T0) for number in (1, 2, 3)))
    return world


async def shrink(world: Any, *isr: int) -> None:
    """The leader writes a smaller ISR, without a notice to the controller."""
    state = await world.state(T0)
    state.isr = list(isr)
    await world.zk.set(zk_paths.state(T0), zk_paths.encode(state))


async def test_a_new_partition(three: Any) -> None:
    """A new partition starts in epoch 0, with all live replicas in sync, and is sent as new."""
    state = await three.state(T0)
    assert (state.leader, state.leader_epoch, state.controller_epoch) == (1, 0, 1)
    [role] = three.peers.roles(2, T0)
    assert (role.leader, role.isr, role.is_new) == (1, [1, 2, 3], True)
    await three.until(lambda: bool(three.peers.metadata(2, T0)))


async def test_the_leader_dies(three: Any) -> None:
    """When the leader dies, the next in-sync replica leads in the next epoch, and all brokers know.

    The ISR loses the dead leader.
    """
    await three.go(1)
    assert await three.led(T0, 2, 2, 3) == 1
    await three.until(lambda: len(three.peers.roles(3, T0)) == 2)
    role = three.peers.roles(3, T0)[-1]
    assert (role.leader, role.leader_epoch, role.isr, role.is_new) == (2, 1, [2, 3], False)
    assert role.partition_epoch == 1
    await three.until(lambda: len(three.peers.metadata(3, T0)) == 2)
    assert three.peers.metadata(3, T0)[-1].offline_replicas == [1]
    assert len(three.peers.roles(1, T0)) == 1


async def test_a_follower_dies(three: Any) -> None:
    """When a follower dies, the leader stays, in a new epoch, and the ISR loses the follower."""
    await three.go(2)
    assert await three.led(T0, 1, 1, 3) == 1


async def test_a_broker_comes_back(three: Any) -> None:
    """A broker that comes back receives all its roles, and does not rejoin the ISR by that."""
    await three.go(2)
    await three.led(T0, 1, 1, 3)
    before = len(three.peers.told[2])
    await three.come(2)
    await three.until(lambda: len(three.peers.roles(2, T0)) == 2)
    assert three.peers.roles(2, T0)[-1].leader_epoch == 1
    assert three.peers.told[2][before].broker_epoch == await three.epoch(2)
    assert (await three.state(T0)).isr == [1, 3]
    await three.until(lambda: len(three.peers.told[2]) >= before + 3)
    assert three.peers.metadata(2, T0)[-1].isr == [1, 3]


async def test_a_bounce_between_two_looks(three: Any) -> None:
    """A broker that re-registers before the controller looks still leaves the ISR (KIP-380)."""
    zk = three.sessions[1]
    data, _ = await zk.get(zk_paths.broker(1))
    await zk.delete(zk_paths.broker(1))
    await zk.create(zk_paths.broker(1), data, ephemeral=True)
    epoch = await three.led(T0, 2, 2, 3)
    await three.until(lambda: len(three.peers.roles(1, T0)) > 1)
    assert three.peers.roles(1, T0)[-1].leader_epoch == epoch
    assert three.peers.told[1][-1].broker_epoch == await three.epoch(1)


async def test_everybody_dies(three: Any) -> None:
    """When the whole ISR is dead, it is kept, and its first member to come back leads."""
    await three.go(1, 2)
    await three.led(T0, 3, 3)
    await three.go(3)
    await three.led(T0, -1, 3)
    await three.come(1)
    await three.until(lambda: len(three.peers.roles(1, T0)) > 1)
    assert (await three.state(T0)).leader == -1  # broker 1 is not in sync
    await three.come(3)
    await three.led(T0, 3, 3)


async def test_an_unclean_election(world: Any) -> None:
    """An unclean election happens only where the topic's settings allow it (rule R15)."""
    await world.come(1, 2)
    await world.contend(9)
    await world.topic("safe", [1, 2])
    await world.topic("t", [1, 2], unclean_leader_election_enable="true")
    await world.topic("odd", [1, 2], no_such_setting="true")
    tps = [TopicPartition(name, 0) for name in ("safe", "odd", "t")]
    for tp in tps:
        await world.led(tp, 1, 1, 2)
    await world.go(2)
    for tp in tps:
        await world.led(tp, 1, 1)
    await world.come(2)
    await world.go(1)
    assert await world.led(tps[2], 2, 2) == 2
    for tp in tps[:2]:
        await world.led(tp, -1, 1)


async def test_the_decision_is_made_on_what_stands_there(three: Any) -> None:
    """The controller's write names a version; if the leader wrote first, it chooses again."""
    await shrink(three, 1, 3)
    await three.go(1)
    # From the state that the controller had last seen it would have chosen broker 2.
    assert await three.led(T0, 3, 3) == 1


async def test_a_state_that_is_gone(three: Any) -> None:
    """A partition whose znodes were removed by hand is skipped, and the others are not."""
    await three.topic("u", [1, 2])
    u0 = TopicPartition("u", 0)
    await three.led(u0, 1, 1, 2)
    await three.zk.delete(zk_paths.state(T0))
    await three.go(1)
    await three.led(u0, 2, 2)
    assert three.controller.runtime.controller_epoch == 1


async def test_a_state_that_cannot_be_read(three: Any) -> None:
    """An unreadable partition state ends neither the term nor the broker."""
    await three.zk.set(zk_paths.state(T0), b"?")
    await three.go(1)
    await three.topic("u", [2])
    await three.led(TopicPartition("u", 0), 2, 2)
    assert three.controller.runtime.controller_epoch == 1


async def test_isr_changes_are_passed_on(three: Any) -> None:
    """On an ISR notice the controller reads the state, updates all brokers, deletes the notice."""
    await shrink(three, 1)
    row = zk_paths.PartitionName(topic="t", partition=0)
    unknown = zk_paths.PartitionName(topic="nowhere", partition=7)
    notice = zk_paths.encode(zk_paths.IsrChangeZnode(partitions=[row, unknown]))
    paths = [
        await three.zk.create(zk_paths.ISR_CHANGE_PREFIX, data, sequential=True)
        for data in (notice, b"?")
    ]
    for path in paths:
        await three.gone(path)
    await three.until(lambda: three.peers.metadata(2, T0)[-1].isr == [1])
    assert len(three.peers.roles(2, T0)) == 1


async def test_an_isr_of_a_former_topic(three: Any) -> None:
    """A state by a broker without a replica, which led a deleted topic, is replaced by an election.

    The new epoch is higher than those of both topics, so that all brokers accept it.
    """
    await three.come(4)
    before = await three.state(T0)
    before.leader, before.leader_epoch, before.isr = 4, 5, [4]
    await three.zk.set(zk_paths.state(T0), zk_paths.encode(before), 0)
    row = zk_paths.PartitionName(topic="t", partition=0)
    notice = zk_paths.encode(zk_paths.IsrChangeZnode(partitions=[row]))
    await three.zk.create(zk_paths.ISR_CHANGE_PREFIX, notice, sequential=True)
    assert await three.led(T0, 1, 1, 2, 3) == 6
    await three.until(lambda: three.peers.metadata(2, T0)[-1].leader_epoch == 6)
    assert [role.leader_epoch for role in three.peers.roles(2, T0)] == [0, 6]
    assert three.peers.metadata(2, T0)[-1].leader == 1


async def test_a_controlled_shutdown(three: Any) -> None:
    """A controlled shutdown moves leaders and shrinks ISRs, and the broker gets StopReplica.

    StopReplica has the epoch that excluded the broker.
    """
    await three.topic("alone", [1])
    await three.led(TopicPartition("alone", 0), 1, 1)
    answer = await three.controller.runtime.controlled_shutdown(
        ControlledShutdownRequest(broker_id=1, broker_epoch=await three.epoch(1))
    )
    assert (answer.error_code, answer.remaining_partitions) == (0, [])
    assert await three.led(T0, 2, 2, 3) == 1
    await three.until(lambda: bool(three.peers.stops(1, T0)))
    [stop] = three.peers.stops(1, T0)
    assert (stop.leader_epoch, stop.delete_partition) == (1, False)
    told = three.peers.roles(1, T0)[-1].leader_epoch
    assert fencing.stop(stop.leader_epoch, told, delete=False) is ErrorCode.NONE, "it obeys"
    await three.go(1)
    await three.led(TopicPartition("alone", 0), -1, 1)
    assert (await three.state(T0)).leader_epoch == 1


async def test_nobody_can_take_over(three: Any) -> None:
    """Partitions that only the stopping broker can lead are returned, and it still serves them."""
    await three.go(2, 3)
    await three.led(T0, 1, 1)
    answer = await three.controller.runtime.controlled_shutdown(
        ControlledShutdownRequest(broker_id=1)
    )
    [row] = answer.remaining_partitions
    assert (row.topic_name, row.partition_index) == ("t", 0)
    assert (await three.state(T0)).leader == 1
    assert three.peers.stops(1, T0) == []


async def test_who_may_not_be_let_go(three: Any) -> None:
    """A controlled shutdown is refused for an unknown broker and for an old broker epoch."""
    for broker, epoch, error in (
        (9, -1, ErrorCode.BROKER_NOT_AVAILABLE),
        (1, 0, ErrorCode.STALE_BROKER_EPOCH),
    ):
        answer = await three.controller.runtime.controlled_shutdown(
            ControlledShutdownRequest(broker_id=broker, broker_epoch=epoch)
        )
        assert answer.error_code == error
    assert (await three.state(T0)).leader == 1


async def test_preferred_leaders_are_restored(world: Any) -> None:
    """A broker that is back in sync gets its preferred leaderships back after a while."""
    await world.come(1, 2)
    await world.contend(
        9,
        auto_leader_rebalance_enable="true",
        leader_imbalance_check_interval_seconds="1",
    )
    await world.topic("t", [1, 2], [2, 1])
    await world.led(T0, 1, 1, 2)
    await world.go(1)
    await world.led(T0, 2, 2)
    await world.come(1)
    state = await world.state(T0)
    state.isr = [2, 1]
    await world.zk.set(zk_paths.state(T0), zk_paths.encode(state))
    assert await world.led(T0, 1, 2, 1) == 2
    assert (await world.state(T1)).leader == 2


async def test_orders_are_repeated_in_order(three: Any) -> None:
    """Requests that a registered broker does not answer are repeated, completely and in order."""
    three.peers.silent.add(2)
    before = len(three.peers.told[2])
    await three.go(1)
    await three.led(T0, 2, 2, 3)
    await three.topic("u", [3, 2])
    await three.led(TopicPartition("u", 0), 3, 3, 2)
    await asyncio.sleep(0.02)
    assert len(three.peers.told[2]) == before
    three.peers.silent.clear()
    await three.until(lambda: bool(three.peers.roles(2, TopicPartition("u", 0))))
    later = three.peers.told[2][before:]
    named = [topic.topic_name for order in later for topic in order.topic_states]
    assert named == ["t", "t", "u"] or named == ["t", "t", "u", "u"]


async def test_a_broker_that_cannot_be_read_is_left_out(three: Any) -> None:
    """An unreadable registration does not count as a broker, and does not stop the controller."""
    await three.zk.create(zk_paths.broker(7), b"?", ephemeral=True)
    await three.go(2)
    await three.led(T0, 1, 1, 3)
    assert 7 not in three.peers.told
