"""What distinguishes the releases of Apache Kafka: facts by version, each with its source."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness.systems.java import versions
from harness.systems.java.lockfile import Product
from harness.systems.java.versions import Version

PRODUCT = Product(
    "Apache Kafka", Path(__file__).resolve().parent / "locks", "harness.systems.apache_kafka.lock"
)

OLDEST: Version = (0, 10, 2)
"""Before it, librdkafka cannot find out what a broker supports (KIP-35), and inter-broker listeners
have no names (KIP-103)."""
KRAFT: Version = (3, 3)
"""KRaft is for production (KIP-833)."""
NO_ZOOKEEPER: Version = (4, 0)
"""ZooKeeper mode is removed (KIP-833)."""
FIRST_WITH: Mapping[int, Version] = {
    4: (0, 10, 1),
    98: (0, 11),
    107: (0, 11),
    133: (0, 11),
    339: (2, 3),
    345: (2, 3),
    447: (2, 5),
    496: (2, 4),
    848: (4, 0),
    1030: (4, 0),
}
"""The first release with each KIP that workloads need."""


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of Apache Kafka; releases are ordered."""

    version: Version

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the release with this version; raises ``ValueError``."""
        return cls(versions.parse(text, OLDEST, "3.9.1", numbers_max=4))

    def __str__(self) -> str:
        return versions.shown(self.version)

    @property
    def has_zookeeper(self) -> bool:
        """Return whether it can be coordinated by ZooKeeper."""
        return self.version < NO_ZOOKEEPER

    @property
    def has_kraft(self) -> bool:
        """Return whether it can be coordinated by a quorum of controllers (KIP-500)."""
        return self.version >= KRAFT

    def has_kip(self, kip: int) -> bool:
        """Return whether it implements a KIP; raises ``KeyError`` if the table lacks it."""
        return self.version >= FIRST_WITH[kip]

    @property
    def reassigns(self) -> bool:
        """Return whether operators reassign and elect by requests to the controller.

        KIP-455 (AlterPartitionReassignments) and KIP-460 (ElectLeaders) came with 2.4.
        """
        return self.version >= (2, 4)
