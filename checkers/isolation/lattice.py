"""The lattice: which anomalies a consistency model prohibits, and which models imply others.

The names of models and anomalies are those of Adya ("Weak Consistency", 1999) and of Jepsen's Elle.
A model has a canonical name (``PL-3``) and a friendly one (``serializable``); some have further
aliases. Everything else is derived from the tables of this module:

- a model prohibits the anomalies of its own row, those of the models that it implies, and each
  anomaly that implies one of these;
- an anomaly rules out the models that prohibit it; the weakest of them say most.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

PROCESS, REALTIME = "-process", "-realtime"
"""Suffixes of anomalies that exist only with the order of each process, or with realtime order."""
CYCLE_EXISTS = "-cycle-exists"
"""The suffix of an anomaly for which no witness was found, after a model's canonical name."""

FRIENDLY: Mapping[str, str] = {
    "1SR": "1SR",
    "PL-1": "read-uncommitted",
    "PL-2": "read-committed",
    "PL-2+": "consistent-view",
    "PL-2.99": "repeatable-read",
    "PL-2L": "monotonic-view",
    "PL-3": "serializable",
    "PL-3U": "update-serializable",
    "PL-CS": "cursor-stability",
    "PL-FCV": "forward-consistent-view",
    "PL-MSR": "monotonic-snapshot-read",
    "PL-SI": "snapshot-isolation",
    "PL-SS": "strong-serializable",
    "PRAM": "PRAM",
    "causal": "causal",
    "causal-cerone": "causal-cerone",
    "linearizable": "linearizable",
    "monotonic-atomic-view": "monotonic-atomic-view",
    "monotonic-reads": "monotonic-reads",
    "monotonic-writes": "monotonic-writes",
    "parallel-snapshot-isolation": "parallel-snapshot-isolation",
    "prefix": "prefix",
    "read-atomic": "read-atomic",
    "read-your-writes": "read-your-writes",
    "sequential": "sequential",
    "session-serializable": "session-serializable",
    "strong-PL-1": "strong-read-uncommitted",
    "strong-PL-2": "strong-read-committed",
    "strong-session-PL-1": "strong-session-read-uncommitted",
    "strong-session-PL-2": "strong-session-read-committed",
    "strong-session-serializable": "strong-session-serializable",
    "strong-session-snapshot-isolation": "strong-session-snapshot-isolation",
    "strong-snapshot-isolation": "strong-snapshot-isolation",
    "update-atomic": "update-atomic",
    "view-serializable": "view-serializable",
    "writes-follow-reads": "writes-follow-reads",
}
"""The friendly name of each model, by its canonical name."""

_ALIASES: Mapping[str, str] = {
    "conflict-serializable": "PL-3",
    "strict-serializable": "PL-SS",
}
"""Further names."""

MODELS: Mapping[str, str] = {
    **{canonical: canonical for canonical in FRIENDLY},
    **{friendly: canonical for canonical, friendly in FRIENDLY.items()},
    **_ALIASES,
}
"""The canonical name of a model, by each name that it has."""

_SI_SESSION, _SI_STRONG = "strong-session-snapshot-isolation", "strong-snapshot-isolation"

STRONGER: Mapping[str, tuple[str, ...]] = {
    "PL-2": ("PL-1",),
    "PL-2+": ("PL-2L", "PL-CS"),
    "PL-2.99": ("PL-CS", "monotonic-atomic-view"),
    "PL-2L": ("PL-2",),
    "PL-3": ("PL-2.99", "PL-3U", "PL-SI", "view-serializable"),
    "PL-3U": ("PL-FCV",),
    "PL-CS": ("PL-2",),
    "PL-FCV": ("PL-2+",),
    "PL-MSR": ("PL-2",),
    "PL-SI": (
        "PL-FCV",
        "PL-MSR",
        "monotonic-atomic-view",
        "parallel-snapshot-isolation",
        "prefix",
    ),
    "PL-SS": (
        "PL-3",
        "PL-SI",
        "linearizable",
        "session-serializable",
        "strong-session-serializable",
        _SI_STRONG,
    ),
    "PRAM": ("monotonic-reads", "monotonic-writes", "read-your-writes"),
    "causal": ("PRAM", "writes-follow-reads"),
    "causal-cerone": ("read-atomic",),
    "linearizable": ("sequential",),
    "monotonic-atomic-view": ("PL-2",),
    "parallel-snapshot-isolation": ("causal-cerone", "update-atomic"),
    "prefix": ("causal-cerone",),
    "read-atomic": ("monotonic-atomic-view",),
    "sequential": ("causal",),
    "session-serializable": ("1SR",),
    "strong-PL-1": ("strong-session-PL-1",),
    "strong-PL-2": ("strong-PL-1", "strong-session-PL-2"),
    "strong-session-PL-1": ("PL-1",),
    "strong-session-PL-2": ("PL-2", "strong-session-PL-1"),
    "strong-session-serializable": ("PL-3", _SI_SESSION),
    _SI_SESSION: ("PL-SI", "strong-session-PL-2"),
    _SI_STRONG: ("strong-PL-2", _SI_SESSION),
    "update-atomic": ("read-atomic",),
}
"""The next weaker models that each model implies."""

