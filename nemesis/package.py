"""A fault is a package: how it is drawn, applied, mended, proved, and coloured on a plot."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from model.roles import NodeId

Lane = Literal["process", "network"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a draw needs to know of the cluster that the schedule is for."""

    brokers: tuple[NodeId, ...]
    keys: tuple[str, ...] = ()
    """``topic-partition``s whose leaders can be aimed at."""
    session_timeout_s: float = 2.0
    """A broker that is silent for longer is declared dead."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A fault as data, but for its time."""

    fault: str
    duration_s: float
    targets: Any
    options: dict[str, Any] = field(default_factory=dict)
    alone: bool = False
    """Strikes so much that nothing else should be going on."""
    overhead_s: float = 1.5
    """What applying, healing and proving take, roughly, beside the time that it lasts."""

    @property
    def takes_s(self) -> float:
        """From the order to break until all is mended."""
        return self.duration_s + self.overhead_s


@dataclass(frozen=True, slots=True)
class Effect:
    """What was measured after a fault was applied or healed."""

    proved: bool
    how: str


@dataclass(frozen=True, slots=True)
class Applied:
    """A fault that is on: whom it struck, the proof, and what its healing needs to know."""

    targets: tuple[NodeId, ...]
    effect: Effect
    undo: Any = None


@dataclass(frozen=True, slots=True)
class Package:
    """One kind of trouble. ``cluster`` offers every capability in ``needs``."""

    name: str
    faults: tuple[str, ...]
    """The names under which its faults stand in schedules and histories."""
    needs: tuple[type, ...]
    color: str
    lane: Lane
    """At most one fault of a lane at a time; lanes may overlap."""
    draw: Callable[[random.Random, Shape], Drawn]
    apply: Callable[[Any, str, Any, dict[str, Any], random.Random], Awaitable[Applied]]
    """(cluster, fault, targets, options, rng): break it, measure that it is broken."""
    heal: Callable[[Any, Applied], Awaitable[Effect]]
    """Mend it, measure that it is mended."""
    weight: float = 1.0
    """How often it comes in its lane, compared with others there."""

    def fits(self, cluster: object) -> bool:
        """Does the cluster offer what this needs?"""
        return all(isinstance(cluster, capability) for capability in self.needs)
