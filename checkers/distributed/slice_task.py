"""What an executor does with a slice: it puts its chunks together and judges its partitions."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from checkers import arrow, counts, overview, table_builder
from checkers.columns import Columns, only
from checkers.counts import Counts
from checkers.distributed import coordinators, packing
from checkers.distributed.coordinators import Known
from checkers.kernels import commits, key, suspects
from checkers.kernels.faults import FaultInterval
from checkers.kernels.key import Report
from checkers.kernels.log import Log
from checkers.kernels.rows import INFO, CatchUp, Resets
from checkers.kernels.steps import COMMIT
from checkers.kernels.suspects import Open
from checkers.overview import Repeated
from checkers.tables import Tables


class Judged(NamedTuple):
    """What is known of the partitions of a slice."""

    reports: dict[str, Report]
    counts: Counts
    record_keys: frozenset[str]
    caught_up: frozenset[str]
    tried: frozenset[str]
    repeated: tuple[Repeated, ...]
    spans: dict[int, tuple[int, int]]
    """From when to when the operations of findings lasted, by the events that end them."""
    proven: frozenset[int]
    """The operations in doubt of which a record was read, by their last events."""
    unproven: frozenset[int]
    """The other operations in doubt that sent records."""
    overdue: Open
    """The transactions that were open at their end or later."""
    groups: tuple[int, int]
    """The number of groups in the history, and of those with members."""
    unexplained: frozenset[tuple[int, int]]
    """Operation and process of the fetches of committed offsets that no commit explains."""


class Beyond(NamedTuple):
    """What is known of a slice from other slices."""

    happened: Collection[int] = ()
    """The operations in doubt that others have proven."""
    known: Known | None = None
    """What coordinators knew that gave some answers."""


_NOTHING = Beyond()


class Outline(NamedTuple):
    """What a slice without the records of its partition shows."""

    catch_ups: tuple[tuple[CatchUp, int], ...]
    """Those that reached the end of the partition, each with the index of its invocation."""
    resets: Resets
    """The assignments that leave out the partition."""
    faults: tuple[FaultInterval, ...]

    def caught_up(self, acked: int) -> CatchUp | None:
        """Return the last catch-up that was invoked after the last acknowledgement ``acked``."""
        later = [catch_up for catch_up, invoked in self.catch_ups if invoked > acked]
        return later[-1] if later else None


def outline(parts: Sequence[bytes], name: str) -> tuple[Judged, Outline]:
    """Return what a slice without the records of its only partition shows."""
    tables = table_builder.build(Columns(events_of(parts)))
    reached = [
        (catch_up, invoked) for _, catch_up, invoked, is_reached in tables.catch_ups if is_reached
    ]
    tried = frozenset(tables.keys[number] for number, *_ in tables.catch_ups)
    code = tables.keys.index(name) if name in tables.keys else -1
    process, event = tables.assignments
    _, named, key = tables.assigned
    is_reset = ~np.isin(event, named[key == code])
    return judge(parts, ())._replace(tried=tried), Outline(
        () if tables.recovered is False else tuple(reached),
        Resets(process[is_reset], event[is_reset]),
        tables.intervals,
    )


def judge(
    parts: Sequence[bytes],
    names: Collection[str],
    beyond: Beyond = _NOTHING,
    amended: Callable[[Log, Report], Report] | None = None,
) -> Judged:
    """Judge the partitions with these names.

    ``parts`` are the slices of the chunks, in order; ``beyond`` is what other slices have shown.
    ``amended`` completes a report, given the log that was judged.
    """
    tables = table_builder.build(Columns(events_of(parts)), beyond.happened)
    tables = replace(tables, steps=coordinators.with_known(tables, beyond.known))
    mine = [each for each in tables.active() if each.name in names]
    reports, unexplained = {}, set[tuple[int, int]]()
    for log in tables.logs(mine):
        report = key.judge(log)
        reports[log.key] = report if amended is None else amended(log, report)
        if any(found.group is not None for found in report.found):
            unexplained.update(commits.unexplained(log))
    proven, unproven = _in_doubt(tables)
    return Judged(
        reports,
        counts.of(tables),
        overview.record_keys(tables) & {*names},
        frozenset(tables.keys[number] for number in tables.caught_up()) & {*names},
        frozenset(tables.keys[number] for number, *_ in tables.catch_ups) & {*names},
        overview.repeated(tables),
        spans(tables, {op for report in reports.values() for f in report.found for op in f.ops}),
        proven,
        unproven,
        suspects.overdue(tables),
        (len(tables.groups), sum(bool(group.members) for group in tables.groups)),
        frozenset(unexplained),
    )


def _in_doubt(tables: Tables) -> tuple[frozenset[int], frozenset[int]]:
    """Return the operations in doubt that are proven, and those that are not."""
    sends = tables.sends
    in_doubt = sends.outcome == INFO
    proven, unproven = (
        frozenset(sends.op[in_doubt & rows].tolist()) for rows in (sends.proven, ~sends.proven)
    )
    steps = tables.steps
    commits_in_doubt = (steps.kind == COMMIT) & (steps.outcome == INFO) & ~steps.proven
    return proven, unproven.union(steps.op[commits_in_doubt].tolist())


def events_of(parts: Sequence[bytes]) -> pa.Table:
    """Return packed events by their indices: an operation over a border comes with the chunk of its
    end, and its invocation may be older than the events before it."""
    events = packing.unpacked(parts)
    index = arrow.numbers(only(events["index"]))
    if (index[1:] > index[:-1]).all():
        return events
    return packing.joined([events.take(arrow.column(np.argsort(index, kind="stable")))])


def spans(tables: Tables, ops: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return from when to when operations lasted, by the events that end them."""
    return {op: tables.span((op,)) for op in sorted(ops)}
