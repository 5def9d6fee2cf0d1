"""Nodes of Apache Kafka in containers: the same files at other paths, or environment variables."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from harness.cluster.address import Address
from harness.cluster.system import Contained, Place, SystemUnavailable
from harness.systems.apache_kafka import contained
from harness.systems.apache_kafka.releases import Release
from harness.systems.apache_kafka.system import ApacheKafka
from model.plan import Plan
from model.roles import ZOOKEEPER, broker

CONFIGURATION = PurePosixPath("/etc/faultline")
BROKER = broker(1)


def how(tmp_path: Path, version: str, node: str, **options: object) -> Contained:
    """Return how a node runs in a container of a cluster with two brokers."""
    system, plan = ApacheKafka(Release.parse(version)), Plan(brokers=2, options=options)
    listeners = system.listeners(node, plan)
    listens = {name: Address("0.0.0.0", 9091 + at) for at, name in enumerate(listeners)}
    links = {end: Address(end, 9200) for end in ("controller-1", "controller-2", ZOOKEEPER)}
    place = Place(
        node=node,
        folder=tmp_path,
        data=PurePosixPath("/data"),
        listens=listens,
        advertised={name: Address("127.0.0.1", 30_000) for name in listeners if "CL" in name},
        links=links,
        names={node: "10.0.0.3"},
        seen=CONFIGURATION,
    )
    return system.contained(place, plan)


def test_a_broker_finds_its_files_where_the_target_puts_them(tmp_path: Path) -> None:
    """The command names paths of the container, and each of these files is in the node's folder."""
    found = how(tmp_path, "3.9.1", BROKER)
    assert found.command is not None
    assert found.command[0] == "java"
    assert found.command[-2:] == ["kafka.Kafka", "/etc/faultline/server.properties"]
    assert "/opt/kafka/libs/*" in found.command
    assert str(tmp_path) not in " ".join(found.command)
    named = [word.rpartition("/etc/faultline/")[2] for word in found.command if "/etc/f" in word]
    assert sorted(named) == ["hosts", "log4j.properties", "server.properties"]
    assert all((tmp_path / name).is_file() for name in named)
    assert found.stopped_status == 143


def test_storage_is_formatted_before_the_first_start_only(tmp_path: Path) -> None:
    """With KRaft a shell formats, remembers that among the data, and becomes the broker."""
    found = how(tmp_path, "4.1.0", BROKER)
    assert found.command is not None
    shell, option, script = found.command
    assert (shell, option) == ("sh", "-c")
    first, start = script.split("; exec ")
    assert first.startswith("[ -e /data/.faultline-set-up ] || { java ")
    assert "kafka.tools.StorageTool format --cluster-id=" in first
    assert " kafka.Kafka /etc/faultline/server.properties" in start


@pytest.mark.parametrize("status", [0, 3])
def test_a_command_that_fails_first_ends_the_container(tmp_path: Path, status: int) -> None:
    """Only after a success does the node start, and the command does not run a second time."""
    first = ["sh", "-c", f"echo first; exit {status}"]
    command = contained.command(["echo", "it's up"], first, str(tmp_path))
    outputs = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status
        outputs.append(done.stdout)
    assert outputs == (["first\nit's up\n", "it's up\n"] if status == 0 else ["first\n"] * 2)


def test_an_image_of_the_user_is_configured_by_its_environment(tmp_path: Path) -> None:
    """The variables are those of KIP-975; the image's own command starts the broker."""
    found = how(tmp_path, "3.9.1", BROKER, image="apache/kafka:3.9.1", coordination="kraft")
    assert found.command is None
    assert found.environment["KAFKA_NODE_ID"] == "1"
    assert found.environment["KAFKA_PROCESS_ROLES"] == "broker,controller"
    assert found.environment["KAFKA_LOG_DIRS"] == "/data"
    assert found.environment["KAFKA_HEAP_OPTS"] == "-Xmx512m"
    assert len(found.environment["CLUSTER_ID"]) == 22
    assert "REPLICATION://broker-1:9092" in found.environment["KAFKA_ADVERTISED_LISTENERS"]


def test_names_of_variables_can_be_turned_back() -> None:
    """A period, an underscore and a hyphen become one, two and three underscores (KIP-975)."""
    assert contained.variable("log.dirs") == "KAFKA_LOG_DIRS"
    assert contained.variable("a_b.c-d") == "KAFKA_A__B_C___D"


def test_zookeeper_keeps_an_image_of_its_own() -> None:
    """The image of the brokers has no ZooKeeper; this project's ZooKeeper needs this project's."""
    system = ApacheKafka(Release.parse("3.9.1"))
    named = Plan(options={"image": "mine:1"})
    assert system.image(BROKER, named) == "mine:1"
    assert system.image(ZOOKEEPER, named) == contained.source([])
    ours = Plan(options={"image": "mine:1", "zookeeper": "kafka"})
    assert system.image(ZOOKEEPER, ours) is None


def test_memory_is_the_heap_and_more() -> None:
    """A container whose limit is the heap would be killed."""
    system = ApacheKafka(Release.parse("3.9.1"))
    plan = Plan(options={"heap_mb": 1024})
    assert system.memory_mb(BROKER, plan) == system.memory_mb(ZOOKEEPER, plan) > 1024
    assert system.memory_mb(ZOOKEEPER, Plan(options={"zookeeper": "kafka"})) == 0


def test_two_jars_of_one_name_are_refused(tmp_path: Path) -> None:
    """One of them would be missing in the image."""
    with pytest.raises(SystemUnavailable, match="the same name"):
        contained.source([tmp_path / "a" / "x.jar", tmp_path / "b" / "x.jar"])
