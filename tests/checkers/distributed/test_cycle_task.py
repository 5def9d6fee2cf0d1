"""Cycles that are searched in windows are those of the whole history."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.distributed import cycle_task, packing
from checkers.distributed.cycle_task import Part, Windows
from checkers.kernels import cycles
from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.cycles import Edges
from checkers.kernels.found import Found

KEYS = ("x", "y")
Edge = tuple[int, int, bool, int]
"""Source, distance of the target, whether it is a read, and value."""
edges = st.lists(
    st.tuples(st.integers(0, 39), st.integers(-6, 9), st.booleans(), st.integers(0, 3)), max_size=60
)


def graph(found: list[Edge]) -> tuple[Any, Edges]:
    """Return transactions, whose numbers are multiples of three, and dependencies."""
    rows = [(s, s + d, wr, v) for s, d, wr, v in found if d and 0 <= s + d < 40]
    source, target, wr, value = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return 3 * np.arange(40), Edges(3 * source, 3 * target, wr == 1, value % 2, value, value + 1)


def in_windows(op: Any, found: Edges, width: int) -> list[Found]:
    """Search windows as the tasks of a plan do, with the dependencies of each key as a part."""
    windows = Windows(0, width, 120 // width + 1)
    searched = []
    for number in range(windows.number):
        parts = []
        for key in range(len(KEYS)):
            mine = found.where(found.key == key)
            source, target = windows.of(mine.source), windows.of(mine.target)
            part = Part(
                op[(windows.of(op) == number) & (op % 2 == key)],
                mine.where(target == number),
                mine.source[(target < number) & (source >= number)],
            )
            parts.append(packing.dumped((part, None)))
        whole, clean = cycle_task.search(KEYS, number, parts)
        assert clean is None
        searched.append(whole)
    return cycle_task.joined(searched, KEYS)


@given(edges, st.sampled_from([3, 10, 31, 120]))
def test_windows(found: list[Edge], width: int) -> None:
    """Cycles in one window, over a border, and over several windows are found."""
    op, given_edges = graph(found)
    whole = cycles.concluded([cycles.among(op, given_edges, KEYS)])
    assert in_windows(op, given_edges, width) == whole


def test_too_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search over borders has a limit; what is between gaps does not count."""
    op, circle = graph([(0, 1, True, 0), (1, -1, True, 1), (20, 1, True, 0), (21, -1, True, 1)])
    monkeypatch.setattr(cycle_task, "LEFT_MAX", 1)
    assert len(in_windows(op, circle, 30)) == 2
    with pytest.raises(GaveUp, match="4 dependencies would have to be searched together"):
        in_windows(op, circle, 3)