_PROSCRIBED: Mapping[str, tuple[str, ...]] = {
    "PL-1": ("G0", "cyclic-versions", "duplicate-elements"),
    "PL-2": ("G1",),
    "PL-2+": ("G-single", "G1"),
    "PL-2.99": ("G1", "G2-item", "lost-update"),
    "PL-2L": ("G-monotonic", "G1"),
    "PL-3": ("G1", "G2", "internal", "predicate-read-miss"),
    "PL-3U": ("G-update", "G1"),
    "PL-CS": ("G-cursor", "G1", "lost-update"),
    "PL-FCV": ("G-SIb", "G1"),
    "PL-MSR": ("G-MSR", "G1"),
    "PL-SI": ("G-SI", "G-nonadjacent", "G1", "internal"),
    "PL-SS": ("G1", "G1c-realtime", "G2-realtime"),
    "causal-cerone": ("G1a", "internal"),
    "parallel-snapshot-isolation": ("G1a", "internal"),
    "prefix": ("G1a", "internal"),
    "read-atomic": ("G1a", "future-read", "internal"),
    "strong-PL-1": ("G0-realtime",),
    "strong-PL-2": ("G1c-realtime",),
    "strong-session-PL-1": ("G0-process",),
    "strong-session-PL-2": ("G1c-process",),
    "strong-session-serializable": ("G1-process", "G2-process"),
    _SI_SESSION: ("G-nonadjacent-process", "G1-process", "internal"),
    _SI_STRONG: ("G-nonadjacent-realtime", "G1-realtime", "internal"),
    "update-atomic": ("lost-update",),
}
"""The anomalies that a model prohibits by its own definition."""

CYCLIC_MODELS = (
    "PL-1",
    "PL-2",
    "PL-SI",
    "PL-2.99",
    "PL-3",
    "strong-session-PL-1",
    "strong-session-PL-2",
    _SI_SESSION,
    "strong-session-serializable",
    "strong-PL-1",
    "strong-PL-2",
    _SI_STRONG,
    "PL-SS",
)
"""The models that a cycle in some graph rules out; each has a ``-cycle-exists`` anomaly."""

_ORDERED = (
    "G0",
    "G1",
    "G1c",
    "G-single-item",
    "G-single",
    "G-nonadjacent-item",
    "G-nonadjacent",
    "G2-item",
    "G2",
)
"""The anomalies that have the two variants ``-process`` and ``-realtime``."""

_IMPLIES: Mapping[str, tuple[str, ...]] = {
    "G0": ("G1c",),
    "G1a": ("G1",),
    "G1b": ("G1",),
    "G1c": ("G1",),
    "G-single-item": ("G-nonadjacent-item", "G-single"),
    "G-single": ("G-nonadjacent", "GSIb"),
    "G-nonadjacent-item": ("G-nonadjacent", "G2-item"),
    "G-nonadjacent": ("G2",),
    "G2-item": ("G2",),
    "GSIa": ("GSI",),
    "GSIb": ("GSI",),
    "dirty-update": ("G1a",),
    "future-read": ("G1c",),
    "incompatible-order": ("G1a",),
    "lost-update": ("G2-item", "write-skew"),
    "write-skew": ("G2",),
}
"""An anomaly implies others of which it is a special case."""

_HIDES: Mapping[str, tuple[str, ...]] = {"G0": ("G1c",), "G1c": ("G-single", "G2-item")}
"""An anomaly that is so severe that others among the same transactions need no report."""

_SINGULAR = (
    "G-MSR",
    "G-SI",
    "G-SIb",
    "G-cursor",
    "G-monotonic",
    "G-update",
    "cyclic-versions",
    "duplicate-elements",
    "internal",
    "predicate-read-miss",
    *(model + CYCLE_EXISTS for model in CYCLIC_MODELS),
)
"""Anomalies that neither imply another one nor are implied."""

GARBAGE_READ = "garbage-read"
"""A read of a value that no transaction wrote. It is reported only on request, because published
histories often leave out the writers."""
EMPTY_GRAPH = "empty-transaction-graph"
"""No transaction depends on another one, so the history shows nothing about cycles."""


