"""Names of systems: this project's broker, and each release of Apache Kafka."""

import pytest

from harness.systems import catalogue
from harness.systems.apache_kafka.system import ApacheKafka
from harness.systems.catalogue import UnknownSystem
from harness.systems.kafka.system import Kafka
from model.plan import Plan


def test_ours_is_named_kafka() -> None:
    """``kafka`` is this project's broker."""
    found = catalogue.system(catalogue.OURS)
    assert isinstance(found, Kafka)
    assert found.name == "kafka"


def test_a_release_is_named_with_its_version() -> None:
    """``apache-kafka:VERSION`` is that release, under the same name."""
    found = catalogue.system("apache-kafka:3.9.1")
    assert isinstance(found, ApacheKafka)
    assert (found.name, found.release.version) == ("apache-kafka:3.9.1", (3, 9, 1))


def test_zookeeper_is_a_system_without_brokers() -> None:
    """``zookeeper`` is this project's, ``apache-zookeeper:VERSION`` a release, of three servers."""
    ours = catalogue.system("zookeeper")
    release = catalogue.system("apache-zookeeper:3.9.3")
    for found in (ours, release):
        layout = found.layout(Plan(brokers=0))
        assert (layout.brokers, len(layout.zookeepers), found.service) == ((), 3, "zookeeper")
    with pytest.raises(UnknownSystem, match=r"the oldest release that can be tested is 3\.4"):
        catalogue.system("apache-zookeeper:3.3.6")


def test_a_name_has_one_system() -> None:
    """The same name returns the same object, so that what it has prepared is kept."""
    assert catalogue.system("apache-kafka:2.8.2") is catalogue.system("apache-kafka:2.8.2")
    assert catalogue.system("apache-kafka:2.8.2") is not catalogue.system("apache-kafka:2.8.1")


@pytest.mark.parametrize("name", ["", "Kafka", "kafka:1.0.0", "apache-kafka", "apache-kafka:"])
def test_other_names_are_unknown(name: str) -> None:
    """The error of an unknown name says which names there are."""
    with pytest.raises(UnknownSystem) as raised:
        catalogue.system(name)
    assert str(raised.value) == (
        f"--system {name}: must be kafka (this project's broker), apache-kafka:VERSION such as"
        " apache-kafka:3.9.1, zookeeper (this project's ZooKeeper) or apache-zookeeper:VERSION"
    )


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("latest", "latest is not a version such as 3.9.1"),
        ("0.9.0.1", "the oldest release that can be tested is 0.10.2"),
    ],
)
def test_other_versions_are_unknown(version: str, why: str) -> None:
    """The error of an unknown version names the system and the cause."""
    with pytest.raises(UnknownSystem) as raised:
        catalogue.system(f"apache-kafka:{version}")
    assert str(raised.value) == f"--system apache-kafka:{version}: {why}"
