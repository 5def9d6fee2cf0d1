"""A fault package: how its faults are drawn, applied, proved, healed and coloured on a plot."""

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from model.roles import NodeId

Lane = Literal["process", "network", "admin"]
Resource = TypeVar("Resource")


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """The facts about the cluster on which a draw depends."""

    brokers: tuple[NodeId, ...]
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


@dataclass(frozen=True, slots=True)
class Effect:
    """What was measured after a fault was applied or healed."""

    proved: bool
    how: str


DOWN = "down"
FROZEN = "frozen"
"""The states of nodes that faults of several packages cause."""

NOT_MEASURED = Effect(False, "not measured yet")


@dataclass(frozen=True, slots=True)
class Applied:
    """An active fault: its targets, the proof, and what its heal needs to know."""

    targets: tuple[NodeId, ...]
    effect: Effect
    undo: Any = None
    kept_down: frozenset[NodeId] = frozenset()
    """Nodes that other faults keep down while this one is healed: the heal does not start them."""


class UndoList(Generic[Resource]):
    """The parts that a fault has broken, for example links; each is restored once.

    However often the fault is healed, a part is restored no second time: another fault may have
    broken the same part, and that fault restores it itself.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources = tuple(resources)
        self._left = list(self.resources)

    async def restore(self, restore: Callable[[Resource], Awaitable[None]]) -> None:
        """Restore the remaining parts in order; if one raises, it and the parts after it remain."""
        while self._left:
            await restore(self._left[0])
            del self._left[0]


@dataclass(frozen=True, slots=True)
class Package:
    """A family of faults. ``cluster`` offers every capability in ``needs``."""

    name: str
    faults: tuple[str, ...]
    """The names of its faults in schedules and histories."""
    needs: tuple[type, ...]
    color: str
    lane: Lane
    """At most one fault of a lane is active at a time; faults of different lanes may overlap."""
    draw: Callable[[random.Random, ClusterShape], Drawn] | None
    """Draw a fault; ``None`` if the package is only for schedules written by hand."""
    apply: Callable[[Any, str, Any, dict[str, Any], random.Random], Awaitable[Applied]]
    """(cluster, fault, targets, options, rng): apply the fault, and measure its effect."""
    heal: Callable[[Any, Applied], Awaitable[Effect]]
    """Remove the fault's effect, and measure that it is gone."""
    strike: Callable[[Any, str, Any, dict[str, Any], random.Random], Awaitable[Applied]] | None = (
        None
    )
    """The first half of ``apply``, if measuring takes long: apply the fault.

    It measures nothing. Other faults may be applied and healed during ``measure``.
    """
    measure: Callable[[Any, Applied], Awaitable[Effect]] | None = None
    """The second half of ``apply``: measure the effect.

    It changes nothing, and may be called again while the fault lasts.
    """
    restore: Callable[[Any, Applied], Awaitable[None]] | None = None
    """The first half of ``heal``, if measuring takes long: remove the effect.

    ``heal`` after it does not remove anything a second time, and measures.
    """
    states: Mapping[str, str] = field(default_factory=dict)
    """The state in which each fault puts its target nodes, if a node is either in it or not.

    A node stays in the state while any fault keeps it there; the last of these faults to be healed
    ends the state.
    """
    weight: float = 1.0
    """The weight of this package in draws among the packages of its lane."""
    room: Callable[[ClusterShape], bool] = lambda shape: True
    """May the package be drawn for such a cluster? No correct cluster survives some faults."""

    def fits(self, cluster: object) -> bool:
        """Does the cluster offer every capability that this package needs?"""
        return all(isinstance(cluster, capability) for capability in self.needs)
