"""Operations of applications and operators through an unmodified confluent-kafka."""

import asyncio
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    ElectionType,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.broker_impl.clients.conftest import COMPACTED, compacted

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

PARTITIONS = 3


def make(brokers: Any, topic: str, partitions: int = PARTITIONS, **config: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
    settings = {name.replace("_", "."): value for name, value in config.items()}
    new = NewTopic(topic, partitions, 3, config=settings)
    admin.create_topics([new], operation_timeout=10)[topic].result(15)
    return admin


def producer_of(brokers: Any, **settings: Any) -> confluent_kafka.Producer:
    given = {"bootstrap.servers": brokers.bootstrap, "acks": "all"}
    return confluent_kafka.Producer(
        given | {name.replace("_", "."): value for name, value in settings.items()}
    )


def fill(brokers: Any, topic: str, numbers: range) -> None:
    """Produce the numbers as records to all partitions, with timestamps based on the number."""
    producer = producer_of(brokers, enable_idempotence=True)
    for number in numbers:
        producer.produce(
            topic, b"%d" % number, partition=number % PARTITIONS, timestamp=1_000_000 + number
        )
    assert producer.flush(20) == 0


def consumer_of(brokers: Any, group: str, **settings: Any) -> confluent_kafka.Consumer:
    given = {
        "bootstrap.servers": brokers.bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 200,
    }
    return confluent_kafka.Consumer(
        given | {name.replace("_", "."): value for name, value in settings.items()}
    )


def read(consumers: list[confluent_kafka.Consumer], count: int) -> list[bytes]:
    """Return `count` or more values that the consumers read together."""
    values: list[bytes] = []
    for _ in range(600):
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
        if len(values) >= count:
            return values
    raise AssertionError(f"{len(values)} of {count} came")


def numbers(consumers: list[confluent_kafka.Consumer], count: int) -> list[int]:
    return sorted(map(int, read(consumers, count)))


async def test_members_of_a_group_come_and_go(brokers: Any) -> None:
    """Members of a group share the partitions, and each starts at the offset another committed."""

    def work() -> None:
        make(brokers, "group")
        fill(brokers, "group", range(30))
        first = consumer_of(brokers, "g")
        first.subscribe(["group"])
        assert numbers([first], 30) == list(range(30))
        first.commit(asynchronous=False)
        second = consumer_of(brokers, "g")
        second.subscribe(["group"])
        shares: list[int] = []
        for _ in range(600):
            first.poll(0.05)
            second.poll(0.05)
            shares = sorted(len(each.assignment()) for each in (first, second))
            if shares == [1, 2]:
                break
        assert shares == [1, 2]
        fill(brokers, "group", range(30, 60))
        assert numbers([first, second], 30) == list(range(30, 60))
        for each in (first, second):
            each.commit(asynchronous=False)
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
        consumer = consumer_of(brokers, "seeker")
        consumer.assign([TopicPartition("seek", 1, 0)])
        assert read([consumer], 1)[0] == b"1"
        consumer.seek(TopicPartition("seek", 1, 20))
        assert read([consumer], 1)[0] == b"61"
        asked = TopicPartition("seek", 1, 1_000_050)
        (found,) = consumer.offsets_for_times([asked], timeout=10)
        assert found.offset == 17
        consumer.seek(found)
        assert read([consumer], 1)[0] == b"52"
        assert consumer.get_watermark_offsets(TopicPartition("seek", 1), timeout=10) == (0, 30)
        consumer.close()

    await asyncio.to_thread(work)


async def test_transactions(brokers: Any) -> None:
    """read_committed consumers get committed records only, and the group committed offsets only."""

    def work() -> None:
        make(brokers, "source")
        make(brokers, "target")
        fill(brokers, "source", range(30))
        producer = producer_of(brokers, transactional_id="tx")
        producer.init_transactions(30)
        consumer = consumer_of(brokers, "through")
        consumer.subscribe(["source"])
        for attempt, value in enumerate(sorted(read([consumer], 30))):
            producer.begin_transaction()
            producer.produce("target", value, partition=attempt % PARTITIONS)
            producer.flush(10)
            if attempt % 3 == 1:
                producer.abort_transaction(20)
            else:
                positions = consumer.position(consumer.assignment())
                producer.send_offsets_to_transaction(
                    positions, consumer.consumer_group_metadata(), 20
                )
                producer.commit_transaction(20)
        committed = consumer.committed(consumer.assignment(), 20)
        assert [row.offset for row in committed] == [10] * PARTITIONS
        consumer.close()
        wanted = [n for at, n in enumerate(sorted(b"%d" % n for n in range(30))) if at % 3 != 1]
        reader = consumer_of(brokers, "committed", isolation_level="read_committed")
        reader.subscribe(["target"])
        assert sorted(read([reader], 20)) == sorted(wanted)
        reader.close()
        reader = consumer_of(brokers, "everything", isolation_level="read_uncommitted")
        reader.subscribe(["target"])
        assert len(read([reader], 30)) == 30
        reader.close()

    await asyncio.to_thread(work)


async def test_topics_are_administered(brokers: Any) -> None:
    """Topics are created, described, extended and deleted, and settings altered incrementally.

    Impossible requests are refused.
    """

    def work() -> None:
        admin = make(brokers, "made", retention_ms="60000")
        described = admin.describe_topics(TopicCollection(["made"]))["made"].result(15)
        assert [len(each.replicas) for each in described.partitions] == [3] * PARTITIONS
        resource = ConfigResource("topic", "made")

        def setting(name: str) -> Any:
            return admin.describe_configs([resource])[resource].result(15)[name]

        assert (setting("retention.ms").value, setting("retention.ms").is_default) == (
            "60000",
            False,
        )
        assert setting("min.insync.replicas").value == "2"
        changes = [
            ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
            ConfigEntry(
                "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND
            ),
            ConfigEntry("segment.ms", "7000", incremental_operation=AlterConfigOpType.SET),
        ]
        altered = ConfigResource("topic", "made", incremental_configs=changes)
        admin.incremental_alter_configs([altered])[altered].result(15)
        assert setting("retention.ms").value == "604800000"
        assert setting("cleanup.policy").value == "delete,compact"
        assert setting("segment.ms").value == "7000"
        wrong = ConfigResource(
            "topic",
            "made",
            incremental_configs=[
                ConfigEntry("segment.ms", "soon", incremental_operation=AlterConfigOpType.SET)
            ],
        )
        with pytest.raises(KafkaException, match="whole number"):
            admin.incremental_alter_configs([wrong])[wrong].result(15)
        admin.create_partitions([NewPartitions("made", 5)])["made"].result(15)
        with pytest.raises(KafkaException):
            admin.create_partitions([NewPartitions("made", 4)])["made"].result(15)
        with pytest.raises(KafkaException):
            admin.create_topics([NewTopic("made", 1, 3)])["made"].result(15)
        make(brokers, "ma.de")
        with pytest.raises(KafkaException, match=r"ma\.de"):
            make(brokers, "ma_de")
        admin.delete_topics(["made"], operation_timeout=10)["made"].result(15)
        assert "made" not in admin.list_topics(timeout=10).topics

    await asyncio.to_thread(work)


async def test_records_are_deleted(brokers: Any) -> None:
    """DeleteRecords moves the start of the log for the admin client and for consumers."""

    def work() -> None:
        admin = make(brokers, "shorter")
        fill(brokers, "shorter", range(30))
        asked = TopicPartition("shorter", 0, 4)
        deleted = admin.delete_records([asked])[asked].result(15)
        assert deleted.low_watermark == 4
        tp = TopicPartition("shorter", 0)
        asked_of = {tp: OffsetSpec.earliest()}  # type: ignore[no-untyped-call]
        earliest = admin.list_offsets(asked_of)[tp].result(15)
        assert earliest.offset == 4
        consumer = consumer_of(brokers, "late")
        consumer.assign([TopicPartition("shorter", 0, 0)])
        assert read([consumer], 1)[0] == b"12"
        consumer.close()

    await asyncio.to_thread(work)


async def test_the_cluster_is_described(brokers: Any) -> None:
    """The admin client describes brokers, controller and settings, and elects preferred leaders."""

    def work() -> None:
        admin = make(brokers, "described")
        cluster = admin.describe_cluster().result(15)
        assert sorted(node.id for node in cluster.nodes) == [1, 2, 3]
        assert cluster.controller.id in (1, 2, 3)
        resource = ConfigResource("broker", "1")
        settings = admin.describe_configs([resource])[resource].result(15)
        assert settings["min.insync.replicas"].value == "2"
        assert len(settings) > 70
        elected = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("described", 0)])
        (outcome,) = elected.result(15).values()
        assert outcome is not None
        assert outcome.code() == confluent_kafka.KafkaError.ELECTION_NOT_NEEDED

    await asyncio.to_thread(work)


