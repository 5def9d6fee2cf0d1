"""Write the lock file of a release: ``python -m harness.systems.apache_zookeeper.lock 3.9.3``.

This is a tool of this project's maintainers. Maven resolves the server with everything that it
needs at run time, and with what the server's own metadata leave out.
"""

import argparse
import asyncio
import sys
from collections.abc import Collection

from harness.systems.apache_zookeeper.releases import PRODUCT
from harness.systems.java import maven
from harness.systems.java.coordinates import Coordinates
from harness.systems.java.lockfile import Lock, dump, numbers
from harness.systems.java.locking import resolved

SNAPPY = Coordinates("org.xerial.snappy", "snappy-java", "1.1.10.5")
METRICS = Coordinates("io.dropwizard.metrics", "metrics-core", "4.1.12.1")
"""Libraries that the metadata of releases from 3.6 call provided, although the server uses them."""
_BINDINGS = {"slf4j-log4j12", "slf4j-reload4j", "logback-classic"}
"""The artifacts that make slf4j log."""


def additions(version: str, jars: Collection[Coordinates]) -> list[Coordinates]:
    """Return what a server on Java 17 needs in addition to the jars that Maven has resolved."""
    found = {jar.artifact: jar.version for jar in jars}
    added: list[Coordinates] = []
    if numbers(version) >= (3, 6):
        added += [each for each in (SNAPPY, METRICS) if each.artifact not in found]
    if not _BINDINGS & found.keys():
        slf4j = found["slf4j-api"]
        artifact = "slf4j-log4j12" if numbers(slf4j) < (1, 7, 35) else "slf4j-reload4j"
        added.append(Coordinates("org.slf4j", artifact, slf4j))
    return added


async def make(version: str) -> Lock:
    """Resolve a release; raises :class:`~harness.systems.java.maven.MavenError`."""
    server = Coordinates("org.apache.zookeeper", "zookeeper", version)
    jars = await resolved([server])
    return Lock(PRODUCT, version, await resolved([server, *additions(version, jars)]))


def main(argv: list[str]) -> int:
    """Write the lock file and print its path; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m harness.systems.apache_zookeeper.lock")
    parser.add_argument("version", help="the version of Apache ZooKeeper")
    asked = parser.parse_args(argv)
    try:
        lock = asyncio.run(make(asked.version))
    except maven.MavenError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    path = PRODUCT.locks / f"{asked.version}.toml"
    path.write_text(dump(lock))
    sys.stdout.write(f"{path}: {len(lock.sha256)} jars\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
