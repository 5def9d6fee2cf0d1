"""An unpacked distribution of Apache Kafka, as the user has downloaded or built it."""

import re
from dataclasses import dataclass
from pathlib import Path

from harness.cluster.node import ClusterError
from harness.systems.java.lockfile import numbers

_BROKER = re.compile(r"kafka_\d+\.\d+-(\d+\.\d+[\w.-]*)\.jar", re.ASCII)
_NO_PROGRAM = re.compile(r"-(test|sources|test-sources|src|scaladoc|javadoc)\.jar$")
"""Jars of old distributions that are no part of the class path."""


class DistributionError(ClusterError):
    """The folder is no unpacked distribution that can be started; the message says why."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The programs of one release."""

    version: str
    """The version of Apache Kafka, such as 3.9.1 or 4.2.0-SNAPSHOT."""
    classpath: tuple[Path, ...]
    """All its jars, sorted by name."""


def open_distribution(home: Path) -> Distribution:
    """Return what a folder contains; raises :class:`DistributionError`.

    The version is that of the jar ``libs/kafka_SCALA-VERSION.jar``.
    """
    jars = sorted((home / "libs").resolve().glob("*.jar"))
    programs = tuple(jar for jar in jars if not _NO_PROGRAM.search(jar.name))
    versions = [found[1] for jar in programs if (found := _BROKER.fullmatch(jar.name))]
    if not versions:
        raise DistributionError(
            f"{home} is no unpacked distribution of Apache Kafka: "
            "it has no libs/kafka_SCALA-VERSION.jar"
        )
    if len(versions) > 1:
        raise DistributionError(f"{home}/libs contains several brokers: {', '.join(versions)}")
    _require_jaxb(home, versions[0], programs)
    return Distribution(versions[0], programs)


def _require_jaxb(home: Path, version: str, jars: tuple[Path, ...]) -> None:
    """Reject an old release that no Java since 11 can start as it was distributed.

    Brokers before 2.0 use ``javax.xml.bind``, which Java 11 no longer contains (JEP 320).
    """
    if numbers(version) < (2, 0) and not any(jar.name.startswith("jaxb-api-") for jar in jars):
        raise DistributionError(
            f"{home} is Apache Kafka {version}, which needs javax.xml.bind on Java 11 and newer; "
            f"copy jaxb-api-2.3.1.jar into {home}/libs"
        )
