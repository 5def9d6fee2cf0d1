"""What distinguishes the releases of Apache ZooKeeper: facts by version."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.systems.java.lockfile import Product

PRODUCT = Product(
    "Apache ZooKeeper",
    Path(__file__).resolve().parent / "locks",
    "harness.systems.apache_zookeeper.lock",
)
Version = tuple[int, ...]

OLDEST: Version = (3, 4)
"""The first release line with observers, ``multi`` and the election protocol that all later ones
speak."""
_VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){1,2}")


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of Apache ZooKeeper; releases are ordered."""

    version: Version

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the release with this version; raises ``ValueError``."""
        if _VERSION.fullmatch(text) is None:
            raise ValueError(f"{text} is not a version such as 3.9.3")
        found = cls(tuple(map(int, text.split("."))))
        if found.version < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise ValueError(f"the oldest release that can be tested is {oldest}")
        return found

    def __str__(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def has_persistent_watches(self) -> bool:
        """Return whether it has ``addWatch`` (ZOOKEEPER-1416)."""
        return self.version >= (3, 6)
