"""The controller reacts to failed log directories of brokers that go on without them (KIP-112)."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from broker_impl.controller.context import BrokerInfo, Context, Leadership
from broker_impl.controller.requests import Outbox
from broker_impl.errors import ErrorCode
from broker_impl.node import directory_notices, zk_paths
from broker_impl.node.controller.events import RolesAnswered
from broker_impl.node.controller.log_dirs import LogDirs
from broker_impl.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from broker_impl.wire.messages.leader_and_isr_request import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from broker_impl.wire.messages.leader_and_isr_response import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from broker_impl.wire.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
async def three(world: Any) -> Any:
    """Three brokers, the controller among them, and a topic whose first leader is broker 1."""
    await world.come(1, 2, 3)
    world.controller = await world.contend(3)
    world.peers = world.controller.peers
    await world.topic("t", [1, 2, 3], [2, 1])
    await world.led(T0, 1, 1, 2, 3)
    await world.led(T1, 2, 2, 1)
    await world.until(lambda: all(world.peers.roles(number, T0) for number in (1, 2, 3)))
    return world


async def announce(world: Any, broker: int) -> None:
    """Announce a failed directory, and wait until the controller has read that."""
    await directory_notices.announce(world.zk, broker)
    for name in await world.zk.children(zk_paths.LOG_DIR_EVENTS):
        await world.gone(f"{zk_paths.LOG_DIR_EVENTS}/{name}")


async def fail(world: Any, broker: int, *partitions: TopicPartition) -> None:
    """A directory of the broker fails, with these replicas."""
    world.peers.failed[broker] = [*partitions]
    await announce(world, broker)


def offline(world: Any, broker: int, tp: TopicPartition) -> list[list[int]]:
    """The offline replicas of the partition that the broker has received, oldest first."""
    return [row.offline_replicas for row in world.peers.metadata(broker, tp)]


async def test_the_leaders_directory_fails(three: Any) -> None:
    """Another in-sync replica leads in the next epoch, and all brokers know what is offline.

    The partition whose replica is in another directory of the broker keeps its leader and ISR.
    """
    await fail(three, 1, T0)
    assert await three.led(T0, 2, 2, 3) == 1
    await three.until(lambda: three.peers.roles(3, T0)[-1].leader_epoch == 1)
    await three.until(lambda: three.peers.metadata(1, T0)[-1].offline_replicas == [1])
    assert three.peers.metadata(1, T0)[-1].leader == 2
    state = await three.state(T1)
    assert (state.leader, state.leader_epoch, state.isr) == (2, 0, [2, 1])
    assert three.peers.metadata(1, T1)[-1].offline_replicas == []


async def test_a_followers_directory_fails(three: Any) -> None:
    """The follower leaves the ISR, and the leader knows it."""
    await fail(three, 2, T0)
    assert await three.led(T0, 1, 1, 3) == 1
    await three.until(lambda: three.peers.roles(1, T0)[-1].isr == [1, 3])
    await three.until(lambda: three.peers.metadata(3, T0)[-1].offline_replicas == [2])


async def test_the_only_replica_goes_and_comes_back(three: Any) -> None:
    """Without a live replica there is no leader; the ISR stays, and can lead after a restart."""
    alone = TopicPartition("alone", 0)
    await three.topic("alone", [1])
    await three.led(alone, 1, 1)
    await fail(three, 1, alone)
    assert await three.led(alone, -1, 1) == 1
    three.peers.failed.clear()
    await three.go(1)
    await three.come(1)
    assert await three.led(alone, 1, 1) == 2
    await three.until(lambda: three.peers.metadata(2, alone)[-1].leader == 1)
    assert three.peers.metadata(2, alone)[-1].offline_replicas == []


async def test_a_broker_registers_again_with_the_same_failure(three: Any) -> None:
    """The controller learns from a broker's answers what a new registration has lost too."""
    await fail(three, 1, T0)
    await three.led(T0, 2, 2, 3)
    zk = three.sessions[1]
    data, _ = await zk.get(zk_paths.broker(1))
    await zk.delete(zk_paths.broker(1))
    await zk.create(zk_paths.broker(1), data, ephemeral=True)
    epoch = await three.epoch(1)
    await three.until(lambda: three.peers.told[1][-1].broker_epoch == epoch)
    await three.until(lambda: offline(three, 2, T0)[-2:] == [[], [1]])
    state = await three.state(T0)
    assert (state.leader, state.isr) == (2, [2, 3])


