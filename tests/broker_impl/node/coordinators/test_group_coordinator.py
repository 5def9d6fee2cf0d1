"""Group requests to brokers in this process, by version and by sender."""

import asyncio
from typing import Any

import pytest

from broker_impl.coordinator import partitioner
from broker_impl.errors import ErrorCode as E
from broker_impl.node.peers import PeerError
from broker_impl.wire.batch import Record, encode_batch
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.describe_groups_request import DescribeGroupsRequest
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.heartbeat_request import HeartbeatRequest
from broker_impl.wire.messages.join_group_request import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from broker_impl.wire.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from broker_impl.wire.messages.list_groups_request import ListGroupsRequest
from broker_impl.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker_impl.wire.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from broker_impl.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.messages.sync_group_request import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.broker_impl.conftest import ClusterInLoop

pytestmark = pytest.mark.slow

GROUP, TOPIC = "g", "t"
PARTITIONS = 3
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


class Client:
    """A client that sends its requests to the coordinator of the group."""

    def __init__(self, cluster: ClusterInLoop) -> None:
        self.cluster = cluster

    async def coordinator(self, key: str = GROUP) -> int:
        """Return the coordinator as any broker reports it, once there is one."""
        number = next(n for n, running in self.cluster.brokers.items() if running.broker)
        async with asyncio.timeout(20):
            while True:
                request = FindCoordinatorRequest(key=key)
                answer = await self.cluster.ask(number, request, 3)
                if not answer.error_code:
                    return int(answer.node_id)
                await asyncio.sleep(0.05)

    async def ask(self, request: Any, version: int) -> Any:
        """Send a request, and repeat it while the coordinator moves or loads."""
        async with asyncio.timeout(20):
            while True:
                answer = await self.cluster.ask(await self.coordinator(), request, version)
                error = getattr(answer, "error_code", 0)
                if error not in (E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS):
                    return answer
                await asyncio.sleep(0.05)

    async def join(self, member_id: str = "", version: int = 3, **fields: Any) -> Any:
        given: dict[str, Any] = {
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol("range", SUBSCRIPTION)],
        }
        return await self.ask(JoinGroupRequest(member_id=member_id, **(given | fields)), version)

    async def alone(self) -> str:
        """Bring a group of one member to Stable, and return that member."""
        joined = await self.join()
        assert joined.error_code == 0
        member = str(joined.member_id)
        synced = await self.ask(
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=joined.generation_id,
                member_id=member,
                assignments=[SyncGroupRequestAssignment(member, b"all")],
            ),
            3,
        )
        assert (synced.error_code, bytes(synced.assignment)) == (0, b"all")
        return member

    async def commit(self, offset: int, topic: str = TOPIC, **fields: Any) -> int:
        row = OffsetCommitRequestPartition(0, offset, 3, committed_metadata=f"at {offset}")
        if "metadata" in fields:
            row.committed_metadata = fields.pop("metadata")
        topics = [OffsetCommitRequestTopic(topic, [row])]
        async with asyncio.timeout(20):
            while True:
                request = OffsetCommitRequest(group_id=GROUP, topics=topics, **fields)
                answer = await self.ask(request, 7)
                error = int(answer.topics[0].partitions[0].error_code)
                if error not in (E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS):
                    return error
                await asyncio.sleep(0.05)

    async def committed(self, version: int = 7) -> tuple[int, int, str]:
        topics = [OffsetFetchRequestTopic(TOPIC, [0])]
        answer = await self.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), version)
        assert answer.error_code == 0
        row = answer.topics[0].partitions[0]
        return int(row.committed_offset), int(row.committed_leader_epoch), str(row.metadata)

    async def state(self) -> str:
        answer = await self.cluster.ask(
            await self.coordinator(), DescribeGroupsRequest(groups=[GROUP]), 5
        )
        return str(answer.groups[0].group_state)


