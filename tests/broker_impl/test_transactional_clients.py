"""Transactions of the clients that people use, against three brokers in this process."""

import asyncio
import warnings
from collections.abc import Iterable
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from aiokafka.errors import ProducerFenced
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas the old way
    import kafka

pytestmark = pytest.mark.slow

PARTITIONS = (0, 1, 2)
ROUNDS = 8
"""Transactions; the odd ones are aborted."""

COMMITTED = {
    partition: [f"{number}-{partition}".encode() for number in range(0, ROUNDS, 2)]
    for partition in PARTITIONS
}
ALL = {
    partition: [f"{number}-{partition}".encode() for number in range(ROUNDS)]
    for partition in PARTITIONS
}


def confluent_producer(bootstrap: str, transactional_id: str) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id}
    )
    producer.init_transactions(30)
    return producer


def confluent_work(bootstrap: str, topic: str, rounds: Iterable[int]) -> None:
    producer = confluent_producer(bootstrap, topic)
    for number in rounds:
        producer.begin_transaction()
        for partition in PARTITIONS:
            producer.produce(topic, f"{number}-{partition}".encode(), partition=partition)
        producer.flush(10)
        if number % 2:
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)


def confluent_read(bootstrap: str, topic: str, isolation: str) -> dict[int, list[bytes]]:
    """All that is there, until each partition has ended."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign(
        [
            confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)
            for partition in PARTITIONS
        ]
    )
    found: dict[int, list[bytes]] = {partition: [] for partition in PARTITIONS}
    ended: set[int] = set()
    while len(ended) < len(PARTITIONS):
        message = consumer.poll(15)
        assert message is not None, f"{found} and no end"
        error, partition = message.error(), message.partition()
        assert partition is not None
        if error is None:
            found[partition].append(message.value() or b"")
        else:
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
            ended.add(partition)
    consumer.close()
    return found


@pytest.fixture
async def topic(three: Any, request: pytest.FixtureRequest) -> str:
    """Three partitions, three replicas."""
    name: str = request.node.name.replace("_", "-")

    def create() -> None:
        admin = AdminClient({"bootstrap.servers": three.bootstrap})
        new = NewTopic(name, len(PARTITIONS), 3)
        admin.create_topics([new], operation_timeout=10)[name].result(15)

    await asyncio.to_thread(create)
    return name


async def check(three: Any, topic: str) -> None:
    """Readers of committed records see what was committed, in order, and others all of it."""
    read = asyncio.to_thread(confluent_read, three.bootstrap, topic, "read_committed")
    assert await read == COMMITTED
    read = asyncio.to_thread(confluent_read, three.bootstrap, topic, "read_uncommitted")
    assert await read == ALL


async def test_confluent_kafka(three: Any, topic: str) -> None:
    """librdkafka: transactions over three partitions, every other one aborted."""
    await asyncio.to_thread(confluent_work, three.bootstrap, topic, range(ROUNDS))
    await check(three, topic)


async def test_aiokafka(three: Any, topic: str) -> None:
    """aiokafka: the same, and a reader of committed records of its own."""
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=three.bootstrap, transactional_id="aio-id"
    )
    await producer.start()
    for number in range(ROUNDS):
        await producer.begin_transaction()
        for partition in PARTITIONS:
            await producer.send_and_wait(
                topic, f"{number}-{partition}".encode(), partition=partition
            )
        if number % 2:
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()
    await producer.stop()
    await check(three, topic)
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=three.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    consumer.assign([aiokafka.TopicPartition(topic, 1)])
    async with asyncio.timeout(20):
        values = [(await consumer.getone()).value for _ in COMMITTED[1]]
    await consumer.stop()
    assert values == COMMITTED[1]


def kafka_python_work(bootstrap: str, topic: str) -> list[bytes]:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id="kpy-id")
    producer.init_transactions()
    for number in range(ROUNDS):
        producer.begin_transaction()
        for partition in PARTITIONS:
            producer.send(topic, f"{number}-{partition}".encode(), partition=partition)
        if number % 2:
            producer.flush(20)
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close(5)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=15_000,
    )
    consumer.assign([kafka.TopicPartition(topic, 2)])
    values = [message.value for _, message in zip(COMMITTED[2], consumer, strict=False)]
    consumer.close()
    return values


async def test_kafka_python(three: Any, topic: str) -> None:
    """kafka-python 3: the same."""
    work = asyncio.to_thread(kafka_python_work, three.bootstrap, topic)
    assert await work == COMMITTED[2]
    await check(three, topic)


async def test_a_second_producer_fences_the_first(three: Any, topic: str) -> None:
    """KIP-98: what the first had begun is aborted, and it can neither send nor commit."""
    first = aiokafka.AIOKafkaProducer(bootstrap_servers=three.bootstrap, transactional_id=topic)
    await first.start()
    await first.begin_transaction()
    await first.send_and_wait(topic, b"zombie", partition=0)
    work = asyncio.to_thread(confluent_work, three.bootstrap, topic, range(ROUNDS))
    await work
    with pytest.raises(ProducerFenced):
        await first.commit_transaction()
    await first.stop()
    read = asyncio.to_thread(confluent_read, three.bootstrap, topic, "read_committed")
    assert await read == COMMITTED
