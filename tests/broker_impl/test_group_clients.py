"""Consumer groups of unmodified client libraries against three brokers in this process.

Each group reads through a rebalance, commits, and continues from its offsets after its
coordinator has stopped.
"""

import asyncio
import warnings
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from aiokafka.structs import OffsetAndMetadata
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

with warnings.catch_warnings():
    # kafka-python reads its schemas through a deprecated interface
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

from broker_impl.coordinator import partitioner
from tests.broker_impl.conftest import ClusterInLoop

pytestmark = pytest.mark.slow

PARTITIONS = 4
OFFSETS_PARTITIONS = 3


@pytest.fixture
async def groups(cluster: ClusterInLoop) -> ClusterInLoop:
    """Three brokers with a small __consumer_offsets, short rebalance delays, 4-partition topics."""
    settings = {
        "default_replication_factor": "3",
        "min_insync_replicas": "2",
        "num_partitions": str(PARTITIONS),
        "offsets_topic_num_partitions": str(OFFSETS_PARTITIONS),
        "group_initial_rebalance_delay_ms": "100",
        "group_min_session_timeout_ms": "1000",
        "controlled_shutdown_max_retries": "3",
    }
    await asyncio.gather(*(cluster.add(number, **settings) for number in (1, 2, 3)))
    await cluster.ready()
    return cluster


def coordinator_of(cluster: ClusterInLoop, group: str) -> int:
    """The broker that leads the group's partition."""
    number = partitioner.partition_of(group, OFFSETS_PARTITIONS)
    for running in cluster.brokers.values():
        if running.broker is not None:
            return running.broker.view.topics["__consumer_offsets"][number].leader
    raise AssertionError("no broker is up")


