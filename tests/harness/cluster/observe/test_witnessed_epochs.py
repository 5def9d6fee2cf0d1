"""The epochs of requests are compared with those that a broker knows."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.replica.events import Role
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.messages.leader_and_isr_response import LeaderAndIsrResponse
from broker_impl.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker_impl.wire.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from broker_impl.wire.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from broker_impl.wire.messages.stop_replica_request import StopReplicaRequest
from broker_impl.wire.messages.stop_replica_response import StopReplicaResponse
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.messages.update_metadata_response import UpdateMetadataResponse
from broker_impl.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from broker_impl.wire.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_epochs import EpochWitness

TP = TopicPartition("t", 0)
SEEN = ["refused-by-epoch"]
FENCED, UNKNOWN, STALE_CONTROLLER, STALE_BROKER = 74, 75, 11, 77


def partition(epoch: int = 5) -> Any:
    producer = SimpleNamespace(epoch=2, coordinator_epoch=3)
    producers = SimpleNamespace(entries={9: producer})
    return SimpleNamespace(
        role=Role.LEADER, leader_epoch=epoch, log=SimpleNamespace(producers=producers)
    )


class Broker:
    """A broker that leads t-0 in epoch 5, whose answers the test makes up."""

    def __init__(self) -> None:
        self.replicas: Any = SimpleNamespace(
            partitions={TP: partition()}, controller_epoch=7, broker_epoch=100
        )
        self.found: list[str] = []
        self.witness = EpochWitness(
            Reporter(1, lambda: 0, lambda violation: self.found.append(violation.invariant)),
            lambda: self.replicas,
        )

    def answer(self, request: Any, answer: Any, **meanwhile: Any) -> list[str]:
        """Answer a request; return the violations. ``meanwhile``: the partition's new fields."""
        self.found.clear()
        on_answer = self.witness(request)
        assert on_answer is not None
        for name, value in meanwhile.items():
            setattr(self.replicas.partitions[TP], name, value)
        on_answer(answer)
        return list(self.found)


def fetch(epoch: int, replica: int = 2) -> FetchRequest:
    row = FetchPartition(partition=0, current_leader_epoch=epoch)
    topics = [FetchTopic(topic="t", partitions=[row])]
    return FetchRequest(replica_id=replica, session_id=12, topics=topics)


def fetched(error: int) -> FetchResponse:
    row = PartitionData(partition_index=0, error_code=error)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[row])])


@pytest.mark.parametrize("replica", [-1, 2])
@pytest.mark.parametrize(
    ("epoch", "error", "found"),
    [
        (5, 0, []),
        (4, FENCED, []),
        (6, UNKNOWN, []),
        (-1, 0, []),
        (4, 0, SEEN),
        (6, 0, SEEN),
        (5, FENCED, SEEN),
        (5, UNKNOWN, SEEN),
    ],
)
def test_fetches_of_followers_and_clients(
    replica: int, epoch: int, error: int, found: list[str]
) -> None:
    """Also those of a fetch session."""
    broker = Broker()
    if epoch < 0:
        assert broker.witness(fetch(epoch, replica)) is None
    else:
        assert broker.answer(fetch(epoch, replica), fetched(error)) == found


def test_a_fetch_that_waits_for_records_while_the_epoch_changes() -> None:
    """It may have been served before the change, or refused after it."""
    assert Broker().answer(fetch(5), fetched(0), leader_epoch=6) == []
    assert Broker().answer(fetch(5), fetched(FENCED), leader_epoch=6) == []
    assert Broker().answer(fetch(4), fetched(0), leader_epoch=6) == SEEN


def test_a_partition_that_is_created_again_meanwhile() -> None:
    """Its leader epochs begin again, so that nothing is known."""
    broker = Broker()
    on_answer = broker.witness(fetch(4))
    assert on_answer is not None
    broker.replicas.partitions[TP] = partition(0)
    on_answer(fetched(0))
    assert broker.found == []


def test_questions_about_offsets_and_epochs() -> None:
    """ListOffsets and OffsetForLeaderEpoch name a leader epoch, too."""
    listing = ListOffsetsRequest(
        topics=[ListOffsetsTopic("t", [ListOffsetsPartition(0, current_leader_epoch=4)])]
    )
    ending = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, current_leader_epoch=4)])]
    )
    for error, found in ((0, SEEN), (FENCED, [])):
        row = ListOffsetsPartitionResponse(partition_index=0, error_code=error)
        listed = ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [row])])
        assert Broker().answer(listing, listed) == found
        end = EpochEndOffset(error_code=error, partition=0)
        ended = OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult("t", [end])])
        assert Broker().answer(ending, ended) == found


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (LeaderAndIsrRequest, LeaderAndIsrResponse),
        (StopReplicaRequest, StopReplicaResponse),
        (UpdateMetadataRequest, UpdateMetadataResponse),
    ],
)
def test_orders(request_: Any, response: Any) -> None:
    """Those of a replaced controller, or to a former registration of the broker, are refused."""

    def answered(controller: int, broker: int, error: int) -> list[str]:
        request = request_(controller_epoch=controller, broker_epoch=broker)
        return Broker().answer(request, response(error_code=error))

    assert answered(7, 100, 0) == answered(8, -1, 0) == []
    assert answered(6, 100, STALE_CONTROLLER) == answered(7, 99, STALE_BROKER) == []
    assert answered(6, 100, 0) == SEEN
    assert answered(7, 99, 0) == SEEN
    assert answered(7, 100, STALE_CONTROLLER) == SEEN
    assert answered(7, 100, STALE_BROKER) == SEEN


def marked(error: int) -> WriteTxnMarkersResponse:
    row = WritableTxnMarkerPartitionResult(0, error)
    topic = WritableTxnMarkerTopicResult("t", [row])
    return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(9, [topic])])


def marker(producer: int, coordinator: int, id_: int = 9) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic("t", [0])]
    return WriteTxnMarkersRequest(
        markers=[WritableTxnMarker(id_, producer, True, topics, coordinator)]
    )


def test_markers() -> None:
    """Neither an older producer epoch nor an older coordinator ends a transaction."""
    assert Broker().answer(marker(2, 3), marked(0)) == []
    assert Broker().answer(marker(1, 3), marked(47)) == []
    assert Broker().answer(marker(1, 3), marked(0)) == SEEN
    assert Broker().answer(marker(2, 2), marked(0)) == SEEN
    assert Broker().answer(marker(2, 2, id_=8), marked(0)) == []
    # What a new leader knows is another log, from which something may have been truncated.
    assert Broker().answer(marker(2, 2), marked(0), leader_epoch=6) == []
    assert Broker().answer(marker(2, 2), marked(0), role=Role.FOLLOWER) == []


def test_other_requests_are_not_looked_at() -> None:
    """They name no epoch that a broker compares with one of its own."""
    assert Broker().witness(MetadataRequest()) is None
