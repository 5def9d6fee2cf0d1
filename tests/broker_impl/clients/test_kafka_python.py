"""Operations of applications and operators through an unmodified kafka-python."""

import asyncio
import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

with warnings.catch_warnings():
    # kafka-python reads its schemas through a deprecated interface
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka import errors
    from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec

from tests.broker_impl.clients.conftest import COMPACTED, compacted

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

PARTITIONS = 3
PREFERRED = 0
OPEN: list[Any] = []
"""The clients of the test that runs."""


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def closed(brokers: Any) -> AsyncIterator[None]:
    """Close the clients of a test that failed, whose threads would disturb the following tests."""
    yield
    while OPEN:
        await asyncio.to_thread(OPEN.pop().close)


def kept(client: Any) -> Any:
    OPEN.append(client)
    return client


def admin_of(brokers: Any) -> Any:
    return kept(kafka.KafkaAdminClient(bootstrap_servers=brokers.bootstrap))


def make(brokers: Any, topic: str, partitions: int = PARTITIONS, **config: str) -> None:
    admin = admin_of(brokers)
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics(
        {topic: {"num_partitions": partitions, "replication_factor": 3, "configs": settings}},
        timeout_ms=10_000,
    )
    admin.close()


def fill(brokers: Any, topic: str, numbers: range) -> None:
    """Produce the numbers as records to all partitions, with timestamps based on the number."""
    producer = kept(kafka.KafkaProducer(bootstrap_servers=brokers.bootstrap, acks="all"))
    for number in numbers:
        producer.send(
            topic, b"%d" % number, partition=number % PARTITIONS, timestamp_ms=1_000_000 + number
        )
    producer.flush(20)
    producer.close(5)


def consumer_of(brokers: Any, *topics: str, group: str | None = None, **settings: Any) -> Any:
    """Return a consumer that knows the partitions of its topics: kafka-python assigns none of them
    for good if it leads a group before it does."""
    consumer = kept(
        kafka.KafkaConsumer(
            *topics,
            bootstrap_servers=brokers.bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            **settings,
        )
    )
    for topic in topics:
        assert consumer.partitions_for_topic(topic)
    return consumer


def read(consumers: list[Any], count: int) -> list[bytes]:
    """Return `count` or more values that the consumers read together."""
    values: list[bytes] = []
    for _ in range(400):
        for consumer in consumers:
            for records in consumer.poll(timeout_ms=50).values():
                values += [record.value for record in records]
        if len(values) >= count:
            return values
    raise AssertionError(f"{len(values)} of {count} came")


def numbers(consumers: list[Any], count: int) -> list[int]:
    return sorted(map(int, read(consumers, count)))


async def test_members_of_a_group_come_and_go(brokers: Any) -> None:
    """Members of a group share the partitions, and each starts at the offset another committed."""

    def work() -> None:
        make(brokers, "group")
        fill(brokers, "group", range(30))
        first = consumer_of(brokers, "group", group="g")
        assert numbers([first], 30) == list(range(30))
        first.commit()
        second = consumer_of(brokers, "group", group="g")
        shares: list[int] = []
        for _ in range(400):
            first.poll(timeout_ms=20)
            second.poll(timeout_ms=20)
            shares = sorted(len(each.assignment()) for each in (first, second))
            if shares == [1, 2]:
                break
        assert shares == [1, 2]
        fill(brokers, "group", range(30, 60))
        assert numbers([first, second], 30) == list(range(30, 60))
        for each in (first, second):
            each.commit()
        second.close()
        fill(brokers, "group", range(60, 90))
        assert numbers([first], 30) == list(range(60, 90))
        first.close()

    await asyncio.to_thread(work)


async def test_seeking(brokers: Any) -> None:
    """A consumer can seek to an offset and to a timestamp."""

    def work() -> None:
        make(brokers, "seek")
        fill(brokers, "seek", range(90))
        consumer = consumer_of(brokers)
        tp = kafka.TopicPartition("seek", 1)
        consumer.assign([tp])
        consumer.seek(tp, 20)
        assert read([consumer], 1)[0] == b"61"
        found = consumer.offsets_for_times({tp: 1_000_050})[tp]
        assert found.offset == 17
        consumer.seek(tp, found.offset)
        assert read([consumer], 1)[0] == b"52"
        assert consumer.beginning_offsets([tp]) == {tp: 0}
        assert consumer.end_offsets([tp]) == {tp: 30}
        consumer.close()

    await asyncio.to_thread(work)


async def test_transactions(brokers: Any) -> None:
    """read_committed consumers get committed records only."""

    def work() -> None:
        make(brokers, "target")
        producer = kept(
            kafka.KafkaProducer(bootstrap_servers=brokers.bootstrap, transactional_id="kpy")
        )
        producer.init_transactions()
        for number in range(12):
            producer.begin_transaction()
            producer.send("target", b"%d" % number, partition=number % PARTITIONS)
            producer.flush(10)
            if number % 3 == 1:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        producer.close(5)
        reader = consumer_of(brokers, "target", group="c", isolation_level="read_committed")
        assert numbers([reader], 8) == [n for n in range(12) if n % 3 != 1]
        reader.close()
        reader = consumer_of(brokers, "target", group="u", isolation_level="read_uncommitted")
        assert numbers([reader], 12) == list(range(12))
        reader.close()

    await asyncio.to_thread(work)