def fill(bootstrap: str, topic: str, first: int, count: int) -> None:
    """Produce numbers as records, spread over all partitions."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(first, first + count):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


def make(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, PARTITIONS, 3)
    admin.create_topics([new], operation_timeout=10)[topic].result(15)


def consumer_of(bootstrap: str, group: str, **settings: Any) -> confluent_kafka.Consumer:
    given = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 200,
    }
    return confluent_kafka.Consumer(
        given | {name.replace("_", "."): value for name, value in settings.items()}
    )


def read(consumers: list[confluent_kafka.Consumer], count: int) -> list[int]:
    """Return `count` or more numbers that the consumers read together, sorted."""
    numbers: list[int] = []
    for _ in range(400):
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                numbers.append(int(message.value() or b""))
        if len(numbers) >= count:
            return sorted(numbers)
    raise AssertionError(f"{len(numbers)} of {count} came")


def shares(consumers: list[confluent_kafka.Consumer], wanted: list[int]) -> None:
    """Poll until the consumers share the partitions in these numbers."""
    for _ in range(400):
        for consumer in consumers:
            consumer.poll(0.05)
        have = [len(consumer.assignment()) for consumer in consumers]
        if sorted(have) == sorted(wanted):
            return
    raise AssertionError(f"shared {have}, not {wanted}")


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
async def test_confluent_kafka(groups: Any, strategy: str) -> None:
    """librdkafka: members join, leave, share partitions; the next coordinator has the commits."""
    group, topic = f"g-{strategy}", f"t-{strategy}"
    bootstrap = groups.bootstrap

    def before() -> None:
        make(bootstrap, topic)
        fill(bootstrap, topic, 0, 40)
        first = consumer_of(bootstrap, group, partition_assignment_strategy=strategy)
        first.subscribe([topic])
        assert read([first], 40) == list(range(40))
        first.commit(asynchronous=False)
        second = consumer_of(bootstrap, group, partition_assignment_strategy=strategy)
        second.subscribe([topic])
        shares([first, second], [2, 2])
        fill(bootstrap, topic, 40, 40)
        assert read([first, second], 40) == list(range(40, 80))
        for each in (first, second):
            each.commit(asynchronous=False)
        second.close()
        shares([first], [4])
        first.close()

    def after() -> None:
        fill(groups.bootstrap, topic, 80, 40)
        again = consumer_of(groups.bootstrap, group, partition_assignment_strategy=strategy)
        again.subscribe([topic])
        assert read([again], 40) == list(range(80, 120))
        again.close()

    await asyncio.to_thread(before)
    await groups.brokers[coordinator_of(groups, group)].stop()
    await asyncio.to_thread(after)


async def test_aiokafka(groups: Any) -> None:
    """aiokafka: two members, commits with metadata, and another coordinator."""
    await asyncio.to_thread(make, groups.bootstrap, "aio")
    await asyncio.to_thread(fill, groups.bootstrap, "aio", 0, 40)

    def member(group: str = "g-aio") -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            "aio",
            bootstrap_servers=groups.bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
        )

    async def numbers(consumers: list[aiokafka.AIOKafkaConsumer], count: int) -> list[int]:
        found: list[int] = []
        async with asyncio.timeout(30):
            while len(found) < count:
                for consumer in consumers:
                    for records in (await consumer.getmany(timeout_ms=50)).values():
                        found += [int(record.value) for record in records]
        return sorted(found)

    first = member()
    await first.start()
    assert await numbers([first], 40) == list(range(40))
    await first.commit()
    second = member()
    await second.start()
    await groups.until(lambda: len(first.assignment()) == len(second.assignment()) == 2, 20)
    await asyncio.to_thread(fill, groups.bootstrap, "aio", 40, 40)
    assert await numbers([first, second], 40) == list(range(40, 80))
    mine = sorted(first.assignment())[0]
    end = await first.position(mine)
    await first.commit({mine: OffsetAndMetadata(end, "as far as here")})
    await first.commit()
    await second.commit()
    assert await first.committed(mine) == end
    await first.stop()
    await second.stop()
    await groups.brokers[coordinator_of(groups, "g-aio")].stop()
    await asyncio.to_thread(fill, groups.bootstrap, "aio", 80, 40)
    third = member()
    await third.start()
    assert await numbers([third], 40) == list(range(80, 120))
    await third.stop()


async def test_kafka_python(groups: Any) -> None:
    """kafka-python: a group of one member, commits, and another coordinator."""

    def member() -> Any:
        return kafka.KafkaConsumer(
            "kpy",
            bootstrap_servers=groups.bootstrap,
            group_id="g-kpy",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            consumer_timeout_ms=20_000,
        )

    def numbers(consumer: Any, count: int) -> list[int]:
        return sorted(
            int(message.value) for _, message in zip(range(count), consumer, strict=False)
        )

    def before() -> None:
        make(groups.bootstrap, "kpy")
        fill(groups.bootstrap, "kpy", 0, 40)
        consumer = member()
        assert numbers(consumer, 40) == list(range(40))
        consumer.commit()
        consumer.close()

    def after() -> None:
        fill(groups.bootstrap, "kpy", 40, 40)
        consumer = member()
        assert numbers(consumer, 40) == list(range(40, 80))
        consumer.commit()
        consumer.close()

    await asyncio.to_thread(before)
    await groups.brokers[coordinator_of(groups, "g-kpy")].stop()
    await asyncio.to_thread(after)


async def test_a_coordinator_that_dies_under_its_members(groups: Any) -> None:
    """Members continue with another coordinator, and no committed offset is lost."""
    topic, group = "live", "g-live"
    await asyncio.to_thread(make, groups.bootstrap, topic)
    await asyncio.to_thread(fill, groups.bootstrap, topic, 0, 40)
    consumer = consumer_of(groups.bootstrap, group)
    consumer.subscribe([topic])
    assert await asyncio.to_thread(read, [consumer], 40) == list(range(40))
    await asyncio.to_thread(consumer.commit, asynchronous=False)
    await groups.brokers[coordinator_of(groups, group)].stop()
    await asyncio.to_thread(fill, groups.bootstrap, topic, 40, 40)
    assert await asyncio.to_thread(read, [consumer], 40) == list(range(40, 80))
    await asyncio.to_thread(consumer.commit, asynchronous=False)
    partitions = [confluent_kafka.TopicPartition(topic, each) for each in range(PARTITIONS)]
    kept = await asyncio.to_thread(consumer.committed, partitions, 10)
    assert [row.offset for row in kept] == [20] * PARTITIONS
    await asyncio.to_thread(consumer.close)


async def test_the_admin_client_of_confluent_kafka(groups: Any) -> None:
    """confluent-kafka's admin client lists, describes, resets and deletes groups.

    A group with members cannot be deleted.
    """

    def work() -> None:
        bootstrap = groups.bootstrap
        make(bootstrap, "adm")
        fill(bootstrap, "adm", 0, 40)
        consumer = consumer_of(bootstrap, "g-adm")
        consumer.subscribe(["adm"])
        assert read([consumer], 40) == list(range(40))
        consumer.commit(asynchronous=False)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        described = admin.describe_consumer_groups(["g-adm"])["g-adm"].result(10)
        assert described.state == confluent_kafka.ConsumerGroupState.STABLE
        (member,) = described.members
        assert len(member.assignment.topic_partitions) == PARTITIONS
        listed = admin.list_consumer_groups().result(10)
        assert [group.group_id for group in listed.valid] == ["g-adm"]
        assert not listed.errors
        reset = confluent_kafka.ConsumerGroupTopicPartitions(
            "g-adm", [confluent_kafka.TopicPartition("adm", 0, 3)]
        )
        with pytest.raises(confluent_kafka.KafkaException):
            admin.delete_consumer_groups(["g-adm"])["g-adm"].result(10)
        consumer.close()
        admin.alter_consumer_group_offsets([reset])["g-adm"].result(10)
        everything = confluent_kafka.ConsumerGroupTopicPartitions("g-adm")
        kept = admin.list_consumer_group_offsets([everything])["g-adm"].result(10)
        assert {row.partition: row.offset for row in kept.topic_partitions} == {
            **dict.fromkeys(range(1, PARTITIONS), 10),
            0: 3,
        }
        again = consumer_of(bootstrap, "g-adm")
        again.subscribe(["adm"])
        assert read([again], 7) == [12, 16, 20, 24, 28, 32, 36]
        again.close()
        admin.delete_consumer_groups(["g-adm"])["g-adm"].result(10)
        assert admin.list_consumer_groups().result(10).valid == []

    await asyncio.to_thread(work)


async def test_the_admin_client_of_kafka_python(groups: Any) -> None:
    """kafka-python's admin client lists, describes and deletes groups."""

    def work() -> None:
        bootstrap = groups.bootstrap
        make(bootstrap, "kadm")
        fill(bootstrap, "kadm", 0, 8)
        consumer = consumer_of(bootstrap, "g-kadm")
        consumer.subscribe(["kadm"])
        assert read([consumer], 8) == list(range(8))
        consumer.commit(asynchronous=False)
        admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
        described = admin.describe_groups(["g-kadm"])["g-kadm"]
        assert described["group_state"] == "Stable"
        assert len(described["members"]) == 1
        assert [group["group_id"] for group in admin.list_groups()] == ["g-kadm"]
        consumer.close()
        offsets = admin.list_group_offsets("g-kadm")
        assert {tp.partition: kept.offset for tp, kept in offsets["g-kadm"].items()} == (
            dict.fromkeys(range(PARTITIONS), 2)
        )
        admin.delete_groups(["g-kadm"])
        assert admin.list_groups() == []
        admin.close()

    await asyncio.to_thread(work)


async def test_a_static_member_of_confluent_kafka(groups: Any) -> None:
    """KIP-345: a static member that restarts within its session causes no rebalance."""

    def work() -> None:
        bootstrap = groups.bootstrap
        make(bootstrap, "static")
        first = consumer_of(bootstrap, "g-static", group_instance_id="one")
        second = consumer_of(bootstrap, "g-static", group_instance_id="two")
        for each in (first, second):
            each.subscribe(["static"])
        shares([first, second], [2, 2])
        moved: list[int] = []
        mine = sorted(tp.partition for tp in second.assignment())
        second.close()
        again = consumer_of(bootstrap, "g-static", group_instance_id="two")
        again.subscribe(["static"])
        for _ in range(200):
            first.poll(0.02)
            again.poll(0.02)
            moved.append(len(first.assignment()))
            if again.assignment():
                break
        assert sorted(tp.partition for tp in again.assignment()) == mine
        assert set(moved) == {2}
        first.close()
        again.close()

    await asyncio.to_thread(work)
