import pytest

from broker_impl import config
from broker_impl.errors import ConfigError
from broker_impl.properties import OTHER_NAMES

MINIMAL = {"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("min.insync.replicas", "two", "must be a whole number"),
        ("min.insync.replicas", "0", "must be at least 1"),
        ("auto.create.topics.enable", "maybe", "must be true or false"),
        ("log.message.timestamp.type", "Never", "must be one of CreateTime, LogAppendTime"),
        ("log.cleanup.policy", "keep", "must be one of delete, compact"),
        ("log.cleanup.policy", "compact,keep", "must be one of delete, compact"),
        ("log.cleanup.policy", "", "must be one of delete, compact"),
        ("log.cleaner.min.cleanable.ratio", "half", "must be a number"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "must be at most 1"),
        ("listeners", "127.0.0.1:9092", "a listener must be written as NAME://host:port"),
        ("listeners", "A://h:1,A://h:2", "the name of a listener may occur only once"),
        ("listeners", "SECRET://h:1", "must map it to PLAINTEXT"),
        ("advertised.listeners", "OTHER://h:1", "OTHER is not one of the listeners"),
        ("inter.broker.listener.name", "OTHER", "is not one of the listeners"),
        ("zookeeper.connect", "", "must be set"),
        ("broker.id", "-1", "must be set"),
        ("log.dirs", "/a,/b", "one directory is supported"),
        ("faultline.peer.two", "h:1", "must end in a broker id"),
        ("faultline.peer.2", "h", "must be host:port"),
        ("log.retention.hours", "long", "log.retention.hours=long: must be a whole number"),
        ("log.roll.hours", "1.5", "log.roll.hours=1.5: must be a whole number"),
        ("num.partitions", "1_000", "must be a whole number"),
        ("num.partitions", "٣", "must be a whole number"),
        ("num.partitions", "", "must be a whole number"),
        ("num.partitions", "9" * 5000, "must be a whole number"),
        ("num.partitions", "2147483648", "must be at most 2147483647"),
        ("log.retention.bytes", "9223372036854775808", "must be at most 9223372036854775807"),
        ("offsets.topic.replication.factor", "32768", "must be at most 32767"),
        ("log.cleaner.min.cleanable.ratio", "NaN", "must be at least 0"),
        ("log.dirs", " ", "log.dirs: must be set"),
        ("listeners", "PLAINTEXT://h:٩٩", "a listener must be written as NAME://host:port"),
        ("port", "http", "port=http: must be a whole number"),
        ("zookeeper.connect", "h:port", "must be host:port,host:port/chroot"),
        ("zookeeper.connect", "h:2181,,i:2181", "must be host:port,host:port/chroot"),
        ("zookeeper.connect", "/chroot", "must be host:port,host:port/chroot"),
        ("zookeeper.connect", "h:2181/a//b", "the chroot must not have an empty part"),
        ("process.roles", "broker,controller", "this broker has no KRaft mode"),
        ("num.io.threads", "many", "num.io.threads=many: must be a whole number"),
        ("num.network.threads", "0", "num.network.threads=0: must be at least 1"),
        ("log.preallocate", "perhaps", "log.preallocate=perhaps: must be true or false"),
        ("ssl.client.auth", "maybe", "must be one of required, requested, none"),
        ("log.cleaner.io.max.bytes.per.second", "fast", "must be a number"),
        ("listener.name.x.num.io.threads", "?", "must be a whole number"),
        ("faultline.pear.2", "h:1", "unknown setting faultline.pear.2"),
    ],
)
def test_what_cannot_be_obeyed_is_named(name: str, text: str, message: str) -> None:
    """An invalid setting raises one line that says which values are valid."""
    with pytest.raises(ConfigError, match=r".") as caught:
        config.parse(MINIMAL | {name: text})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_kafkas_names_become_typed_fields() -> None:
    """Values are parsed to the types of their fields; settings not given have their defaults."""
    parsed = config.parse(
        MINIMAL
        | {
            "listeners": "CLIENT://127.0.0.1:0, REPLICATION://127.0.0.1:9093",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,REPLICATION:PLAINTEXT",
            "inter.broker.listener.name": "REPLICATION",
            "unclean.leader.election.enable": "TRUE",
            "faultline.peer.2": "127.0.0.1:4242",
        }
    )
    assert parsed.endpoints() == (("CLIENT", "127.0.0.1", 0), ("REPLICATION", "127.0.0.1", 9093))
    assert parsed.inter_broker_listener() == "REPLICATION"
    assert parsed.unclean_leader_election_enable is True
    assert parsed.replica_lag_time_max_ms == 30_000
    assert parsed.peer_overrides == {2: ("127.0.0.1", 4242)}


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


@pytest.mark.parametrize("setting", config.SETTINGS.values(), ids=lambda s: s.name)
def test_every_default_survives_being_written_and_read(setting: config.Setting) -> None:
    """Every default is formatted, for DescribeConfigs, in a form that a properties file accepts."""
    assert setting.parse(setting.format(setting.default)) == setting.default


def test_a_value_is_told_with_where_it_is_from() -> None:
    """A value is listed with its source (topic, file, default), before the values it overrides."""
    parsed = config.parse(MINIMAL | {"log.retention.ms": "60000"})
    values = {name: values for name, _, values in parsed.topic_settings({"retention.ms": "1000"})}
    assert values.keys() == config.TOPIC_SETTINGS.keys()
    assert values["retention.ms"] == [
        ("retention.ms", 1000, config.Source.TOPIC),
        ("log.retention.ms", 60000, config.Source.FILE),
        ("log.retention.ms", 604_800_000, config.Source.DEFAULT),
    ]
    assert values["retention.bytes"] == [("log.retention.bytes", -1, config.Source.DEFAULT)]


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


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("min.insync.replica", "2", "unknown setting min.insync.replica; did you mean"),
        ("num.io.threads", "8", "this broker does not act on num.io.threads"),
        ("log.retention.hours", "long", "log.retention.hours=long: must be a whole number"),
        ("num.partitions", "0", "num.partitions=0: must be at least 1"),
        ("faultline.peer.2", "h:1", "unknown setting faultline.peer.2"),
    ],
)
def test_what_would_not_be_obeyed_is_found(name: str, text: str, reason: str) -> None:
    """A caller that relies on a setting gets an error if the broker would ignore or refuse it."""
    with pytest.raises(ConfigError) as caught:
        config.check_active(name, text)
    assert str(caught.value).startswith(reason)
    config.check_active("log.retention.hours", "2")
    config.check_active("num.partitions", "2")


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


@pytest.mark.parametrize(
    "connect", ["h", "h:1", "h:1,i:2", "h:1, i", "h:1/", "h:1,i:2/a/b", "[::1]:2181/kafka"]
)
def test_an_ensemble_has_ports_and_a_chroot_or_not(connect: str) -> None:
    """zookeeper.connect has every form that ZooKeeper's own client accepts."""
    assert config.parse(MINIMAL | {"zookeeper.connect": connect}).zookeeper_connect == connect


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


@pytest.mark.parametrize("name", ["broker.id", "log.retention.msec"])
def test_not_every_setting_changes_while_a_broker_runs(name: str) -> None:
    """Only settings that are read at each use can change dynamically, others are read at start."""
    with pytest.raises(ConfigError, match=name):
        config.parse(MINIMAL).while_running({}, {name: "1"})
