"""The plan of a distributed judgement: three passes over the chunks, and one over the slices.

1. Every chunk is read, typed, and reports its border.
2. Every chunk is checked and cut into slices.
3. Every slice is judged.
4. If records were read that were not written to their partition, chunks are searched for them.

The process that follows the plan holds counts, findings and names, but no chunk and no slice.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from checkers import counts, facts, history_file, table_builder
from checkers.columns import Columns
from checkers.counts import Outcomes
from checkers.distributed import borders, chunk_tasks, packing, slice_task
from checkers.distributed.borders import Carried, Refusal
from checkers.distributed.chunk_tasks import Prepared, Scanned
from checkers.distributed.chunks import Chunk
from checkers.distributed.slice_task import Judged
from checkers.jsonl import torn_line
from checkers.kernels import history_kernels
from checkers.kernels.rows import I64
from checkers.overview import Overview, Repeated, Whole
from model.history import BadHistory

SLICES_MIN = 8
"""With fewer slices than this (and than partitions), tasks would wait for the longest one."""
PROBED = 2
"""Number of chunks that are read first: most often, they show whether slices are enough."""
SLICE_ROWS = 1 << 20
"""Number of micro-operations and records that a slice has about."""


class Runner(Protocol):
    """Runs tasks somewhere, several at a time."""

    def each(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
        """Return what the task returns for each item, in their order."""
        ...

    def grouped(
        self,
        cut: Callable[[Any], tuple[Any, Iterator[tuple[int, bytes]]]],
        items: Sequence[Any],
        judge: Callable[[int, Sequence[bytes]], Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Cut each item into numbered parts, and judge all parts of each number together.

        Returns what ``cut`` says of each item besides, in their order; and what ``judge`` returns,
        or the error that it raises, in the order of the numbers. The parts that ``judge`` gets are
        in the order of the items.
        """
        ...


class _Times:
    """When the operations of findings began, and when they ended, by the events that end them."""

    def __init__(self, spans: Mapping[int, tuple[int, int]]) -> None:
        self._spans = spans

    def span(self, ops: Sequence[int]) -> tuple[int, int]:
        """Return from when to when these operations lasted."""
        begins, ends = zip(*(self._spans[op] for op in ops), strict=True)
        return min(begins), max(ends)


def judge(path: Path, given: Sequence[Chunk], runner: Runner, scratch: Path) -> Whole | None:
    """Judge a history that was cut into chunks; ``None`` if it needs more than slices.

    ``scratch`` is a folder that all tasks can use. Raises :class:`~model.history.BadHistory` as the
    reader of whole histories does.
    """
    numbered, prepared = list(enumerate(given)), list[Prepared]()
    for some in (numbered[:PROBED], numbered[PROBED:]):
        prepared += runner.each(partial(_prepare, scratch), some)
        _refuse_unreadable(path, given[: len(prepared)], prepared)
        if any(each.spanning for each in prepared):
            return None
    used = [each for each in prepared if each.border is not None]
    if not used:
        raise BadHistory(f"{path} has no events")
    joined = borders.joined([each.border for each in used if each.border is not None])
    weights: Counter[str] = Counter()
    for each in used:
        weights.update(each.weights)
    slice_of, count = _shared_out(weights)
    items = [(each.chunk, carried) for each, carried in zip(used, joined.carried, strict=True)]
    names = [frozenset(k for k, of in slice_of.items() if of == n) for n in range(count)]
    cut = partial(_scan, slice_of, count, range(count))
    scanned, judged = runner.grouped(cut, items, partial(_judge, names, {}))
    doubts = _refuse_misfits(path, joined.broken, scanned)
    _raise_crash(judged, count)
    if happened := _proven_elsewhere(judged):
        cut = partial(_scan, slice_of, count, tuple(happened))
        _, again = runner.grouped(cut, items, partial(_judge, names, happened))
        _raise_crash(again, len(happened))
        judged = [*(judged[n] for n in range(count) if n not in happened), *again]
    whole = _concluded(runner, items, weights, used, scanned, judged, doubts)
    torn = _torn(given, prepared)
    return whole._replace(overview=replace(whole.overview, torn=torn))


def _prepare(scratch: Path, item: tuple[int, Chunk]) -> Prepared:
    number, chunk = item
    return chunk_tasks.prepare(chunk, scratch / f"chunk-{number:06}.parquet")


def _scan(
    slice_of: Mapping[str, int],
    count: int,
    wanted: Collection[int],
    item: tuple[Chunk, Carried],
) -> tuple[Scanned, Iterator[tuple[int, bytes]]]:
    return chunk_tasks.scan(*item, slice_of, count, wanted)


def _judge(
    names: Sequence[frozenset[str]],
    happened: Mapping[int, frozenset[int]],
    number: int,
    parts: Sequence[bytes],
) -> Judged:
    return slice_task.judge(parts, names[number], happened.get(number, ()))


def _raise_crash(judged: Sequence[Judged | Exception], count: int) -> None:
    """Raise the first error of a slice; a slice that is missing is an error, too."""
    for each in judged:
        if isinstance(each, Exception):
            raise each
    if len(judged) != count:
        raise RuntimeError(f"{len(judged)} of {count} slices were judged")