async def test_topics_are_administered(brokers: Any) -> None:
    """Topics are created, described, extended and deleted, and their settings altered both ways.

    AlterConfigs and IncrementalAlterConfigs are used. Impossible requests are refused.
    """

    def work() -> None:
        make(brokers, "made", retention_ms="60000")
        admin = admin_of(brokers)
        (described,) = admin.describe_topics(["made"])
        assert len(described["partitions"]) == PARTITIONS

        def settings() -> Any:
            resource = ConfigResource(ConfigResourceType.TOPIC, "made")
            answer = admin.describe_configs([resource], config_filter="all")
            return answer["topic"]["made"]

        assert settings()["retention.ms"]["value"] == "60000"

        def alter(changes: dict[str, Any], **more: Any) -> None:
            resource = ConfigResource(ConfigResourceType.TOPIC, "made", changes)
            admin.alter_configs([resource], **more)

        alter({"segment.ms": "7000", "retention.ms": ("DELETE", None)})
        assert settings()["segment.ms"]["value"] == "7000"
        assert settings()["retention.ms"]["value"] == "604800000"
        alter({"cleanup.policy": ("APPEND", "compact")})
        assert settings()["cleanup.policy"]["value"] == "delete,compact"
        alter({"max.message.bytes": "1000"}, incremental=False)
        assert settings()["max.message.bytes"]["value"] == "1000"
        admin.create_partitions({"made": 5})
        with pytest.raises(errors.InvalidPartitionsError):
            admin.create_partitions({"made": 4})
        with pytest.raises(errors.TopicAlreadyExistsError):
            admin.create_topics(["made"])
        admin.delete_topics(["made"])
        assert "made" not in admin.list_topics()
        admin.close()

    await asyncio.to_thread(work)


async def test_partitions_are_administered(brokers: Any) -> None:
    """The admin client deletes records, moves replicas, elects leaders, describes log dirs."""

    def begin() -> Any:
        make(brokers, "moving")
        fill(brokers, "moving", range(30))
        admin = admin_of(brokers)
        tp = kafka.TopicPartition("moving", 0)
        deleted = admin.delete_records({tp: 4})
        assert deleted[tp]["low_watermark"] == 4
        directories = admin.describe_log_dirs(["moving"])
        assert len(directories) == 3
        admin.elect_leaders(PREFERRED, {"moving": [0]})
        assert admin.alter_partition_reassignments({tp: [3, 1]}) == {tp: None}
        return admin

    def end(admin: Any) -> None:
        tp = kafka.TopicPartition("moving", 0)
        assert admin.list_partition_reassignments() == {}
        refused = admin.alter_partition_reassignments({tp: None})
        assert refused == {tp: errors.NoReassignmentInProgressError}
        consumer = consumer_of(brokers)
        consumer.assign([tp])
        assert numbers([consumer], 6) == [12, 15, 18, 21, 24, 27]
        consumer.close()
        admin.close()

    admin = await asyncio.to_thread(begin)

    def replicas() -> Any:
        return [
            tuple(each.broker.view.topics["moving"][0].replicas)
            for each in brokers.brokers.values()
        ]

    await brokers.until(lambda: set(replicas()) == {(3, 1)})
    await asyncio.to_thread(end, admin)


async def test_groups_are_administered(brokers: Any) -> None:
    """Groups are listed, described, reset and deleted."""

    def work() -> None:
        make(brokers, "adm")
        fill(brokers, "adm", range(30))
        consumer = consumer_of(brokers, "adm", group="g-adm")
        assert numbers([consumer], 30) == list(range(30))
        consumer.commit()
        admin = admin_of(brokers)
        described = admin.describe_groups(["g-adm"])["g-adm"]
        assert (described["group_state"], len(described["members"])) == ("Stable", 1)
        assert "g-adm" in [group["group_id"] for group in admin.list_groups()]
        consumer.close()
        tp = kafka.TopicPartition("adm", 0)
        admin.reset_group_offsets("g-adm", {tp: OffsetSpec.EARLIEST})
        kept = admin.list_group_offsets("g-adm")["g-adm"]
        assert {tp.partition: each.offset for tp, each in kept.items()} == {0: 0, 1: 10, 2: 10}
        again = consumer_of(brokers, "adm", group="g-adm")
        assert numbers([again], 10) == list(range(0, 30, 3))
        again.close()
        admin.delete_groups(["g-adm"])
        assert "g-adm" not in [group["group_id"] for group in admin.list_groups()]
        admin.close()

    await asyncio.to_thread(work)


async def test_a_compacted_topic_is_read(brokers: Any) -> None:
    """A consumer of a compacted topic gets each key's last value, past gaps and empty batches."""

    def write() -> None:
        make(brokers, "latest", 1, **COMPACTED)
        producer = kept(kafka.KafkaProducer(bootstrap_servers=brokers.bootstrap))
        for number in range(120):
            producer.send("latest", b"%d" % number * 20, b"k%d" % (number % 5), partition=0)
            producer.flush(10)
        producer.close(5)

    def read_all() -> dict[bytes, bytes]:
        consumer = consumer_of(brokers)
        tp = kafka.TopicPartition("latest", 0)
        consumer.assign([tp])
        found: dict[bytes, bytes] = {}
        count = 0
        end = consumer.end_offsets([tp])[tp]
        while consumer.position(tp) < end:
            for records in consumer.poll(timeout_ms=1000).values():
                for record in records:
                    count += 1
                    found[record.key] = record.value
        consumer.close()
        assert count < 60, "most are gone"
        return found

    await asyncio.to_thread(write)
    await compacted(brokers, "latest")
    assert await asyncio.to_thread(read_all) == {
        b"k%d" % (number % 5): b"%d" % number * 20 for number in range(115, 120)
    }
