"""Answers to DeleteRecords are compared with the logs of the replicas at that moment."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.replica.events import Role
from broker_impl.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from broker_impl.wire.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_deletions import DeletionWitness, Running

TP = TopicPartition("t", 0)


def replicas(role: Role, number: int) -> Any:
    log = SimpleNamespace(start_offset=0, topic_id="one", offline=None)
    partition = SimpleNamespace(
        role=role, leader_epoch=3, high_watermark=9, log=log, remotes={2: None, 3: None}
    )
    return SimpleNamespace(partitions={TP: partition}, live={1: -1, 2: -1}, broker_epoch=number)


class Cluster:
    """Broker 1 leads, broker 2 follows and is live, and broker 3 is not."""

    def __init__(self) -> None:
        self.brokers = {
            1: replicas(Role.LEADER, 11),
            2: replicas(Role.FOLLOWER, 12),
            3: replicas(Role.FOLLOWER, 13),
        }
        self.found: list[str] = []
        self._running: Running = {}
        self.witness = self.start(1)
        for witness in (self.witness, self.start(2), self.start(3)):
            assert witness(MetadataRequest()) is None
        self.fetch(2)

    def start(self, number: int) -> DeletionWitness:
        """Start a broker; it has replicas from its first request on."""
        reporter = Reporter(number, lambda: 0, lambda each: self.found.append(each.invariant))
        return DeletionWitness(reporter, lambda: self.brokers[number], self._running)

    def fetch(self, number: int) -> None:
        """A follower fetches from the leader."""
        topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0)])]
        assert self.witness(FetchRequest(replica_id=number, topics=topics)) is None

    def partition(self, number: int) -> Any:
        """The replica of a broker."""
        return self.brokers[number].partitions[TP]

    def ask(self, offset: int) -> Any:
        """Have the leader receive a request to delete the records before the offset."""
        row = DeleteRecordsPartition(0, offset)
        on_answer = self.witness(DeleteRecordsRequest([DeleteRecordsTopic("t", [row])], 1000))
        assert on_answer is not None
        return on_answer

    def answer(self, on_answer: Any, low: int, *, error: int = 0) -> list[str]:
        """Answer a request; return the violations."""
        self.found.clear()
        row = DeleteRecordsPartitionResult(0, low, error)
        on_answer(DeleteRecordsResponse(topics=[DeleteRecordsTopicResult("t", [row])]))
        return list(self.found)


WRONG = ["deleted-on-all-replicas"]


def test_live_replicas_have_deleted_the_records() -> None:
    """Those of brokers that are not live are not waited for."""
    cluster = Cluster()
    on_answer = cluster.ask(5)
    cluster.partition(1).log.start_offset = 5
    assert cluster.answer(on_answer, 5) == WRONG
    assert cluster.answer(on_answer, -1, error=7) == []
    cluster.partition(2).log.start_offset = 5
    assert cluster.answer(on_answer, 5) == []
    assert cluster.answer(on_answer, 4) == WRONG


def test_without_an_offset_all_committed_records_are_deleted() -> None:
    """They are those below the high watermark when the request arrives."""
    cluster = Cluster()
    on_answer = cluster.ask(-1)
    for number in (1, 2):
        cluster.partition(number).log.start_offset = 9
    assert cluster.answer(on_answer, 9) == []
    assert cluster.answer(on_answer, 8) == WRONG


@pytest.mark.parametrize("what", ["left", "registered", "restarted", "topic", "disk", "epoch"])
def test_only_what_stays_the_same_meanwhile_is_judged(what: str) -> None:
    """The leader may have answered when the replica was not live, or for another log."""
    cluster = Cluster()
    on_answer = cluster.ask(5)
    cluster.partition(1).log.start_offset = 5
    match what:
        case "left":
            del cluster.brokers[1].live[2]
        case "registered":
            cluster.brokers[2].broker_epoch = 20
        case "restarted":
            cluster.brokers[2] = replicas(Role.FOLLOWER, 12)
        case "topic":
            cluster.partition(2).log.topic_id = "two"
        case "disk":
            cluster.partition(2).log.offline = "failed"
        case _:
            cluster.partition(1).leader_epoch = 4
    assert cluster.answer(on_answer, 5) == []


def test_a_broker_that_starts_has_no_replicas_yet() -> None:
    """It has loaded its logs when it receives its first request."""
    cluster = Cluster()
    cluster.start(2)
    del cluster.brokers[2]
    on_answer = cluster.ask(5)
    cluster.partition(1).log.start_offset = 5
    assert cluster.answer(on_answer, 5) == []


def test_a_follower_that_has_not_fetched_since_its_start_is_not_judged() -> None:
    """The leader knows the start of its log before it was started again."""
    cluster = Cluster()
    cluster.brokers[2].broker_epoch = 20
    on_answer = cluster.ask(5)
    cluster.partition(1).log.start_offset = 5
    assert cluster.answer(on_answer, 5) == []
    cluster.fetch(2)
    assert cluster.answer(cluster.ask(5), 5) == WRONG


def test_only_a_leader_that_deletes_is_judged() -> None:
    """Other brokers refuse the request."""
    cluster = Cluster()
    assert cluster.witness(MetadataRequest()) is None
    cluster.partition(1).role = Role.FOLLOWER
    assert cluster.answer(cluster.ask(5), 5) == []