async def test_a_notice_without_offline_replicas(three: Any) -> None:
    """A notice changes nothing if all replicas answer that they are online."""
    counts = [len(three.peers.roles(number, T0)) for number in (1, 2, 3)]
    await announce(three, 1)
    await three.until(lambda: len(three.peers.roles(1, T0)) > counts[0])
    await asyncio.sleep(0.05)
    assert [len(three.peers.roles(number, T0)) for number in (2, 3)] == counts[1:]
    assert len(three.peers.metadata(2, T0)) == 1
    state = await three.state(T0)
    assert (state.leader, state.leader_epoch, state.isr) == (1, 0, [1, 2, 3])


async def test_odd_notices_are_deleted(three: Any) -> None:
    """Notices that cannot be read, or name an unknown broker, are deleted."""
    unknown = zk_paths.encode(zk_paths.LogDirEventZnode(broker=9))
    for data in (b"?", unknown):
        path = await three.zk.create(zk_paths.LOG_DIR_EVENT_PREFIX, data, sequential=True)
        await three.gone(path)
    assert len(three.peers.roles(1, T0)) == 1


async def test_a_known_failure_causes_no_orders(three: Any) -> None:
    """A second notice asks the broker once more; its answer, which is known, changes nothing."""
    await fail(three, 1, T0)
    await three.led(T0, 2, 2, 3)
    await three.until(lambda: three.peers.metadata(3, T0)[-1].offline_replicas == [1])
    asked = len(three.peers.roles(1, T0))
    await announce(three, 1)
    await three.until(lambda: len(three.peers.roles(1, T0)) == asked + 1)
    counts = {number: len(three.peers.told[number]) for number in (1, 2, 3)}
    await asyncio.sleep(0.05)
    assert {number: len(three.peers.told[number]) for number in (1, 2, 3)} == counts
    assert (await three.state(T0)).leader_epoch == 1


async def test_a_replica_is_online_again(three: Any) -> None:
    """A replica that a broker accepts again can lead, without a restart of the broker."""
    alone = TopicPartition("alone", 0)
    await three.topic("alone", [1])
    await three.led(alone, 1, 1)
    await fail(three, 1, alone)
    await three.led(alone, -1, 1)
    await three.until(lambda: three.peers.metadata(2, alone)[-1].offline_replicas == [1])
    three.peers.failed.clear()
    await announce(three, 1)
    assert await three.led(alone, 1, 1) == 2
    await three.until(lambda: three.peers.metadata(2, alone)[-1].offline_replicas == [])


async def test_the_next_controller_learns_it(three: Any) -> None:
    """A new controller sends all roles, so it learns of a failure that a former one has handled."""
    await fail(three, 2, T1)
    await three.led(T1, 1, 1)
    three.contenders.remove(three.controller)
    await three.controller.stop()
    contender = await three.contend(1, failed={2: [T1]})
    await three.until(
        lambda: (
            contender.peers.metadata(1, T1)
            and contender.peers.metadata(1, T1)[-1].offline_replicas == [2]
        )
    )
    assert (await three.state(T1)).leader == 1


async def test_an_offline_replica_is_not_elected(three: Any) -> None:
    """An operator cannot make an offline replica the leader, and a new epoch does not reach it."""
    await fail(three, 1, T0)
    await three.led(T0, 2, 2, 3)
    state = await three.state(T0)
    state.isr = [1, 2, 3]  # as if the leader had let it in
    await three.zk.set(zk_paths.state(T0), zk_paths.encode(state))
    answer = await three.controller.runtime.elect_leaders(
        ElectLeadersRequest(0, [TopicPartitions("t", [0])], timeout_ms=5000)
    )
    [row] = answer.replica_election_results[0].partition_result
    assert row.error_code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    asked = len(three.peers.roles(1, T0))
    await three.go(2)
    await three.led(T0, 3, 3)
    assert len(three.peers.roles(1, T0)) == asked


async def test_an_unclean_election(three: Any) -> None:
    """An offline replica does not lead by an unclean election either; one on a live disk does."""
    unclean = TopicPartition("unclean", 0)
    await three.topic("unclean", [1, 2], unclean_leader_election_enable="true")
    await three.led(unclean, 1, 1, 2)
    await three.go(2)
    await three.led(unclean, 1, 1)
    await three.come(2)
    await fail(three, 1, unclean)
    await three.led(unclean, 2, 2)
    await three.go(2)
    await three.led(unclean, -1, 2)


async def test_a_removed_replica_is_forgotten(three: Any) -> None:
    """A replica that was moved away from a failed directory starts again when it is moved back."""
    await fail(three, 1, T0)
    await three.led(T0, 2, 2, 3)
    await three.until(lambda: offline(three, 3, T0)[-1] == [1])
    three.peers.failed.clear()
    for replicas in ([2, 3], [2, 3, 1]):
        rows = [ReassignablePartition(0, replicas)]
        answer = await three.controller.runtime.alter_reassignments(
            AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", rows)])
        )
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        await three.until(lambda: offline(three, 3, T0)[-1] == [])
        await three.led(T0, 2, 2, 3)
    await three.until(lambda: three.peers.roles(1, T0)[-1].replicas == [2, 3, 1])


