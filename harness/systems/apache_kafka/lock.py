"""Write the lock file of a release: ``python -m harness.systems.apache_kafka.lock 3.9.1 [2.13]``.

This is a tool of this project's maintainers. Maven resolves the broker with everything that it
needs at run time, and with what the broker's own metadata leave out but the programs need on
Java 17.
"""

import argparse
import asyncio
import sys
from collections.abc import Collection

from harness.systems.apache_kafka.releases import PRODUCT
from harness.systems.java import maven
from harness.systems.java.coordinates import Coordinates
from harness.systems.java.lockfile import Lock, dump, numbers
from harness.systems.java.locking import resolved

JAXB = Coordinates("javax.xml.bind", "jaxb-api", "2.3.1")
"""``javax.xml.bind``, which brokers before 2.0 use and Java 11 no longer contains (JEP 320)."""
LOG4J2 = "2.24.3"
"""The log4j 2 of the distribution of 4.0.0, whose broker does not name it as a dependency."""
_BINDINGS = {"slf4j-log4j12", "slf4j-reload4j", "log4j-slf4j-impl"}
"""The artifacts that make slf4j log by log4j 1, reload4j and log4j 2."""


def scala_of(version: str) -> str:
    """Return a version of Scala for which every release of that age was published."""
    if numbers(version) < (1, 0):
        return "2.11"
    return "2.12" if numbers(version) < (2, 4) else "2.13"


def additions(version: str, jars: Collection[Coordinates]) -> list[Coordinates]:
    """Return what a broker on Java 17 needs in addition to the jars that Maven has resolved.

    A broker needs a binding of slf4j: of log4j 2 since 4.0 (KIP-653), of log4j 1 before. The latter
    fits the version of slf4j; after slf4j 1.7.34 its artifact is slf4j-reload4j. Every binding
    brings the log4j that it needs.
    """
    found = {jar.artifact: jar.version for jar in jars}
    added = [JAXB] if numbers(version) < (2, 0) else []
    if _BINDINGS & found.keys():
        return added
    if numbers(version) >= (4, 0):
        log4j2 = found.get("log4j-core", LOG4J2)
        return [*added, Coordinates("org.apache.logging.log4j", "log4j-slf4j-impl", log4j2)]
    slf4j = found["slf4j-api"]
    artifact = "slf4j-log4j12" if numbers(slf4j) < (1, 7, 35) else "slf4j-reload4j"
    return [*added, Coordinates("org.slf4j", artifact, slf4j)]


async def make(version: str, scala: str) -> Lock:
    """Resolve a release; raises :class:`~harness.systems.java.maven.MavenError`."""
    broker = Coordinates("org.apache.kafka", f"kafka_{scala}", version)
    jars = await resolved([broker])
    return Lock(PRODUCT, version, await resolved([broker, *additions(version, jars)]))


def main(argv: list[str]) -> int:
    """Write the lock file and print its path; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m harness.systems.apache_kafka.lock")
    parser.add_argument("version", help="the version of Apache Kafka")
    parser.add_argument("scala", nargs="?", help="the version of Scala, such as 2.13")
    asked = parser.parse_args(argv)
    try:
        lock = asyncio.run(make(asked.version, asked.scala or scala_of(asked.version)))
    except maven.MavenError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    path = PRODUCT.locks / f"{asked.version}.toml"
    path.write_text(dump(lock))
    sys.stdout.write(f"{path}: {len(lock.sha256)} jars\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
