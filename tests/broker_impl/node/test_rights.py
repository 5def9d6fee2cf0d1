"""What a client with few rights learns from a broker with ACLs, request by request."""

import asyncio
from typing import Any

import pytest

from broker_impl.config import Login
from broker_impl.errors import ErrorCode
from broker_impl.node.peer_security import PeerSecurity
from broker_impl.node.peers import Peers
from broker_impl.wire import batch
from broker_impl.wire.messages import (
    add_partitions_to_txn_request,
    create_acls_request,
    delete_acls_request,
    end_txn_request,
    fetch_request,
    find_coordinator_request,
    init_producer_id_request,
    list_offsets_request,
    metadata_request,
    offset_commit_request,
    offset_fetch_request,
    produce_request,
)
from tests.broker_impl.conftest import ClusterInLoop
from tests.broker_impl.node.broker_calls import create

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECURED = {
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,REPLICATION:PLAINTEXT",
    "listener.name.client.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": f"{PLAIN} user_root=r user_alice=a;",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:root",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5
LITERAL, PREFIXED, MATCH = 3, 4, 2
READ, WRITE, DESCRIBE = 3, 4, 8
DENY, ALLOW = 2, 3
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TOPICS = ("mine", "mine-secret", "other")


class Secured:
    """One broker, on which alice needs ACLs and root does not."""

    def __init__(self, cluster: ClusterInLoop) -> None:
        self.peers: dict[str, Peers] = {}
        for user in ("alice", "root"):
            login = Login(user, user[0], {})
            peers = Peers("test", {}, PeerSecurity(None, "PLAIN", login, lambda: "nonce"))
            peers.update({1: ("127.0.0.1", cluster.brokers[1].port)})
            self.peers[user] = peers

    async def ask(self, user: str, message: Any, version: int) -> Any:
        return await self.peers[user].request(1, message, version, timeout_s=10)

    async def rule(
        self,
        kind: int,
        name: str,
        operation: int,
        pattern: int = LITERAL,
        permission: int = ALLOW,
    ) -> None:
        """Add an entry for alice."""
        row = create_acls_request.AclCreation(
            kind, name, pattern, "User:alice", "*", operation, permission
        )
        answer = await self.ask("root", create_acls_request.CreateAclsRequest([row]), 2)
        assert [each.error_code for each in answer.results] == [0]

    async def revoke(self, kind: int, name: str) -> None:
        """Remove all entries of a resource."""
        row = delete_acls_request.DeleteAclsFilter(kind, name, LITERAL, None, None, 1, 1)
        answer = await self.ask("root", delete_acls_request.DeleteAclsRequest([row]), 2)
        assert answer.filter_results[0].matching_acls

    async def produce(self, user: str, topic: str, **changed: Any) -> int:
        """Write one record that names its topic; return the partition's error."""
        records = batch.encode_batch([batch.Record(None, topic.encode(), 1)], **changed)
        request = produce_request.ProduceRequest(
            transactional_id="t" if changed else None,
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                produce_request.TopicProduceData(
                    topic, [produce_request.PartitionProduceData(0, records)]
                )
            ],
        )
        answer = await self.ask(user, request, 8)
        return int(answer.responses[0].partition_responses[0].error_code)

    async def fetch(self, *topics: str, replica_id: int = -1, wait_ms: int = 0) -> dict[str, Any]:
        """What alice reads from the beginning of topics: an error, or the values."""
        request = fetch_request.FetchRequest(
            replica_id=replica_id,
            max_wait_ms=wait_ms,
            min_bytes=1,
            session_epoch=-1,
            topics=[
                fetch_request.FetchTopic(
                    topic=topic,
                    partitions=[
                        fetch_request.FetchPartition(
                            partition=0, fetch_offset=0, partition_max_bytes=1_000_000
                        )
                    ],
                )
                for topic in topics
            ],
        )
        answer = await self.ask("alice", request, 11)
        rows = {row.topic: row.partitions[0] for row in answer.responses}
        assert not any(row.records for row in rows.values() if row.error_code)
        return {
            topic: row.error_code or [record.value for record in batch.records(row.records)]
            for topic, row in rows.items()
        }


