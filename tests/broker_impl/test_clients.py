"""Unmodified client libraries against three brokers in this process."""

import asyncio
import warnings
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # type: ignore[attr-defined]

with warnings.catch_warnings():
    # kafka-python reads its schemas through a deprecated interface
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

from broker_impl.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from tests.broker_impl.conftest import WALL_MS
from tests.broker_impl.node.broker_calls import create

pytestmark = pytest.mark.slow

RECORDS = [f"record {number}".encode() for number in range(300)]


def confluent_produce(bootstrap: str, topic: str, codec: str) -> list[int]:
    """Produce all records with librdkafka's idempotent producer; return the reported offsets."""
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
    """librdkafka: an idempotent producer, acks=all, each codec; a manually assigned consumer."""
    offsets = await asyncio.to_thread(confluent_produce, three.bootstrap, "confluent", codec)
    assert offsets == list(range(len(RECORDS)))
    assert await asyncio.to_thread(confluent_consume, three.bootstrap, "confluent") == RECORDS


async def test_recompressed_batches_are_read(three: Any) -> None:
    """librdkafka reads batches that the broker has compressed by another codec."""
    for codec, sent in (("snappy", "none"), ("lz4", "snappy")):
        await create(three, codec, config={"compression.type": codec})
        offsets = await asyncio.to_thread(confluent_produce, three.bootstrap, codec, sent)
        assert offsets == list(range(len(RECORDS)))
        assert await asyncio.to_thread(confluent_consume, three.bootstrap, codec) == RECORDS


async def test_a_throttled_producer(cluster: Any) -> None:
    """librdkafka reports the throttle time of a quota, which the broker's response has."""
    await cluster.add(1, quota_window_num="2", quota_window_size_seconds="1000")
    await cluster.ready()
    await create(cluster, "quota", replicas=1)
    entry = EntryData([EntityData("client-id", "slow")], [OpData("producer_byte_rate", 1.0)])
    answer = await cluster.ask(1, AlterClientQuotasRequest([entry]), 1)
    assert answer.entries[0].error_code == 0
    times: list[float] = []

    def produce() -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "client.id": "slow",
                "throttle_cb": lambda event: times.append(event.throttle_time),
            }
        )
        producer.produce("quota", bytes(2000), partition=0)
        for _ in range(200):
            if not times:
                producer.poll(0.1)
        producer.purge()

    await asyncio.to_thread(produce)
    assert max(times) > 100, "2,000 bytes are twice those of 1,000 s"


async def test_aiokafka(three: Any) -> None:
    """aiokafka: an idempotent producer, and a consumer with a manual assignment."""
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
    """kafka-python 3: a producer, idempotent by default, and a manually assigned consumer."""
    offsets, values = await asyncio.to_thread(kafka_python, three.bootstrap)
    assert offsets == list(range(len(RECORDS)))
    assert values == RECORDS


async def test_the_admin_client_creates_describes_and_deletes(three: Any) -> None:
    """librdkafka's admin client creates topics with settings, and describes every setting."""

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


# Offsets, times and limits.


def librdkafka(bootstrap: str, **settings: Any) -> tuple[confluent_kafka.Producer, list[Any]]:
    """A producer, and the list of its delivery reports: an error or a message for each record."""
    told: list[Any] = []
    given = {"bootstrap.servers": bootstrap, "linger.ms": 50, "acks": "all"}
    producer = confluent_kafka.Producer(
        given
        | {name.replace("_", "."): value for name, value in settings.items()}
        | {"on_delivery": lambda error, message: told.append(error or message)}
    )
    return producer, told


def reader(bootstrap: str, **settings: Any) -> confluent_kafka.Consumer:
    given = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    return confluent_kafka.Consumer(
        given | {name.replace("_", "."): value for name, value in settings.items()}
    )


def first_from(consumer: confluent_kafka.Consumer, topic: str, offset: int) -> Any:
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
    message = consumer.poll(10)
    assert message is not None
    assert message.error() is None, message.error()
    return message


@pytest.mark.parametrize("codec", ["none", "zstd"])
async def test_reading_begins_in_the_midst_of_a_batch(three: Any, codec: str) -> None:
    """A fetch from within a batch returns it whole, compressed; the client skips its start."""

    def work() -> None:
        producer, told = librdkafka(three.bootstrap, compression_type=codec)
        for value in RECORDS:
            producer.produce("midst", value, partition=0)
        assert producer.flush(20) == 0
        assert [message.offset() for message in told] == list(range(len(RECORDS)))
        consumer = reader(three.bootstrap)
        for offset in (0, 1, 157, len(RECORDS) - 1):
            message = first_from(consumer, "midst", offset)
            assert (message.offset(), message.value()) == (offset, RECORDS[offset])
        consumer.close()

    await asyncio.to_thread(work)


