"""Three brokers of this project with ZooKeeper, as processes, for Kafka's command line tools."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker_impl.console_tools.programs import Done, Tools
from tests.broker_impl.test_process import Site, wait_for

CHROOT = "/kafka"


class Cluster:
    """Three brokers behind one name, and the tools that use them."""

    def __init__(self, site: Site, tools: Tools, **settings: str) -> None:
        self.site = site
        self.tools = tools
        self.settings = settings
        self.processes = {number: self._start(number) for number in (1, 2, 3)}
        self.addresses = {number: site.address(f"broker-{number}") for number in (1, 2, 3)}

    def _start(self, number: int, **more: str) -> Any:
        given = {
            "broker_id": str(number),
            "zookeeper_connect": self.zookeeper,
            "zookeeper_session_timeout_ms": "6000",
            "log_dirs": str(self.data(number)),
            "default_replication_factor": "3",
            "offsets_topic_num_partitions": "5",
            "group_initial_rebalance_delay_ms": "0",
        }
        return self.site.broker(f"broker-{number}", **(given | self.settings | more))

    def data(self, number: int) -> Path:
        """The data directory of a broker."""
        return self.site.folder / f"data-{number}"

    def restart(self, number: int) -> None:
        """Stop a broker by SIGTERM, and start it again at the same address."""
        self.processes[number].terminate()
        assert self.processes[number].wait(30) == 0
        listeners = f"PLAINTEXT://{self.addresses[number]}"
        self.processes[number] = self._start(number, listeners=listeners)
        wait_for(lambda: self.site.is_up(f"broker-{number}"))

    @property
    def zookeeper(self) -> str:
        return f"127.0.0.1:{self.site.zookeeper_port}{CHROOT}"

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses.values())

    def ask(self, name: str, *arguments: str, given: str = "") -> Done:
        """Run a tool with ``--bootstrap-server``; it must succeed."""
        done = self.tools.run(name, "--bootstrap-server", self.bootstrap, *arguments, given=given)
        assert done.status == 0, done.output + done.errors
        return done

    def ask_zookeeper(self, name: str, *arguments: str) -> Done:
        """Run a tool with ``--zookeeper``; it must succeed."""
        done = self.tools.run(name, "--zookeeper", self.zookeeper, *arguments)
        assert done.status == 0, done.output + done.errors
        return done

    def create(self, topic: str, *, partitions: int = 1, replicas: int = 3) -> None:
        """Create a topic."""
        self.ask(
            *("kafka-topics", "--create", "--topic", topic),
            *("--partitions", str(partitions), "--replication-factor", str(replicas)),
        )

    def produce(self, topic: str, *values: str) -> None:
        """Write one record for each value."""
        text = "".join(f"{value}\n" for value in values)
        self.ask("kafka-console-producer", "--topic", topic, "--sync", given=text)

    def partition(self, topic: str, number: int = 0) -> dict[str, str]:
        """A partition's leader, replicas and ISR, as the tool shows them."""
        done = self.ask("kafka-topics", "--describe", "--topic", topic)
        [row] = [
            line.split("\t")
            for line in done.output.splitlines()
            if f"Partition: {number}\t" in line
        ]
        return dict(part.split(": ") for part in row if ": " in part)


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    """The tools of Kafka 2.8.2."""
    return Tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="session")
def cluster(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers; every test uses topics and groups of its own."""
    site = Site(tmp_path_factory.mktemp("cluster"))
    try:
        yield Cluster(site, tools)
    finally:
        site.close()
