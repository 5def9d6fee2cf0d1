"""What distinguishes the releases of Apache ZooKeeper: facts by version."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.systems.java import versions
from harness.systems.java.lockfile import Product
from harness.systems.java.versions import Version

PRODUCT = Product(
    "Apache ZooKeeper",
    Path(__file__).resolve().parent / "locks",
    "harness.systems.apache_zookeeper.lock",
)
OLDEST: Version = (3, 4)
"""The first release line with observers, ``multi`` and the election protocol that all later ones
speak."""


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of Apache ZooKeeper; releases are ordered."""

    version: Version

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the release with this version; raises ``ValueError``."""
        return cls(versions.parse(text, OLDEST, "3.9.3", numbers_max=3))

    def __str__(self) -> str:
        return versions.shown(self.version)