@pytest.fixture
async def client(cluster: ClusterInLoop) -> Client:
    """A client of two brokers, with a topic and without rebalance delays."""
    settings = {
        "default_replication_factor": "2",
        "offsets_topic_num_partitions": str(PARTITIONS),
        "offset_metadata_max_bytes": "20",
        "group_initial_rebalance_delay_ms": "0",
        "controlled_shutdown_max_retries": "3",
    }
    await asyncio.gather(*(cluster.add(number, **settings) for number in (1, 2)))
    await cluster.ready()
    brokers = [running.broker for running in cluster.brokers.values()]
    assert brokers[0] is not None
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=2)], timeout_ms=5000
    )
    answer = await cluster.ask(brokers[0].view.controller_id, request, 5)
    assert answer.topics[0].error_code == 0
    await cluster.until(lambda: all(TOPIC in each.view.topics for each in brokers if each))
    return Client(cluster)


async def test_the_internal_topic(client: Client) -> None:
    """__consumer_offsets is created on first use, compacted, with the configured partitions.

    It has a replica on each of the two brokers.
    """
    coordinator = await client.coordinator()
    broker = client.cluster.brokers[1].broker
    assert broker is not None
    partitions = broker.view.topics["__consumer_offsets"]
    assert sorted(partitions) == list(range(PARTITIONS))
    assert all(len(each.replicas) == 2 for each in partitions.values())
    assert partitions[partitioner.partition_of(GROUP, PARTITIONS)].leader == coordinator
    settings = await broker.topic_settings("__consumer_offsets")
    assert settings["cleanup.policy"] == "compact"


async def test_nobody_else_writes_there(client: Client) -> None:
    """Clients may not produce to an internal topic: the coordinator would trust their records."""
    leader = await client.coordinator()
    home = partitioner.partition_of(GROUP, PARTITIONS)
    row = PartitionProduceData(home, encode_batch([Record(b"k", b"v")]))
    request = ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[TopicProduceData("__consumer_offsets", [row])]
    )
    answer = await client.cluster.ask(leader, request, 9)
    assert answer.responses[0].partition_responses[0].error_code == E.INVALID_TOPIC_EXCEPTION


async def test_who_does_not_coordinate_says_so(client: Client) -> None:
    """A broker that is not the coordinator says NOT_COORDINATOR, never that there is no offset."""
    other = 3 - await client.coordinator()
    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")
    assert (await client.cluster.ask(other, beat, 3)).error_code == E.NOT_COORDINATOR
    topics = [OffsetFetchRequestTopic(TOPIC, [0])]
    fetch = OffsetFetchRequest(group_id=GROUP, topics=topics)
    assert (await client.cluster.ask(other, fetch, 5)).error_code == E.NOT_COORDINATOR
    row = (await client.cluster.ask(other, fetch, 1)).topics[0].partitions[0]
    assert (row.error_code, row.committed_offset) == (E.NOT_COORDINATOR, -1)
    groups = [OffsetFetchRequestGroup(GROUP, [OffsetFetchRequestTopics(TOPIC, [0])])]
    batched = await client.cluster.ask(other, OffsetFetchRequest(groups=groups), 8)
    assert batched.groups[0].error_code == E.NOT_COORDINATOR
    described = await client.cluster.ask(other, DescribeGroupsRequest(groups=[GROUP]), 5)
    assert described.groups[0].error_code == E.NOT_COORDINATOR


async def test_offsets_come_back_as_they_were_committed(client: Client) -> None:
    """OffsetFetch returns offset, leader epoch and metadata, or -1 where a version has none."""
    assert await client.committed() == (-1, -1, "")
    assert await client.commit(5) == E.NONE
    assert await client.committed() == (5, 3, "at 5")
    assert await client.committed(2) == (5, -1, "at 5")
    everything = await client.ask(OffsetFetchRequest(group_id=GROUP, topics=None), 7)
    assert [topic.name for topic in everything.topics] == [TOPIC]
    groups = [OffsetFetchRequestGroup(GROUP, None), OffsetFetchRequestGroup(GROUP, [])]
    both = await client.ask(OffsetFetchRequest(groups=groups), 8)
    assert [len(group.topics) for group in both.groups] == [1, 0]
    assert both.groups[0].topics[0].partitions[0].committed_offset == 5


