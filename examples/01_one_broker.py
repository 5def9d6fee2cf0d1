"""Starts one ZooKeeper and one broker, writes ten records with librdkafka and reads them back."""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

TOPIC = "greetings"


def free_port() -> int:
    """Return a port that is free now; the harness reserves its ports (docs/adr/0011)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    """Wait until a server listens on the port."""
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"no broker listens at port {port}")


def talk(bootstrap: str) -> list[str]:
    """Write ten records and return what the client reads; the topic is created at its first use."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(10):
        producer.produce(TOPIC, f"hello {number}".encode())
    if producer.flush(20):
        raise SystemExit("some records were not acknowledged")
    # No consumer group here: partitions are assigned by hand, and no offset is committed.
    settings = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    records = consumer.consume(10, timeout=20)
    consumer.close()
    return [f"offset {record.offset()}: {(record.value() or b'').decode()}" for record in records]


with tempfile.TemporaryDirectory() as folder:
    zookeeper, broker = free_port(), free_port()
    log = (Path(folder) / "log").open("w")
    nodes = [
        [sys.executable, "-m", "broker_impl.zookeeper",
         "--listen", f"127.0.0.1:{zookeeper}", "--data", f"{folder}/zookeeper"],
        [sys.executable, "-m", "broker_impl",
         "--set", "broker.id=1", "--set", f"log.dirs={folder}/broker-1",
         "--set", f"listeners=PLAINTEXT://127.0.0.1:{broker}",
         "--set", f"zookeeper.connect=127.0.0.1:{zookeeper}"],
    ]  # fmt: skip
    started = [subprocess.Popen(node, stdout=log, stderr=log) for node in nodes]
    try:
        wait_for(broker)
        print("\n".join(talk(f"127.0.0.1:{broker}")))
    finally:
        for node in reversed(started):  # the broker closes its ZooKeeper session first
            node.terminate()
            node.wait(20)
