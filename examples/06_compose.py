"""After ``docker-compose up -d``: write 100,000 records through Toxiproxy and read them back."""

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = f"numbers-{time.time_ns()}"  # a new topic each time
RECORDS, PARTITIONS, REPLICAS = 100_000, 6, 3
PATIENCE_S = 60


def wait_for_brokers(admin: AdminClient) -> None:
    """Wait until three brokers are registered, long after the containers have started."""
    for _ in range(PATIENCE_S):
        try:
            if len(admin.list_topics(timeout=1).brokers) >= REPLICAS:
                return
        except KafkaException:
            pass
        time.sleep(1)
    raise SystemExit(
        f"only fewer than {REPLICAS} brokers answered at {BOOTSTRAP} within {PATIENCE_S} s"
    )


def produce() -> list[list[int]]:
    """Send each number by its key, and return the acknowledged numbers by partition."""
    sent: list[list[int]] = [[] for _ in range(PARTITIONS)]

    def acknowledged(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        sent[message.partition()].append(int(message.value()))

    settings = {"bootstrap.servers": BOOTSTRAP, "acks": "all", "enable.idempotence": True}
    # librdkafka's queue holds 100,000 records by default, exactly as many as are sent here.
    producer = Producer({**settings, "queue.buffering.max.messages": 2 * RECORDS})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number), key=str(number), on_delivery=acknowledged)
        producer.poll(0)
    if producer.flush(PATIENCE_S):
        raise SystemExit("some records were not acknowledged in time")
    return sent


def consume() -> list[list[int]]:
    """Read every partition from its first record until as many records have come as were sent."""
    seen: list[list[int]] = [[] for _ in range(PARTITIONS)]
    # No consumer group here: partitions are assigned by hand, and no offset is committed.
    settings = {"bootstrap.servers": BOOTSTRAP, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    deadline = time.monotonic() + PATIENCE_S
    while sum(map(len, seen)) < RECORDS and time.monotonic() < deadline:
        for message in consumer.consume(10_000, timeout=1):
            if message.error() is None:
                seen[message.partition()].append(int(message.value()))
    consumer.close()
    return seen


admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
wait_for_brokers(admin)
admin.create_topics([NewTopic(TOPIC, PARTITIONS, REPLICAS)])[TOPIC].result(PATIENCE_S)
began = time.monotonic()
sent = produce()
halfway = time.monotonic()
seen = consume()
print(f"{sum(map(len, sent)):,} produced in {halfway - began:.1f} s")
print(f"{sum(map(len, seen)):,} consumed in {time.monotonic() - halfway:.1f} s")
if sum(map(len, sent)) != RECORDS or seen != sent:
    raise SystemExit(
        "the records that were read differ from those that were written, or from their order"
    )
print("all records were read, each partition in the order of writing")
