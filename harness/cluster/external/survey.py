"""What a user's cluster consists of, according to itself and to the cluster file."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.cluster.address import Address
from harness.cluster.external.cluster_file import BadClusterFile, Loaded
from harness.cluster.external.compose import NODE
from harness.cluster.observe import cluster_config
from model import roles
from model.cluster_facts import ClusterFacts
from model.layout import Layout
from model.roles import NodeId

TIMEOUT_S = 5.0
_SESSION_TIMEOUTS_S = (("broker.session.timeout.ms", 9.0), ("zookeeper.session.timeout.ms", 18.0))
"""The settings, of KRaft and of ZooKeeper, with Kafka's defaults in seconds."""


class Unreachable(BadClusterFile):
    """No broker of the cluster answers."""


class Survey:
    """The nodes of a cluster, and what it reported."""

    def __init__(self, loaded: Loaded, facts: ClusterFacts) -> None:
        """Raises :class:`BadClusterFile` if the file names brokers that do not exist."""
        self.loaded = loaded
        self.facts = facts
        self.layout = layout_of(loaded, facts)
        self.apis = {key: range(first, last + 1) for key, (first, last) in facts.apis.items()}

    def address(self, node: NodeId) -> Address | None:
        """Return where the harness reaches a node: as the file says, or as brokers advertise."""
        entry = self.loaded.content.nodes.get(node)
        if entry is not None and entry.address is not None:
            return Address.of(entry.address)
        rows = {roles.broker(row.id): row for row in self.facts.brokers}
        return Address(rows[node].host, rows[node].port) if node in rows else None

    @property
    def session_timeout_s(self) -> float:
        """After which silence a broker is declared dead, in seconds."""
        name, default_s = _SESSION_TIMEOUTS_S[0 if self.facts.mode == "kraft" else 1]
        reported = self.facts.broker.get(name, "")
        return int(reported) / 1000 if reported.isdecimal() else default_s


def layout_of(loaded: Loaded, facts: ClusterFacts) -> Layout:
    """Return the nodes of a cluster: all brokers that it lists, and the others of the file.

    The controllers of KRaft are the voters if these are brokers, and otherwise those of the file.
    """
    brokers = tuple(roles.broker(row.id) for row in facts.brokers)
    named = list(loaded.content.nodes)
    for name in named:
        if name.startswith("broker-") and name not in brokers:
            raise BadClusterFile(f"--cluster {loaded.path}: {_stranger(loaded, name, brokers)}")
    if facts.mode != "kraft":
        keepers = tuple(name for name in named if name.startswith(roles.ZOOKEEPER))
        return Layout(brokers, zookeepers=keepers)
    voters = tuple(map(roles.controller, facts.voters))
    if voters and all(roles.broker(number) in brokers for number in facts.voters):
        return Layout(brokers, controllers=voters, combined=True)
    return Layout(brokers, controllers=tuple(name for name in voters if name in named))


def _stranger(loaded: Loaded, name: NodeId, brokers: Sequence[NodeId]) -> str:
    """Return why a broker of the file or of a label is not in the cluster."""
    there = f"the cluster has {', '.join(brokers)} only"
    found = loaded.containers.get(name)
    if found is None:
        return f"nodes.{name}: {there}"
    if not found.runs:
        return f"the container {found.container} of {name} does not run"
    return f"the label {NODE} = {name} of the container {found.container}: {there}"


_SURVEYS: dict[str, Survey] = {}
"""The surveys that were made, by the digest of the file."""


def surveyed(loaded: Loaded) -> Survey:
    """Return the survey of a file; the cluster is asked once."""
    if loaded.digest not in _SURVEYS:
        _SURVEYS[loaded.digest] = survey(loaded)
    return _SURVEYS[loaded.digest]


def survey(loaded: Loaded) -> Survey:
    """Ask the cluster for its nodes and settings.

    Raises :class:`Unreachable` if no broker answers, and :class:`BadClusterFile` as
    :class:`Survey`.
    """
    with ThreadPoolExecutor(1) as thread:  # the caller may run in an event loop
        reading = cluster_config.read(loaded.observed, timeout_s=TIMEOUT_S)
        facts = thread.submit(asyncio.run, reading).result()
    if not facts.brokers:
        raise Unreachable(f"--cluster {loaded.path}: {facts.unread[0]}")
    return Survey(loaded, facts)
