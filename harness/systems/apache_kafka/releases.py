"""What distinguishes the releases of Apache Kafka: facts by version, each with its source."""

import re
from dataclasses import dataclass
from typing import Self

Version = tuple[int, ...]

OLDEST: Version = (0, 10, 2)
"""Before it, librdkafka cannot find out what a broker supports (KIP-35), and inter-broker listeners
have no names (KIP-103)."""
KRAFT: Version = (3, 3)
"""KRaft is for production (KIP-833)."""
NO_ZOOKEEPER: Version = (4, 0)
"""ZooKeeper mode is removed (KIP-833)."""
_VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){1,3}")


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of Apache Kafka; releases are ordered."""

    version: Version

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the release with this version; raises ``ValueError``."""
        if _VERSION.fullmatch(text) is None:
            raise ValueError(f"{text} is not a version such as 3.9.1")
        found = cls(tuple(map(int, text.split("."))))
        if found.version < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise ValueError(f"the oldest release that can be tested is {oldest}")
        return found

    def __str__(self) -> str:
        return ".".join(map(str, self.version))

    @property
    def has_zookeeper(self) -> bool:
        """Return whether it can be coordinated by ZooKeeper."""
        return self.version < NO_ZOOKEEPER

    @property
    def has_kraft(self) -> bool:
        """Return whether it can be coordinated by a quorum of controllers (KIP-500)."""
        return self.version >= KRAFT

    @property
    def reassigns(self) -> bool:
        """Return whether operators reassign and elect by requests to the controller.

        KIP-455 (AlterPartitionReassignments) and KIP-460 (ElectLeaders) came with 2.4.
        """
        return self.version >= (2, 4)