async def test_groups_are_administered(brokers: Any) -> None:
    """Groups are listed, described, reset and deleted; a group with members cannot be deleted."""

    def work() -> None:
        admin = make(brokers, "adm")
        fill(brokers, "adm", range(30))
        consumer = consumer_of(brokers, "g-adm")
        consumer.subscribe(["adm"])
        assert numbers([consumer], 30) == list(range(30))
        consumer.commit(asynchronous=False)
        described = admin.describe_consumer_groups(["g-adm"])["g-adm"].result(10)
        assert described.state == confluent_kafka.ConsumerGroupState.STABLE
        assert len(described.members[0].assignment.topic_partitions) == PARTITIONS
        assert "g-adm" in [
            group.group_id for group in admin.list_consumer_groups().result(10).valid
        ]
        with pytest.raises(KafkaException):
            admin.delete_consumer_groups(["g-adm"])["g-adm"].result(10)
        consumer.close()
        reset = ConsumerGroupTopicPartitions("g-adm", [TopicPartition("adm", 0, 3)])
        admin.alter_consumer_group_offsets([reset])["g-adm"].result(10)
        asked = ConsumerGroupTopicPartitions("g-adm")
        kept = admin.list_consumer_group_offsets([asked])["g-adm"].result(10)
        assert {row.partition: row.offset for row in kept.topic_partitions} == {0: 3, 1: 10, 2: 10}
        again = consumer_of(brokers, "g-adm")
        again.subscribe(["adm"])
        assert numbers([again], 7) == [9, 12, 15, 18, 21, 24, 27]
        again.close()
        admin.delete_consumer_groups(["g-adm"])["g-adm"].result(10)
        left = admin.list_consumer_groups().result(10).valid
        assert "g-adm" not in [group.group_id for group in left]

    await asyncio.to_thread(work)


