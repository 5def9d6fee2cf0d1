"""What a draw of a fault depends on, and what it returns: a fault as data, without its time."""

from dataclasses import dataclass, field
from typing import Any

from model.layout import Layout
from model.roles import NodeId


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """The facts about the cluster on which a draw depends."""

    layout: Layout
    keys: tuple[str, ...] = ()
    """The partitions (``topic-partition``) whose leaders can be targets."""
    session_timeout_s: float = 2.0
    """The session timeout: a broker that is silent for longer is declared dead."""
    min_isr: int = 2
    """``min.insync.replicas``: the number of replicas that have an acknowledged record."""
    synced: bool = False
    """Is ``log.flush.interval.messages`` 1, so that these replicas have the record on disk?"""
    coordinators: tuple[str, ...] = ()
    """The coordinator roles that can be targets."""
    acknowledged: bool = True
    """Are Produce requests answered? They are not with ``acks=0``."""
    replicas: int = 3
    """The replication factor of each partition in ``keys``."""
    asked: tuple[str, ...] = ("Produce", "Fetch")
    """The APIs that clients call again and again."""
    start_s: float = 0.0
    """How long the programs of a node take to start, beyond what faults allow for by themselves."""
    intercepts_brokers: bool = True
    """May faults on messages of brokers be drawn, in addition to those on messages of clients?"""
    refuses_links: bool = True
    """May a link be closed, or only be cut?"""
    cuts_clients: bool = True
    """May links of clients be cut, or only those between nodes?"""
    internal_topics: bool = True
    """May operators' requests move the partitions of coordinators?"""

    directories: int = 1
    """The number of data directories of each broker."""

    @property
    def brokers(self) -> tuple[NodeId, ...]:
        return self.layout.brokers


@dataclass(frozen=True, slots=True)
class Drawn:
    """A fault as data, without its time."""

    fault: str
    duration_s: float
    targets: Any
    options: dict[str, Any] = field(default_factory=dict)
    alone: bool = False
    """May no other fault be active at the same time, because this one affects so much?"""
    overhead_s: float = 1.5
    """About how long applying, healing and proving take, in addition to ``duration_s``."""

    @property
    def takes_s(self) -> float:
        """The time from the start of the fault until it is healed."""
        return self.duration_s + self.overhead_s
