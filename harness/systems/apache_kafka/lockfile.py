"""A lock file pins the jars of one Apache Kafka release by their SHA-256 checksums.

``locks/VERSION.toml`` has one table, ``sha256``, from coordinates to checksums. The jars are those
that a broker needs, and for releases with ZooKeeper also those of the ZooKeeper server that the
release was built with. ``python -m harness.systems.apache_kafka.lock`` writes lock files.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.cluster.node import ClusterError
from harness.systems.apache_kafka.coordinates import Coordinates

LOCKS = Path(__file__).resolve().parent / "locks"
"""The folder of the lock files."""


class UnknownRelease(ClusterError):
    """There is no lock file of the release; the message lists the releases that have one."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The jars of one release."""

    version: str
    """The version of Apache Kafka."""
    sha256: Mapping[Coordinates, str]
    """The checksum of each jar, in lower-case hexadecimal."""


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the beginning of a version, for comparison: 4.1.0-rc1 is (4, 1, 0)."""
    found = re.match(r"\d+(\.\d+)*", version, re.ASCII)
    return tuple(map(int, found[0].split("."))) if found else ()


def pinned(locks: Path = LOCKS) -> list[str]:
    """Return the versions of the releases that have a lock file, oldest first."""
    return sorted((path.stem for path in locks.glob("*.toml")), key=numbers)


def load(version: str, locks: Path = LOCKS) -> Lock:
    """Read the lock of a release; raises :class:`UnknownRelease`."""
    known = pinned(locks)
    if version not in known:
        near = difflib.get_close_matches(version, known, n=1)
        hint = f"; the nearest pinned release is {near[0]}" if near else ""
        raise UnknownRelease(
            f"the jars of Apache Kafka {version} are not pinned{hint}; pinned: {', '.join(known)}"
        )
    document = tomllib.loads((locks / f"{version}.toml").read_text())
    checksums = {Coordinates.parse(name): checksum for name, checksum in document["sha256"].items()}
    return Lock(version, MappingProxyType(checksums))


def dump(lock: Lock) -> str:
    """Return the text of a lock file, sorted by coordinates.

    ValueError if two jars have the same file name, because they are copied into one folder.
    """
    names = {jar.file_name for jar in lock.sha256}
    if len(names) < len(lock.sha256):
        raise ValueError(f"two jars of Apache Kafka {lock.version} have the same file name")
    lines = [f'"{jar}" = "{checksum}"\n' for jar, checksum in sorted(lock.sha256.items())]
    return "".join(
        [f"# The jars of Apache Kafka {lock.version}; written by ", "`python -m ",
         "harness.systems.apache_kafka.lock`.\n\n[sha256]\n", *lines]
    )  # fmt: skip
