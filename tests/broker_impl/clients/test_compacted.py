"""Each client reads a compacted log of small segments to its end, and gets all records left."""

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

with warnings.catch_warnings():
    # kafka-python reads its schemas through a deprecated interface
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

from broker_impl.wire import batch, types
from broker_impl.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.broker_impl.clients.conftest import COMPACTED, compacted

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

KEYS = 3
BATCHES = 90
READ_S = 20


def by_librdkafka(bootstrap: str, topic: str) -> list[int]:
    """The offsets of all records, until the client reports the end of the partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    offsets: list[int] = []
    while True:
        message = consumer.poll(READ_S)
        assert message is not None, f"stands still after {offsets[-3:]}"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            consumer.close()
            return offsets
        offsets.append(message.offset() or 0)


def by_kafka_python(bootstrap: str, topic: str) -> list[int]:
    """The offsets of all records up to the end offset that the broker reports."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    tp = kafka.TopicPartition(topic, 0)
    consumer.assign([tp])
    consumer.seek(tp, 0)
    end = consumer.end_offsets([tp])[tp]
    offsets: list[int] = []
    silent = 0
    while consumer.position(tp) < end:
        before = consumer.position(tp)
        for records in consumer.poll(timeout_ms=1000).values():
            offsets += [record.offset for record in records]
        silent = silent + 1 if consumer.position(tp) == before else 0
        assert silent < READ_S, f"stands still at {before}"
    consumer.close()
    return offsets


async def by_aiokafka(bootstrap: str, topic: str) -> list[int]:
    """The offsets of all records up to the end offset that the broker reports."""
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    await consumer.start()
    tp = aiokafka.TopicPartition(topic, 0)
    consumer.assign([tp])
    consumer.seek(tp, 0)
    end = (await consumer.end_offsets([tp]))[tp]
    offsets: list[int] = []
    async with asyncio.timeout(READ_S):
        while await consumer.position(tp) < end:
            found = await consumer.getmany(tp, timeout_ms=200)
            offsets += [record.offset for record in found.get(tp, [])]
    await consumer.stop()
    return offsets


async def write(brokers: Any, topic: str, *, idempotent: bool) -> None:
    """Write batches of one record each; idempotent batches have a producer of their own each."""
    tp = types.TopicPartition(topic, 0)
    leader = brokers.brokers[1].broker.view.partition(tp).leader
    for number in range(BATCHES):
        record = batch.Record(b"k%d" % (number % KEYS), b"%d" % number, 0)
        if idempotent:
            data = batch.encode_batch(
                [record], producer_id=1000 + number, producer_epoch=0, base_sequence=0
            )
        else:
            data = batch.encode_batch([record])
        row = TopicProduceData(topic, [PartitionProduceData(index=0, records=[memoryview(data)])])
        request = ProduceRequest(acks=1, timeout_ms=5000, topic_data=[row])
        answer = await brokers.ask(leader, request, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("segment_bytes", [200, 2_000])
async def test_a_compacted_log_is_read_to_its_end(
    brokers: Any, segment_bytes: int, idempotent: bool
) -> None:
    """Every client reads a compacted log to its end.

    This also holds where most segments contain only batches without records, which keep the
    state of idempotent producers.
    """
    topic = f"left-{segment_bytes}-{idempotent}"

    def make() -> None:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        settings = COMPACTED | {"segment.bytes": str(segment_bytes)}
        new = NewTopic(topic, 1, 3, config=settings)
        admin.create_topics([new], operation_timeout=10)[topic].result(15)

    await asyncio.to_thread(make)
    await write(brokers, topic, idempotent=idempotent)
    await compacted(brokers, topic)
    tp = types.TopicPartition(topic, 0)
    leader = brokers.brokers[brokers.brokers[1].broker.view.partition(tp).leader].broker
    active = leader._logs.logs[tp].segment_offsets[-1]
    wanted = [*range(active - KEYS, BATCHES)]
    blocking: list[Callable[[str, str], list[int]]] = [by_librdkafka, by_kafka_python]
    for read in blocking:
        assert await asyncio.to_thread(read, brokers.bootstrap, topic) == wanted, read
    assert await by_aiokafka(brokers.bootstrap, topic) == wanted
