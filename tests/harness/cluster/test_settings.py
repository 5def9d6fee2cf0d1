"""The settings in a broker's server.properties."""

from pathlib import Path

import javaproperties
import pytest

from broker_impl import config, properties
from harness.cluster import settings
from harness.cluster.address import Address
from harness.cluster.settings import Addresses

ADDRESSES = Addresses(
    listeners={"CLIENT": Address("0.0.0.0", 1001), "REPLICATION": Address("0.0.0.0", 1002)},
    advertised={"CLIENT": Address("127.0.0.1", 2001), "REPLICATION": Address("broker-2", 1002)},
    zookeepers=(Address("toxiproxy", 3001),),
    peers={1: Address("toxiproxy", 4001), 3: Address("toxiproxy", 4003)},
)


def test_settings_are_kafka_s_own() -> None:
    """A broker's settings hold its listeners, what it advertises, and each peer's address."""
    made = settings.of_broker(2, 3, ADDRESSES, Path("/data"), {"min.insync.replicas": "1"})
    assert made["listeners"] == "CLIENT://0.0.0.0:1001,REPLICATION://0.0.0.0:1002"
    assert made["advertised.listeners"] == "CLIENT://127.0.0.1:2001,REPLICATION://broker-2:1002"
    assert made["faultline.peer.3"] == "toxiproxy:4003"
    assert made["zookeeper.connect"] == "toxiproxy:3001"
    assert made["min.insync.replicas"] == "1", "the plan's settings win"
    assert made["default.replication.factor"] == "3"


@pytest.mark.parametrize(
    ("brokers", "replicas", "isr"), [(1, "1", "1"), (2, "2", "2"), (5, "3", "2")]
)
def test_replication_fits_the_cluster(brokers: int, replicas: str, isr: str) -> None:
    """There are no more replicas than brokers, and the ISR's minimum is 2 where possible."""
    made = settings.of_broker(1, brokers, ADDRESSES, Path("/data"), {})
    assert made["default.replication.factor"] == replicas
    assert made["min.insync.replicas"] == isr


def test_broker_reads_what_is_written(tmp_path: Path) -> None:
    """The broker itself accepts every setting, whatever characters a path has."""
    data = tmp_path / "a b\\c=d:ü"
    path = tmp_path / "server.properties"
    settings.write(path, settings.of_broker(2, 3, ADDRESSES, data, {}))
    assert javaproperties.loads(path.read_text())["log.dirs"] == str(data)
    read = config.parse(properties.load(path))
    assert config.notes(properties.load(path)) == []
    assert read.log_dirs == str(data)
    assert read.broker_id == 2


def test_session_timeout_can_be_set() -> None:
    """The plan's session time-out is also the one that faults are measured by."""
    assert settings.session_timeout_s({}) == 2.0
    assert settings.session_timeout_s({"zookeeper.session.timeout.ms": "6000"}) == 6.0


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("min.insync.replica", "1", "unknown setting min.insync.replica; did you mean min.insync"),
        ("retention.ms", "1", "unknown setting retention.ms; did you mean log.retention.ms?"),
        ("num.io.threads", "8", "this broker does not act on num.io.threads"),
        ("listener.name.client.ssl.client.auth", "none", "this broker does not act on listener."),
        ("num.partitions", "x", "num.partitions=x: must be a whole number"),
        ("log.roll.hours", "x", "log.roll.hours=x: must be a whole number"),
        ("log.dir", "/tmp", "the run itself sets addresses"),
        ("port", "1", "the run itself sets addresses"),
    ],
)
def test_a_plan_must_not_set_what_has_no_effect(name: str, text: str, reason: str) -> None:
    """A setting that a broker ignores is refused.

    The verdict would be about another configuration.
    """
    refusal = settings.refusal({"num.partitions": "3", name: text})
    assert refusal is not None
    assert refusal.startswith(f"--set broker.{name}={text}: {reason}")


@pytest.mark.parametrize("name", ["ssl.key.password", "sasl.jaas.config", "ssl.key.pem"])
def test_a_refusal_shows_no_secret(name: str) -> None:
    """The value of a setting that is a secret is masked in the refusal."""
    refusal = settings.refusal({name: "hunter2"})
    assert refusal is not None
    assert refusal.startswith(f"--set broker.{name}=***: ")
    assert "hunter2" not in refusal


def test_a_plan_may_use_every_name_of_a_time() -> None:
    """A plan may set retention times in hours or minutes, because the broker reads these, too."""
    assert settings.refusal({"log.retention.hours": "2", "log.retention.minutes": "7"}) is None
