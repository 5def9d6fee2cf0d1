"""``cluster.json``: what a cluster itself reported of its release, features and settings.

The file is written by runs against a cluster that Faultline did not configure completely. Folders
without it are judged by the plan alone.
"""

import os
from pathlib import Path

import msgspec

from model.history import BadHistory

FILE = "cluster.json"
BYTES_MAX = 16 << 20
"""Far more than a cluster with ten thousand topics needs."""


class BrokerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One broker, as the cluster lists it."""

    id: int
    host: str
    port: int
    rack: str | None = None


class TopicFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One topic that was asked about, or an internal one."""

    partitions: int
    replication_factor: int
    """The number of replicas of the partition that has the fewest."""
    settings: dict[str, str] = {}
    """The values in effect, including those that the topic inherits from the brokers."""


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``cluster.json``."""

    release: str | None = None
    """The release that the listed API versions suggest, such as ``4.1``; ``None`` if unknown."""
    mode: str | None = None
    """``zookeeper`` or ``kraft``; ``None`` if no broker answered."""
    cluster_id: str | None = None
    brokers: tuple[BrokerFacts, ...] = ()
    controller: str | None = None
    """The node that is the controller or leads KRaft's quorum."""
    voters: tuple[int, ...] = ()
    """The ids of the quorum's voters; empty with ZooKeeper."""
    apis: dict[int, tuple[int, int]] = {}
    """The least and the greatest version of each API key that all answering brokers list."""
    features: dict[str, int] = {}
    """The levels of finalized features (KIP-584), such as ``transaction.version``."""
    broker: dict[str, str] = {}
    """Broker settings; where brokers differ, the value that promises least, or the least one."""
    differing: dict[str, dict[int, str]] = {}
    """The settings in which brokers differ, by ``broker.id``."""
    topics: dict[str, TopicFacts] = {}
    unread: tuple[str, ...] = ()
    """What could not be read and why, a sentence for each; the plan's values hold there."""


def encode(facts: ClusterFacts) -> bytes:
    """Return the content of the file."""
    return msgspec.json.format(msgspec.json.encode(facts), indent=2) + b"\n"


def write(folder: Path, facts: ClusterFacts) -> None:
    """Write the file into a run's folder, readable by its owner only."""
    path = folder / FILE
    path.touch(mode=0o600)
    path.write_bytes(encode(facts))


def read(folder: Path) -> ClusterFacts | None:
    """Return the facts in a run's folder; ``None`` if it has no such file.

    Raises :class:`~model.history.BadHistory` for a file that cannot be read or is something else.
    """
    path = folder / FILE
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > BYTES_MAX:
                raise BadHistory(f"{path} has {size:,} bytes; the maximum is {BYTES_MAX:,}")
            return msgspec.json.decode(file.read(), type=ClusterFacts)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadHistory(f"{path} does not describe a cluster: {error}") from None
