"""The slices of a history: which partitions each has, and what is asked of them."""

import heapq
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from checkers.distributed import (
    chunk_tasks,
    group_task,
    kept,
    output_task,
    range_task,
    settled_task,
    slice_task,
)
from checkers.distributed.borders import Carried
from checkers.distributed.chunk_tasks import Cut, Scanned
from checkers.distributed.chunks import Chunk
from checkers.distributed.kept import Kept
from checkers.distributed.output_task import Records
from checkers.distributed.range_task import Asked, Rest
from checkers.distributed.reduction import Reduced, TooMany
from checkers.distributed.runner import Cut as Cutter
from checkers.distributed.runner import Judge, Parts, Runner, Split
from checkers.distributed.settled_task import Settled
from checkers.distributed.slice_task import Beyond, Judged, Outline
from checkers.distributed.transaction_task import Known, Seen
from checkers.kernels.faults import FaultInterval, healed_ns
from checkers.kernels.rows import I64

SLICES_MIN = 8
"""With fewer slices than this (and than partitions), tasks would wait for the longest one."""
SLICE_ROWS = 1 << 20
"""Number of micro-operations and records that a slice has about."""
LARGE_ROWS = 6 << 20
"""From this number on, a partition is checked in ranges."""
WHOLE_ROWS = 9 << 20
"""Above this number, a partition that cannot be checked in ranges is not judged."""

Happened = Mapping[int, frozenset[int]]
"""By slice, the operations in doubt that other slices have proven."""


