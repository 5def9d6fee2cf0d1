import pytest

from broker_impl import config
from broker_impl.errors import ConfigError

MINIMAL = {"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}


def test_a_topic_overrides_its_brokers_settings() -> None:
    """Topic-level names replace the broker's settings, and only those."""
    broker = config.parse(MINIMAL | {"min.insync.replicas": "2"})
    topic = broker.for_topic({"retention.ms": "5000", "segment.bytes": "1000"})
    assert (topic.log_retention_ms, topic.log_segment_bytes) == (5000, 1000)
    assert topic.min_insync_replicas == 2
    assert broker.log_retention_ms != 5000


@pytest.mark.parametrize("name", ["retention.msec", "broker.id"])
def test_an_unknown_topic_setting_is_refused(name: str) -> None:
    """Unknown names and broker-level names are refused as topic settings."""
    with pytest.raises(ConfigError, match="unknown topic setting"):
        config.parse(MINIMAL).for_topic({name: "1"})


def test_a_value_is_listed_with_its_source() -> None:
    """A value is listed with its source (topic, file, default), before the values it overrides."""
    parsed = config.parse(MINIMAL | {"log.retention.ms": "60000"})
    values = {name: values for name, _, values in parsed.topic_settings({"retention.ms": "1000"})}
    assert values.keys() == {**config.TOPIC_SETTINGS, **config.TOPIC_ONLY_SETTINGS}.keys()
    assert len(values) == 26, "the number of topic settings in Kafka 2.8"
    assert values["retention.ms"] == [
        ("retention.ms", 1000, config.Source.TOPIC),
        ("log.retention.ms", 60000, config.Source.FILE),
        ("log.retention.ms", 604_800_000, config.Source.DEFAULT),
    ]
    assert values["retention.bytes"] == [("log.retention.bytes", -1, config.Source.DEFAULT)]


def test_names_of_listeners_are_upper_case() -> None:
    """Names of listeners are upper case, because Kafka ignores their case."""
    parsed = config.parse(
        MINIMAL
        | {
            "listeners": "client://:9092,Peer://h:9093",
            "listener.security.protocol.map": "Client:plaintext,PEER:PLAINTEXT",
            "inter.broker.listener.name": "peer",
            "advertised.listeners": "client://h:1",
        }
    )
    assert [endpoint.name for endpoint in parsed.endpoints()] == ["CLIENT", "PEER"]
    assert parsed.inter_broker_listener() == "PEER"


def test_settings_change_while_a_broker_runs() -> None:
    """Dynamic settings of one broker come before cluster-wide ones, then those of the start."""
    broker = config.parse(MINIMAL | {"log.retention.ms": "1", "min.insync.replicas": "2"})
    now = broker.while_running(
        {"log.retention.ms": "2", "log.segment.bytes": "100"}, {"log.retention.ms": "3"}
    )
    assert (now.log_retention_ms, now.log_segment_bytes, now.min_insync_replicas) == (3, 100, 2)
    values = now.sourced(config.SETTINGS["log.retention.ms"])
    assert [(each.value, each.source.name) for each in values] == [
        (3, "BROKER"),
        (2, "ALL_BROKERS"),
        (1, "FILE"),
        (604_800_000, "DEFAULT"),
    ]
    assert broker.while_running({}, {}).log_retention_ms == 1


@pytest.mark.parametrize("text", ["0.11.0", "0.11.0-IV2", "1.1-IV0", "2.0.1", "2.8", "2.8-IV1"])
def test_versions_of_the_message_format(text: str) -> None:
    """The versions of Kafka from 0.11.0 to 2.8 have one message format."""
    assert config.parse(MINIMAL | {"log.message.format.version": text}).given >= {
        "log.message.format.version"
    }


@pytest.mark.parametrize("text", ["0.10.2-IV0", "0.11", "1.2", "2.9", "3.0", "2.8-IV", "", "x"])
def test_other_versions_are_refused(text: str) -> None:
    """Earlier versions have other formats, and later ones do not exist for Kafka 2.8."""
    with pytest.raises(ConfigError, match=r"log\.message\.format\.version=.*: must be a version"):
        config.parse(MINIMAL | {"log.message.format.version": text})


@pytest.mark.parametrize("text", ["", "*", "0:1", " 0:1, 12:300 "])
def test_throttled_replicas(text: str) -> None:
    """Throttled replicas are all, none, or a list of partition and broker."""
    name = "leader.replication.throttled.replicas"
    assert config.parse(MINIMAL).for_topic({name: text}) == config.parse(MINIMAL)


@pytest.mark.parametrize("text", ["0", "0:", "0:1,", "*,0:1", "-1:1", "a:b"])
def test_other_lists_of_replicas_are_refused(text: str) -> None:
    """Everything else is refused, as by Kafka."""
    name = "follower.replication.throttled.replicas"
    with pytest.raises(ConfigError, match="list of partition:broker"):
        config.parse(MINIMAL).for_topic({name: text})


@pytest.mark.parametrize("name", ["broker.id", "log.dirs", "faultline.peer.2"])
def test_not_every_setting_changes_while_a_broker_runs(name: str) -> None:
    """Only settings that are read at each use can change dynamically, others are read at start."""
    with pytest.raises(ConfigError, match=name):
        config.parse(MINIMAL).while_running({}, {name: "1"})


def test_unknown_settings_change_without_effect() -> None:
    """Kafka stores a broker's setting that it does not know: a plug-in may read it."""
    broker = config.parse(MINIMAL)
    changed = broker.while_running({"log.retention.msec": "1"}, {"cleanup.policy": "compact"})
    assert (changed.dynamic, changed.dynamic_default) == (
        {"cleanup.policy": "compact"},
        {"log.retention.msec": "1"},
    )
    assert changed.log_retention_ms == broker.log_retention_ms


RELOGIN = "sasl.kerberos.min.time.before.relogin"


def test_settings_of_absent_mechanisms_change_for_single_brokers() -> None:
    """Kafka changes settings of GSSAPI and OAUTHBEARER for one broker: librdkafka's test 0081."""
    broker = config.parse(MINIMAL)
    assert broker.while_running({}, {RELOGIN: "58000"}).dynamic == {RELOGIN: "58000"}
    with pytest.raises(ConfigError, match="must be a whole number"):
        broker.while_running({}, {RELOGIN: "soon"})
    with pytest.raises(ConfigError, match="for single brokers only"):
        broker.while_running({RELOGIN: "58000"}, {})


def test_the_former_name_of_the_authorizer_is_valid() -> None:
    """Kafka 2.8 accepts the authorizer also by its name before 2.4."""
    name = "kafka.security.auth.SimpleAclAuthorizer"
    broker = config.parse(MINIMAL | {"authorizer.class.name": name})
    assert broker.authorizer_class_name == name
    with pytest.raises(ConfigError, match="must be one of"):
        config.parse(MINIMAL | {"authorizer.class.name": "a.Class"})


TLS = MINIMAL | {
    "listeners": "IN://:1,OUT://:2",
    "listener.security.protocol.map": "IN:PLAINTEXT,OUT:SSL",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "/first.pem",
}
KEY_STORE = "listener.name.out.ssl.keystore.location"


def test_the_key_store_of_a_listener_changes_while_a_broker_runs() -> None:
    """A broker's own setting for one listener is in effect for that listener (KIP-226)."""
    broker = config.parse(TLS | {KEY_STORE: "/second.pem"})
    now = broker.while_running({}, {KEY_STORE: "/third.pem"})
    assert now.for_listener("OUT").ssl_keystore_location == "/third.pem"
    assert now.for_listener("IN").ssl_keystore_location == "/first.pem"
    assert broker.for_listener("OUT").ssl_keystore_location == "/second.pem"
    assert broker.while_running({}, {}).of_listeners == broker.of_listeners


@pytest.mark.parametrize(
    ("default", "own", "why"),
    [
        ({KEY_STORE: "/a.pem"}, {}, "for single brokers only"),
        ({}, {"listener.name.else.ssl.keystore.location": "/a.pem"}, "there is no listener ELSE"),
        ({}, {"listener.name.out.ssl.client.auth": "none"}, "cannot be changed"),
        ({}, {"ssl.keystore.location": "/a.pem"}, "cannot be changed"),
    ],
)
def test_only_key_stores_of_own_listeners_change(
    default: dict[str, str], own: dict[str, str], why: str
) -> None:
    """Neither all brokers, nor an unknown listener, nor other settings of security."""
    with pytest.raises(ConfigError, match=why):
        config.parse(TLS).while_running(default, own)
