"""Unpacked distributions."""

from pathlib import Path

import pytest

from harness.systems.apache_kafka.distribution import DistributionError, open_distribution


def unpack(home: Path, *names: str) -> Path:
    (home / "libs").mkdir(parents=True)
    for name in names:
        (home / "libs" / name).touch()
    return home


@pytest.mark.parametrize(
    ("jar", "version"),
    [
        ("kafka_2.13-3.9.1.jar", "3.9.1"),
        ("kafka_2.11-2.0.0.jar", "2.0.0"),
        ("kafka_2.13-4.2.0-SNAPSHOT.jar", "4.2.0-SNAPSHOT"),
    ],
)
def test_version_is_that_of_the_broker(jar: str, version: str, tmp_path: Path) -> None:
    """The jar of the broker gives the version; all jars are on the class path."""
    home = unpack(tmp_path, jar, "kafka-clients-9.9.9.jar", "a.jar", "a.jar.asc", "readme.txt")
    found = open_distribution(home)
    assert found.version == version
    libs = home / "libs"
    assert set(found.classpath) == {libs / "a.jar", libs / "kafka-clients-9.9.9.jar", libs / jar}


def test_sources_and_tests_are_no_programs(tmp_path: Path) -> None:
    """Old distributions contain jars of sources, documentation and tests, which are left out."""
    kinds = ("", "-sources", "-javadoc", "-scaladoc", "-test", "-test-sources")
    home = unpack(tmp_path, *(f"kafka_2.12-2.1.1{kind}.jar" for kind in kinds))
    (jar,) = open_distribution(home).classpath
    assert jar.name == "kafka_2.12-2.1.1.jar"


def test_relative_folder_gives_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes have their own working folders, so the class path is absolute."""
    unpack(tmp_path / "kafka", "kafka_2.13-3.9.1.jar")
    monkeypatch.chdir(tmp_path)
    assert all(jar.is_absolute() for jar in open_distribution(Path("kafka")).classpath)


@pytest.mark.parametrize("names", [(), ("kafka-clients-3.9.1.jar", "kafka_2.13-3.9.1-test.jar")])
def test_other_folder_is_an_error(names: tuple[str, ...], tmp_path: Path) -> None:
    """A folder without the broker's jar is no distribution, and the error says why."""
    with pytest.raises(DistributionError) as caught:
        open_distribution(unpack(tmp_path / "home", *names))
    assert str(caught.value) == (
        f"{tmp_path / 'home'} is no unpacked distribution of Apache Kafka: "
        "it has no libs/kafka_SCALA-VERSION.jar"
    )


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    """A folder that does not exist is an error too."""
    with pytest.raises(DistributionError, match="is no unpacked distribution"):
        open_distribution(tmp_path / "nowhere")


def test_two_brokers_are_an_error(tmp_path: Path) -> None:
    """With the jars of two brokers, the version is not known."""
    home = unpack(tmp_path, "kafka_2.13-3.9.1.jar", "kafka_2.13-3.9.0.jar")
    with pytest.raises(DistributionError, match=r"contains several brokers: 3\.9\.0, 3\.9\.1$"):
        open_distribution(home)


def test_old_release_needs_jaxb(tmp_path: Path) -> None:
    """A release before 2.0 cannot start on today's Java unless the user has added JAXB."""
    home = unpack(tmp_path, "kafka_2.11-1.1.1.jar")
    with pytest.raises(DistributionError, match=r"needs javax\.xml\.bind .* copy jaxb-api-2\.3\.1"):
        open_distribution(home)
    (home / "libs" / "jaxb-api-2.3.1.jar").touch()
    assert open_distribution(home).version == "1.1.1"
