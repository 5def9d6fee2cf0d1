"""Answers about logs are compared with the bytes of the log at the moment of the answer."""

from types import SimpleNamespace
from typing import Any

from broker_impl.log.config import LogConfig
from broker_impl.log.producers import ProducerEntry
from broker_impl.replica.events import Role
from broker_impl.wire.batch import Record, encode_batch, parse_header
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker_impl.wire.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_logs import LogWitness

TP = TopicPartition("t", 0)
BATCHES = [
    encode_batch([Record(timestamp_ms=100), Record(timestamp_ms=200)], leader_epoch=1),
    encode_batch(
        [Record(timestamp_ms=300), Record(timestamp_ms=300)],
        base_offset=2,
        leader_epoch=2,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    ),
]


def fetched(*topics: Any, error_code: int = 0, throttle_time_ms: int = 0) -> Any:
    return SimpleNamespace(
        responses=topics, error_code=error_code, throttle_time_ms=throttle_time_ms
    )


class Broker:
    """A broker that leads a partition with two batches, whose answers the test makes up."""

    def __init__(self) -> None:
        self.data = b"".join(BATCHES)
        log = SimpleNamespace(
            cuts=[],
            rewrites=0,
            offline=None,
            data_directory="",
            files=[(0, "log", len(self.data))],
            start_offset=0,
            end_offset=4,
            producers=SimpleNamespace(entries={}),
            config=LogConfig(),
        )
        self.partition: Any = SimpleNamespace(
            role=Role.LEADER,
            leader_epoch=2,
            epoch_start=2,
            high_watermark=4,
            last_stable_offset=4,
            isr=frozenset({1, 2}),
            maximal_isr=frozenset({1, 2}),
            remotes={},
            log=log,
        )
        self.found: list[str] = []
        replicas: Any = SimpleNamespace(partitions={TP: self.partition})
        self.witness = LogWitness(
            Reporter(1, lambda: 0, lambda violation: self.found.append(violation.invariant)),
            lambda: replicas,
            lambda _, path, at, size: self.data[at : at + size],
            {1: "a", 2: "b", 3: "b"},
            in_sequence=True,
            keeps=True,
        )

    def _told(self, request: Any, answer: Any) -> list[str]:
        self.found.clear()
        on_answer = self.witness(request)
        assert on_answer is not None
        on_answer(answer)
        return list(self.found)

    def list_offset(self, timestamp: int, offset: int, found_ms: int = -1) -> list[str]:
        """Answer ListOffsets; return the violations."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])]
        )
        row = SimpleNamespace(
            partition_index=0, error_code=0, offset=offset, timestamp=found_ms, leader_epoch=-1
        )
        topic = SimpleNamespace(name="t", partitions=[row])
        return self._told(request, SimpleNamespace(topics=[topic]))

    def end_epoch(self, wanted: int, epoch: int, end: int, replica: int = -1) -> list[str]:
        """Answer OffsetForLeaderEpoch; return the violations."""
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=wanted)
        request = OffsetForLeaderEpochRequest(
            replica_id=replica, topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])]
        )
        row = SimpleNamespace(partition=0, error_code=0, leader_epoch=epoch, end_offset=end)
        topic = SimpleNamespace(topic="t", partitions=[row])
        return self._told(request, SimpleNamespace(topics=[topic]))

    def diverge(self, wanted: int, epoch: int, end: int) -> list[str]:
        """Answer a follower's fetch with the end of an epoch; return the violations."""
        asked = FetchPartition(partition=0, fetch_offset=4, last_fetched_epoch=wanted)
        request = FetchRequest(replica_id=2, topics=[FetchTopic(topic="t", partitions=[asked])])
        diverging = SimpleNamespace(epoch=epoch, end_offset=end)
        row = SimpleNamespace(partition_index=0, error_code=0, diverging_epoch=diverging)
        return self._told(request, fetched(SimpleNamespace(topic="t", partitions=[row])))

    def fetch(
        self, offset: int, *records: bytes, rack: str = "b", isolation: int = 0, **more: Any
    ) -> list[str]:
        """Answer a fetch; return the violations."""
        asked = FetchPartition(partition=0, fetch_offset=offset)
        request = FetchRequest(
            replica_id=-1,
            rack_id=rack,
            isolation_level=isolation,
            topics=[FetchTopic(topic="t", partitions=[asked])],
        )
        fields = {
            "error_code": 0,
            "high_watermark": 4,
            "last_stable_offset": 4,
            "preferred_read_replica": -1,
        }
        row = SimpleNamespace(
            partition_index=0, log_start_offset=0, records=records, **{**fields, **more}
        )
        return self._told(request, fetched(SimpleNamespace(topic="t", partitions=[row])))

    def leave_out(
        self, offset: int, epoch: int = -1, isolation: int = 0, *, named: int = 1, **more: Any
    ) -> list[str]:
        """Answer a request in a fetch session without its partitions; return the violations."""
        asked = FetchPartition(partition=0, fetch_offset=offset, current_leader_epoch=epoch)
        others = [FetchPartition(partition=1 + number) for number in range(named - 1)]
        topics = [FetchTopic(topic="t", partitions=[asked, *others])]
        request = FetchRequest(
            replica_id=-1, session_id=12, session_epoch=1, isolation_level=isolation, topics=topics
        )
        return self._told(request, fetched(**more))

    def produce(self, batch: bytes, offset: int, stamped_ms: int = -1, acks: int = -1) -> list[str]:
        """Acknowledge a batch, with a LogAppendTime if there is one; return the violations."""
        asked = PartitionProduceData(index=0, records=memoryview(batch))
        topic = TopicProduceData(name="t", partition_data=[asked])
        request = ProduceRequest(acks=acks, topic_data=[topic])
        row = SimpleNamespace(
            index=0, error_code=0, base_offset=offset, log_append_time_ms=stamped_ms
        )
        answered = SimpleNamespace(name="t", partition_responses=[row])
        return self._told(request, SimpleNamespace(responses=[answered]))


