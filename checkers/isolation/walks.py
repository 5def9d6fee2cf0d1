"""The search for a short cycle of some class inside one component, within a budget of steps."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checkers.isolation.edges import Edges
from checkers.isolation.specs import ANTI, Rule, Spec


@dataclass
class Budget:
    """How many more edges a search may follow."""

    steps: int

    def spend(self, edges: int) -> bool:
        """Count edges; return whether they may be followed."""
        self.steps -= edges
        return self.steps >= 0


class Component:
    """The edges of one strongly connected component."""

    def __init__(self, edges: Edges, first_row: int, moments: int) -> None:
        """Hold these edges.

        Args:
            edges: the edges of the component.
            first_row: the row of the first of them in a larger table.
            moments: the first vertex that is a moment. A step to a moment costs nothing, so that a
                step in realtime costs as much as any other, over however many moments it leads.
        """
        self._first_row, self._moments = first_row, moments
        self._source, self._target = edges.source.tolist(), edges.target.tolist()
        self._kind = edges.kind.tolist()
        self._leaving: dict[frozenset[int], dict[int, list[int]]] = {}

    def cycles(
        self, spec: Spec, anchors: Sequence[int], budget: Budget
    ) -> Iterator[Sequence[Sequence[int]]]:
        """Yield for each anchor the cycles that a shortest closed walk from it consists of.

        Cycles are rows of edges. A walk that visits a vertex more than once is several cycles,
        which may be of other classes. The search ends when the budget is spent.
        """
        kinds = spec.kinds - {*ANTI} if spec.rule is Rule.SINGLE else spec.kinds
        leaving = self._by_source(kinds)
        for row in anchors:
            at = row - self._first_row
            path = self._path(at, leaving, spec.rule is Rule.NONADJACENT, budget)
            if budget.steps < 0:
                return
            if path is not None:
                yield [
                    [each + self._first_row for each in cycle]
                    for cycle in self._simple([at, *path])
                ]

    def _by_source(self, kinds: frozenset[int]) -> dict[int, list[int]]:
        if kinds not in self._leaving:
            found: dict[int, list[int]] = {}
            for row, kind in enumerate(self._kind):
                if kind in kinds:
                    found.setdefault(self._source[row], []).append(row)
            self._leaving[kinds] = found
        return self._leaving[kinds]

    def _path(
        self, anchor: int, leaving: dict[int, list[int]], alternates: bool, budget: Budget
    ) -> list[int] | None:
        """Return the rows of a shortest path from the anchor's target to its source.

        With ``alternates``, no two anti-dependencies follow each other, the anchor included.
        """
        target, kind = self._target, self._kind
        begin = (target[anchor], alternates and kind[anchor] in ANTI)
        goal = self._source[anchor]
        came: dict[tuple[int, bool], tuple[tuple[int, bool], int]] = {}
        settled: set[tuple[int, bool]] = set()
        distance = {begin: 0}
        waiting = deque([begin])
        while waiting:
            state = waiting.popleft()
            if state in settled:
                continue
            settled.add(state)
            vertex, after_anti = state
            if vertex == goal and not (after_anti and alternates):
                return self._back(state, begin, came)
            following_rows = leaving.get(vertex, ())
            if not budget.spend(len(following_rows)):
                return None
            for row in following_rows:
                is_anti = alternates and kind[row] in ANTI
                if is_anti and after_anti:
                    continue
                cost = 0 if target[row] >= self._moments else 1
                following = (target[row], is_anti)
                if distance[state] + cost < distance.get(following, 1 << 60):
                    distance[following] = distance[state] + cost
                    came[following] = state, row
                    (waiting.append if cost else waiting.appendleft)(following)
        return None

    def _back(
        self,
        state: tuple[int, bool],
        begin: tuple[int, bool],
        came: dict[tuple[int, bool], tuple[tuple[int, bool], int]],
    ) -> list[int]:
        rows = []
        while state != begin:
            state, row = came[state]
            rows.append(row)
        return rows[::-1]

    def _simple(self, walk: Sequence[int]) -> Iterator[list[int]]:
        """Yield the simple cycles of a closed walk."""
        stack: list[int] = []
        place = {self._source[walk[0]]: 0}
        for row in walk:
            stack.append(row)
            at = place.setdefault(self._target[row], len(stack))
            if at < len(stack):
                for each in stack[at:-1]:
                    del place[self._target[each]]
                yield stack[at:]
                del stack[at:]