class Boundary(NamedTuple):
    """The models that some anomalies rule out, by their friendly names."""

    weakest: tuple[str, ...]
    also: tuple[str, ...]
    """Further models; each implies one of the weakest."""


def _with_variants(table: Mapping[str, tuple[str, ...]]) -> dict[str, set[str]]:
    """Repeat the rows between anomalies that have variants, for each variant."""
    found: dict[str, set[str]] = {}
    for suffix in ("", PROCESS, REALTIME):
        for name, others in table.items():
            kept = {o + suffix for o in others if not suffix or {name, o} <= {*_ORDERED}}
            if kept:
                found.setdefault(name + suffix, set()).update(kept)
    return found


def _implications() -> dict[str, set[str]]:
    found = _with_variants(_IMPLIES)
    for name in _ORDERED:
        found.setdefault(name, set()).add(name + PROCESS)
        found.setdefault(name + PROCESS, set()).add(name + REALTIME)
    return found


def _severities() -> dict[str, set[str]]:
    found = _implications()
    for name, others in _with_variants(_HIDES).items():
        found.setdefault(name, set()).update(others)
    found["G2"].add("G0" + PROCESS)
    found["G2" + PROCESS].add("G0" + REALTIME)
    return found


def _closure(table: Mapping[str, Iterable[str]], start: str) -> frozenset[str]:
    """Return a name, and all names that can be reached from it."""
    reached, waiting = {start}, [start]
    while waiting:
        for name in table.get(waiting.pop(), ()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return frozenset(reached)


@cache
def implied(anomaly: str) -> frozenset[str]:
    """Return an anomaly, and those of which it is a special case."""
    return _closure(_implications(), anomaly)


@cache
def hidden_by(anomaly: str) -> frozenset[str]:
    """Return the anomalies that need no report if this one is reported of the same transactions:
    the less severe ones that rule out no further model."""
    out = {model for model in FRIENDLY if anomaly in prohibited_by(model)}
    return frozenset(
        name
        for name in _closure(_severities(), anomaly) - {anomaly}
        if all(model in out for model in FRIENDLY if name in prohibited_by(model))
    )


@cache
def weaker(model: str) -> frozenset[str]:
    """Return the canonical names of a model, given by its own, and of those that it implies."""
    return _closure(STRONGER, model)


@cache
def anomaly_order() -> tuple[str, ...]:
    """Return all anomalies, the most severe first: an anomaly follows all that imply or hide it."""
    table = _severities()
    names = {*_SINGULAR, *table, *(name for others in table.values() for name in others)}
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for name, others in table.items():
            for other in others:
                depth[other] = max(depth[other], depth[name] + 1)
    return tuple(sorted(names, key=lambda name: (depth[name], name)))


@cache
def prohibited_by(model: str) -> frozenset[str]:
    """Return the anomalies that a model prohibits. Raises ``ValueError`` for an unknown model."""
    wanted: set[str] = set()
    for each in weaker(canonical(model)):
        wanted.update(_PROSCRIBED.get(each, ()))
        if each in CYCLIC_MODELS:
            wanted.add(each + CYCLE_EXISTS)
    return special_cases(wanted)


def special_cases(anomalies: Iterable[str]) -> frozenset[str]:
    """Return these anomalies, and all that imply one of them."""
    wanted = {*anomalies}
    return frozenset(
        wanted | {name for name in anomaly_order() if not implied(name).isdisjoint(wanted)}
    )


def canonical(model: str) -> str:
    """Return the canonical name of a model. Raises ``ValueError`` for an unknown name."""
    if model not in MODELS:
        names = ", ".join(sorted(MODELS))
        raise ValueError(f"{model!r} is not a consistency model; the models are {names}")
    return MODELS[model]


def check_anomaly(name: str) -> str:
    """Return the name of an anomaly. Raises ``ValueError`` for an unknown name."""
    names = (*anomaly_order(), GARBAGE_READ)
    if name not in names:
        raise ValueError(
            f"{name!r} is not an anomaly; the anomalies are {', '.join(sorted(names))}"
        )
    return name


def boundary(anomalies: Iterable[str]) -> Boundary:
    """Return the models that these anomalies rule out."""
    found = {*anomalies}
    out = {model for model in FRIENDLY if not prohibited_by(model).isdisjoint(found)}
    weakest = {model for model in out if weaker(model) & out == {model}}
    names = (tuple(sorted(FRIENDLY[each] for each in part)) for part in (weakest, out - weakest))
    return Boundary(*names)


def in_order(anomalies: Iterable[str]) -> tuple[str, ...]:
    """Return anomalies in the order of :func:`anomaly_order`, and others after them."""
    place = {name: at for at, name in enumerate(anomaly_order())}
    return tuple(sorted(anomalies, key=lambda name: (place.get(name, len(place)), name)))
