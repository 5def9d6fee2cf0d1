"""The answers of a broker are compared with its replicas at the moment of the answer."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.replica.events import Role
from broker_impl.replica.results import LATEST
from broker_impl.wire.batch import Record, encode_batch
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
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
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from broker_impl.wire.types import TopicPartition
from checkers.invariants.answers import Answers
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_answers import Witness

TP = TopicPartition("t", 0)
PRODUCE, FETCH, LIST_OFFSETS = 0, 1, 2


class Broker:
    """A broker with one replica, whose answers the test makes up."""

    def __init__(self, watermark: int = 10) -> None:
        self.partitions: dict[TopicPartition, Any] = {}
        self.found: list[str] = []
        self.lead(epoch=1, watermark=watermark)
        reporter = Reporter(1, lambda: 0, lambda violation: self.found.append(violation.invariant))
        self.witness = Witness(reporter, 1, lambda: self, Answers())  # type: ignore[arg-type,return-value]

    def lead(self, *, epoch: int, watermark: int) -> None:
        """Lead the partition, with another replica object."""
        self.partitions[TP] = SimpleNamespace(
            role=Role.LEADER, leader_epoch=epoch, high_watermark=watermark
        )

    def fetch(self, watermark: int, records: Any = None) -> list[str]:
        """Answer a consumer's fetch; return the violations in it."""
        return self.open_fetch()(watermark, records)

    def open_fetch(self, isolation_level: int = 0) -> Callable[..., list[str]]:
        """Take a fetch; return a function that answers it."""
        asked = FetchTopic(topic="t", partitions=[FetchPartition(partition=0)])
        request = FetchRequest(replica_id=-1, isolation_level=isolation_level, topics=[asked])
        on_answer = self.witness(FETCH, request)

        def answer(watermark: int, records: Any = None, stable: int = -1) -> list[str]:
            data = PartitionData(
                high_watermark=watermark, last_stable_offset=stable, records=records
            )
            topic = FetchableTopicResponse(topic="t", partitions=[data])
            return self._found(on_answer, FetchResponse(responses=[topic]))

        return answer

    def end(self, offset: int, error: int = 0) -> list[str]:
        """Answer a request for the end of the log; return the violations in it."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])]
        )
        row = ListOffsetsPartitionResponse(partition_index=0, offset=offset, error_code=error)
        answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[row])])
        return self._found(self.witness(LIST_OFFSETS, request), answer)

    def produce(self, base: int, records: int, acks: int = -1) -> list[str]:
        """Acknowledge a batch; return the violations in the answer."""
        data = PartitionProduceData(index=0, records=encode_batch([Record()] * records))
        request = ProduceRequest(
            acks=acks, topic_data=[TopicProduceData(name="t", partition_data=[data])]
        )
        row = PartitionProduceResponse(index=0, base_offset=base)
        topic = TopicProduceResponse(name="t", partition_responses=[row])
        return self._found(self.witness(PRODUCE, request), ProduceResponse(responses=[topic]))

    def _found(self, on_answer: Any, answer: Any) -> list[str]:
        self.found.clear()
        if on_answer is not None:
            on_answer(answer)
        return list(self.found)


@pytest.fixture
def broker() -> Broker:
    """A broker that leads with a high watermark of 10."""
    return Broker()


def test_a_fetch_is_compared_with_its_own_watermark_and_the_brokers(broker: Broker) -> None:
    """Records below the stated watermark are fine, and those above it are not."""
    below = [encode_batch([Record()] * 3, base_offset=4), encode_batch([Record()], base_offset=9)]
    assert broker.fetch(10, below) == []
    assert broker.fetch(10, [*below, encode_batch([Record()], base_offset=10)]) == [
        "answer-above-hw"
    ]
    assert broker.fetch(11) == ["answer-above-hw"]


def test_read_committed_ends_at_the_stable_offset(broker: Broker) -> None:
    """Only a read_committed consumer is limited by the stable offset."""
    records = encode_batch([Record()] * 3, base_offset=4)
    assert broker.open_fetch(isolation_level=1)(10, records, 7) == []
    assert broker.open_fetch(isolation_level=1)(10, records, 6) == ["answer-above-hw"]
    assert broker.open_fetch(isolation_level=0)(10, records, 6) == []


@pytest.mark.parametrize("replica_id", [2, -2])
def test_followers_and_tools_may_read_everything(broker: Broker, replica_id: int) -> None:
    """Only consumers are limited."""
    asked = FetchRequest(replica_id=replica_id)
    assert broker.witness(FETCH, asked) is None


def test_a_later_answer_has_no_earlier_watermark(broker: Broker) -> None:
    """Fetches and requests for the end of the log state the same watermark."""
    slow = broker.open_fetch()
    assert broker.end(10) == []
    assert slow(9) == [], "it was open at the same time"
    assert broker.fetch(9) == ["answered-hw-monotone"]
    assert broker.end(8, error=1) == [], "an error states nothing"
    assert broker.end(8) == ["answered-hw-monotone"]


def test_an_election_in_between_explains_everything(broker: Broker) -> None:
    """An answer whose request arrived in an earlier epoch is compared with itself only."""
    slow, later = broker.open_fetch(), broker.open_fetch()
    assert slow(10) == []
    broker.lead(epoch=2, watermark=5)
    assert later(10) == []
    assert broker.fetch(5) == []
    assert broker.fetch(6) == ["answer-above-hw"]
    broker.partitions.clear()
    assert broker.fetch(99) == []


def test_an_acknowledgement_is_compared_with_the_watermark(broker: Broker) -> None:
    """Only acks=all promises that the records are committed."""
    assert broker.produce(7, 3) == []
    assert broker.produce(8, 3) == ["acknowledged-above-hw"]
    assert broker.produce(8, 3, acks=1) == []
