"""The classes of cycles, as a table: which edges each one may have, and what rules it out.

The names are Adya's. A class has a variant for each kind of order between transactions: its cycles
have a step of that order. Item classes have no edges by predicates.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from checkers.isolation.edges import PROCESS, REALTIME, RW, RWP, WR, WRP, WW, WWP
from checkers.isolation.lattice import PROCESS as WITH_PROCESS
from checkers.isolation.lattice import REALTIME as WITH_REALTIME

WRITES = (WW, WWP)
READS = (WR, WRP)
ANTI = (RW, RWP)
PREDICATES = (WWP, WRP, RWP)


class Rule(Enum):
    """How often a cycle may have an anti-dependency: an edge from a read to the next write."""

    ANY = "any number"
    SINGLE = "exactly one"
    NONADJACENT = "no two in a row"


class Spec(NamedTuple):
    """A class of cycles."""

    name: str
    kinds: frozenset[int]
    """The kinds of edges that its cycles may have."""
    anchors: frozenset[int]
    """The kinds of which its cycles have at least one edge."""
    rule: Rule
    model: str | None
    """The canonical name of the weakest model that any such walk rules out, cycle or not."""

    @property
    def needs_predicate(self) -> bool:
        """Whether the class has a more special one for items."""
        return bool(self.anchors & {*ANTI}) and bool(self.kinds & {*PREDICATES})

    @property
    def is_by_product(self) -> bool:
        """Whether such walks alternate, so that they are found in a graph with two states."""
        return self.rule is not Rule.ANY


class _Class(NamedTuple):
    name: str
    data: tuple[int, ...]
    anchors: tuple[int, ...]
    rule: Rule
    models: tuple[str | None, str | None, str | None]
    """The models without order, with the order of processes, and with realtime order."""


_ITEM, _ALL = (WW, WR, RW), (WW, WR, RW, *PREDICATES)
_NO_MODEL = (None, None, None)
_CLASSES = (
    _Class("G0", WRITES, WRITES, Rule.ANY, ("PL-1", "strong-session-PL-1", "strong-PL-1")),
    _Class(
        "G1c",
        (*WRITES, *READS),
        READS,
        Rule.ANY,
        ("PL-2", "strong-session-PL-2", "strong-PL-2"),
    ),
    _Class("G-single-item", _ITEM, (RW,), Rule.SINGLE, _NO_MODEL),
    _Class("G-single", _ALL, ANTI, Rule.SINGLE, _NO_MODEL),
    _Class("G-nonadjacent-item", _ITEM, (RW,), Rule.NONADJACENT, _NO_MODEL),
    _Class(
        "G-nonadjacent",
        _ALL,
        ANTI,
        Rule.NONADJACENT,
        ("PL-SI", "strong-session-snapshot-isolation", "strong-snapshot-isolation"),
    ),
    _Class("G2-item", _ITEM, (RW,), Rule.ANY, ("PL-2.99", None, None)),
    _Class("G2", _ALL, ANTI, Rule.ANY, ("PL-3", "strong-session-serializable", "PL-SS")),
)
_VARIANTS: tuple[tuple[str, frozenset[int]], ...] = (
    ("", frozenset()),
    (WITH_PROCESS, frozenset({PROCESS})),
    (WITH_REALTIME, frozenset({PROCESS, REALTIME})),
)


def specs(orders: Iterable[int]) -> Sequence[Spec]:
    """Return the classes of cycles, given the kinds of order in the graph: the ones without order
    first, and in each variant the most severe first."""
    present = {*orders}
    found: list[Spec] = []
    for place, (suffix, order) in enumerate(_VARIANTS):
        if suffix and (PROCESS, REALTIME)[place - 1] not in present:
            continue
        found.extend(
            Spec(
                each.name + suffix,
                frozenset(each.data) | (order & present),
                frozenset(each.anchors),
                each.rule,
                each.models[place],
            )
            for each in _CLASSES
        )
    return found


def classify(kinds: Sequence[int]) -> str:
    """Return the name of the class of a cycle, given the kinds of its steps in their order."""
    anti = [kind in ANTI for kind in kinds]
    adjacent = any(a and b for a, b in zip(anti, [*anti[1:], anti[0]], strict=True))
    item = "" if any(kind in PREDICATES for kind in kinds) else "-item"
    if not any(anti):
        name = "G1c" if any(kind in READS for kind in kinds) else "G0"
    elif sum(anti) == 1:
        name = "G-single" + item
    else:
        name = ("G2" if adjacent else "G-nonadjacent") + item
    if REALTIME in kinds:
        return name + WITH_REALTIME
    return name + (WITH_PROCESS if PROCESS in kinds else "")
