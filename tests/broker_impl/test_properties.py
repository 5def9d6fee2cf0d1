from pathlib import Path

import pytest

from broker_impl import config, properties
from broker_impl.errors import ConfigError

MINIMAL = {"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}


def test_a_properties_file_has_java_s_format(tmp_path: Path) -> None:
    """A properties file is read as Java does.

    It has both kinds of comments, all separators, continuation lines and escapes; of two equal
    names the last one counts.
    """
    file = tmp_path / "server.properties"
    file.write_bytes(
        b"# a broker\n! another comment\r\n\n"
        b"broker.id = 2\n"
        b"  zookeeper.connect: a:1,\\\n      b:2/kafka\n"
        b"num.partitions 4\n"
        b"log.dirs=C\\:\\u005c\\tlogs\\ \n"
        b"listeners=PLAINTEXT://:9092\n"
        b"name\\=with\\ signs=#no comment\n"
        b"broker.rack=\xe9\n"
        b"advertised.listeners\n"
        b"broker.id=3"
    )
    assert properties.load(file) == {
        "broker.id": "3",
        "zookeeper.connect": "a:1,b:2/kafka",
        "num.partitions": "4",
        "log.dirs": "C:\\\tlogs ",
        "listeners": "PLAINTEXT://:9092",
        "name=with signs": "#no comment",
        "broker.rack": "\u00e9",
        "advertised.listeners": "",
    }
    assert config.parse(properties.load(file)).advertised() == ()


@pytest.mark.parametrize("content", [None, b"a=\\u12"])
def test_a_file_that_cannot_be_read_is_one_sentence(content: bytes | None, tmp_path: Path) -> None:
    """A missing file and a broken escape are ConfigErrors of one line that name the file."""
    file = tmp_path / "server.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"server\.properties") as caught:
        properties.load(file)
    assert "\n" not in str(caught.value)


def test_variables_are_settings_by_the_custom_of_kafkas_images() -> None:
    """A variable KAFKA_X_Y sets x.y, as in Kafka's images, unless Kafka's start scripts read it."""
    environment = {
        "KAFKA_LOG_RETENTION_HOURS": "60",
        "KAFKA_FAULTLINE_PEER_2": "toxiproxy:20001",
        "KAFKA_HEAP_OPTS": "-Xmx1G",
        "KAFKA_OPTS": "",
        "PATH": "/bin",
    }
    assert properties.from_environment(environment) == {
        "log.retention.hours": "60",
        "faultline.peer.2": "toxiproxy:20001",
    }


def test_a_misspelt_variable_is_noted_like_a_misspelt_setting() -> None:
    """A misspelt environment variable is noted like a misspelt setting."""
    settings = properties.from_environment({"KAFKA_LOG_RETENTON_HOURS": "60"})
    assert config.notes(settings) == [
        "unknown setting log.retenton.hours is ignored; did you mean log.retention.hours?"
    ]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"log.dir": "/a"}, {"log.dirs": "/a"}),
        ({"log.dir": "/a", "log.dirs": "/b"}, {"log.dirs": "/b"}),
        ({"port": "9000"}, {"listeners": "PLAINTEXT://:9000"}),
        ({"host.name": "h"}, {"listeners": "PLAINTEXT://h:9092"}),
        ({"host.name": "::1", "port": " 1 "}, {"listeners": "PLAINTEXT://[::1]:1"}),
        ({"port": "1", "listeners": "A://h:2"}, {"listeners": "A://h:2"}),
        ({"advertised.port": "1"}, {"advertised.listeners": "PLAINTEXT://:1"}),
        (
            {"host.name": "h", "port": "1", "advertised.host.name": "a"},
            {"listeners": "PLAINTEXT://h:1", "advertised.listeners": "PLAINTEXT://a:1"},
        ),
        (
            {"advertised.host.name": "a", "advertised.listeners": "A://h:2"},
            {"advertised.listeners": "A://h:2"},
        ),
    ],
)
def test_older_names_count_where_the_newer_are_not_given(
    given: dict[str, str], read: dict[str, str]
) -> None:
    """Kafka 2.8 reads `log.dir` and the names from before listeners, if newer ones are missing."""
    assert properties.by_one_name(given) == read


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
    """Of the three names of retention the one with the finest unit counts, as in Kafka."""
    parsed = config.parse(MINIMAL | settings)
    assert parsed.log_retention_ms == retention_ms
    assert "log.retention.ms" in parsed.given
    assert "log.retention.hours" not in parsed.given
