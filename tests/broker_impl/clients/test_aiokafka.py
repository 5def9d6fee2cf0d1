"""Operations of applications and operators through an unmodified aiokafka.

Its admin client can neither move partitions nor delete groups.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
import pytest
from aiokafka import errors
from aiokafka.admin import (
    AIOKafkaAdminClient,
    NewPartitions,
    NewTopic,
    RecordsToDelete,
)
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.structs import OffsetAndMetadata

from tests.broker_impl.clients.conftest import COMPACTED, compacted

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

PARTITIONS = 3
PATIENCE_S = 30


@asynccontextmanager
async def admin_of(brokers: Any) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers.bootstrap)
    await admin.start()
    yield admin
    await admin.close()


async def make(brokers: Any, topic: str, partitions: int = PARTITIONS, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    async with admin_of(brokers) as admin:
        new = NewTopic(topic, partitions, 3, topic_configs=settings)
        answer = await admin.create_topics([new], timeout_ms=10_000)
    assert [row[1] for row in answer.topic_errors] == [0]


@asynccontextmanager
async def producer_of(brokers: Any, **settings: Any) -> AsyncIterator[aiokafka.AIOKafkaProducer]:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=brokers.bootstrap, **settings)
    await producer.start()
    yield producer
    await producer.stop()


async def fill(brokers: Any, topic: str, numbers: range) -> None:
    """Produce the numbers as records to all partitions, with timestamps based on the number."""
    async with producer_of(brokers, enable_idempotence=True) as producer:
        for number in numbers:
            partition = number % PARTITIONS
            value, time_ms = b"%d" % number, 1_000_000 + number
            await producer.send(topic, value, partition=partition, timestamp_ms=time_ms)


async def consumer_of(
    brokers: Any, *topics: str, group: str | None = None, **settings: Any
) -> aiokafka.AIOKafkaConsumer:
    consumer = aiokafka.AIOKafkaConsumer(
        *topics,
        bootstrap_servers=brokers.bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
        heartbeat_interval_ms=200,
        **settings,
    )
    await consumer.start()
    return consumer


async def read(consumers: list[aiokafka.AIOKafkaConsumer], count: int) -> list[bytes]:
    """Return `count` or more values that the consumers read together."""
    values: list[bytes] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(values) < count:
            for consumer in consumers:
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    values += [record.value for record in records]
    return values


async def numbers(consumers: list[aiokafka.AIOKafkaConsumer], count: int) -> list[int]:
    return sorted(map(int, await read(consumers, count)))


async def test_members_of_a_group_come_and_go(brokers: Any) -> None:
    """Members of a group share the partitions, and each starts at the offset another committed."""
    await make(brokers, "group")
    await fill(brokers, "group", range(30))
    first = await consumer_of(brokers, "group", group="g")
    assert await numbers([first], 30) == list(range(30))
    await first.commit()
    second = await consumer_of(brokers, "group", group="g")
    members = (first, second)
    await brokers.until(
        lambda: sorted(len(each.assignment()) for each in members) == [1, 2], PATIENCE_S
    )
    await fill(brokers, "group", range(30, 60))
    assert await numbers([first, second], 30) == list(range(30, 60))
    for each in members:
        await each.commit()
    await second.stop()
    await fill(brokers, "group", range(60, 90))
    assert await numbers([first], 30) == list(range(60, 90))
    await first.stop()


async def test_seeking(brokers: Any) -> None:
    """A consumer can seek to an offset and to a timestamp."""
    await make(brokers, "seek")
    await fill(brokers, "seek", range(90))
    consumer = await consumer_of(brokers)
    tp = aiokafka.TopicPartition("seek", 1)
    consumer.assign([tp])
    consumer.seek(tp, 20)
    assert (await read([consumer], 1))[0] == b"61"
    found = (await consumer.offsets_for_times({tp: 1_000_050}))[tp]
    assert found.offset == 17
    consumer.seek(tp, found.offset)
    assert (await read([consumer], 1))[0] == b"52"
    assert await consumer.beginning_offsets([tp]) == {tp: 0}
    assert await consumer.end_offsets([tp]) == {tp: 30}
    await consumer.stop()


async def test_transactions(brokers: Any) -> None:
    """read_committed consumers get committed records only, and the group committed offsets only."""
    await make(brokers, "source")
    await make(brokers, "target")
    await fill(brokers, "source", range(12))
    consumer = await consumer_of(brokers, "source", group="through")
    source = aiokafka.TopicPartition("source", 0)
    async with producer_of(brokers, transactional_id="aio") as producer:
        for number in await numbers([consumer], 12):
            await producer.begin_transaction()
            value = b"%d" % number
            await producer.send_and_wait("target", value, partition=number % PARTITIONS)
            await producer.send_offsets_to_transaction({source: number + 1}, "through")
            if number % 3 == 1:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
    await consumer.stop()
    reader = await consumer_of(
        brokers, "target", group="committed", isolation_level="read_committed"
    )
    assert await numbers([reader], 8) == [n for n in range(12) if n % 3 != 1]
    await reader.stop()
    reader = await consumer_of(brokers, "target", group="everything")
    assert await numbers([reader], 12) == list(range(12))
    await reader.stop()
    async with admin_of(brokers) as admin:
        kept = await admin.list_consumer_group_offsets("through", partitions=[source])
    assert kept[source].offset == 12


async def test_topics_are_administered(brokers: Any) -> None:
    """Topics are created, described, altered, extended, deleted; invalid requests are refused."""
    await make(brokers, "made", retention_ms="60000")
    async with admin_of(brokers) as admin:
        (described,) = await admin.describe_topics(["made"])
        assert len(described["partitions"]) == PARTITIONS

        async def setting(name: str) -> Any:
            resource = ConfigResource(ConfigResourceType.TOPIC, "made")
            (answer,) = await admin.describe_configs([resource])
            rows = answer.resources[0][4]
            return next(row[1] for row in rows if row[0] == name)

        assert await setting("retention.ms") == "60000"
        changes = {"segment.ms": "7000"}
        resource = ConfigResource(ConfigResourceType.TOPIC, "made", changes)
        await admin.alter_configs([resource])
        assert await setting("segment.ms") == "7000"
        assert await setting("retention.ms") == "604800000"
        await admin.create_partitions({"made": NewPartitions(5)})
        with pytest.raises(errors.InvalidPartitionsError):
            await admin.create_partitions({"made": NewPartitions(4)})
        answer = await admin.create_topics([NewTopic("made", 1, 3)])
        assert [row[1] for row in answer.topic_errors] == [errors.TopicAlreadyExistsError.errno]
        await admin.delete_topics(["made"])
        assert "made" not in await admin.list_topics()


async def test_records_are_deleted(brokers: Any) -> None:
    """DeleteRecords moves the start of the log for the admin client and for consumers."""
    await make(brokers, "shorter")
    await fill(brokers, "shorter", range(30))
    tp = aiokafka.TopicPartition("shorter", 0)
    async with admin_of(brokers) as admin:
        assert await admin.delete_records({tp: RecordsToDelete(4)}) == {tp: 4}
    consumer = await consumer_of(brokers)
    consumer.assign([tp])
    assert await numbers([consumer], 6) == [12, 15, 18, 21, 24, 27]
    await consumer.stop()


async def test_groups_are_administered(brokers: Any) -> None:
    """Groups are listed and described; only a member can reset the offsets."""
    await make(brokers, "adm")
    await fill(brokers, "adm", range(30))
    consumer = await consumer_of(brokers, "adm", group="g-adm")
    assert await numbers([consumer], 30) == list(range(30))
    await consumer.commit()
    async with admin_of(brokers) as admin:
        (answer,) = await admin.describe_consumer_groups(["g-adm"])
        (group,) = answer.groups
        assert (group[1], group[2], len(group[5])) == ("g-adm", "Stable", 1)
        assert ("g-adm", "consumer") in await admin.list_consumer_groups()
    tp = aiokafka.TopicPartition("adm", 0)
    await consumer.commit({tp: OffsetAndMetadata(3, "back")})
    await consumer.stop()
    again = await consumer_of(brokers, "adm", group="g-adm")
    assert await numbers([again], 7) == [9, 12, 15, 18, 21, 24, 27]
    await again.stop()


async def test_the_cluster_is_described(brokers: Any) -> None:
    """DescribeCluster lists the brokers and the controller."""
    async with admin_of(brokers) as admin:
        cluster = await admin.describe_cluster()
    assert sorted(node["node_id"] for node in cluster["brokers"]) == [1, 2, 3]
    assert cluster["controller_id"] in (1, 2, 3)


async def test_a_compacted_topic_is_read(brokers: Any) -> None:
    """A consumer of a compacted topic gets each key's last value, past gaps and empty batches."""
    await make(brokers, "latest", 1, **COMPACTED)
    async with producer_of(brokers, enable_idempotence=True) as producer:
        for number in range(120):
            value, key = b"%d" % number * 20, b"k%d" % (number % 5)
            await producer.send_and_wait("latest", value, key, partition=0)
    await compacted(brokers, "latest")
    consumer = await consumer_of(brokers)
    tp = aiokafka.TopicPartition("latest", 0)
    consumer.assign([tp])
    found: dict[bytes, bytes] = {}
    count = 0
    async with asyncio.timeout(PATIENCE_S):
        while await consumer.position(tp) < 120:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    count += 1
                    found[record.key] = record.value
    await consumer.stop()
    assert count < 60, "most are gone"
    assert found == {b"k%d" % (number % 5): b"%d" % number * 20 for number in range(115, 120)}
