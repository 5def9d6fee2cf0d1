"""What brokers return is compared with the limits of the request and of the broker."""

from types import SimpleNamespace
from typing import Any

from broker_impl.wire.batch import Record, encode_batch
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.list_offsets_request import ListOffsetsRequest
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_sizes import SizeWitness

BATCH = encode_batch([Record(value=b"v" * 100)])


def fetched(
    *records: Any, max_bytes: int = 1 << 20, of_partition: int = 1 << 20, of_broker: int = 1 << 20
) -> list[str]:
    """Answer a fetch of partition 0 with these records; return the violations."""
    found: list[str] = []
    witness = SizeWitness(
        Reporter(1, lambda: 0, lambda each: found.append(each.invariant)), of_broker
    )
    asked = FetchPartition(partition=0, partition_max_bytes=of_partition)
    request = FetchRequest(max_bytes=max_bytes, topics=[FetchTopic(topic="t", partitions=[asked])])
    on_answer = witness(request)
    assert on_answer is not None
    row = SimpleNamespace(partition_index=0, records=records)
    on_answer(SimpleNamespace(responses=[SimpleNamespace(topic="t", partitions=[row])]))
    return found


def test_each_limit_is_compared() -> None:
    """Those of the response, of the partition and of the broker; one batch is always right."""
    limit = len(BATCH) + 1
    assert fetched(BATCH + BATCH) == []
    assert fetched(BATCH + BATCH, max_bytes=limit) == ["fetched-within-limits"]
    assert fetched(BATCH, BATCH, of_partition=limit) == ["fetched-within-limits"]
    assert fetched(memoryview(BATCH + BATCH), of_broker=limit) == ["fetched-within-limits"]
    assert fetched(BATCH, max_bytes=1, of_partition=1, of_broker=1) == []
    assert fetched(max_bytes=0) == []


def test_damaged_bytes_and_other_requests_are_not_judged() -> None:
    """A batch that is cut short has no size."""
    assert fetched(BATCH + BATCH[:-1], max_bytes=1) == []
    witness = SizeWitness(Reporter(1, lambda: 0, lambda _: None), 1)
    assert witness(ListOffsetsRequest()) is None
