"""The slices of a history: which partitions each has, and what is asked of them."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from checkers.distributed import chunk_tasks, slice_task
from checkers.distributed.borders import Carried
from checkers.distributed.chunk_tasks import Cut, Scanned
from checkers.distributed.chunks import Chunk
from checkers.distributed.runner import Judge, Parts, Runner, Split
from checkers.distributed.slice_task import Judged

SLICES_MIN = 8
"""With fewer slices than this (and than partitions), tasks would wait for the longest one."""
SLICE_ROWS = 1 << 20
"""Number of micro-operations and records that a slice has about."""

Happened = Mapping[int, frozenset[int]]
"""By slice, the operations in doubt that other slices have proven."""


class Slicing:
    """The slices of chunks, each with what it carries.

    ``weights`` are how many micro-operations and records name each partition, in the order of the
    names; ``healed_ns`` is when the last fault was healed.
    """

    def __init__(
        self,
        runner: Runner,
        items: Sequence[tuple[Chunk, Carried]],
        weights: Mapping[str, int],
        healed_ns: int | None,
    ) -> None:
        self._runner, self._items = runner, items
        self.weights = weights
        self.slice_of, self.count = _shared_out(weights)
        self._cut = Cut(self.slice_of, self.count, healed_ns)
        self._names = [
            frozenset(key for key, of in self.slice_of.items() if of == number)
            for number in range(self.count)
        ]

    def judged(self) -> tuple[Sequence[Scanned], list[Judged]]:
        """Check all chunks and judge all slices. If a chunk is refused, slices may be missing."""
        cut = partial(_scan, self._cut, range(self.count))
        judge = partial(_judge, self._names, {})
        scanned, judged = self._runner.grouped(cut, self._items, judge)
        return scanned, list(judged)

    def with_proofs(self, judged: Sequence[Judged]) -> tuple[list[Judged], Happened]:
        """Judge slices again that have operations in doubt which other slices have proven, and
        return these operations, too. An operation happened as a whole."""
        _raise_crash(judged, self.count)
        proven = frozenset[int]().union(*(each.proven for each in judged))
        found = {number: each.unproven & proven for number, each in enumerate(judged)}
        happened = {number: ops for number, ops in found.items() if ops}
        if not happened:
            return list(judged), {}
        again = self.asked(partial(_judge, self._names, happened), tuple(happened))
        others = [judged[number] for number in range(self.count) if number not in happened]
        return [*others, *again], happened

    def asked(self, judge: Judge, wanted: Collection[int] | None = None) -> Sequence[Any]:
        """Return what is found in the wanted slices, by default in all of them."""
        wanted = range(self.count) if wanted is None else wanted
        _, found = self._runner.grouped(partial(_again, self._cut, wanted), self._items, judge)
        _raise_crash(found, len(wanted))
        return found

    def split(self, split: Split, judge: Judge) -> tuple[Sequence[Any], Sequence[Any]]:
        """Split what follows from all slices, and judge that by its own numbers."""
        cut = partial(_again, self._cut, range(self.count))
        said, found = self._runner.regrouped(cut, self._items, split, judge)
        _raise_crash(said, self.count)
        _raise_crash(found, len(found))
        return said, found


def _scan(cut: Cut, wanted: Collection[int], item: tuple[Chunk, Carried]) -> tuple[Scanned, Parts]:
    return chunk_tasks.scan(*item, cut, wanted)


def _again(cut: Cut, wanted: Collection[int], item: tuple[Chunk, Carried]) -> tuple[None, Parts]:
    return None, chunk_tasks.cut(*item, cut, wanted)


def _judge(
    names: Sequence[frozenset[str]], happened: Happened, number: int, parts: Sequence[bytes]
) -> Judged:
    return slice_task.judge(parts, names[number], happened.get(number, ()))


def _raise_crash(found: Sequence[Any], count: int) -> None:
    """Raise the first error of a task; a result that is missing is an error, too."""
    for each in found:
        if isinstance(each, Exception):
            raise each
    if len(found) != count:
        raise RuntimeError(f"{len(found)} of {count} slices were judged")


def _shared_out(weights: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Return the number of the slice of each partition, and how many slices there are.

    The largest partition comes first, and each goes to the slice that has least so far.
    """
    count = max(1, min(len(weights), max(SLICES_MIN, sum(weights.values()) // SLICE_ROWS)))
    filled = [(0, number) for number in range(count)]
    slice_of = {}
    for key in sorted(weights, key=lambda key: -weights[key]):
        weight, number = heapq.heappop(filled)
        slice_of[key] = number
        heapq.heappush(filled, (weight + weights[key], number))
    return slice_of, count
