"""Cycles of dependencies: which classes there are, and a short witness of each.

Whether a closed walk of a class exists is decided in linear time. A witness is searched only where
one exists, in the smallest components first and for the most severe class first, within a budget of
steps. If the budget is spent, the anomaly ``<model>-cycle-exists`` reports what is certain.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from checkers.isolation import lattice
from checkers.isolation.components import Inner
from checkers.isolation.describing import Describer
from checkers.isolation.edges import KINDS, PROCESS, REALTIME, RW, RWP, WR, WRP, WW, WWP, Parts
from checkers.isolation.findings import SHOWN_MAX, Findings, Found, Step, step_lines
from checkers.isolation.specs import PREDICATES, Rule, Spec, classify, specs
from checkers.isolation.transactions import READ, WRITE, Absent, History
from checkers.isolation.walks import Budget, Component
from checkers.kernels.rows import Bools

STARTS = 8
"""Number of edges from which the search for one witness begins; the shortest one is reported."""
PART = 4
"""The search for a cycle with exactly one anti-dependency may spend one part in so many of what is
left: from most edges there may be none."""

_ENDS = {
    WW: (WRITE, WRITE),
    WR: (WRITE, READ),
    RW: (READ, WRITE),
    WWP: (WRITE, WRITE),
    WRP: (WRITE, READ),
    RWP: (READ, WRITE),
}
"""The kinds of the micro-operations at both ends of an edge."""


@dataclass(frozen=True)
class Cycles:
    """The cycles of a history."""

    found: Findings
    hidden: frozenset[str] = frozenset()
    """Anomalies that need no report, because more severe ones are in the same components."""
    unfinished: frozenset[str] = frozenset()
    """Classes of which a closed walk exists, and whose search ended at its budget."""


def search(history: History, edges: Parts, prohibited: frozenset[str], budget: int) -> Cycles:
    """Return the cycles of a graph.

    Args:
        edges: all dependencies, with moments as in :class:`~checkers.isolation.edges.Edges`.
        prohibited: the anomalies of interest; these alone hide others.
        budget: the number of edges that the search for witnesses may follow.
    """
    count = len(history.txns.event)
    count = max(count, *(int(end.max(initial=-1)) + 1 for part in edges for end in part[:2]), 0)
    inner = Inner(edges, count)
    if not inner.count:
        return Cycles(Findings())
    return _Search(history, inner, prohibited, Budget(budget)).run()


class _Search:
    """The search of one history."""

    def __init__(
        self, history: History, inner: Inner, prohibited: frozenset[str], budget: Budget
    ) -> None:
        self._history, self._inner = history, inner
        self._describer = Describer(history)
        self._prohibited, self._budget = prohibited, budget
        orders = {*np.unique(inner.edges.kind).tolist()} & {PROCESS, REALTIME}
        self._specs = specs(orders)
        self._walks: dict[Spec, Bools] = {}
        self._unfinished: set[str] = set()
        self._moments = int(np.searchsorted(inner.vertices, len(history.txns.event)))
        """The first vertex of the inner graph that is a moment."""
        self._has_predicates = bool(np.isin(inner.edges.kind, PREDICATES).any())

    def run(self) -> Cycles:
        found = Findings()
        reported: set[str] = set()
        sizes = np.diff(self._inner.begin)
        for component in np.argsort(sizes, kind="stable").tolist():
            cycles = self._component(component)
            severe = {name for name in cycles if name in self._prohibited}
            reported |= {*cycles}.difference(*map(lattice.hidden_by, severe))
            for name, rows in cycles.items():
                if found.counts.get(name, 0) < SHOWN_MAX:
                    found.add(self._found(name, rows))
                else:
                    found.count(name, 1)
        hidden = frozenset(set(found.counts) - reported)
        self._without_witness(found)
        return Cycles(found, hidden, frozenset(self._unfinished))

    def _component(self, number: int) -> dict[str, Sequence[int]]:
        """Return the rows of a cycle of each class that the classes found before do not imply."""
        begin, end = self._inner.begin[number : number + 2].tolist()
        component: Component | None = None
        found: dict[str, Sequence[int]] = {}
        for spec in self._specs:
            if any(spec.name in lattice.implied(name) for name in found):
                continue
            if spec.needs_predicate and not self._has_predicates:
                continue
            anchors = self._anchors(spec, begin, end)
            if not anchors:
                continue
            if component is None:
                edges = self._inner.edges.where(np.arange(begin, end))
                component = Component(edges, begin, self._moments)
            for name, rows in self._witnesses(component, spec, anchors):
                if name not in found or len(rows) < len(found[name]):
                    found[name] = rows
        return found

    def _anchors(self, spec: Spec, begin: int, end: int) -> Sequence[int]:
        """Return the rows of a component from which a cycle of a class can begin."""
        if spec not in self._walks:
            walks = self._inner.on_closed_walks(spec)
            self._walks[spec] = walks & np.isin(self._inner.edges.kind, sorted(spec.anchors))
        found: list[int] = (begin + np.flatnonzero(self._walks[spec][begin:end])).tolist()
        return found

    def _witnesses(
        self, component: Component, spec: Spec, anchors: Sequence[int]
    ) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield the cycles that a search for a class finds, with their own classes."""
        is_single = spec.rule is Rule.SINGLE
        budget = Budget(self._budget.steps // PART if is_single else self._budget.steps)
        anchors = self._backward_first(anchors) if is_single else _spread(anchors)
        before, hits = budget.steps, 0
        for cycles in component.cycles(spec, anchors, budget):
            for rows in cycles:
                name = classify([kind for kind, _ in self._contracted(rows)])
                hits += name == spec.name
                yield name, rows
            if hits >= STARTS:
                break
        self._budget.steps -= before - max(budget.steps, 0)
        if budget.steps < 0 and not hits:
            self._unfinished.add(spec.name)

    def _backward_first(self, anchors: Sequence[int]) -> Sequence[int]:
        """Return anchors so that those which lead far back in time are first."""
        rows = np.array(anchors)
        gap = self._inner.edges.target[rows] - self._inner.edges.source[rows]
        found: list[int] = rows[np.argsort(gap, kind="stable")].tolist()
        return found

    def _contracted(self, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the kind and the row of each step of a cycle; a way over moments is one step,
        whose row is the last one."""
        edges = self._inner.edges
        for row in rows:
            kind = int(edges.kind[row])
            if kind != REALTIME or edges.target[row] < self._moments:
                yield kind, row

    def _found(self, name: str, rows: Sequence[int]) -> Found:
        """Return the finding for a cycle, which begins at its earliest transaction."""
        edges, vertices, txns = self._inner.edges, self._inner.vertices, self._history.txns
        steps = list(self._contracted(rows))
        targets = [int(vertices[edges.target[row]]) for _, row in steps]
        sources = [targets[-1], *targets[:-1]]
        first = sources.index(min(sources))
        turn = [*range(first, len(steps)), *range(first)]
        argued = [
            self._step(f"T{n}", f"T{n % len(turn) + 1}", sources[at], targets[at], *steps[at])
            for n, at in enumerate(turn, 1)
        ]
        members = [sources[at] for at in turn]
        return Found(
            name,
            tuple(txns.event[members].tolist()),
            tuple(map(self._history.describe, members)),
            " ".join(step_lines([step.why for step in argued])),
            tuple(argued),
            micro_ops=tuple(map(self._describer.micro_ops, members)),
        )

    def _step(self, a: str, b: str, source: int, target: int, kind: int, row: int) -> Step:
        """Return the step from one transaction to another one, given the row of its edge."""
        events = self._history.txns.event
        step = Step(int(events[source]), int(events[target]), KINDS[kind])
        if kind not in (PROCESS, REALTIME):
            names, edges, describer = self._history.names, self._inner.edges, self._describer
            key, value, following = (int(c[row]) for c in (edges.key, edges.value, edges.next))
            source_kind, target_kind = _ENDS[kind]
            shown = value if kind in (WR, WRP) else following
            step = dataclasses.replace(
                step,
                key=names.key(key),
                value=names.element(value),
                next_value=names.element(following),
                source_at=describer.place(source, source_kind, key, value),
                target_at=describer.place(target, target_kind, key, shown),
            )
        return dataclasses.replace(step, why=_reason(a, b, step, self._history.verb))

    def _without_witness(self, found: Findings) -> None:
        """Add what is certain although no witness was found."""
        for spec in self._specs:
            if spec.model is None:
                continue
            ruled_out = lattice.boundary(found.counts)
            if lattice.FRIENDLY[spec.model] in (*ruled_out.weakest, *ruled_out.also):
                continue
            begins = self._inner.begin[:-1]
            anchors = self._anchors(spec, 0, int(self._inner.begin[-1]))
            if not anchors:
                continue
            components = np.unique(np.searchsorted(begins, anchors, "right"))
            vertices = np.unique(self._inner.vertices[self._inner.edges.source[anchors]])
            members = vertices[vertices < len(self._history.txns.event)][:2].tolist()
            found.add(
                Found(
                    spec.model + lattice.CYCLE_EXISTS,
                    tuple(self._history.txns.event[members].tolist()),
                    tuple(map(self._history.describe, members)),
                    f"The transactions of {len(components)} strongly connected component"
                    f"{'s' if len(components) > 1 else ''} depend on each other in a circle that"
                    f" {lattice.FRIENDLY[spec.model]} does not allow, but the search for a short"
                    " one ended at its budget.",
                )
            )


def _spread(anchors: Sequence[int]) -> Sequence[int]:
    """Return anchors in another order: the first ones are from all over the component."""
    step = max(1, len(anchors) // STARTS)
    return [anchor for begin in range(step) for anchor in anchors[begin::step]]


def _write(verb: str, txn: str, value: Any, key: Any) -> str:
    """Name a write of a transaction."""
    if value is Absent.DEAD:
        return f"{txn}'s deletion of {key}"
    return f"{txn}'s {verb} of {value} to {key}"


def _version(value: Any, key: Any) -> str:
    """Name a version that was read."""
    if isinstance(value, Absent):
        return f"{key} as missing"
    return f"the initial version of {key}" if value is None else f"version {value} of {key}"


def _reason(a: str, b: str, step: Step, verb: str) -> str:
    """Return why a transaction precedes another one."""
    before = _write(verb, a, step.value, step.key)
    after = _write(verb, b, step.next_value, step.key)
    match step.kind:
        case "ww" | "wwp":
            return f"{after} follows {before}"
        case "wr":
            return f"{b} read {before}"
        case "rw":
            return f"{a} read {_version(step.value, step.key)} and did not see {after}"
        case "wrp":
            return f"the result of a predicate in {b} depends on {before}"
        case "rwp":
            return f"the result of a predicate in {a} would be another one after {after}"
        case "process":
            return f"the process of {a} executed {b} after it"
        case _:
            return f"{a} completed before {b} was invoked"
