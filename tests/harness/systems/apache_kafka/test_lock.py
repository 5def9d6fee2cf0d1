"""The tool that writes lock files."""

from pathlib import Path

import pytest

from harness.systems.apache_kafka import lock
from harness.systems.apache_kafka.releases import PRODUCT
from harness.systems.java import lockfile, locking
from harness.systems.java.coordinates import Coordinates
from tests.harness.systems.java.fake_maven import FakeMaven, checksum

SLF4J = "org.slf4j:slf4j-api:"
LOG4J2 = "org.apache.logging.log4j:"


@pytest.mark.parametrize(
    ("version", "jars", "added"),
    [
        ("0.10.2.2", [f"{SLF4J}1.7.21", "org.slf4j:slf4j-log4j12:1.7.21"], [str(lock.JAXB)]),
        ("1.1.1", [f"{SLF4J}1.7.25"], [str(lock.JAXB), "org.slf4j:slf4j-log4j12:1.7.25"]),
        ("2.0.0", [f"{SLF4J}1.7.25"], ["org.slf4j:slf4j-log4j12:1.7.25"]),
        ("3.9.1", [f"{SLF4J}1.7.36"], ["org.slf4j:slf4j-reload4j:1.7.36"]),
        ("3.9.1", [f"{SLF4J}1.7.36", "org.slf4j:slf4j-reload4j:1.7.36"], []),
        ("4.0.0", [f"{SLF4J}1.7.36"], [f"{LOG4J2}log4j-slf4j-impl:2.24.3"]),
        ("4.4.0", [f"{LOG4J2}log4j-core:2.25.5"], [f"{LOG4J2}log4j-slf4j-impl:2.25.5"]),
        ("4.4.0", [f"{LOG4J2}log4j-slf4j-impl:2.25.5"], []),
    ],
)
def test_additions(version: str, jars: list[str], added: list[str]) -> None:
    """A release gets JAXB before 2.0, and a binding of slf4j unless it has one."""
    found = lock.additions(version, [Coordinates.parse(jar) for jar in jars])
    assert [str(jar) for jar in found] == added


@pytest.mark.parametrize("version", lockfile.pinned(PRODUCT))
def test_pinned_release_has_the_scala_of_its_age(version: str) -> None:
    """The jar of the broker in each lock is that for the version of Scala."""
    artifacts = {jar.artifact for jar in lockfile.load(version, PRODUCT).sha256}
    assert f"kafka_{lock.scala_of(version)}" in artifacts


async def test_jars_are_locked_with_their_checksums(fake_maven: FakeMaven) -> None:
    """A lock has the jars that Maven resolves with the additions, each with its checksum."""
    slf4j = Coordinates.parse(f"{SLF4J}1.7.25")
    found = await locking.resolved([slf4j, lock.JAXB])
    assert found == {slf4j: checksum(slf4j), lock.JAXB: checksum(lock.JAXB)}


def test_failure_is_printed(
    fake_maven: FakeMaven, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If Maven fails, the cause is printed, the exit status is 1 and no file is written."""
    monkeypatch.setattr(lock, "PRODUCT", fake_maven.product)
    fake_maven.mode("fail")
    assert lock.main(["1.0.0"]) == 1
    assert "Could not find y.jar" in capsys.readouterr().err
    assert not (fake_maven.locks / "1.0.0.toml").exists()


@pytest.mark.real_kafka
@pytest.mark.slow
def test_lock_of_a_release_is_reproduced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool writes the lock file of a pinned release again as it is."""
    elsewhere = lockfile.Product(PRODUCT.name, tmp_path, PRODUCT.writer)
    monkeypatch.setattr(lock, "PRODUCT", elsewhere)
    assert lock.main(["0.10.2.2"]) == 0
    path = tmp_path / "0.10.2.2.toml"
    assert capsys.readouterr().out == f"{path}: 15 jars\n"
    assert path.read_text() == (PRODUCT.locks / path.name).read_text()