@pytest.fixture
async def secured(cluster: ClusterInLoop) -> Secured:
    """A broker with three topics of one record each."""
    cluster.inactive = SECURED
    await cluster.add(1)
    await cluster.ready()
    both = Secured(cluster)
    cluster.ask = lambda _, message, version: both.ask("root", message, version)  # type: ignore[method-assign,assignment,misc]
    for topic in TOPICS:
        await create(cluster, topic, replicas=1)
        assert await both.produce("root", topic) == 0
    return both


async def test_a_fetch_returns_no_record_without_read(secured: Secured) -> None:
    """Of many topics in one Fetch, records come from those with READ only; DENY goes first."""
    assert await secured.fetch(*TOPICS) == dict.fromkeys(TOPICS, TOPIC_DENIED)
    await secured.rule(TOPIC, "mine", READ, PREFIXED)
    assert await secured.fetch(*TOPICS) == {
        "mine": [b"mine"],
        "mine-secret": [b"mine-secret"],
        "other": TOPIC_DENIED,
    }
    await secured.rule(TOPIC, "mine-secret", READ, permission=DENY)
    await secured.rule(TOPIC, "mine-secret", READ)
    expected = {"mine": [b"mine"], "mine-secret": TOPIC_DENIED, "other": TOPIC_DENIED}
    assert await secured.fetch(*TOPICS) == expected
    assert await secured.fetch(*reversed(TOPICS), wait_ms=300) == expected
    assert await secured.fetch("missing") == {"missing": TOPIC_DENIED}


@pytest.mark.parametrize("replica_id", [0, 1, -2, -3])
async def test_a_consumer_that_calls_itself_a_replica_is_refused(
    secured: Secured, replica_id: int
) -> None:
    """READ is not enough for a Fetch that would read to the end of the log."""
    await secured.rule(TOPIC, "mine", READ)
    assert await secured.fetch("mine", replica_id=replica_id) == {"mine": TOPIC_DENIED}
    assert await secured.fetch("mine") == {"mine": [b"mine"]}


async def test_lists_do_not_name_what_is_hidden(secured: Secured) -> None:
    """Metadata, ListOffsets, FindCoordinator and OffsetFetch answer for visible names only."""
    await secured.rule(TOPIC, "mine", DESCRIBE)
    await secured.rule(GROUP, "readers", READ)
    every = await secured.ask("alice", metadata_request.MetadataRequest(topics=None), 9)
    assert [row.name for row in every.topics] == ["mine"]
    named = [metadata_request.MetadataRequestTopic(name=name) for name in (*TOPICS, "other", "no")]
    answer = await secured.ask("alice", metadata_request.MetadataRequest(topics=named), 9)
    found = {row.name: (row.error_code, len(row.partitions)) for row in answer.topics}
    hidden = (TOPIC_DENIED, 0)
    assert found == {"mine": (0, 1), "mine-secret": hidden, "other": hidden, "no": hidden}
    assert len(answer.topics) == len(found)

    partition = list_offsets_request.ListOffsetsPartition(partition_index=0, timestamp=-1)
    listed = [list_offsets_request.ListOffsetsTopic(name, [partition]) for name in TOPICS]
    answer = await secured.ask(
        "alice", list_offsets_request.ListOffsetsRequest(replica_id=-1, topics=listed), 5
    )
    offsets = {
        row.name: (row.partitions[0].error_code, row.partitions[0].offset) for row in answer.topics
    }
    assert offsets == {
        "mine": (0, 1),
        "mine-secret": (TOPIC_DENIED, -1),
        "other": (TOPIC_DENIED, -1),
    }

    async def coordinator(key: str, kind: int) -> tuple[int, int]:
        request = find_coordinator_request.FindCoordinatorRequest(key=key, key_type=kind)
        answer = await secured.ask("alice", request, 3)
        return answer.error_code, answer.node_id

    await coordinated(secured, "readers", 0)
    assert await coordinator("readers", 0) == (0, 1)
    assert await coordinator("others", 0) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, -1)
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert await coordinator("readers", 1) == (denied, -1)


