"""A cluster file, and a scripted cluster of two brokers that have topics and groups."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.delete_groups_response import (
    DeletableGroupResult,
    DeleteGroupsResponse,
)
from broker_impl.wire.messages.delete_topics_response import (
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from broker_impl.wire.messages.list_groups_response import ListedGroup, ListGroupsResponse
from broker_impl.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from harness.cluster.external import cluster_file
from harness.cluster.external.cluster_file import Loaded
from harness.cluster.external.survey import Survey
from model.cluster_facts import BrokerFacts, ClusterFacts
from tests.harness.cluster.observe.fake_broker import FakeBroker

APIS = dict.fromkeys((0, 1, 3, 11, 19, 20, 22, 24, 28, 33, 43, 44, 45, 47), (0, 9))


class FakeCluster:
    """Two brokers with the ids 1 and 2; both know all topics, and each coordinates groups."""

    def __init__(self) -> None:
        versions = {3: range(9), 16: range(4), 20: range(6), 42: range(2)}
        answers = {3: self._metadata, 20: self._delete_topics}
        self.brokers = {
            number: FakeBroker(
                versions,
                answers | {16: self._groups_of(number), 42: self._delete_groups_of(number)},
            )
            for number in (1, 2)
        }
        self.topics: list[str] = []
        self.groups: dict[int, list[str]] = {1: [], 2: []}
        self.busy: set[str] = set()
        """Topics and groups that cannot be removed."""

    async def start(self) -> None:
        for broker in self.brokers.values():
            await broker.start()

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()

    @property
    def bootstrap(self) -> list[str]:
        return [str(broker.address) for broker in self.brokers.values()]

    def _metadata(self, version: int, request: Any) -> MetadataResponse:
        wanted = None if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(number, *broker.address)
                for number, broker in self.brokers.items()
            ],
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name=name,
                    partitions=[
                        MetadataResponsePartition(
                            leader_id=1, replica_nodes=[1, 2], isr_nodes=[1, 2]
                        )
                    ],
                )
                for name in self.topics
                if wanted is None or name in wanted
            ],
        )

    def _delete_topics(self, version: int, request: Any) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(name=name, error_code=self._removed(name, self.topics))
                for name in request.topic_names
            ]
        )

    def _groups_of(self, number: int) -> Any:
        return lambda version, request: ListGroupsResponse(
            groups=[ListedGroup(group_id=name) for name in self.groups[number]]
        )

    def _delete_groups_of(self, number: int) -> Any:
        return lambda version, request: DeleteGroupsResponse(
            results=[
                DeletableGroupResult(name, self._removed(name, self.groups[number]))
                for name in request.groups_names
            ]
        )

    def _removed(self, name: str, names: list[str]) -> int:
        if name in self.busy:
            return int(ErrorCode.NON_EMPTY_GROUP)
        names.remove(name)
        return int(ErrorCode.NONE)


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    """Yield a scripted cluster that answers."""
    made = FakeCluster()
    await made.start()
    yield made
    made.close()


def loaded(tmp_path: Path, text: str) -> Loaded:
    """Return a cluster file with this content."""
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    return cluster_file.load(path)


def surveyed(tmp_path: Path, text: str, **facts: Any) -> Survey:
    """Return the survey of three brokers with ZooKeeper, unless ``facts`` say otherwise."""
    brokers = tuple(BrokerFacts(id=number, host="h", port=9000 + number) for number in (1, 2, 3))
    known: dict[str, Any] = {"brokers": brokers, "mode": "zookeeper", "apis": APIS} | facts
    return Survey(loaded(tmp_path, f'bootstrap = ["h:9001"]\n{text}'), ClusterFacts(**known))