async def test_the_oldest_commits_are_served(client: Client) -> None:
    """OffsetCommit v1 states the time of a commit for each partition, and no leader epoch."""
    assert await client.commit(5) == E.NONE
    row = OffsetCommitRequestPartition(0, 7, commit_timestamp=1_000, committed_metadata="old")
    request = OffsetCommitRequest(group_id=GROUP, topics=[OffsetCommitRequestTopic(TOPIC, [row])])
    answer = await client.ask(request, 1)
    assert answer.topics[0].partitions[0].error_code == E.NONE
    assert await client.committed() == (7, -1, "old")


async def test_commits_that_are_refused(client: Client) -> None:
    """Each invalid OffsetCommit is refused with its own error."""
    assert await client.commit(5, member_id="m", generation_id=4) == E.ILLEGAL_GENERATION
    assert await client.commit(5, "nowhere") == E.UNKNOWN_TOPIC_OR_PARTITION
    assert await client.commit(5, metadata="x" * 21) == E.OFFSET_METADATA_TOO_LARGE
    member = await client.alone()
    assert await client.commit(5) == E.UNKNOWN_MEMBER_ID
    assert await client.commit(5, member_id=member, generation_id=9) == E.ILLEGAL_GENERATION
    assert await client.commit(5, member_id=member, generation_id=1) == E.NONE


async def test_newcomers_of_v4_are_given_an_id(client: Client) -> None:
    """From JoinGroup v4 on, a new member gets an id that begins with its client id (KIP-394)."""
    asked = await client.join(version=5)
    assert asked.error_code == E.MEMBER_ID_REQUIRED
    assert asked.member_id.startswith("test-")
    joined = await client.join(asked.member_id, version=9)
    assert (joined.error_code, joined.protocol_type, joined.protocol_name) == (
        *(E.NONE, "consumer", "range"),
    )
    assert [row.member_id for row in joined.members] == [asked.member_id]


async def test_the_view_of_an_operator(client: Client) -> None:
    """An operator can list, describe and delete a group, and remove a member by instance id.

    The state is checked at each step.
    """
    assert await client.state() == "Dead"
    joined = await client.join(group_instance_id="i", version=5)
    assert joined.member_id.startswith("i-")
    assert await client.state() == "CompletingRebalance"
    coordinator = await client.coordinator()
    for states, expected in ((["stable"], []), (["COMPLETINGrebalance"], [GROUP]), ([], [GROUP])):
        listed = await client.cluster.ask(coordinator, ListGroupsRequest(states), 4)
        assert [group.group_id for group in listed.groups] == expected
    assert (await client.ask(DeleteGroupsRequest([GROUP]), 2)).results[0].error_code == (
        E.NON_EMPTY_GROUP
    )
    described = await client.cluster.ask(coordinator, DescribeGroupsRequest([GROUP]), 5)
    (member,) = described.groups[0].members
    assert (member.group_instance_id, member.client_id, member.client_host) == (
        *("i", "test", "/127.0.0.1"),
    )
    assert described.groups[0].authorized_operations == -(2**31), "not requested (KIP-430)"
    request = DescribeGroupsRequest([GROUP], include_authorized_operations=True)
    described = await client.cluster.ask(coordinator, request, 5)
    assert described.groups[0].authorized_operations == 1 << 3 | 1 << 6 | 1 << 8
    leave = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity("", "i")])
    left = await client.ask(leave, 4)
    assert [row.error_code for row in left.members] == [E.NONE]
    assert await client.state() == "Empty"
    gone = await client.ask(DeleteGroupsRequest([GROUP, "nobody"]), 2)
    assert gone.results[0].error_code == E.NONE
    assert await client.state() == "Dead"