async def coordinated(secured: Secured, key: str, kind: int) -> None:
    """Wait until a group or transactional id has a coordinator that has loaded its state."""
    request = find_coordinator_request.FindCoordinatorRequest(key=key, key_type=kind)
    async with asyncio.timeout(10):
        while (await secured.ask("root", request, 3)).error_code:
            pass


async def test_committed_offsets_of_hidden_topics_are_not_returned(secured: Secured) -> None:
    """OffsetFetch leaves hidden topics out of all offsets, and denies them by name."""
    await secured.rule(TOPIC, "mine", READ)
    await secured.rule(GROUP, "readers", READ)
    await coordinated(secured, "readers", 0)
    rows = [
        offset_commit_request.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                offset_commit_request.OffsetCommitRequestPartition(
                    partition_index=0, committed_offset=7
                )
            ],
        )
        for topic in TOPICS
    ]

    async def commit(user: str) -> list[int]:
        request = offset_commit_request.OffsetCommitRequest(group_id="readers", topics=rows)
        answer = await secured.ask(user, request, 7)
        return [row.partitions[0].error_code for row in answer.topics]

    async with asyncio.timeout(10):
        while await commit("root") != [0, 0, 0]:
            pass
    assert sorted(await commit("alice")) == [0, TOPIC_DENIED, TOPIC_DENIED]

    async def offsets(version: int, topics: Any) -> dict[str, tuple[int, int]]:
        if version < 8:
            request = offset_fetch_request.OffsetFetchRequest(group_id="readers", topics=topics)
            answer = await secured.ask("alice", request, version)
        else:
            group = offset_fetch_request.OffsetFetchRequestGroup("readers", topics)
            request = offset_fetch_request.OffsetFetchRequest(groups=[group])
            answer = (await secured.ask("alice", request, version)).groups[0]
        assert answer.error_code == 0
        return {
            row.name: (row.partitions[0].error_code, row.partitions[0].committed_offset)
            for row in answer.topics
        }

    hidden = (TOPIC_DENIED, -1)
    for version, kind in (
        (7, offset_fetch_request.OffsetFetchRequestTopic),
        (8, offset_fetch_request.OffsetFetchRequestTopics),
    ):
        assert await offsets(version, None) == {"mine": (0, 7)}
        named = [kind(topic, [0]) for topic in TOPICS]
        assert await offsets(version, named) == {
            "mine": (0, 7),
            "mine-secret": hidden,
            "other": hidden,
        }


async def test_rights_that_are_taken_away_stop_a_transaction(secured: Secured) -> None:
    """A producer that loses its rights can neither write, nor commit, nor abort; root aborts."""
    await secured.rule(TOPIC, "mine", WRITE)
    await secured.rule(TRANSACTIONAL_ID, "t", WRITE)
    await coordinated(secured, "t", 1)
    begin = init_producer_id_request.InitProducerIdRequest("t", 60_000)

    async def begun(user: str) -> Any:
        async with asyncio.timeout(10):
            while (answer := await secured.ask(user, begin, 4)).error_code:
                pass
        return answer

    own = await begun("alice")
    fields: dict[str, Any] = {
        "producer_id": own.producer_id,
        "producer_epoch": own.producer_epoch,
        "base_sequence": 0,
        "transactional": True,
    }
    adding = add_partitions_to_txn_request
    add = adding.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=own.producer_id,
        v3_and_below_producer_epoch=own.producer_epoch,
        v3_and_below_topics=[adding.AddPartitionsToTxnTopic("mine", [0])],
    )
    answer = await secured.ask("alice", add, 3)
    assert answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    assert await secured.produce("alice", "mine", **fields) == 0
    assert await secured.produce("alice", "other", **fields) == TOPIC_DENIED
    await secured.revoke(TOPIC, "mine")
    assert await secured.produce("alice", "mine", **fields) == TOPIC_DENIED
    await secured.revoke(TRANSACTIONAL_ID, "t")
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert await secured.produce("alice", "mine", **fields) == denied
    for committed in (True, False):
        end = end_txn_request.EndTxnRequest("t", own.producer_id, own.producer_epoch, committed)
        assert (await secured.ask("alice", end, 3)).error_code == denied
    assert (await secured.ask("alice", begin, 4)).error_code == denied
    assert (await begun("root")).producer_epoch > own.producer_epoch
