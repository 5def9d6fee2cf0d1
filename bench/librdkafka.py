"""Generates load with librdkafka's Python client, tuned so that the broker is the bottleneck."""

import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

TIMEOUT_S = 60.0

CALL_RECORDS = 2_000
"""Records per call: enough to make Python's share small, few enough to stay in the CPU's cache."""
_AHEAD_BYTES = 64_000_000
"""The maximum number of bytes in the producer's queue."""

PRODUCER_SETTINGS = {
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": 1_000_000,
    "delivery.report.only.error": True,
    "log_level": 4,  # warnings: at the end it logs events that no application reads
}
CONSUMER_SETTINGS = {
    "group.id": "bench",
    "enable.auto.commit": False,
    # A full queue stops fetching for this long. The default, one second, would be the bottleneck
    # of a consumer whose broker is near.
    "fetch.queue.backoff.ms": 1,
    # With the default, 100,000, the queue no longer fits into the CPU's cache.
    "queued.min.messages": 20_000,
}


class Failed(Exception):
    """The measured operation failed."""


def create(address: str, topic: str, *, partitions: int = 1, replicas: int = 1) -> None:
    """Create a topic and wait until each of its partitions has a leader."""
    admin = AdminClient({"bootstrap.servers": address})
    made = admin.create_topics([NewTopic(topic, partitions, replicas)], request_timeout=TIMEOUT_S)
    made[topic].result(TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        seen = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        if len(seen) == partitions and all(row.leader >= 0 for row in seen.values()):
            return
        time.sleep(0.05)
    raise Failed(f"the partitions of {topic} have no leaders")


def delete(address: str, topic: str) -> None:
    """Delete a topic, so that its dirty pages are not written back during the next measurement."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)


def produce(
    address: str, topic: str, *, value_bytes: int, count: int, acks: str, partitions: int = 1
) -> float:
    """Return the seconds from the first record to the last acknowledgement, in large batches."""
    producer = Producer({"bootstrap.servers": address, "acks": acks, **PRODUCER_SETTINGS})
    producer.list_topics(topic, timeout=TIMEOUT_S)
    records = [{"value": b"x" * value_bytes}] * CALL_RECORDS
    ahead = _AHEAD_BYTES // value_bytes
    errors: list[object] = []
    begun = time.perf_counter()
    for number in range(count // CALL_RECORDS):
        producer.produce_batch(
            topic,
            records,
            partition=number % partitions,
            on_delivery=lambda error, _: errors.append(error),
        )
        producer.poll(0)
        while len(producer) > ahead:
            producer.poll(0.001)
    left = producer.flush(TIMEOUT_S)
    seconds = time.perf_counter() - begun
    if left or errors:
        raise Failed(
            f"{left} records were not acknowledged, {len(errors)} were rejected: {errors[:1]}"
        )
    return seconds


def consume(address: str, topic: str, *, count: int) -> float:
    """Return the seconds from the assignment to the last record; each record is a Python object."""
    consumer = Consumer({"bootstrap.servers": address, **CONSUMER_SETTINGS})
    try:
        begun = time.perf_counter()
        consumer.assign([TopicPartition(topic, 0, 0)])
        got = 0
        while got < count:
            messages = consumer.consume(min(CALL_RECORDS, count - got), TIMEOUT_S)
            if not messages or messages[0].error():
                raise Failed(f"only {got} of {count} records were read: {messages[:1]}")
            got += len(messages)
        return time.perf_counter() - begun
    finally:
        consumer.close()


def produce_alone(address: str, topic: str, *, value_bytes: int, count: int) -> Sequence[float]:
    """Return the seconds of each record with acks=all, sent after the one before is answered."""
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 0})
    value = b"x" * value_bytes
    took: list[float] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            raise KafkaException(error)
        took.append(time.perf_counter() - begun)

    producer.list_topics(topic, timeout=TIMEOUT_S)
    for number in range(count):
        begun = time.perf_counter()
        producer.produce(topic, value, partition=0, on_delivery=delivered)
        while len(took) <= number:
            if not producer.poll(TIMEOUT_S):
                raise Failed(f"record {number} was not acknowledged")
    return took
