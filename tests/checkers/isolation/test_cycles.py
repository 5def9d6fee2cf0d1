"""The search for cycles, compared with all simple cycles of small random graphs."""

import random
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import shipping
from checkers.isolation import components, lattice
from checkers.isolation.components import Inner
from checkers.isolation.cycles import search
from checkers.isolation.edges import (
    KINDS,
    PROCESS,
    RW,
    RWP,
    WR,
    WW,
    WWP,
    Edges,
    Parts,
    every,
    process_order,
    realtime_order,
    whole,
)
from checkers.isolation.specs import classify, specs
from checkers.isolation.transactions import History, MicroOps, Names, Transactions

Row = tuple[int, int, int]

EVERYTHING = frozenset(lattice.anomaly_order())


def history_of(count: int) -> History:
    numbers = np.arange(count)
    none = np.zeros(0, np.int64)
    return History(
        Transactions(numbers, numbers * 0, (numbers * 0).astype(np.int8), numbers - 1, numbers),
        MicroOps(none, none.astype(np.int8), none, none, none, none.astype(np.uint64)),
        Names(["x"]),
        str,
    )


def edges_of(rows: Sequence[Row]) -> Parts:
    source, target, kind = np.array(rows, np.int64).reshape(-1, 3).T
    zero = np.zeros(len(source), np.int64)
    return [whole(Edges(source, target, kind.astype(np.int8), zero, zero, zero))]


def simple_cycles(rows: Sequence[Row], count: int) -> Iterator[list[int]]:
    """Yield the kinds of all simple cycles; a cycle is found from its smallest vertex."""

    def longer(path: list[int], kinds: list[int]) -> Iterator[list[int]]:
        for source, target, kind in rows:
            if source != path[-1]:
                continue
            if target == path[0]:
                yield [*kinds, kind]
            elif target > path[0] and target not in path:
                yield from longer([*path, target], [*kinds, kind])

    for start in range(count):
        yield from longer([start], [])


def weakest(names: set[str]) -> tuple[str, ...]:
    return lattice.boundary(names).weakest


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds", [(WW, WR, RW), (WW, RW, RW, PROCESS), (WR, RW, RWP, WWP)], ids=str
)
def test_same_classes_as_all_simple_cycles(kinds: tuple[int, ...]) -> None:
    """The classes that the search reports are the most special ones that exist."""
    rng = random.Random(3)
    for _ in range(400):
        count = rng.randint(2, 6)
        drawn = {
            (rng.randrange(count), rng.randrange(count), rng.choice(kinds))
            for _ in range(rng.randint(1, 9))
        }
        rows = sorted(
            (s, t, k) for s, t, k in drawn if s != t and (k != PROCESS or s < t)
        )  # the order of processes has no cycle
        existing = {classify(cycle) for cycle in simple_cycles(rows, count)}
        found = search(history_of(count), edges_of(rows), EVERYTHING, 1_000_000)
        assert {*found.found.counts} <= existing
        assert weakest({*found.found.counts}) == weakest(existing)
        assert not found.unfinished


def test_product_graph_finds_what_snapshot_isolation_prohibits() -> None:
    """A closed walk without two anti-dependencies in a row is found; another one is not."""
    (spec,) = (each for each in specs(()) if each.name == "G-nonadjacent-item")
    for rows, exists in (
        ([(0, 1, RW), (1, 0, WR)], True),
        ([(0, 1, RW), (1, 0, RW)], False),
        ([(0, 1, RW), (1, 2, WW), (2, 3, RW), (3, 0, WW)], True),
        ([(0, 1, RW), (1, 2, RW), (2, 3, WW), (3, 0, WW)], False),
        ([(0, 1, WW), (1, 0, WR)], True),
    ):
        assert Inner(edges_of(rows), 4).on_closed_walks(spec).any() == exists


@pytest.mark.parametrize(
    ("kinds", "name"),
    [
        ("ww ww", "G0"),
        ("ww wwp", "G0"),
        ("ww wr", "G1c"),
        ("rw wr", "G-single-item"),
        ("rwp wr", "G-single"),
        ("rw wr rw ww", "G-nonadjacent-item"),
        ("rw wrp rw ww", "G-nonadjacent"),
        ("rw rw", "G2-item"),
        ("rw ww rw", "G2-item"),
        ("rw rwp", "G2"),
        ("ww process", "G0-process"),
        ("wr process realtime", "G1c-realtime"),
        ("rw realtime rw process", "G-nonadjacent-item-realtime"),
    ],
)
def test_classes(kinds: str, name: str) -> None:
    """A cycle is classified by its steps; the last step and the first one are adjacent."""
    assert classify([KINDS.index(kind) for kind in kinds.split()]) == name


def txns(*rows: tuple[int, int, int]) -> Transactions:
    """Return ok transactions from (process, invoked, completed)."""
    process, invoked, completed = np.array(rows, np.int64).T
    zero = np.zeros(len(rows), np.int8)
    return Transactions(completed, process, zero, invoked, completed)


def test_realtime_over_moments() -> None:
    """A transaction reaches exactly those that were invoked after its completion."""
    rng = random.Random(2)
    points = [*range(40)]
    rng.shuffle(points)
    spans = sorted(
        ((min(pair), max(pair)) for pair in zip(points[::2], points[1::2], strict=True)),
        key=lambda span: span[1],
    )
    some = txns(*((n, *span) for n, span in enumerate(spans)))
    edges = every(realtime_order(some, np.ones(20, np.bool_)))
    assert len(edges.source) <= 3 * 20
    reached = np.eye(40, dtype=bool)
    for source, target in (
        sorted(zip(edges.source.tolist(), edges.target.tolist(), strict=True), reverse=True) * 40
    ):
        reached[source] |= reached[target]
    for a in range(20):
        for b in range(20):
            if a != b:
                assert reached[a, b] == (spans[a][1] < spans[b][0])


def test_order_of_processes() -> None:
    """Consecutive transactions of each process are ordered."""
    edges = every(process_order(txns((1, 0, 1), (2, 2, 3), (1, 4, 5), (1, 6, 7))))
    assert [*zip(edges.source.tolist(), edges.target.tolist(), strict=True)] == [(0, 2), (2, 3)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_components_without_scipy(edges: list[tuple[int, int]]) -> None:
    """A worker without SciPy finds the same components."""
    source, target = (np.array([edge[at] for edge in edges], np.int32) for at in (0, 1))
    with_scipy = components.labels(source, target, 10)
    without = components.labels_by_paths(source, target, 10)
    assert np.array_equal(
        with_scipy[:, None] == with_scipy[None, :], without[:, None] == without[None, :]
    )


def test_a_worker_may_have_no_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then components are found by rustworkx, which is among the code that Spark ships."""
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    found = components.labels(np.array([0, 1, 2]), np.array([1, 0, 1]), 3)
    assert found[0] == found[1] != found[2]
    assert "rustworkx" in shipping.LIBRARIES