async def test_a_compacted_topic_is_read(brokers: Any) -> None:
    """A consumer of a compacted topic gets each key's last value, past gaps and empty batches."""

    def write() -> None:
        make(brokers, "latest", 1, **COMPACTED)
        producer = producer_of(brokers, enable_idempotence=True)
        for number in range(120):
            producer.produce("latest", b"%d" % number * 20, b"k%d" % (number % 5), partition=0)
            producer.flush(10)
        producer.produce("latest", None, b"k0", partition=0)
        for number in range(40):
            producer.produce("latest", b"%d" % number * 20, b"last", partition=0)
            producer.flush(10)

    def read_all() -> dict[bytes, bytes | None]:
        consumer = consumer_of(brokers, "none", enable_partition_eof=True)
        consumer.assign([TopicPartition("latest", 0, 0)])
        found: dict[bytes, bytes | None] = {}
        count = 0
        while True:
            message = consumer.poll(10)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                break
            count += 1
            found[message.key() or b""] = message.value()
        consumer.close()
        assert count < 60, "most are gone"
        return found

    await asyncio.to_thread(write)
    await compacted(brokers, "latest")
    found = await asyncio.to_thread(read_all)
    wanted = {b"k%d" % (number % 5): b"%d" % number * 20 for number in range(116, 120)}
    assert {key: value for key, value in found.items() if value is not None} == {
        **wanted,
        b"last": b"39" * 20,
    }


async def test_isolation_is_told_apart_by_the_admin(brokers: Any) -> None:
    """ListOffsets returns the end of a partition with an open transaction by isolation level."""

    def work() -> None:
        admin = make(brokers, "open")
        producer = producer_of(brokers, transactional_id="open")
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("open", b"v", partition=0)
        producer.flush(10)
        tp = TopicPartition("open", 0)

        def end(level: IsolationLevel) -> int:
            latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
            asked = admin.list_offsets({tp: latest}, isolation_level=level)
            return int(asked[tp].result(15).offset)

        assert end(IsolationLevel.READ_COMMITTED) == 0
        assert end(IsolationLevel.READ_UNCOMMITTED) == 1
        producer.abort_transaction(20)

    await asyncio.to_thread(work)