def _proven_elsewhere(judged: Sequence[Judged]) -> dict[int, frozenset[int]]:
    """Return by slice the operations that are in doubt there, and proven in another slice: an
    operation happened as a whole."""
    proven = frozenset[int]().union(*(each.proven for each in judged))
    found = {number: each.unproven & proven for number, each in enumerate(judged)}
    return {number: ops for number, ops in found.items() if ops}


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


def _refuse_unreadable(path: Path, given: Sequence[Chunk], prepared: Sequence[Prepared]) -> None:
    for chunk, each in zip(given, prepared, strict=True):
        if isinstance(each.bad, str):
            raise BadHistory(each.bad)
        if each.bad is not None:
            line = _lines_before(chunk) + each.bad.line
            raise BadHistory(f"{path}, line {line}: {each.bad}")


def _lines_before(chunk: Chunk) -> int:
    """Return how many lines a file has before a chunk."""
    with Path(chunk.path).open("rb") as file:
        left, found = chunk.begin, 0
        while left and (text := file.read(min(left, 1 << 20))):
            found += text.count(b"\n")
            left -= len(text)
    return found


def _refuse_misfits(
    path: Path, broken: Refusal | None, scanned: Sequence[Scanned]
) -> tuple[str, ...]:
    """Return the doubts about completions; raise the error about the first event that cannot be
    judged, or else about the first completion that does not fit."""
    found = [each.broken for each in scanned if each.broken is not None]
    first = min((*found, *([] if broken is None else [broken])), default=None)
    if first is not None:
        raise BadHistory(history_file.place(first.event, first.row, path) + first.why)
    doubts = []
    for row, index, misfit in (each for one in scanned for each in one.misfits):
        if not misfit.is_doubt:
            raise BadHistory(history_file.place(index, row, path) + misfit.why)
        doubts.append(history_file.place(index, row, None) + misfit.why)
    return tuple(doubts)


def _concluded(
    runner: Runner,
    items: Sequence[tuple[Chunk, Carried]],
    weights: Mapping[str, int],
    used: Sequence[Prepared],
    scanned: Sequence[Scanned],
    judged: Sequence[Judged],
    doubts: tuple[str, ...],
) -> Whole:
    by_name = {name: report for each in judged for name, report in each.reports.items()}
    reports = {name: by_name[name] for name in weights if name in by_name}
    found = [f for report in reports.values() for f in report.found]
    strays = [f.value for f in found if f.anomaly == "phantom" and f.value is not None]
    search = partial(_sent, np.array(strays, dtype=np.int64))
    parts = runner.each(search, items) if strays else ()
    related = table_builder.build(Columns(slice_task.events_of(parts)))
    whole = history_kernels.judge(related, found)
    nemesis = Columns(packing.unpacked([each.nemesis for each in scanned]))
    ignored, unknown = Counter[str](), Counter[str]()
    for one in scanned:
        ignored.update(one.ignored)
    for each in used:
        unknown.update(each.unknown)
    times = zip(nemesis.index.tolist(), nemesis.time_ns.tolist(), strict=True)
    spans = {event: (time_ns, time_ns) for event, time_ns in times}
    spans |= {op: span for each in judged for op, span in each.spans.items()}
    spans |= slice_task.spans(related, {op for f in whole.found for op in f.ops} - spans.keys())
    overview = Overview(
        outcomes=Outcomes(*map(sum, zip(*(one.outcomes for one in scanned), strict=True))),
        counts=counts.total(each.counts for each in judged),
        times=_Times(spans),
        record_keys=_union(each.record_keys for each in judged),
        caught_up=_union(each.caught_up for each in judged),
        tried=_union(each.tried for each in judged),
        groups=0,
        groups_with_members=0,
        faults=facts.faults(nemesis),
        crashes=facts.crashes(nemesis),
        silences=facts.silences(nemesis),
        recovered=facts.recovered(nemesis),
        repeated=tuple(sorted((r for each in judged for r in each.repeated), key=_order(weights))),
        ignored=ignored,
        unknown=unknown,
        torn=None,
        doubts=doubts,
    )
    return Whole(reports, whole, overview, any(one.subscribes for one in scanned))


def _torn(given: Sequence[Chunk], prepared: Sequence[Prepared]) -> str | None:
    """Return what was left out at the end of the history, as one sentence."""
    for chunk, each in zip(given, prepared, strict=True):
        if isinstance(each.torn, int):
            return torn_line(_lines_before(chunk) + each.torn)
        if each.torn is not None:
            return each.torn
    return None


def _sent(values: I64, item: tuple[Chunk, Carried]) -> bytes:
    return chunk_tasks.sent(*item, values)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _order(weights: Mapping[str, int]) -> Callable[[Repeated], tuple[int, int]]:
    """Return the order of values by partition, as a history names them, and value."""
    number = {name: place for place, name in enumerate(weights)}
    return lambda each: (number[each.key], each.value)
