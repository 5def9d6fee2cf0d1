"""Real broker processes: how they start, stop, refuse to start, and survive kills."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.cluster]

START_S = 20.0


def wait_for(condition: Callable[[], bool], seconds: float = START_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


class Site:
    """ZooKeeper, and brokers that a test starts; every process ends with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[str]] = []
        self.zookeeper_port = 0
        self.zookeeper = self.start_zookeeper()

    def spawn(self, arguments: list[str], log: str) -> subprocess.Popen[str]:
        with (self.folder / log).open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._running.append(process)
        return process

    def start_zookeeper(self) -> subprocess.Popen[str]:
        listen = f"127.0.0.1:{self.zookeeper_port}"
        process = self.spawn(
            [
                *("broker_impl.zookeeper", "--listen", listen),
                *("--data", str(self.folder / "zookeeper"), "--tick-ms", "100"),
            ],
            "zookeeper.log",
        )
        assert process.stdout is not None
        self.zookeeper_port = int(process.stdout.readline().rpartition(":")[2])
        return process

    def broker(self, name: str = "broker", **settings: str) -> subprocess.Popen[str]:
        given = {
            "broker.id": "1",
            "zookeeper.connect": f"127.0.0.1:{self.zookeeper_port}",
            "zookeeper.session.timeout.ms": "500",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(self.folder / "data"),
        } | {key.replace("_", "."): value for key, value in settings.items()}
        sets = [f"{key}={value}" for key, value in given.items()]
        self.ports_file(name).unlink(missing_ok=True)
        return self.spawn(
            [
                "broker_impl",
                *(part for text in sets for part in ("--set", text)),
                *("--port-file", str(self.ports_file(name))),
            ],
            f"{name}.log",
        )

    def ports_file(self, name: str = "broker") -> Path:
        return self.folder / f"{name}.ports"

    def log(self, name: str = "broker") -> str:
        return (self.folder / f"{name}.log").read_text()

    def is_up(self, name: str = "broker") -> bool:
        return self.ports_file(name).exists()

    def address(self, name: str = "broker", listener: str = "PLAINTEXT") -> str:
        wait_for(lambda: self.is_up(name))
        return f"127.0.0.1:{json.loads(self.ports_file(name).read_text())[listener]}"

    def lines(self, name: str = "broker") -> list[str]:
        """The logged records that are not at level INFO, one per line."""
        return [line for line in self.log(name).splitlines() if " INFO " not in line]

    def close(self) -> None:
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
            process.kill()
            process.communicate()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def terminate(process: subprocess.Popen[str]) -> tuple[int, float]:
    """Send SIGTERM, and return the exit status and the seconds until the end."""
    began = time.monotonic()
    process.terminate()
    return process.wait(15), time.monotonic() - began


def test_sigterm_at_any_moment_of_the_start(site: Site) -> None:
    """SIGTERM at any moment of the start ends the broker cleanly; its directory stays usable."""
    for delay_s in (0.35, 0.45, 0.55):
        process = site.broker()
        time.sleep(delay_s)
        status, seconds = terminate(process)
        assert (status, seconds < 10) in ((0, True), (-signal.SIGTERM, True)), site.log()
    process = site.broker()
    site.address()
    process.terminate()
    process.terminate()
    assert process.wait(15) == 0
    assert site.lines() == []


def test_sigterm_without_zookeeper(site: Site) -> None:
    """Without ZooKeeper, before or after the start, SIGTERM ends in status 0 within 10 s."""
    running = site.broker()
    site.address()
    site.zookeeper.kill()
    site.zookeeper.wait()
    status, seconds = terminate(running)
    assert status == 0
    assert seconds < 10
    waiting = site.broker("waiting", log_dirs=str(site.folder / "other"))
    wait_for(lambda: "no session" in site.log("waiting"))
    status, seconds = terminate(waiting)
    assert status == 0
    assert seconds < 10
    assert not site.is_up("waiting")


