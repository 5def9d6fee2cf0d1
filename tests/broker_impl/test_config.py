from pathlib import Path

import pytest

from broker_impl import config
from broker_impl.errors import ConfigError

MINIMAL = {"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("min.insync.replica", "2", "unknown setting min.insync.replica; did you mean"),
        ("min.insync.replicas", "two", "must be a whole number"),
        ("min.insync.replicas", "0", "must be at least 1"),
        ("auto.create.topics.enable", "maybe", "must be true or false"),
        ("log.message.timestamp.type", "Never", "must be one of CreateTime, LogAppendTime"),
        ("log.cleanup.policy", "keep", "must be one of delete, compact"),
        ("log.cleanup.policy", "compact,keep", "must be one of delete, compact"),
        ("log.cleanup.policy", "", "must be one of delete, compact"),
        ("log.cleaner.min.cleanable.ratio", "half", "must be a number"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "must be at most 1"),
        ("listeners", "127.0.0.1:9092", "a listener is written NAME://host:port"),
        ("listeners", "A://h:1,A://h:2", "each name may occur once"),
        ("listeners", "SECRET://h:1", "must map it to PLAINTEXT"),
        ("advertised.listeners", "OTHER://h:1", "OTHER is no listener"),
        ("inter.broker.listener.name", "OTHER", "is no listener"),
        ("zookeeper.connect", "", "must be set"),
        ("broker.id", "-1", "must be set"),
        ("log.dirs", "/a,/b", "one directory is supported"),
        ("faultline.peer.two", "h:1", "must end in a broker id"),
        ("faultline.peer.2", "h", "must be host:port"),
        ("log.retention.hours", "long", "log.retention.hours=long: must be a whole number"),
        ("log.retention.hour", "1", "did you mean log.retention.hours?"),
    ],
)
def test_what_cannot_be_obeyed_is_named(name: str, text: str, message: str) -> None:
    """A bad setting ends in one sentence that says what would be right."""
    with pytest.raises(ConfigError, match=r".") as caught:
        config.parse(MINIMAL | {name: text})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_kafkas_names_become_typed_fields() -> None:
    """Texts are parsed to the type of their field; what is not given has its default."""
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
    """Topic-level names replace the broker's fields, and only those."""
    broker = config.parse(MINIMAL | {"min.insync.replicas": "2"})
    topic = broker.for_topic({"retention.ms": "5000", "segment.bytes": "1000"})
    assert (topic.log_retention_ms, topic.log_segment_bytes) == (5000, 1000)
    assert topic.min_insync_replicas == 2
    assert broker.log_retention_ms != 5000


@pytest.mark.parametrize("name", ["retention.msec", "broker.id"])
def test_an_unknown_topic_setting_is_refused(name: str) -> None:
    """Broker-level names are no topic settings either."""
    with pytest.raises(ConfigError, match="unknown topic setting"):
        config.parse(MINIMAL).for_topic({name: "1"})


@pytest.mark.parametrize("setting", config.SETTINGS.values(), ids=lambda s: s.name)
def test_every_default_survives_being_written_and_read(setting: config.Setting) -> None:
    """What DescribeConfigs shows is what a properties file may say."""
    assert setting.parse(setting.format(setting.default)) == setting.default


def test_a_value_is_told_with_where_it_is_from() -> None:
    """Of a topic, of the broker's file or by default; what is overridden comes after."""
    parsed = config.parse(MINIMAL | {"log.retention.ms": "60000"})
    values = {name: values for name, _, values in parsed.topic_settings({"retention.ms": "1000"})}
    assert values.keys() == config.TOPIC_SETTINGS.keys()
    assert values["retention.ms"] == [
        ("retention.ms", 1000, config.Source.TOPIC),
        ("log.retention.ms", 60000, config.Source.FILE),
        ("log.retention.ms", 604_800_000, config.Source.DEFAULT),
    ]
    assert values["retention.bytes"] == [("log.retention.bytes", -1, config.Source.DEFAULT)]


def test_a_properties_file_is_read(tmp_path: Path) -> None:
    """server.properties: comments, spaces and both separators."""
    file = tmp_path / "server.properties"
    file.write_text("# a broker\nbroker.id = 3\nzookeeper.connect: h:1/kafka\n")
    parsed = config.parse(config.load(file))
    assert (parsed.broker_id, parsed.zookeeper_connect) == (3, "h:1/kafka")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    """A file that cannot be read is a ConfigError, not a traceback."""
    with pytest.raises(ConfigError, match="cannot read"):
        config.load(tmp_path / "none")


def test_variables_are_settings_by_the_custom_of_kafkas_images() -> None:
    """KAFKA_ goes, the rest is a name; what Kafka's start scripts read is not ours to refuse."""
    environment = {
        "KAFKA_LOG_RETENTION_HOURS": "60",
        "KAFKA_FAULTLINE_PEER_2": "toxiproxy:20001",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_OPTS": "",
        "PATH": "/bin",
    }
    assert config.from_environment(environment) == {
        "log.retention.hours": "60",
        "faultline.peer.2": "toxiproxy:20001",
    }


def test_a_misspelt_variable_is_refused_like_a_misspelt_setting() -> None:
    """No setting is ignored for the way that it came."""
    settings = config.from_environment({"KAFKA_LOG_RETENTON_HOURS": "60"})
    with pytest.raises(ConfigError, match=r"did you mean log\.retention\.hours\?"):
        config.parse(MINIMAL | settings)


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
    ],
)
def test_the_finest_unit_counts(settings: dict[str, str], retention_ms: int) -> None:
    """Of the three names of retention the finest that is given is obeyed, as in Kafka."""
    parsed = config.parse(MINIMAL | settings)
    assert parsed.log_retention_ms == retention_ms
    assert "log.retention.ms" in parsed.given
    assert "log.retention.hours" not in parsed.given


def test_settings_change_while_a_broker_runs() -> None:
    """One broker's own go before those of all, these before what was given at start."""
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
    """Only what is asked for anew each time; the others were read at start."""
    with pytest.raises(ConfigError, match=name):
        config.parse(MINIMAL).while_running({}, {name: "1"})
