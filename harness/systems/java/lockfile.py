"""A lock file pins the jars of one release of a product by their SHA-256 checksums.

``locks/VERSION.toml`` has one table, ``sha256``, from coordinates to checksums. The jars are those
that the product's server needs. A module ``lock`` of each product writes its lock files.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.cluster.node import ClusterError
from harness.systems.java.coordinates import Coordinates


@dataclass(frozen=True, slots=True)
class Product:
    """A product whose releases are pinned."""

    name: str
    """Its name in messages, such as ``Apache Kafka``."""
    locks: Path
    """The folder of its lock files."""
    writer: str
    """The module that writes them."""

    @property
    def folder(self) -> str:
        """The name of its folder in the cache."""
        return self.name.lower().replace(" ", "-")


class UnknownRelease(ClusterError):
    """There is no lock file of the release; the message lists the releases that have one."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The jars of one release."""

    product: Product
    version: str
    sha256: Mapping[Coordinates, str]
    """The checksum of each jar, in lower-case hexadecimal."""

    def __str__(self) -> str:
        return f"{self.product.name} {self.version}"


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the beginning of a version, for comparison: 4.1.0-rc1 is (4, 1, 0)."""
    found = re.match(r"\d+(\.\d+)*", version, re.ASCII)
    return tuple(map(int, found[0].split("."))) if found else ()


def pinned(product: Product) -> list[str]:
    """Return the versions of the releases that have a lock file, oldest first."""
    return sorted((path.stem for path in product.locks.glob("*.toml")), key=numbers)


def load(version: str, product: Product) -> Lock:
    """Read the lock of a release; raises :class:`UnknownRelease`."""
    known = pinned(product)
    if version not in known:
        near = difflib.get_close_matches(version, known, n=1)
        hint = f"; the nearest pinned release is {near[0]}" if near else ""
        raise UnknownRelease(
            f"the jars of {product.name} {version} are not pinned{hint}; pinned: {', '.join(known)}"
        )
    document = tomllib.loads((product.locks / f"{version}.toml").read_text())
    checksums = {Coordinates.parse(name): checksum for name, checksum in document["sha256"].items()}
    return Lock(product, version, MappingProxyType(checksums))


def dump(lock: Lock) -> str:
    """Return the text of a lock file, sorted by coordinates.

    ValueError if two jars have the same file name, because they are copied into one folder.
    """
    names = {jar.file_name for jar in lock.sha256}
    if len(names) < len(lock.sha256):
        raise ValueError(f"two jars of {lock} have the same file name")
    lines = [f'"{jar}" = "{checksum}"\n' for jar, checksum in sorted(lock.sha256.items())]
    head = f"# The jars of {lock}; written by `python -m {lock.product.writer}`.\n\n[sha256]\n"
    return "".join([head, *lines])
