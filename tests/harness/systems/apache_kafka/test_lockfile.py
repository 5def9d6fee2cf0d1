"""Lock files of releases."""

from pathlib import Path

import pytest

from harness.systems.apache_kafka.coordinates import Coordinates
from harness.systems.apache_kafka.lockfile import (
    Lock,
    UnknownRelease,
    dump,
    load,
    numbers,
    pinned,
)


def jars(*texts: str) -> dict[Coordinates, str]:
    return {Coordinates.parse(text): f"{number:064}" for number, text in enumerate(texts)}


def test_written_lock_is_read_as_it_was(tmp_path: Path) -> None:
    """A lock survives writing and reading, with its jars sorted."""
    lock = Lock("1.0", jars("b:b:1", "a:a:1:linux"))
    (tmp_path / "1.0.toml").write_text(dump(lock))
    assert load("1.0", tmp_path) == lock
    assert [jar.group for jar in load("1.0", tmp_path).sha256] == ["a", "b"]


def test_equal_file_names_are_rejected() -> None:
    """Two jars with the same file name would overwrite each other, so no lock has them."""
    assert "b:a:2" in dump(Lock("1.0", jars("a:a:1", "b:a:2")))
    with pytest.raises(ValueError, match="same file name"):
        dump(Lock("1.0", jars("a:a:1", "b:a:1")))


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.10.2.2", (0, 10, 2, 2)), ("4.1.0-rc1", (4, 1, 0)), ("4.2.0-SNAPSHOT", (4, 2, 0)),
     ("trunk", ())],
)  # fmt: skip
def test_numbers(version: str, expected: tuple[int, ...]) -> None:
    """Versions are compared by the numbers at their beginning."""
    assert numbers(version) == expected


def test_unknown_release_suggests_pinned_ones(tmp_path: Path) -> None:
    """The error names the nearest release, and lists all that are pinned, oldest first."""
    for version in ("3.9.1", "10.0.0", "0.11.0.3"):
        (tmp_path / f"{version}.toml").write_text("")
    with pytest.raises(UnknownRelease) as caught:
        load("3.9.0", tmp_path)
    assert str(caught.value) == (
        "the jars of Apache Kafka 3.9.0 are not pinned; the nearest pinned release is 3.9.1; "
        "pinned: 0.11.0.3, 3.9.1, 10.0.0"
    )
    with pytest.raises(UnknownRelease, match=r"are not pinned; pinned: 0\.11"):
        load("../x", tmp_path)


@pytest.mark.parametrize("version", pinned())
def test_pinned_release_has_what_its_programs_need(version: str) -> None:
    """A lock has the broker, one binding of slf4j, ZooKeeper before 4.0 and JAXB before 2.0."""
    lock = load(version)
    artifacts = {jar.artifact: jar.version for jar in lock.sha256}
    (broker,) = (jar for jar in lock.sha256 if jar.artifact.startswith("kafka_2."))
    assert broker.version == version
    bindings = {"slf4j-log4j12", "slf4j-reload4j", "log4j-slf4j-impl"} & artifacts.keys()
    is_log4j2 = bindings == {"log4j-slf4j-impl"}
    assert len(bindings) == 1
    assert ("log4j-core" in artifacts) == is_log4j2 == (numbers(version) >= (4, 0))
    assert ("zookeeper" in artifacts) == (numbers(version) < (4, 0))
    assert ("jaxb-api" in artifacts) == (numbers(version) < (2, 0))
    assert dump(lock) == dump(Lock(version, dict(lock.sha256)))
    assert all(len(bytes.fromhex(checksum)) == 32 for checksum in lock.sha256.values())


def test_releases_of_every_age_are_pinned() -> None:
    """Releases from the first with KIP-101's bug to the newest are pinned, oldest first."""
    versions = pinned()
    assert versions[0] == "0.10.2.2"
    assert {numbers(version)[0] for version in versions} == {0, 1, 2, 3, 4}