# Answers, one at a time.


class Recorder:
    """Leaders that record which partitions they should reconsider."""

    def __init__(self) -> None:
        self.reconsidered: list[TopicPartition] = []

    async def reconsider(self, partitions: list[TopicPartition]) -> None:
        self.reconsidered += partitions


class Answers:
    """Broker 1 with the epoch 11, and what its answers lead to."""

    def __init__(self) -> None:
        self.context = context = Context(controller_epoch=7)
        context.brokers = {1: BrokerInfo(1, 11, ()), 2: BrokerInfo(2, 12, ())}
        context.topics = {"t": {0: (1, 2), 1: (2,)}}
        context.topic_ids = {"t": UUID(int=7)}
        context.leadership = {T0: Leadership(1, 5, (1, 2), 6), T1: Leadership(2, 5, (2,), 6)}
        self.leaders = Recorder()
        self.events: list[Any] = []
        leaders: Any = self.leaders
        none: Any = None
        self.log_dirs = LogDirs(
            context, none, Outbox(), leaders, put=self.events.append, watch=none
        )

    def answer(self, code: ErrorCode, *, number: int = 0, broker_epoch: int = 11) -> RolesAnswered:
        """Broker 1's answer about one partition."""
        rows = [LeaderAndIsrPartitionState(partition_index=number)]
        topics = [
            LeaderAndIsrTopicState(topic_name="t", topic_id=UUID(int=7), partition_states=rows)
        ]
        errors = [LeaderAndIsrPartitionError(partition_index=number, error_code=code)]
        return RolesAnswered(
            1,
            LeaderAndIsrRequest(broker_epoch=broker_epoch, topic_states=topics),
            LeaderAndIsrResponse(topics=[LeaderAndIsrTopicError(UUID(int=7), errors)]),
        )

    async def hear(self, answer: RolesAnswered) -> list[TopicPartition]:
        """Handle an answer; return the partitions that are reconsidered."""
        self.leaders.reconsidered.clear()
        await self.log_dirs.roles_answered(answer)
        self.context.check()
        return [*self.leaders.reconsidered]


async def test_each_change_is_handled_once() -> None:
    """A replica is reconsidered when it goes offline and when it is back, and not in between."""
    answers = Answers()
    failed, fine = answers.answer(ErrorCode.KAFKA_STORAGE_ERROR), answers.answer(ErrorCode.NONE)
    assert await answers.hear(fine) == []
    assert await answers.hear(failed) == [T0]
    assert answers.context.offline == {1: {T0: None}}
    assert await answers.hear(failed) == []
    assert await answers.hear(fine) == [T0]
    assert answers.context.offline == {}


@pytest.mark.parametrize("broker_epoch", [10, 12])
async def test_an_answer_of_another_registration_is_ignored(broker_epoch: int) -> None:
    """Only an answer to a request with the current broker epoch counts."""
    answers = Answers()
    late = answers.answer(ErrorCode.KAFKA_STORAGE_ERROR, broker_epoch=broker_epoch)
    assert await answers.hear(late) == []
    assert answers.context.offline == {}


async def test_an_answer_of_a_broker_that_is_gone_is_ignored() -> None:
    """A broker that is not registered has no offline replicas."""
    answers = Answers()
    del answers.context.brokers[1]
    assert await answers.hear(answers.answer(ErrorCode.KAFKA_STORAGE_ERROR)) == []
    assert answers.context.offline == {}


@pytest.mark.parametrize("number", [1, 9])
async def test_an_answer_about_no_replica_is_ignored(number: int) -> None:
    """A broker may answer after its replica was moved away, or the topic was deleted."""
    answers = Answers()
    late = answers.answer(ErrorCode.KAFKA_STORAGE_ERROR, number=number)
    assert await answers.hear(late) == []
    assert answers.context.offline == {}


def test_only_news_are_events() -> None:
    """Answers without an error are events only after the broker has reported an offline replica."""
    answers = Answers()
    fine, failed = answers.answer(ErrorCode.NONE), answers.answer(ErrorCode.KAFKA_STORAGE_ERROR)
    for each in (fine, failed, fine):
        answers.log_dirs.heard(each.broker, each.request, each.response)
    assert [event.response for event in answers.events] == [failed.response, fine.response]


def test_what_is_forgotten_is_returned() -> None:
    """A broker that is gone has no offline replicas; the metadata of these partitions changes."""
    answers = Answers()
    answers.context.set_offline(1, [T0])
    assert answers.log_dirs.forget([1, 2]) == [T0]
    assert answers.context.offline == {}