async def test_seeking_by_time(three: Any) -> None:
    """A look-up by time finds the first record at or after it, also within a batch, or the end."""

    def work() -> None:
        producer, _ = librdkafka(three.bootstrap)
        for number in range(100):
            producer.produce(
                "times", b"%d" % number, partition=0, timestamp=1_000_000 + number * 10
            )
        assert producer.flush(20) == 0
        consumer = reader(three.bootstrap)

        def at(time_ms: int) -> int:
            asked = confluent_kafka.TopicPartition("times", 0, time_ms)
            return int(consumer.offsets_for_times([asked], timeout=10)[0].offset)

        assert [at(0), at(1_000_500), at(1_000_501), at(1_000_990)] == [0, 50, 51, 99]
        assert at(1_000_991) == confluent_kafka.OFFSET_END
        partition = confluent_kafka.TopicPartition("times", 0)
        assert consumer.get_watermark_offsets(partition, timeout=10) == (0, 100)
        consumer.close()

    await asyncio.to_thread(work)


async def test_records_up_to_the_largest(three: Any) -> None:
    """A batch of max.message.bytes is accepted and read by small fetches; a larger one is not."""

    def work() -> None:
        admin = AdminClient({"bootstrap.servers": three.bootstrap})
        new = NewTopic("large", 1, 3, config={"max.message.bytes": "100000"})
        admin.create_topics([new], operation_timeout=10)["large"].result(15)
        producer, told = librdkafka(three.bootstrap, message_max_bytes=1_000_000)
        for value in (b"x" * 99_900, b"y" * 100_000):
            producer.produce("large", value, partition=0)
            assert producer.flush(20) == 0
        taken = [each for each in told if isinstance(each, confluent_kafka.Message)]
        refused = [each for each in told if not isinstance(each, confluent_kafka.Message)]
        assert [len(message.value() or b"") for message in taken] == [99_900]
        assert [error.code() for error in refused] == [
            confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE
        ]
        consumer = reader(
            three.bootstrap,
            fetch_message_max_bytes=1000,
            fetch_max_bytes=1000,
            message_max_bytes=1000,
        )
        assert len(first_from(consumer, "large", 0).value()) == 99_900
        consumer.close()

    await asyncio.to_thread(work)


async def test_the_brokers_own_time(three: Any) -> None:
    """message.timestamp.type=LogAppendTime: producer and consumer get the broker's time."""

    def work() -> None:
        admin = AdminClient({"bootstrap.servers": three.bootstrap})
        new = NewTopic("stamped", 1, 3, config={"message.timestamp.type": "LogAppendTime"})
        admin.create_topics([new], operation_timeout=10)["stamped"].result(15)
        producer, told = librdkafka(three.bootstrap)
        producer.produce("stamped", b"a", partition=0, timestamp=5)
        assert producer.flush(20) == 0
        stamped = (confluent_kafka.TIMESTAMP_LOG_APPEND_TIME, WALL_MS)
        assert told[0].timestamp() == stamped
        consumer = reader(three.bootstrap)
        assert first_from(consumer, "stamped", 0).timestamp() == stamped
        consumer.close()

    await asyncio.to_thread(work)


@pytest.mark.parametrize("acks", ["0", "1"])
async def test_weaker_acks(three: Any, acks: str) -> None:
    """With acks=0 or 1, all records arrive in order if no broker fails."""

    def work() -> None:
        producer, told = librdkafka(three.bootstrap, acks=acks)
        for value in RECORDS:
            producer.produce("weak", value, partition=0)
        assert producer.flush(20) == 0
        assert not [each for each in told if not isinstance(each, confluent_kafka.Message)]

    await asyncio.to_thread(work)
    assert await asyncio.to_thread(confluent_consume, three.bootstrap, "weak") == RECORDS


async def test_kafka_python_seeks(three: Any) -> None:
    """kafka-python: end offsets, offsets by time, and seeking into a batch."""

    def work() -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=three.bootstrap, linger_ms=50)
        for number, value in enumerate(RECORDS):
            producer.send("kpy-seek", value, partition=0, timestamp_ms=1_000 + number)
        producer.flush(20)
        producer.close(5)
        consumer = kafka.KafkaConsumer(bootstrap_servers=three.bootstrap)
        tp = kafka.TopicPartition("kpy-seek", 0)
        consumer.assign([tp])
        assert consumer.beginning_offsets([tp]) == {tp: 0}
        assert consumer.end_offsets([tp]) == {tp: len(RECORDS)}
        assert consumer.offsets_for_times({tp: 1_100})[tp].offset == 100
        consumer.seek(tp, 250)
        message = next(consumer)
        assert (message.offset, message.value) == (250, RECORDS[250])
        consumer.close()

    await asyncio.to_thread(work)


async def test_aiokafka_seeks(three: Any) -> None:
    """aiokafka: end offsets, offsets by time, and seeking into a batch."""
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=three.bootstrap, linger_ms=50)
    await producer.start()
    for number, value in enumerate(RECORDS):
        await producer.send("aio-seek", value, partition=0, timestamp_ms=1_000 + number)
    await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=three.bootstrap)
    await consumer.start()
    tp = aiokafka.TopicPartition("aio-seek", 0)
    consumer.assign([tp])
    assert await consumer.end_offsets([tp]) == {tp: len(RECORDS)}
    assert (await consumer.offsets_for_times({tp: 1_100}))[tp].offset == 100
    consumer.seek(tp, 250)
    async with asyncio.timeout(10):
        message = await consumer.getone()
    assert (message.offset, message.value) == (250, RECORDS[250])
    await consumer.stop()
