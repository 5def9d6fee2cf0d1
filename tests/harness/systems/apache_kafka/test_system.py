"""A release of Apache Kafka as a system: its nodes and links, and what it refuses."""

import random
from pathlib import Path

import pytest

from harness.cluster.address import Address
from harness.cluster.links import LinkSpec
from harness.cluster.observe.kafka_metadata import KafkaView
from harness.cluster.observe.metadata_view import ViewUnavailable
from harness.cluster.observe.zookeeper_metadata import View
from harness.cluster.system import Place, SystemUnavailable
from harness.systems.apache_kafka import distribution
from harness.systems.apache_kafka.releases import Release
from harness.systems.apache_kafka.system import HOME, ApacheKafka
from harness.systems.java import maven
from model import roles
from model.layout import with_kraft, with_zookeeper
from model.plan import Plan
from model.roles import CLIENTS, ZOOKEEPER
from nemesis.catalogue import NEMESES

A, B = roles.broker(1), roles.broker(2)


def system(version: str) -> ApacheKafka:
    return ApacheKafka(Release.parse(version))


def plan(**options: object) -> Plan:
    return Plan(brokers=2, options=options)


@pytest.fixture
def with_maven(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that can download every pinned release."""
    monkeypatch.delenv(HOME, raising=False)
    monkeypatch.setattr(maven, "require", lambda: "mvn")


@pytest.mark.parametrize(
    ("version", "options", "layout"),
    [
        ("2.8.2", {}, with_zookeeper(2)),
        ("3.9.1", {}, with_zookeeper(2)),
        ("3.9.1", {"zookeepers": 3}, with_zookeeper(2, 3)),
        ("3.9.1", {"coordination": "kraft"}, with_kraft(2, 2, combined=True)),
        ("4.1.0", {}, with_kraft(2, 2, combined=True)),
        ("4.1.0", {"coordination": "kraft-separate"}, with_kraft(2, 3, combined=False)),
    ],
)
def test_nodes(version: str, options: dict[str, object], layout: object) -> None:
    """ZooKeeper coordinates the releases that have it, and KRaft the others or on request."""
    assert system(version).layout(plan(**options)) == layout


def test_links_with_zookeeper() -> None:
    """Brokers reach each other by name, and ZooKeeper at an address of their own."""
    found = set(system("2.8.2").links(plan()))
    assert found == {
        *(LinkSpec(CLIENTS, broker, "CLIENT") for broker in (A, B)),
        *(LinkSpec(*pair, "REPLICATION", by_name=True) for pair in ((A, B), (B, A))),
        *(LinkSpec(broker, ZOOKEEPER, ZOOKEEPER) for broker in (A, B)),
    }


def test_links_of_an_ensemble() -> None:
    """Every broker reaches every server, and the servers reach each other at two ports."""
    found = list(system("2.8.2").links(plan(zookeepers=3)))
    one = [link for link in found if link.opener == "zookeeper-1"]
    assert {(link.acceptor, link.listener) for link in one} == {
        ("zookeeper-2.quorum", "QUORUM"),
        ("zookeeper-2.election", "ELECTION"),
        ("zookeeper-3.quorum", "QUORUM"),
        ("zookeeper-3.election", "ELECTION"),
    }
    assert sum(link.listener == ZOOKEEPER for link in found) == 6


def test_links_with_kraft() -> None:
    """Every node reaches every controller but the one in its own process."""
    ends = {
        (link.opener, link.acceptor)
        for link in system("4.1.0").links(plan())
        if link.listener == "CONTROLLER"
    }
    assert ends == {(A, roles.controller(2)), (B, roles.controller(1))}
    separate = {
        (link.opener, link.acceptor)
        for link in system("4.1.0").links(plan(coordination="kraft-separate", controllers=2))
        if link.listener == "CONTROLLER"
    }
    one, other = roles.controller(1), roles.controller(2)
    assert separate == {(one, other), (other, one), *((b, c) for b in (A, B) for c in (one, other))}


@pytest.mark.usefixtures("with_maven")
@pytest.mark.parametrize(
    ("version", "options", "why"),
    [
        ("4.1.0", {"coordination": "zookeeper"}, "apache-kafka:4.1.0 has no ZooKeeper mode"),
        ("2.8.2", {"coordination": "kraft"}, "has no KRaft mode for production"),
        ("3.9.1", {"coordination": "raft"}, "must be one of zookeeper, kraft, kraft-separate"),
        ("3.9.1", {"heap_mb": 1}, "heap_mb"),
        ("3.9.1", {"zookeepers": 10}, "zookeepers=10: must be at most 9"),
        ("3.9.1", {"zookeeper": "any"}, "zookeeper=any: must be release or kafka"),
        ("3.9.1", {"zookeepers": 2, "observers": 2}, "at least one server must vote"),
        ("3.9.0", {}, "the jars of Apache Kafka 3.9.0 are not pinned"),
        (
            "4.1.0",
            {"controller_first": True},
            "controller_first=True: KRaft's controllers elect one of themselves",
        ),
        ("4.1.0", {"segment_bytes": 4096}, "no segments below 1048576 bytes"),
    ],
)
def test_refusals(version: str, options: dict[str, object], why: str) -> None:
    """What a release cannot do is refused in one sentence."""
    refusal = system(version).refusal(plan(**options))
    assert refusal is not None
    assert why in refusal
    assert "\n" not in refusal


def test_options_that_a_release_refuses_have_other_defaults() -> None:
    """Where segments cannot be small (KIP-1030), they end by their age."""
    small = {"segment_bytes": 4096, "segment_ms": 5000}
    assert system("4.1.0").fitted(small) == {"segment_bytes": 1 << 20, "segment_ms": 1000}
    assert not system("4.1.0").fitted({"groups": 3})
    assert not system("3.9.1").fitted(small)
    assert system("4.1.0").refusal(plan(**system("4.1.0").fitted(small))) is None


def test_without_maven_and_distribution(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The sentence names both ways to the programs; with a distribution there is none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(HOME, raising=False)
    refusal = system("3.9.1").refusal(plan())
    assert refusal is not None
    assert "install Maven, or name the folder of a distribution: --kafka-home" in refusal
    monkeypatch.setenv(HOME, str(tmp_path))
    assert system("3.9.1").refusal(plan()) is None


async def test_a_distribution_of_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The plan's version decides; another one in the folder is refused before the start."""
    monkeypatch.setenv(HOME, str(tmp_path))
    there = distribution.Distribution("3.7.0", ())
    monkeypatch.setattr(distribution, "open_distribution", lambda home: there)
    with pytest.raises(SystemUnavailable, match=r"contains Apache Kafka 3\.7\.0, not 3\.9\.1"):
        await system("3.9.1").prepare(plan(), lambda line: None)
    await system("3.7.0").prepare(plan(), lambda line: None)


async def test_a_broker_starts_again_when_its_session_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would end at once before; other nodes, and brokers with KRaft, start at any time."""
    there, rng = Address("127.0.0.1", 1), random.Random(1)
    view = system("3.9.1").view({A: there, ZOOKEEPER: there}, rng)
    sessions: list[tuple[str, ...] | ViewUnavailable] = [(A, B), ViewUnavailable("away"), (B,)]

    async def live(view: View) -> tuple[str, ...]:
        found = sessions.pop(0)
        if isinstance(found, ViewUnavailable):
            raise found
        return found

    monkeypatch.setattr(View, "live", live)
    found = [await system("3.9.1").may_start_again(A, view) for _ in range(3)]
    assert found == [False, False, True]
    assert await system("3.9.1").may_start_again(ZOOKEEPER, view)
    kraft = system("4.1.0").view({A: there}, rng)
    assert await system("4.1.0").may_start_again(A, kraft)


def test_operators_need_their_requests() -> None:
    """Before 2.4 no request reassigns or elects, so these faults are not offered."""
    assert not system("2.3.1").offers(NEMESES["admin"])
    assert system("2.4.1").offers(NEMESES["admin"])
    assert system("2.3.1").offers(NEMESES["kill"])


def test_views() -> None:
    """ZooKeeper is read where there is one, and brokers and controllers are asked elsewhere."""
    there = Address("127.0.0.1", 1)
    rng = random.Random(1)
    assert isinstance(system("2.8.2").view({A: there, ZOOKEEPER: there}, rng), View)
    assert isinstance(system("4.1.0").view({A: there}, rng), KafkaView)


@pytest.mark.usefixtures("java")
def test_the_program_of_a_kraft_node_is_formatted_first(tmp_path: Path) -> None:
    """The storage is formatted before the first start, with one cluster id for all nodes."""
    ids: set[str] = set()
    for broker, other in ((A, B), (B, A)):
        folder = tmp_path / broker
        folder.mkdir()
        number = roles.number(broker)
        listens = {
            name: Address(f"127.9.0.{number}", port)
            for name, port in (("CLIENT", 1), ("REPLICATION", 2), ("CONTROLLER", 3))
        }
        quorum = roles.controller(roles.number(other))
        links = {other: Address("127.9.1.2", 2), quorum: Address("127.9.1.4", 3)}
        place = Place(broker, folder, folder / "data", listens, listens, links)
        program = system("4.1.0").program(place, plan())
        assert program.stopped_status == 143
        words = list(program.first)
        ids.update(word for word in words if word.startswith("--cluster-id="))
        settings = (folder / "server.properties").read_text()
        assert "process.roles=broker,controller" in settings
        assert "controller.quorum.voters=1@controller-1\\:3,2@controller-2\\:3" in settings
    assert len(ids) == 1


@pytest.mark.usefixtures("java")
def test_an_id_may_begin_with_a_hyphen(tmp_path: Path) -> None:
    """The id of one seed of 64 does, and is then no option of the command that formats."""
    names = ("CLIENT", "REPLICATION", "CONTROLLER")
    listens = {name: Address("127.9.0.1", at) for at, name in enumerate(names, 1)}
    links = {roles.controller(number): Address("127.9.1.4", 3) for number in (2, 3)}
    place = Place(roles.broker(1), tmp_path, tmp_path / "data", listens, listens, links)
    asked = Plan(brokers=3, seed=150, options={"coordination": "kraft"})
    words = list(system("3.9.1").program(place, asked).first)
    [word] = [word for word in words if "cluster-id" in word]
    assert word.startswith("--cluster-id=-")


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with Java."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
