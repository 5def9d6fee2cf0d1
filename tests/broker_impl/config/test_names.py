import pytest

from broker_impl import config
from broker_impl.properties import OTHER_NAMES

MINIMAL = {"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("min.insync.replica", "min.insync.replicas"),
        ("log.retention.hour", "log.retention.hours"),
        ("log.retenton.ms", "log.retention.ms"),
        ("listener", "listeners"),
        ("num.network.thread", "num.network.threads"),
        ("auto.create.topic", "auto.create.topics.enable"),
        ("Log.Dirs", "log.dirs"),
        ("LOG_RETENTION_HOURS", "log.retention.hours"),
        ("broker-id", "broker.id"),
        ("retention.ms", "log.retention.ms"),
        ("max.message.bytes", "message.max.bytes"),
    ],
)
def test_an_unknown_name_is_ignored_with_a_hint(name: str, hint: str) -> None:
    """An unknown setting does not stop the broker, as in Kafka; a note names a similar one."""
    settings = MINIMAL | {name: "1"}
    assert config.notes(settings) == [f"unknown setting {name} is ignored; did you mean {hint}?"]
    assert config.parse(settings) == config.parse(MINIMAL)


@pytest.mark.parametrize("name", ["confluent.support.customer.id", "x", ""])
def test_a_foreign_name_gets_no_hint(name: str) -> None:
    """A name unlike all settings, such as a plug-in's, gets no suggestion."""
    assert config.notes(MINIMAL | {name: "1"}) == [f"unknown setting {name} is ignored"]


def test_settings_of_kafka_without_effect_are_listed_in_one_line() -> None:
    """Settings without effect are noted by name in one line, and their values are kept as given.

    The line has no values, since some are secrets.
    """
    given = {
        "num.network.threads": "3",
        "ssl.keystore.password": "hidden",
        "listener.name.client.max.connections": "7",
    }
    (note,) = config.notes(MINIMAL | given)
    assert note.endswith(
        ": listener.name.client.max.connections, num.network.threads, ssl.keystore.password"
    )
    parsed = config.parse(MINIMAL | given)
    assert parsed.inactive == given
    assert parsed.given == set(MINIMAL)


def test_known_settings_are_not_noted() -> None:
    """Active settings, their other names and addresses of peers are not noted."""
    names = [*config.SETTINGS, *OTHER_NAMES, "faultline.peer.2"]
    assert config.notes(dict.fromkeys(names, "1")) == []
