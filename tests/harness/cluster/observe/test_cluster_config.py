"""What a cluster reports about itself, from scripted brokers."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_impl.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from broker_impl.wire.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from broker_impl.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from harness.cluster.observe import cluster_config
from model.cluster_facts import BrokerFacts, ClusterFacts, TopicFacts
from tests.harness.cluster.observe.fake_broker import FakeBroker
from tests.harness.cluster.observe.recorded_frames import recorded

METADATA, CONFIGS, QUORUM = 3, 32, 55
KRAFT = {18: range(4), METADATA: range(13), CONFIGS: range(1, 5), QUORUM: range(3)}
UNCLEAN = "unclean.leader.election.enable"


class FakeCluster:
    """Two brokers with settings, a topic, and an internal topic."""

    def __init__(self) -> None:
        self.settings = {1: {UNCLEAN: "false"}, 2: {UNCLEAN: "false"}}
        self.refuses = 0
        self.brokers = {
            number: FakeBroker(
                KRAFT, {METADATA: self._metadata, CONFIGS: self._configs, QUORUM: self._quorum}
            )
            for number in (1, 2)
        }

    def _metadata(self, version: int, request: Any) -> MetadataResponse:
        one = MetadataResponsePartition(leader_id=1, replica_nodes=[1, 2], isr_nodes=[1, 2])
        return MetadataResponse(
            cluster_id="c",
            brokers=[
                MetadataResponseBroker(number, *broker.address, rack=f"r{number}")
                for number, broker in self.brokers.items()
            ],
            topics=[
                MetadataResponseTopic(name="x", partitions=[one]),
                MetadataResponseTopic(name="other", partitions=[one]),
                MetadataResponseTopic(
                    name="__consumer_offsets", is_internal=version >= 1, partitions=[one, one]
                ),
            ],
        )

    def _configs(self, version: int, request: Any) -> DescribeConfigsResponse:
        def values(resource: Any) -> dict[str, str | None]:
            if resource.resource_type == 2:
                return {"cleanup.policy": "compact" if resource.resource_name[0] == "_" else None}
            return dict(self.settings[int(resource.resource_name)])

        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    error_code=self.refuses,
                    error_message=None,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=[
                        DescribeConfigsResourceResult(name=name, value=value)
                        for name, value in values(resource).items()
                        if not self.refuses
                    ],
                )
                for resource in request.resources
            ]
        )

    def _quorum(self, version: int, request: Any) -> DescribeQuorumResponse:
        states = [ReplicaState(2), ReplicaState(1)]
        row = PartitionData(leader_id=2, leader_epoch=3, current_voters=states)
        return DescribeQuorumResponse(topics=[TopicData("__cluster_metadata", [row])])

    async def read(self, *topics: str) -> ClusterFacts:
        return await cluster_config.read([self.brokers[2].address], topics, timeout_s=1)


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    cluster = FakeCluster()
    for broker in cluster.brokers.values():
        broker.features = {"transaction.version": 2, "group.version": 1}
        await broker.start()
    yield cluster
    for broker in cluster.brokers.values():
        broker.close()


async def test_facts(cluster: FakeCluster) -> None:
    """All facts are read from one bootstrap address; each broker is asked for its own settings."""
    cluster.brokers[1].features["transaction.version"] = 1
    cluster.brokers[1].versions[METADATA] = range(2, 12)
    facts = await cluster.read("x")
    addresses = {number: broker.address for number, broker in cluster.brokers.items()}
    assert facts == ClusterFacts(
        release="2.6",
        mode="kraft",
        cluster_id="c",
        brokers=tuple(
            BrokerFacts(id=number, host=at.host, port=at.port, rack=f"r{number}")
            for number, at in addresses.items()
        ),
        controller="broker-2",
        voters=(1, 2),
        apis={METADATA: (2, 11), 18: (0, 3), CONFIGS: (1, 4), QUORUM: (0, 2)},
        features={"group.version": 1, "transaction.version": 1},
        broker={UNCLEAN: "false"},
        topics={
            "x": TopicFacts(partitions=1, replication_factor=2),
            "__consumer_offsets": TopicFacts(
                partitions=2, replication_factor=2, settings={"cleanup.policy": "compact"}
            ),
        },
    )


async def test_weakest_promise_counts(cluster: FakeCluster) -> None:
    """Where brokers differ, the value that promises least counts, and all values are recorded."""
    cluster.settings = {
        1: {UNCLEAN: "true", "min.insync.replicas": "10", "zookeeper.session.timeout.ms": "9"},
        2: {UNCLEAN: "false", "min.insync.replicas": "2", "zookeeper.session.timeout.ms": "10"},
    }
    facts = await cluster.read()
    assert facts.broker == {
        UNCLEAN: "true",
        "min.insync.replicas": "2",
        "zookeeper.session.timeout.ms": "10",
    }
    assert facts.differing[UNCLEAN] == {1: "true", 2: "false"}
    assert sorted(facts.differing) == sorted(facts.broker)


async def test_what_cannot_be_read_is_listed(cluster: FakeCluster) -> None:
    """Refusals, silent brokers and topics that do not exist are listed with the reason."""
    cluster.refuses = 31
    cluster.brokers[1].close()
    facts = await cluster.read("y")
    assert facts.broker == {}
    at = cluster.brokers[1].address
    assert facts.unread[:3] == (
        "topic y: it does not exist",
        f"broker 1: it does not answer at {at}",
        "settings of broker 2: 2: CLUSTER_AUTHORIZATION_FAILED",
    )


async def test_release_without_describe_configs(cluster: FakeCluster) -> None:
    """Before Kafka 0.11 settings cannot be read; the facts say so."""
    for broker in cluster.brokers.values():
        broker.versions = {18: range(1), METADATA: range(3), 19: range(2)}
    facts = await cluster.read()
    assert (facts.release, facts.mode) == ("0.10.2", "zookeeper")
    assert facts.unread[0] == ("settings of broker 1: the release has no DescribeConfigs (KIP-133)")


async def test_no_broker_answers(cluster: FakeCluster) -> None:
    """Without any answer, the facts consist of the reason."""
    for broker in cluster.brokers.values():
        broker.close()
    at = cluster.brokers[2].address
    assert await cluster.read() == ClusterFacts(unread=(f"no broker answers at {at}",))


@pytest.mark.parametrize("release", ["2.8.2", "4.1.0"])
def test_real_settings(release: str) -> None:
    """Settings of real brokers are decoded as they were set in their configuration."""
    _, answer = recorded(release, CONFIGS)
    [result] = answer.results
    assert {row.name: row.value for row in result.configs} == {
        "min.insync.replicas": "2",
        "default.replication.factor": "3",
        UNCLEAN: "false",
    }