def test_offsets_by_time_are_those_of_records() -> None:
    """The records of the batch decide between offsets in it."""
    broker = Broker()
    assert broker.list_offset(150, 1, 200) == []
    assert broker.list_offset(150, 0, 100) == ["listed-as-stored"]
    assert broker.list_offset(-3, 2, 300) == []
    assert broker.list_offset(-3, 3, 300) == ["listed-as-stored"], "not the first of that time"
    broker.partition.role = Role.FOLLOWER
    assert broker.list_offset(150, 1, 200) == ["answered-as-leader"]


def test_a_batch_that_is_acknowledged_after_the_leadership() -> None:
    """With acks=all it was committed: a leader that was replaced meanwhile has it, too."""
    broker = Broker()
    broker.partition.role = Role.FOLLOWER
    assert broker.produce(BATCHES[1], 2) == []
    lost = encode_batch([Record()], base_offset=4, producer_id=7, producer_epoch=0, base_sequence=2)
    assert broker.produce(lost, 4) == ["acknowledged-as-stored"], "it was truncated"
    assert broker.produce(lost, 2) == ["acknowledged-as-stored"], "the next leader had another one"
    assert broker.produce(lost, 4, acks=1) == broker.produce(lost, 2, acks=1) == []
    broker.partition.role = Role.LEADER
    assert broker.produce(lost, 4, acks=1) == []


def test_compacted_logs_are_not_compared() -> None:
    """Without the first batch, the log shows that records were removed before its second one."""
    broker = Broker()
    broker.data += encode_batch([Record(timestamp_ms=400)], base_offset=6, leader_epoch=2)
    broker.partition.log.files = [(0, "log", len(broker.data))]
    broker.partition.log.end_offset = 7
    assert broker.list_offset(350, -1) == []
    assert broker.fetch(1, BATCHES[1]) == []


def test_epochs_end_where_the_log_says() -> None:
    """Epoch 2 begins at offset 2."""
    broker = Broker()
    assert broker.end_epoch(1, 1, 2) == []
    assert broker.end_epoch(1, 1, 4) == ["epoch-end-as-stored"]
    assert broker.end_epoch(1, 1, 2, replica=2) == broker.diverge(1, 1, 2) == []
    assert broker.end_epoch(1, 1, 4, replica=2) == ["epoch-end-as-stored"]
    assert broker.diverge(1, 1, 4) == ["epoch-end-as-stored"]
    assert broker.diverge(1, -1, -1) == [], "the follower's log does not diverge"
    broker.partition.role = Role.FOLLOWER
    assert broker.diverge(1, 1, 4) == []


def test_fetches_return_the_log() -> None:
    """A follower answers only consumers with a rack, and in it nothing is out of range."""
    broker = Broker()
    assert broker.fetch(1, *BATCHES) == []
    assert broker.fetch(1, BATCHES[1]) == ["read-as-stored"]
    assert broker.fetch(1, error_code=1) == ["read-as-stored"]
    assert broker.fetch(5, error_code=1) == []
    broker.partition.role = Role.FOLLOWER
    assert broker.fetch(1, *BATCHES) == []
    assert broker.fetch(1, *BATCHES, rack="") == ["answered-as-leader"]


