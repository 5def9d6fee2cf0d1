"""The lock files of pinned releases."""

import pytest

from harness.systems.apache_kafka.releases import PRODUCT
from harness.systems.java.lockfile import Lock, dump, load, numbers, pinned


@pytest.mark.parametrize("version", pinned(PRODUCT))
def test_pinned_release_has_what_its_programs_need(version: str) -> None:
    """A lock has the broker, one binding of slf4j, ZooKeeper before 4.0 and JAXB before 2.0."""
    lock = load(version, PRODUCT)
    artifacts = {jar.artifact: jar.version for jar in lock.sha256}
    (broker,) = (jar for jar in lock.sha256 if jar.artifact.startswith("kafka_2."))
    assert broker.version == version
    bindings = {"slf4j-log4j12", "slf4j-reload4j", "log4j-slf4j-impl"} & artifacts.keys()
    is_log4j2 = bindings == {"log4j-slf4j-impl"}
    assert len(bindings) == 1
    assert ("log4j-core" in artifacts) == is_log4j2 == (numbers(version) >= (4, 0))
    assert ("zookeeper" in artifacts) == (numbers(version) < (4, 0))
    assert ("jaxb-api" in artifacts) == (numbers(version) < (2, 0))
    assert dump(lock) == dump(Lock(PRODUCT, version, dict(lock.sha256)))
    assert all(len(bytes.fromhex(checksum)) == 32 for checksum in lock.sha256.values())


def test_releases_of_every_age_are_pinned() -> None:
    """Releases from the first with KIP-101's bug to the newest are pinned, oldest first."""
    versions = pinned(PRODUCT)
    assert versions[0] == "0.10.2.2"
    assert {numbers(version)[0] for version in versions} == {0, 1, 2, 3, 4}
