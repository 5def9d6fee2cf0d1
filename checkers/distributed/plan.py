"""The plan of a distributed judgement: passes over the chunks of a history, and over its slices.

1. Every chunk is read, typed, and reports its border.
2. Every chunk is checked and cut into slices, and every slice is judged.
3. Where there are transactions, slices report their dependencies, which are searched in windows.
4. Operations of which a finding needs more than a slice has are looked up in the chunks.

The process that follows the plan holds counts, findings and names, but no chunk and no slice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from checkers import facts, fault_intervals
from checkers.columns import Columns
from checkers.distributed import (
    borders,
    chunk_tasks,
    conclusion,
    exactly_once,
    packing,
    refusals,
    transactions,
    uses,
)
from checkers.distributed.borders import Carried
from checkers.distributed.chunk_tasks import Prepared
from checkers.distributed.chunks import Chunk
from checkers.distributed.conclusion import Passes
from checkers.distributed.file_source import FileSource
from checkers.distributed.runner import Runner
from checkers.distributed.slicing import LARGE_ROWS, Slicing
from checkers.distributed.source import Source
from checkers.kernels.faults import healed_ns
from checkers.kernels.found import Found
from checkers.kernels.history import History
from checkers.kernels.history_kernels import Kernel
from checkers.kernels.rows import I64
from checkers.overview import Whole
from model.history import BadHistory

STAGES, STAGES_OF_TRANSACTIONS, STAGES_OF_RANGES = 4, 7, 6
"""How many stages a plan usually has, and how many more where a partition is large."""


def judge(path: Path, given: Sequence[Chunk], runner: Runner, scratch: Path) -> Whole:
    """Judge a file that was cut into chunks.

    ``scratch`` is a folder that all tasks can use. Raises :class:`~model.history.BadHistory` as the
    reader of whole histories does.
    """
    return of_source(FileSource(path, given, scratch), runner)


def of_source(source: Source, runner: Runner) -> Whole:
    """Judge a history wherever its chunks are; see :func:`judge`."""
    try:
        return _judged(source, runner)
    finally:
        runner.forget()


def _judged(source: Source, runner: Runner) -> Whole:
    runner.expect(STAGES)
    prepared = source.prepared(runner)
    used = [(each, each.border) for each in prepared if each.border is not None]
    if not used:
        raise BadHistory(f"{source.name} has no events")
    joined = borders.joined([border for _, border in used])
    items = [(each.chunk, carried) for (each, _), carried in zip(used, joined.carried, strict=True)]
    nemesis = Columns(packing.unpacked([each.nemesis for each, _ in used]))
    faults = tuple(fault_intervals.interval(fault) for fault in facts.faults(nemesis))
    weights = _weights(prepared)
    large = _large(weights)
    more = STAGES_OF_RANGES if large else 0
    runner.expect(STAGES + more)
    slicing = Slicing(runner, items, weights, faults, large, _moments_ns(prepared))
    if any(each.has_transactions for each in prepared):
        slicing.keep()
    scanned, judged = slicing.judged()
    doubts = refusals.misfits(source, joined.broken, scanned)
    judged, happened = slicing.with_proofs(slicing.with_ranges(judged))
    judged = slicing.with_answers(judged, happened)
    passes = Passes(
        prepared=prepared,
        scanned=scanned,
        judged=judged,
        uses=uses.joined([one.uses for one in scanned]),
        names=list(slicing.weights),
        nemesis=nemesis,
        healed_ns=healed_ns([fault.to_ns for fault in faults]),
        torn=source.torn(prepared),
        doubts=doubts,
    )
    across = transactions.Across()
    if passes.uses.transactions:
        runner.expect(STAGES_OF_TRANSACTIONS + more)
        events = used[0][1].first[0], used[-1][1].last[0]
        across = transactions.across(slicing, passes, happened, events)
    eos = exactly_once.across(slicing, passes, happened)

    def kernels(related: History) -> Mapping[str, Kernel]:
        def judged(history: History) -> Iterable[Found]:
            return eos.kernel(history, is_clean=history is not related)

        return {**across.kernels(related), "outputs": judged}

    ops = np.union1d(across.ops, eos.ops)
    return conclusion.concluded(passes, kernels, _related(runner, items, passes, ops))


def _weights(prepared: Sequence[Prepared]) -> Counter[str]:
    weights: Counter[str] = Counter()
    for each in prepared:
        weights.update(each.weights)
    return weights


def _moments_ns(prepared: Sequence[Prepared]) -> list[int] | None:
    """Return when frozen processes began to act; ``None`` in a history without groups."""
    if not any(each.has_groups for each in prepared):
        return None
    return [moment for each in prepared for moment in each.moments_ns]


def _large(weights: Mapping[str, int]) -> list[str]:
    """Return the partitions that are checked in ranges."""
    return [name for name, weight in weights.items() if weight >= LARGE_ROWS]


def _related(
    runner: Runner, items: Sequence[tuple[Chunk, Carried]], passes: Passes, ops: I64
) -> Sequence[bytes]:
    """Return the operations of all chunks that findings need whole, packed: those named, and those
    that sent a record which was read from another partition."""
    strays = [f.value for f in passes.found if f.anomaly == "phantom" and f.value is not None]
    if not strays and not len(ops):
        return ()
    return runner.each(partial(_lookup, np.array(strays, dtype=np.int64), ops), items)


def _lookup(values: I64, ops: I64, item: tuple[Chunk, Carried]) -> bytes:
    return chunk_tasks.related(*item, values, ops)
