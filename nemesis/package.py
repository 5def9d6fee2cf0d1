"""A fault package: how its faults are drawn, applied, proved, healed and coloured on a plot."""

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from model.layout import Layout
from model.roles import NodeId
from nemesis import options as options_of
from nemesis.draws import ClusterShape, Drawn
from nemesis.options import Options
from nemesis.targets import NODES, TargetRule

Lane = Literal["process", "network", "admin"]
Resource = TypeVar("Resource")


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


def has_brokers(layout: Layout) -> bool:
    """Return whether a cluster has brokers, which some faults affect."""
    return bool(layout.brokers)


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
class Environment:
    """The cluster of a plan before it is started: its nodes, and the class that drives it."""

    layout: Layout
    kind: Any
    """The class offers every capability that the fault's package needs."""
    target: str
    """The name of the plan's target."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the plan."""

    @property
    def brokers(self) -> tuple[NodeId, ...]:
        return self.layout.brokers


def _nothing_to_refuse(options: Any, targets: Any, environment: Environment) -> str | None:
    """Refuse nothing: most faults accept all combinations of their options and targets."""
    return None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a package: what a schedule may say of it, and facts about it."""

    name: str
    """Its name in schedules and histories."""
    options: type[Options] = Options
    targets: TargetRule = NODES
    refuse: Callable[[Any, Any, Environment], str | None] = _nothing_to_refuse
    """(options, targets, environment): return why these do not fit together; ``None`` if they do.

    Options and targets are valid by themselves.
    """
    state: str | None = None
    """The state in which it puts its target nodes, if a node is either in it or not.

    A node stays in the state while any fault keeps it there; the last of these faults to be healed
    ends the state.
    """
    is_drawn: bool = True
    """May its package draw it, or is it only for schedules written by hand?"""
    needs_small_disk: bool = False
    """Does it need brokers whose disks are small enough to fill?"""

    def refusal(
        self, targets: Any, options: Mapping[str, Any], environment: Environment
    ) -> str | None:
        """Return why a schedule may not say this of the fault; ``None`` if it may."""
        why = self.targets.refusal(targets, environment.layout)
        why = why or options_of.refusal(self.options, options)
        if why is not None:
            return why
        read = options_of.read(self.options, options)
        why = _unknown_broker(read, environment)
        return why or self.refuse(read, targets, environment)


def _unknown_broker(options: Options, environment: Environment) -> str | None:
    """Refuse to wait for a state of a broker that the cluster does not have."""
    named = options.once.brokers if options.once is not None else ()
    strange = [broker for broker in named if broker not in environment.brokers]
    if not strange:
        return None
    return f"once: no node {strange[0]} ({', '.join(environment.brokers)})"


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Removes what failed faults may have left behind; it affects nothing that is well."""

    what: str
    cluster: Callable[[Any], Awaitable[object]] | None = None
    """Cleans the whole cluster."""
    node: Callable[[Any, NodeId], Awaitable[object]] | None = None
    """Cleans one node."""


@dataclass(frozen=True, slots=True)
class Package:
    """A family of faults. ``cluster`` offers every capability in ``needs``."""

    name: str
    faults: tuple[Fault, ...]
    needs: tuple[type, ...]
    color: str
    lane: Lane
    """At most one fault of a lane is active at a time; faults of different lanes may overlap."""
    draw: Callable[[random.Random, ClusterShape], Drawn] | None
    """Draw a fault; ``None`` if the package is only for schedules written by hand."""
    apply: Callable[[Any, str, Any, Any, random.Random], Awaitable[Applied]]
    """(cluster, fault, targets, options, rng): apply the fault, and measure its effect.

    ``options`` has the type of the fault's options.
    """
    heal: Callable[[Any, Applied], Awaitable[Effect]]
    """Remove the fault's effect, and measure that it is gone."""
    strike: Callable[[Any, str, Any, Any, random.Random], Awaitable[Applied]] | None = None
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
    cleanups: tuple[Cleanup, ...] = ()
    """What removes the leftovers of its faults at the end of a run."""
    weight: float = 1.0
    """The weight of this package in draws among the packages of its lane."""
    suits: Callable[[Layout], bool] = lambda layout: True
    """Does a cluster with these nodes have what the faults affect?"""
    room: Callable[[ClusterShape], bool] = lambda shape: True
    """May the package be drawn for such a cluster? No correct cluster survives some faults."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its faults."""
        return tuple(fault.name for fault in self.faults)

    def typed(self, fault: str, table: Mapping[str, Any]) -> Options:
        """Return the options of one of its faults; raises ``ValueError`` if they are refused."""
        [kind] = [each.options for each in self.faults if each.name == fault]
        return options_of.read(kind, table)

    def fits(self, cluster: object) -> bool:
        """Does the cluster offer every capability that this package needs?"""
        return all(isinstance(cluster, capability) for capability in self.needs)
