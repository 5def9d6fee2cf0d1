"""What executors do with a partition that has much of a history: they check ranges of its offsets.

Most records of most partitions are in settled blocks (:mod:`checkers.kernels.settled`). Each range
is checked by one task. Another one puts together what is known of all ranges of a partition, and
decides which records have to be judged (:mod:`checkers.distributed.reduction`). These are a slice
as any other. Of the rest, only a few columns are needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from checkers import consumers, counts, facts, group_events, producers
from checkers.columns import Columns, spread
from checkers.distributed import blocks, chunk_tasks, figures, packing, reduction, slice_task
from checkers.distributed.blocks import Block, RangeRows, places
from checkers.distributed.borders import Carried
from checkers.distributed.chunk_tasks import Cut
from checkers.distributed.chunks import Chunk
from checkers.distributed.figures import Left
from checkers.distributed.kept import NOTHING
from checkers.distributed.reduction import Reduced, TooMany
from checkers.distributed.slice_task import Beyond, Judged, Outline
from checkers.kernels import key
from checkers.kernels.arrays import first_rows
from checkers.kernels.checker_runs import CheckerRunner, GaveUp
from checkers.kernels.compact import Operations
from checkers.kernels.found import Found
from checkers.kernels.key import Report
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, UNKNOWN, Polls, Resets, Sends

WIDTH = 1 << 18
"""How many offsets a range has."""
RANGES = 1 << 16
"""The most ranges of a partition; the last one has the records without a known offset."""
_NONE = np.zeros(0, dtype=np.int64)
_NO_RESETS = Resets(_NONE, _NONE)
_TYPES = {"outcome": np.int8, "txn": np.bool_, "proven": np.bool_}
_NO_POLLS = Polls(*(np.zeros(0, _TYPES.get(name, np.int64)) for name in Polls._fields))
_NO_SENDS = Sends(*(np.zeros(0, _TYPES.get(name, np.int64)) for name in Sends._fields))


class Asked(NamedTuple):
    """What is known of partitions that are checked in ranges, each in its place."""

    names: Sequence[str]
    outlines: Sequence[tuple[Judged, Outline]]
    healed_ns: int | None
    """When the last fault was healed, 0 without any; ``None`` if one was not."""


class Answer(NamedTuple):
    """What is known of a partition whose ranges were checked."""

    number: int
    reduced: Reduced | TooMany | None
    """What has to be judged; ``None`` if the partition cannot be checked in ranges."""
    judged: Judged | None = None
    """What was found, if nothing has to be judged."""


def cut(
    names: Sequence[str], item: tuple[Chunk, Carried]
) -> tuple[None, Iterator[tuple[int, bytes]]]:
    """Yield the rows of some partitions in a chunk, by number of partition and range."""
    columns, operations = chunk_tasks.operations(*item)
    return None, (
        (number * RANGES + range_, packing.dumped(rows))
        for number, range_, rows in ranges(names, columns, operations)
    )


def ranges(
    names: Sequence[str], columns: Columns, operations: Operations
) -> Iterator[tuple[int, int, RangeRows | None]]:
    """Yield the rows of each partition and range; ``None`` if the partition has events that cannot
    be judged in ranges."""
    sends, sent_rows = producers.sends(columns, operations)
    waits = producers.waits(columns, sends, sent_rows)
    odd = np.zeros(len(sends), dtype=np.bool_)
    if waits is not None:
        odd = np.maximum(*waits) >= sends.op
    polls = consumers.polls(columns, operations)
    special = facts.compacted(columns) | facts.deleted(
        columns, operations.last[operations.outcome != FAIL]
    )
    rows = np.flatnonzero(columns.is_op(*group_events.KINDS))
    records, _ = spread(columns.record_end[rows], columns.record_end[rows + 1])
    special |= {*columns.op_key[rows].tolist(), *columns.record_key[records].tolist()}
    for number, name in enumerate(names):
        if name not in columns.keys:
            continue
        code = columns.keys.index(name)
        mine, theirs = np.flatnonzero(sends.key == code), np.flatnonzero(polls.key == code)
        sent, polled = sends.where(mine), polls.where(theirs)
        if code in special or _is_far(sent) or _is_far(polled):
            yield number, 0, None
            continue
        asked = operations.event_index[operations.first[polls.operation[theirs]]]
        every = RangeRows(sent, places(sent.op), odd[mine], polled, places(polled.op), asked)
        for range_, found in _by_range(every):
            yield number, range_ % RANGES, found


def _is_far(rows: Sends | Polls) -> bool:
    return bool((rows.offset >= (RANGES - 1) * WIDTH).any())


def _by_range(rows: RangeRows) -> Iterator[tuple[int, RangeRows]]:
    """Yield the rows of each range; -1 is for those without a known offset."""
    of_sends, of_polls = (
        np.where(r.offset == UNKNOWN, -1, r.offset // WIDTH) for r in (rows.sends, rows.polls)
    )
    for range_ in np.union1d(of_sends, of_polls).tolist():
        mine, theirs = np.flatnonzero(of_sends == range_), np.flatnonzero(of_polls == range_)
        yield range_, rows.where(mine, theirs)


def check(number: int, parts: Sequence[bytes]) -> tuple[None, Iterator[tuple[int, bytes]]]:
    """Check a range; what is found goes to the task of its partition."""
    partition, range_ = divmod(number, RANGES)
    loaded = [packing.loaded(part) for part in parts]
    found = None
    if None not in loaded:
        rows = blocks.joined(loaded)
        begin = -1 if range_ == RANGES - 1 else range_ * WIDTH
        of_range = blocks.of_range(begin, WIDTH, rows)
        is_settled = all(block.is_settled for block in of_range) and blocks.are_apart(of_range)
        found = of_range, figures.left(rows, NOTHING, None) if is_settled else None
    return None, iter([(partition, packing.dumped(found))])


def decide(asked: Asked, number: int, parts: Sequence[bytes]) -> Answer:
    """Decide what has to be judged of a partition, by its ranges."""
    loaded: list[tuple[list[Block], Left | None] | None] = [packing.loaded(part) for part in parts]
    known = [each for each in loaded if each is not None]
    if len(known) < len(loaded):
        return Answer(number, None)
    every = sorted((block for of_range, _ in known for block in of_range), key=lambda b: b.begin)
    outlined, outline = asked.outlines[number]
    reduced = reduction.reduced(every, outline, asked.healed_ns)
    lefts = [found for _, found in known if found is not None]
    if isinstance(reduced, TooMany) or reduced.is_whole or len(lefts) < len(known):
        return Answer(number, reduced)
    worst, is_certain = figures.latest(lefts, reduced.began_ns)
    if not is_certain:
        return Answer(number, reduced)
    acked = max(block.acked for block in every)
    name, left = asked.names[number], figures.joined(lefts, worst)
    log = Log(name, _NO_SENDS, _NO_POLLS, _NO_RESETS, faults=outline.faults)
    mine = frozenset((name,))
    judged = outlined._replace(
        reports={name: figures.report(key.judge(log), log, left)},
        counts=counts.total((outlined.counts, left.counts(asked.healed_ns))),
        record_keys=mine,
        caught_up=mine if outline.caught_up(acked) else frozenset(),
        tried=outlined.tried & mine,
    )
    return Answer(number, reduced, judged)


class Rest(NamedTuple):
    """How the partitions are judged of which something has to be judged."""

    names: Sequence[str]
    reduced: Mapping[int, Reduced]
    """By number of partition."""
    cut: Cut
    beyond: Mapping[int, Beyond]
    """What other slices have shown, by number of partition."""
    healed_ns: int | None


def cut_rest(rest: Rest, item: tuple[Chunk, Carried]) -> tuple[None, Iterator[tuple[int, bytes]]]:
    """Yield what is judged of each partition in a chunk, and the rows of its other records."""
    columns, operations, slices = chunk_tasks.both(*item, rest.cut, [*rest.reduced])
    beyond = len(rest.names) * RANGES

    def parts() -> Iterator[tuple[int, bytes]]:
        for number, events in slices:
            yield beyond + number, events
        for partition, range_, rows in ranges(rest.names, columns, operations):
            reduced = rest.reduced.get(partition)
            if reduced is not None and rows is not None:
                sent, polled = (
                    np.flatnonzero(~reduced.kept.has(r.offset)) for r in (rows.sends, rows.polls)
                )
                if len(sent) or len(polled):
                    left = rows.where(sent, polled)
                    yield partition * RANGES + range_, packing.dumped(left)

    return None, parts()


def split_rest(
    rest: Rest, number: int, parts: Sequence[bytes]
) -> tuple[None, Iterator[tuple[int, bytes]]]:
    """Reduce the records of a range that are not judged to what is needed of them."""
    partition, _ = divmod(number, RANGES)
    if partition >= len(rest.names):
        slice_ = number - len(rest.names) * RANGES
        return None, iter([(slice_, packing.dumped([*parts]))])
    rows = blocks.joined([packing.loaded(part) for part in parts])
    reduced = rest.reduced[partition]
    left = figures.left(rows, reduced.kept, reduced.began_ns)
    return None, iter([(partition, packing.dumped(left))])


class Judgement(NamedTuple):
    """What was found in a partition of which not all records were judged."""

    number: int
    judged: Judged
    began_ns: dict[int, int]
    """When the first record was delivered to each process, where that is other than was
    believed."""


def judge_rest(rest: Rest, number: int, parts: Sequence[bytes]) -> Judgement:
    """Judge a partition by the records that have to be judged, and what is known of the others."""
    loaded = [packing.loaded(part) for part in parts]
    lefts = [each for each in loaded if isinstance(each, Left)]
    events = next(each for each in loaded if not isinstance(each, Left))
    began_ns, name = rest.reduced[number].began_ns, rest.names[number]
    left = figures.joined(lefts, *figures.latest(lefts, began_ns)[:1])
    del loaded, lefts
    others = dict[int, int]()

    def amended(log: Log, report: Report) -> Report:
        process, first = first_rows(log.polls.process)
        seen = zip(process.tolist(), log.polls.end_ns[first].tolist(), strict=True)
        others.update((each, at) for each, at in seen if began_ns.get(each, at) != at)
        return figures.report(report, log, left)

    judged = slice_task.judge(events, (name,), rest.beyond.get(number, Beyond()), amended)
    if name not in judged.reports and not judged.repeated:  # no record that is left out is alone
        raise RuntimeError(f"no record of {name} was judged")
    added = counts.total((judged.counts, left.counts(rest.healed_ns)))
    return Judgement(number, judged._replace(counts=added), others)


def given_up(name: str, rows: int, outlined: Judged) -> Judged:
    """Return what is known of a partition that has too many operations to be judged."""
    runner, mine = CheckerRunner(), frozenset((name,))

    def give_up() -> list[Found]:
        raise GaveUp(
            f"too many operations of {name} would have to be judged together: {rows:,} sends and"
            " reads"
        )

    for checker in (*key.BASIC, *key.DERIVED):
        runner.run(checker, give_up)
    return outlined._replace(
        reports={name: Report([], runner.checker_runs)},
        record_keys=mine,
        tried=outlined.tried & mine,
    )