class Slicing:
    """The slices of chunks, each with what it carries.

    ``weights`` are how many micro-operations and records name each partition, in the order of the
    names; ``faults`` are when faults were active. ``large`` partitions are checked in ranges.
    ``moments_ns`` is that of :class:`~checkers.distributed.chunk_tasks.Cut`.
    """

    def __init__(
        self,
        runner: Runner,
        items: Sequence[tuple[Chunk, Carried]],
        weights: Mapping[str, int],
        faults: tuple[FaultInterval, ...],
        large: Sequence[str],
        moments_ns: Sequence[int] | None,
    ) -> None:
        self._runner, self._items = runner, items
        self._large = large
        self._healed_ns = healed_ns([fault.to_ns for fault in faults])
        self.weights = weights
        self.slice_of, self.count = _shared_out(weights, large)
        self._cut = Cut(self.slice_of, self.count, self._healed_ns, {}, moments_ns=moments_ns)
        self._reduced = dict[int, Reduced]()
        self._given_up = frozenset[int]()
        thin = self._cut._replace(kept=dict.fromkeys(large, kept.NOTHING))
        self._scan = partial(_scan, thin, range(self.count))
        self._are_kept = False
        self._names = [
            frozenset(key for key, of in self.slice_of.items() if of == number)
            for number in range(self.count)
        ]

    def judged(self) -> tuple[Sequence[Scanned], list[Judged]]:
        """Check all chunks and judge all slices, but only outline those of large partitions.

        If a chunk is refused, slices may be missing.
        """
        judge = partial(_judge_or_outline, self._names, self._large)
        scanned, judged = self._runner.grouped(self._scan, self._items, judge)
        return scanned, list(judged)

    def keep(self) -> None:
        """Keep the slices of the first pass for the following ones, if they are the same there:
        those of large partitions are not."""
        self._are_kept = not self._large
        if self._are_kept:
            self._runner.keep(self._scan)

    def with_ranges(self, judged: Sequence[Any]) -> list[Judged]:
        """Judge the large partitions of which slices are outlines."""
        _raise_crash(judged, self.count)
        count = len(self._large)
        if not count:
            return list(judged)
        outlines = judged[:count]
        _, answers = self._regrouped(
            partial(range_task.cut, self._large),
            range_task.check,
            partial(range_task.decide, Asked(self._large, outlines, self._healed_ns)),
        )
        found = {answer.number: answer.judged for answer in answers if answer.judged is not None}
        for answer in answers:
            name, outlined = self._large[answer.number], outlines[answer.number][0]
            match answer.reduced:
                case Reduced():
                    self._reduced[answer.number] = answer.reduced
                case TooMany():
                    found[answer.number] = range_task.given_up(name, answer.reduced.rows, outlined)
                case None if self._is_too_large(answer.number):
                    found[answer.number] = range_task.given_up(name, self.weights[name], outlined)
        self._given_up = frozenset(found) - self._reduced.keys()
        self._cut = self._cut._replace(
            kept={self._large[number]: each.kept for number, each in self._reduced.items()}
        )
        found |= self._whole({}, [number for number in range(count) if number not in found])
        return [*(found[number] for number in range(count)), *judged[count:]]

    def _whole(self, beyond: Mapping[int, Beyond], wanted: Sequence[int]) -> dict[int, Judged]:
        """Return what is found in the wanted slices, by their numbers."""
        reduced = [number for number in wanted if number in self._reduced]
        others = [number for number in wanted if number not in self._reduced]
        found = self._rest(beyond, reduced) if reduced else {}
        if others:
            judged = self._asked(partial(_judge, self._names, beyond), others)
            found |= dict(zip(sorted(others), judged, strict=True))
        return found

    def _rest(self, beyond: Mapping[int, Beyond], wanted: Sequence[int]) -> dict[int, Judged]:
        """Judge large partitions by the records that have to be judged."""
        reduced = {number: self._reduced[number] for number in wanted}
        rest = Rest(self._large, reduced, self._cut, beyond, self._healed_ns)
        _, judgements = self._regrouped(
            partial(range_task.cut_rest, rest),
            partial(range_task.split_rest, rest),
            partial(range_task.judge_rest, rest),
        )
        again = list[int]()
        for each in judgements:
            if each.began_ns:
                mine = self._reduced[each.number]
                began_ns = mine.began_ns | each.began_ns
                self._reduced[each.number] = mine._replace(began_ns=began_ns)
                again.append(each.number)
        found = {each.number: each.judged for each in judgements}
        return found | (self._rest(beyond, again) if again else {})

    def _regrouped(
        self, cut: Cutter, split: Split, judge: Judge
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        said, found = self._runner.regrouped(cut, self._items, split, judge)
        _raise_crash(said, len(said))
        _raise_crash(found, len(found))
        return said, found

    def with_proofs(self, judged: Sequence[Judged]) -> tuple[list[Judged], Happened]:
        """Judge slices again that have operations in doubt which other slices have proven, and
        return these operations, too. An operation happened as a whole."""
        proven = frozenset[int]().union(*(each.proven for each in judged))
        found = {number: each.unproven & proven for number, each in enumerate(judged)}
        happened = {number: ops for number, ops in found.items() if ops}
        if not happened:
            return list(judged), {}
        return self._with_others(judged, {n: Beyond(ops) for n, ops in happened.items()}), happened

    def with_answers(self, judged: Sequence[Judged], happened: Happened) -> list[Judged]:
        """Judge slices again that have answers of coordinators which no commit explains: what a
        former coordinator knew follows from its answers in all slices."""
        fetches = frozenset[tuple[int, int]]().union(*(each.unexplained for each in judged))
        if not fetches:
            return list(judged)
        ops, processes = frozenset(op for op, _ in fetches), frozenset(p for _, p in fetches)
        _, found = self._regrouped(
            partial(_again, self._without_records, range(self.count)),
            partial(group_task.answers, processes),
            partial(group_task.knowledge, ops),
        )
        known = {place: knowledge for each in found for place, knowledge in each.items()}
        beyond = {
            number: Beyond(happened.get(number, ()), known)
            for number, each in enumerate(judged)
            if each.unexplained
        }
        return self._with_others(judged, beyond)

    def _with_others(self, judged: Sequence[Judged], beyond: Mapping[int, Beyond]) -> list[Judged]:
        """Judge some slices again, given what others have shown; return all."""
        again = self._whole(beyond, sorted(beyond))
        return [again.get(number, each) for number, each in enumerate(judged)]

    @property
    def _without_records(self) -> Cut:
        """How slices are cut if those of partitions that are not judged have no records."""
        nothing = dict.fromkeys(self.given_up, kept.NOTHING)
        return self._cut._replace(kept={**self._cut.kept, **nothing})

    @property
    def _judgeable(self) -> list[int]:
        return [number for number in range(self.count) if number not in self._given_up]

    @property
    def given_up(self) -> list[str]:
        """The partitions that are not judged."""
        return [self._large[number] for number in sorted(self._given_up)]

    @property
    def settled(self) -> dict[int, Kept]:
        """The settled blocks of which slices have only the ends, by slice."""
        return {number: each.settled for number, each in self._reduced.items()}

    def split(self, known: Known, judge: Judge) -> tuple[Sequence[Seen], Sequence[Any]]:
        """Examine the transactions of all slices, and judge their dependencies by window."""
        settled = Settled(self._large, self._reduced, self._cut)
        return self._regrouped(
            self._cutter(settled), partial(settled_task.examine, settled, known), judge
        )

    def neighbours(self, known: Known, wanted: I64) -> Sequence[I64]:
        """Return the operations that slices have of these transactions' neighbours."""
        settled = Settled(self._large, self._reduced, self._cut._replace(ops=wanted))
        judge = partial(settled_task.neighbours, settled, known, wanted)
        _, found = self._runner.grouped(self._cutter(settled), self._items, judge)
        _raise_crash(found, len(found))
        return found

    def _cutter(self, settled: Settled) -> Cutter:
        """Return what cuts chunks into slices and into the ranges of settled blocks."""
        if self._are_kept:
            return self._scan
        return partial(settled_task.cut, settled, self._judgeable)

    def _asked(self, judge: Judge, wanted: Collection[int]) -> Sequence[Any]:
        """Return what is found in the wanted slices."""
        cut = self._scan if self._are_kept else partial(_again, self._cut, wanted)
        _, found = self._runner.grouped(cut, self._items, judge, wanted)
        _raise_crash(found, len(wanted))
        return found

    def asked_of_works(self, judge: Judge, gone: Records) -> Sequence[Any]:
        """Return what is found in all slices, which have all records, and say what transactions do
        with their inputs, without the records that are ``gone``."""
        cut = partial(_with_works, self._cut._replace(kept={}), range(self.count), gone)
        _, found = self._runner.grouped(cut, self._items, judge)
        _raise_crash(found, self.count)
        return found

    @property
    def never_whole(self) -> list[str]:
        """The partitions that are not judged, or of which no task gets all records."""
        reduced = {number for number in self._reduced if self._is_too_large(number)}
        return [self._large[number] for number in sorted(self._given_up | reduced)]

    def _is_too_large(self, number: int) -> bool:
        return self.weights[self._large[number]] > WHOLE_ROWS


def _scan(cut: Cut, wanted: Collection[int], item: tuple[Chunk, Carried]) -> tuple[Scanned, Parts]:
    return chunk_tasks.scan(*item, cut, wanted)


def _again(cut: Cut, wanted: Collection[int], item: tuple[Chunk, Carried]) -> tuple[None, Parts]:
    return None, chunk_tasks.cut(*item, cut, wanted)


def _with_works(
    cut: Cut, wanted: Collection[int], gone: Records, item: tuple[Chunk, Carried]
) -> tuple[None, Parts]:
    works = partial(output_task.works, gone=gone)
    return None, chunk_tasks.cut(*item, cut, wanted, works)


def _judge(
    names: Sequence[frozenset[str]],
    beyond: Mapping[int, Beyond],
    number: int,
    parts: Sequence[bytes],
) -> Judged:
    return slice_task.judge(parts, names[number], beyond.get(number, Beyond()))


def _judge_or_outline(
    names: Sequence[frozenset[str]], large: Sequence[str], number: int, parts: Sequence[bytes]
) -> Judged | tuple[Judged, Outline]:
    if number < len(large):
        return slice_task.outline(parts, large[number])
    return _judge(names, {}, number, parts)


def _raise_crash(found: Sequence[Any], count: int) -> None:
    """Raise the first error of a task; a result that is missing is an error, too."""
    for each in found:
        if isinstance(each, Exception):
            raise each
    if len(found) != count:
        raise RuntimeError(f"{len(found)} of {count} slices were judged")


def _shared_out(weights: Mapping[str, int], large: Sequence[str]) -> tuple[dict[str, int], int]:
    """Return the number of the slice of each partition, and how many slices there are.

    The first slices are those of large partitions. Of the others, the largest one comes first, and
    each goes to the slice that has least so far.
    """
    slice_of = {key: number for number, key in enumerate(large)}
    others = {key: weight for key, weight in weights.items() if key not in slice_of}
    wanted = max(SLICES_MIN, sum(others.values()) // SLICE_ROWS)
    count = len(large) + min(len(others), wanted)
    filled = [(0, number) for number in range(len(large), count)]
    for key in sorted(others, key=lambda key: -others[key]):
        weight, number = heapq.heappop(filled)
        slice_of[key] = number
        heapq.heappush(filled, (weight + weights[key], number))
    return slice_of, max(count, 1)