async def test_offsets_are_deleted(client: Client) -> None:
    """Offsets are deleted by OffsetDelete, for topics without subscribers, and with their topic."""
    await client.commit(5)
    rows = [OffsetDeleteRequestTopic(TOPIC, [OffsetDeleteRequestPartition(0)])]
    member = await client.alone()
    request = OffsetDeleteRequest(group_id=GROUP, topics=rows)
    refused = await client.ask(request, 0)
    assert refused.topics[0].partitions[0].error_code == E.GROUP_SUBSCRIBED_TO_TOPIC
    await client.ask(LeaveGroupRequest(group_id=GROUP, member_id=member), 1)
    done = await client.ask(request, 0)
    assert done.topics[0].partitions[0].error_code == E.NONE
    assert await client.committed() == (-1, -1, "")
    await client.commit(6)
    broker = client.cluster.brokers[1].broker
    assert broker is not None
    delete = DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=5000)
    await client.cluster.ask(broker.view.controller_id, delete, 5)
    async with asyncio.timeout(10):
        while (await client.committed())[0] >= 0:  # noqa: ASYNC110 - it is asked over the wire
            await asyncio.sleep(0.05)


async def test_the_next_coordinator_goes_on(client: Client) -> None:
    """The next coordinator keeps members and offsets; parked requests get NOT_COORDINATOR."""
    member = await client.alone()
    assert await client.commit(5, member_id=member, generation_id=1) == E.NONE
    former = await client.coordinator()
    joining = asyncio.create_task(
        client.cluster.ask(
            former,
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol("range", SUBSCRIPTION)],
            ),
            3,
        )
    )
    await client.cluster.until(lambda: _state_on(client, former) == "PreparingRebalance")
    await client.cluster.brokers[former].stop()
    try:
        assert (await joining).error_code == E.NOT_COORDINATOR
    except PeerError:
        assert joining.done(), "its broker was gone before the answer was"
    await client.cluster.until(lambda: _leads(client, 3 - former))
    assert await client.coordinator() == 3 - former
    assert await client.committed() == (5, 3, "at 5")
    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member)
    assert (await client.ask(beat, 3)).error_code == E.NONE
    assert await client.commit(6, member_id=member, generation_id=1) == E.NONE


def _state_on(client: Client, number: int) -> str:
    broker = client.cluster.brokers[number].broker
    group = None if broker is None else broker.groups.find(GROUP)
    return "" if group is None or isinstance(group, E) else group.state.value


def _leads(client: Client, number: int) -> bool:
    broker = client.cluster.brokers[number].broker
    home = partitioner.partition_of(GROUP, PARTITIONS)
    return broker is not None and (
        broker.view.topics["__consumer_offsets"][home].leader == number
        and not isinstance(broker.groups.find(GROUP), E)
    )


async def test_a_silent_member_goes(client: Client) -> None:
    """A member without requests is removed by the broker's clock."""
    for running in client.cluster.brokers.values():
        await running.stop()
        running.settings["group.min.session.timeout.ms"] = "100"
    await asyncio.gather(*(running.start() for running in client.cluster.brokers.values()))
    await client.cluster.ready()
    await client.join(session_timeout_ms=200, rebalance_timeout_ms=500)
    coordinator = await client.coordinator()
    await client.cluster.until(lambda: _state_on(client, coordinator) == "Empty", 5)


async def test_a_changed_number_of_partitions_moves_no_group(client: Client) -> None:
    """A group stays in its partition: the number that counts is that of the topic."""
    assert await client.commit(5) == E.NONE
    changed = PARTITIONS + 1
    homes = {partitioner.partition_of(GROUP, count) for count in (PARTITIONS, changed)}
    assert len(homes) == 2, "the group would belong elsewhere"
    for running in client.cluster.brokers.values():
        await running.stop()
        running.settings["offsets.topic.num.partitions"] = str(changed)
    await asyncio.gather(*(running.start() for running in client.cluster.brokers.values()))
    await client.cluster.ready()
    assert await client.committed() == (5, 3, "at 5")