def test_what_cannot_be_is_refused_in_one_line(site: Site) -> None:
    """A broker that cannot start logs one line.

    The cases are a second broker on the directory or with the id, a foreign directory, an
    invalid setting, and a port in use.
    """
    first = site.broker()
    address = site.address()

    def refused(status: int, text: str, **settings: str) -> None:
        process = site.broker("refused", **settings)
        assert process.wait(20) == status, site.log("refused")
        assert not site.is_up("refused")
        lines = site.lines("refused")
        assert len(lines) == 1, lines
        assert text in lines[0]

    refused(74, "is in use by another broker")
    refused(64, "another broker is registered with this id", log_dirs=str(site.folder / "other"))
    refused(64, "belongs to broker 1", broker_id="2", log_dirs=str(site.folder / "other"))
    refused(64, "must be a whole number", broker_id="one")
    refused(
        1,
        "address already in use",
        broker_id="3",
        log_dirs=str(site.folder / "third"),
        listeners=f"PLAINTEXT://{address}",
    )
    assert first.poll() is None
    assert terminate(first)[0] == 0


KAFKAS_OWN = """\
# Kafka 2.8's config/server.properties: its settings and their values
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={folder}/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:{port}/kafka/one
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""


def test_a_broker_runs_with_kafkas_own_file(site: Site) -> None:
    """A broker runs with Kafka's own properties file, and notes settings without effect and a typo.

    A client reaches the broker by the machine's name, which the broker advertises.
    """
    file = site.folder / "server.properties"
    file.write_text(KAFKAS_OWN.format(folder=site.folder, port=site.zookeeper_port))
    sets = ("--set", "listeners=PLAINTEXT://:0", "--set", "num.partition=2")
    ports = ("--port-file", str(site.ports_file()))
    process = site.spawn(["broker_impl", str(file), *sets, *ports], "broker.log")
    producer = confluent_kafka.Producer({"bootstrap.servers": site.address()})
    producer.produce("topic", b"value")
    assert producer.flush(15) == 0
    assert terminate(process)[0] == 0
    typo, idle = site.lines()
    assert "num.partition is ignored; did you mean num.partitions?" in typo
    assert idle.endswith(
        ": num.io.threads, num.network.threads, num.recovery.threads.per.data.dir,"
        " socket.receive.buffer.bytes, socket.send.buffer.bytes, zookeeper.connection.timeout.ms"
    )


def test_a_directory_that_cannot_be_written_is_one_line(site: Site) -> None:
    """A data directory that is a file: the broker exits with status 74 and one line."""
    (site.folder / "file").write_text("")
    process = site.broker(log_dirs=str(site.folder / "file"))
    assert process.wait(15) == 74
    assert len(site.lines()) == 1
    assert "its disk failed" in site.lines()[0]


def test_sigkill_is_survived_at_any_moment(site: Site) -> None:
    """Over several kills under load each acknowledged record is in the log, once, in order."""
    site.broker()
    port = site.address()
    listeners = f"PLAINTEXT://{port}"
    acknowledged: list[tuple[int, int]] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": port,
            "enable.idempotence": True,
            "message.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        assert error is None, error
        acknowledged.append((message.offset() or 0, int(message.value() or b"-1")))

    sent = 0
    for _ in range(3):
        goal = len(acknowledged) + 1000
        deadline = time.monotonic() + START_S
        while len(acknowledged) < goal:
            assert time.monotonic() < deadline, f"{len(acknowledged)} of {sent}"
            for _ in range(50 if sent - len(acknowledged) < 5000 else 0):
                producer.produce("t", str(sent).encode(), on_delivery=delivered)
                sent += 1
            producer.poll(0.01)
        victim = site._running[-1]
        victim.kill()
        victim.wait()
        site.broker(listeners=listeners)
        site.address()
    assert producer.flush(60) == 0
    assert [value for _, value in sorted(acknowledged)] == list(range(sent))
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": port, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    found: list[int] = []

    def read() -> bool:
        messages = consumer.consume(sent, 0.2)
        found.extend(int(message.value() or b"-1") for message in messages if not message.error())
        return len(found) >= sent

    wait_for(read)
    consumer.close()
    assert found == list(range(sent))
    assert terminate(site._running[-1])[0] == 0