def test_open_transactions_are_not_stable() -> None:
    """The first one that is open in the log counts, but not what was deleted of it."""
    broker = Broker()
    broker.partition.log.producers.entries = {
        7: ProducerEntry(0, transaction_start=3),
        8: ProducerEntry(0, transaction_start=1),
        9: ProducerEntry(0),
    }
    assert broker.fetch(0, isolation=1, last_stable_offset=1) == []
    assert broker.fetch(0, isolation=1, last_stable_offset=3) == ["read-as-stored"]
    assert broker.fetch(0, isolation=0, last_stable_offset=3) == []
    broker.partition.log.start_offset = 2
    assert broker.fetch(2, isolation=1, last_stable_offset=2) == []
    broker.partition.role = Role.FOLLOWER
    assert broker.fetch(2, isolation=1, last_stable_offset=3) == []


def test_a_response_in_a_fetch_session_shows_a_partition_with_records() -> None:
    """Only what the reader may not read yet, or what a quota holds back, is left out."""
    broker = Broker()
    broker.partition.high_watermark, broker.partition.last_stable_offset = 3, 2
    assert broker.leave_out(3) == broker.leave_out(2, isolation=1) == []
    assert broker.leave_out(2) == broker.leave_out(0, 2) == ["read-as-stored"]
    assert broker.leave_out(3, 1) == ["read-as-stored"], "an epoch that is fenced is an error"
    assert broker.leave_out(2, throttle_time_ms=5) == broker.leave_out(2, error_code=71) == []
    assert broker.leave_out(2, named=2) == [], "the other partition may have filled the response"
    broker.partition.role = Role.FOLLOWER
    assert broker.leave_out(2) == []


def test_preferred_replicas_are_near_and_in_sync() -> None:
    """Broker 3 has the rack, but is not in sync."""
    broker = Broker()
    assert broker.fetch(1, preferred_read_replica=2) == []
    assert broker.fetch(1, preferred_read_replica=3) == ["preferred-in-sync"]
    assert broker.fetch(1, preferred_read_replica=2, rack="a") == ["preferred-in-sync"]
    broker.partition.remotes = {2: SimpleNamespace(log_start=1, log_end=4)}
    assert broker.fetch(1, preferred_read_replica=2) == []
    assert broker.fetch(0, preferred_read_replica=2) == ["preferred-in-sync"]


def test_acknowledged_batches_are_in_the_log() -> None:
    """The batch at the offset of the answer is compared with the one that was sent."""
    broker = Broker()
    assert parse_header(BATCHES[1]).producer_id == 7
    assert broker.produce(BATCHES[1], 2) == []
    assert broker.produce(BATCHES[1], 0) == ["acknowledged-as-stored"]
    assert broker.produce(BATCHES[1], 2, stamped_ms=300) == ["acknowledged-as-stored"]


def test_batches_are_stored_as_configured() -> None:
    """The batch is not compressed and has the producer's time; a repeated one was stored before."""
    broker = Broker()
    log = broker.partition.log
    gzip = LogConfig(compression=1)
    asked = PartitionProduceData(index=0, records=BATCHES[1])
    topic = TopicProduceData(name="t", partition_data=[asked])
    row = SimpleNamespace(index=0, error_code=0, base_offset=2, log_append_time_ms=-1)
    answer = SimpleNamespace(responses=[SimpleNamespace(name="t", partition_responses=[row])])
    for before, after, end, is_right in (
        (LogConfig(compression=0), None, 2, True),
        (gzip, None, 2, False),
        (LogConfig(timestamp_type=1), None, 2, False),
        (LogConfig(), gzip, 2, True),
        (gzip, None, 4, True),  # it was stored before the request
    ):
        log.config, log.end_offset = before, end
        on_answer = broker.witness(ProduceRequest(acks=-1, topic_data=[topic]))
        log.config, log.end_offset = after or before, 4
        broker.found.clear()
        assert on_answer is not None
        on_answer(answer)
        assert broker.found == ([] if is_right else ["acknowledged-as-stored"])


def test_sequence_numbers_go_on_after_a_marker() -> None:
    """A new epoch begins with 0, also where a marker has ended the one before."""
    marker = encode_batch(
        [Record()], base_offset=4, leader_epoch=2, producer_id=7, producer_epoch=0, control=True
    )
    for first, is_right in ((0, True), (3, False)):
        batch = encode_batch(
            [Record()],
            base_offset=5,
            leader_epoch=2,
            producer_id=7,
            producer_epoch=1,
            base_sequence=first,
        )
        broker = Broker()
        broker.data += marker + batch
        broker.partition.log.files = [(0, "log", len(broker.data))]
        broker.partition.log.end_offset = 6
        assert broker.produce(batch, 5) == ([] if is_right else ["acknowledged-as-stored"])
