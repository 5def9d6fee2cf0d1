"""A fault is a package: how it is drawn, applied, mended, proved, and coloured on a plot."""

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from model.roles import NodeId

Lane = Literal["process", "network", "admin"]
Piece = TypeVar("Piece")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a draw needs to know of the cluster that the schedule is for."""

    brokers: tuple[NodeId, ...]
    keys: tuple[str, ...] = ()
    """``topic-partition``s whose leaders can be aimed at."""
    session_timeout_s: float = 2.0
    """A broker that is silent for longer is declared dead."""
    min_isr: int = 2
    """``min.insync.replicas``: so many have what was acknowledged."""
    synced: bool = False
    """``log.flush.interval.messages`` = 1: they have it on disk."""
    coordinators: tuple[str, ...] = ()
    """Roles of coordinators that can be aimed at, as targets."""
    acknowledged: bool = True
    """Is a Produce answered?"""
    replicas: int = 3
    """How many each of the ``keys`` has."""
    asked: tuple[str, ...] = ("Produce", "Fetch")
    """APIs that clients call again and again."""


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


DOWN = "down"
FROZEN = "frozen"
"""States that several packages put nodes in."""

NOT_MEASURED = Effect(False, "not measured yet")


@dataclass(frozen=True, slots=True)
class Applied:
    """A fault that is on: whom it struck, the proof, and what its healing needs to know."""

    targets: tuple[NodeId, ...]
    effect: Effect
    undo: Any = None
    kept_down: frozenset[NodeId] = frozenset()
    """Nodes that other faults keep down while this one is healed: healing does not start them."""


class Broken(Generic[Piece]):
    """The pieces that a fault has broken, each of which it takes back once, however often it is
    healed: another fault may have broken the same piece, and that is for the other to mend."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = tuple(pieces)
        self._left = list(self.pieces)

    async def mend(self, mend: Callable[[Piece], Awaitable[None]]) -> None:
        """A piece whose mend raises, and those behind it, are still to be mended."""
        while self._left:
            await mend(self._left[0])
            del self._left[0]


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
    draw: Callable[[random.Random, Shape], Drawn] | None
    """None for one that is only for schedules written by hand."""
    apply: Callable[[Any, str, Any, dict[str, Any], random.Random], Awaitable[Applied]]
    """(cluster, fault, targets, options, rng): break it, measure that it is broken."""
    heal: Callable[[Any, Applied], Awaitable[Effect]]
    """Mend it, measure that it is mended."""
    strike: Callable[[Any, str, Any, dict[str, Any], random.Random], Awaitable[Applied]] | None = (
        None
    )
    """The first half of ``apply``, for a package whose measurement takes long: break it, measure
    nothing yet. Other faults may strike and heal during ``measure``."""
    measure: Callable[[Any, Applied], Awaitable[Effect]] | None = None
    """The second half of ``apply``: measure that it is broken. Changes nothing, and may be called
    again while the fault lasts."""
    mend: Callable[[Any, Applied], Awaitable[None]] | None = None
    """The first half of ``heal``, where measuring takes long. ``heal`` after it mends nothing
    twice, and measures."""
    states: Mapping[str, str] = field(default_factory=dict)
    """By fault, the state that it puts its target nodes in, for states that a node is in or not:
    it remains while any fault keeps a node in it, and the last of them to be healed ends it."""
    weight: float = 1.0
    """How often it comes in its lane, compared with others there."""
    room: Callable[[Shape], bool] = lambda shape: True
    """May it be drawn for such a cluster? Some cannot survive it, however correct they are."""

    def fits(self, cluster: object) -> bool:
        """Does the cluster offer what this needs?"""
        return all(isinstance(cluster, capability) for capability in self.needs)
