"""Guesses a cluster's release from the API versions that its brokers list.

Kafka's protocol does not report the release. Each release adds versions, and the table has one for
each release that is in both modes where possible.
"""

from collections.abc import Mapping
from typing import Final

_MARKS: Final[tuple[tuple[str, int, int], ...]] = (
    ("4.3", 35, 5),  # DescribeLogDirs
    ("4.2", 2, 11),  # ListOffsets
    ("4.1", 0, 13),  # Produce with topic ids (KIP-516)
    ("4.0", 2, 10),  # ListOffsets with a timeout (KIP-1075)
    ("3.9", 1, 17),  # Fetch with directory ids (KIP-853)
    ("3.8", 0, 11),  # Produce for verified transactions (KIP-890)
    ("3.7", 1, 16),  # Fetch with the new leader's address (KIP-951)
    ("3.6", 24, 4),  # AddPartitionsToTxn in batches (KIP-890)
    ("3.5", 1, 15),  # Fetch with broker epochs (KIP-903)
    ("3.4", 4, 7),  # LeaderAndIsr during a migration (KIP-866), only with ZooKeeper
    ("3.3", 29, 3),  # DescribeAcls for delegation tokens (KIP-373)
    ("3.2", 11, 9),  # JoinGroup of a static leader (KIP-814)
    ("3.1", 1, 13),  # Fetch with topic ids (KIP-516)
    ("3.0", 2, 7),  # ListOffsets of the greatest timestamp (KIP-734)
    ("2.8", 60, 0),  # DescribeCluster (KIP-700)
    ("2.7", 1, 12),  # Fetch with diverging epochs (KIP-595)
    ("2.6", 32, 3),  # DescribeConfigs with documentation (KIP-569)
    ("2.5", 28, 3),  # TxnOffsetCommit with generations (KIP-447)
    ("2.4", 45, 0),  # AlterPartitionReassignments (KIP-455)
    ("2.3", 44, 0),  # IncrementalAlterConfigs (KIP-339)
    ("2.2", 43, 0),  # ElectLeaders (KIP-183)
    ("2.1", 1, 10),  # Fetch of zstd (KIP-110)
    ("2.0", 1, 8),  # Fetch with throttling after the response (KIP-219)
    ("1.1", 1, 7),  # Fetch sessions (KIP-227)
    ("1.0", 3, 5),  # Metadata with offline replicas (KIP-112)
    ("0.11", 22, 0),  # InitProducerId (KIP-98)
    ("0.10.2", 19, 1),  # CreateTopics that only validates
    ("0.10.1", 19, 0),  # CreateTopics (KIP-4)
    ("0.10.0", 18, 0),  # ApiVersions (KIP-35)
)
"""A release, and an API key and version that it was the first to list; the newest comes first."""


def guess(apis: Mapping[int, range]) -> str | None:
    """The newest release of which all marks of the table could be listed; ``None`` without any.

    With KRaft, 3.4 is taken for 3.3. Brokers other than Apache Kafka list what they implement, and
    the guess is the newest release that they resemble in one point.
    """
    for release, key, version in _MARKS:
        if version in apis.get(key, ()):
            return release
    return None
