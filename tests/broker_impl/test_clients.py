"""The clients that people use, unmodified, against three brokers in this process."""

import asyncio
import warnings
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # type: ignore[attr-defined]

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas the old way
    import kafka

pytestmark = pytest.mark.slow

RECORDS = [f"record {number}".encode() for number in range(300)]


def confluent_produce(bootstrap: str, topic: str, codec: str) -> list[int]:
    """The offsets at which librdkafka's idempotent producer was told its records are."""
    offsets: list[int] = []
    errors: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            offsets.append(message.offset())
        else:
            errors.append(error)

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec}
    )
    for value in RECORDS:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(20) == 0
    assert not errors
    return offsets


def confluent_consume(bootstrap: str, topic: str) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    values: list[bytes] = []
    while len(values) < len(RECORDS):
        batch = consumer.consume(100, 10)
        assert batch, f"{len(values)} of {len(RECORDS)} came"
        assert not [message.error() for message in batch if message.error()]
        values += [message.value() or b"" for message in batch]
    consumer.close()
    return values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_confluent_kafka(three: Any, codec: str) -> None:
    """librdkafka: an idempotent producer, acks=all, each codec; a consumer by assign."""
    offsets = await asyncio.to_thread(confluent_produce, three.bootstrap, "confluent", codec)
    assert offsets == list(range(len(RECORDS)))
    assert await asyncio.to_thread(confluent_consume, three.bootstrap, "confluent") == RECORDS


async def test_aiokafka(three: Any) -> None:
    """aiokafka: an idempotent producer and a consumer that is assigned a partition."""
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=three.bootstrap, enable_idempotence=True, acks="all"
    )
    await producer.start()
    sends = [await producer.send("aio", value, partition=0) for value in RECORDS]
    offsets = [(await send).offset for send in sends]
    await producer.stop()
    assert offsets == list(range(len(RECORDS)))
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=three.bootstrap, auto_offset_reset="earliest"
    )
    await consumer.start()
    consumer.assign([aiokafka.TopicPartition("aio", 0)])
    async with asyncio.timeout(20):
        values = [(await consumer.getone()).value for _ in RECORDS]
    await consumer.stop()
    assert values == RECORDS


def kafka_python(bootstrap: str) -> tuple[list[int], list[bytes]]:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    futures = [producer.send("kpy", value, partition=0) for value in RECORDS]
    offsets = [future.get(20).offset for future in futures]
    producer.close(5)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    consumer.assign([kafka.TopicPartition("kpy", 0)])
    values = [message.value for _, message in zip(RECORDS, consumer, strict=False)]
    consumer.close()
    return offsets, values


async def test_kafka_python(three: Any) -> None:
    """kafka-python 3: idempotent by default, and a consumer that is assigned a partition."""
    offsets, values = await asyncio.to_thread(kafka_python, three.bootstrap)
    assert offsets == list(range(len(RECORDS)))
    assert values == RECORDS


async def test_the_admin_client_creates_describes_and_deletes(three: Any) -> None:
    """librdkafka's admin client: topics with settings, and every setting described."""

    def work() -> tuple[str, set[str], dict[str, Any], set[str]]:
        admin = AdminClient({"bootstrap.servers": three.bootstrap})
        new = NewTopic("made", 3, 3, config={"retention.ms": "60000"})
        admin.create_topics([new], operation_timeout=10)["made"].result(15)
        metadata = admin.list_topics("made", timeout=10).topics["made"]
        replicas = {tuple(sorted(p.replicas)) for p in metadata.partitions.values()}
        resource = ConfigResource("topic", "made")
        described = admin.describe_configs([resource])[resource].result(15)
        admin.delete_topics(["made"], operation_timeout=10)["made"].result(15)
        left = set(admin.list_topics(timeout=10).topics)
        return str(replicas), set(described), described, left

    replicas, names, described, left = await asyncio.to_thread(work)
    assert replicas == "{(1, 2, 3)}"
    assert described["retention.ms"].value == "60000"
    assert described["min.insync.replicas"].value == "2"
    assert {"cleanup.policy", "segment.bytes", "max.message.bytes"} <= names
    assert "made" not in left
