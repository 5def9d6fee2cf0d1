"""What an executor does to learn what coordinators knew, of which a slice shows only a part.

A fetch that no order of the commits explains may have been answered by a former coordinator. What
that one knew follows from its answers about all partitions, which are in several slices. So slices
list the answers to the processes that made such fetches, and these are followed by process.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from checkers import consumers, group_answers, group_events, table_builder
from checkers.columns import Columns
from checkers.distributed import packing, slice_task
from checkers.distributed.coordinators import Known

SHARES = 64
"""The number of tasks that follow processes."""


def answers(
    processes: Collection[int], number: int, parts: Sequence[bytes]
) -> tuple[None, Iterator[tuple[int, bytes]]]:
    """Return the answers in a slice to some processes, by number of their share."""
    columns = Columns(slice_task.events_of(parts))
    operations = table_builder.operations_of(columns)
    reports = consumers.group_reports(columns, operations)
    if reports is None:
        return None, iter(())
    ops = consumers.group_ops(operations, reports)
    found = group_events.answers(ops, reports.micro, reports.setup, columns.group_names)
    found = found.where(np.isin(found.process, list(processes)))
    share, names = found.process % SHARES, columns.group_names
    return None, (
        (of, packing.dumped((names, found.where(share == of)))) for of in np.unique(share).tolist()
    )


def knowledge(wanted: Collection[int], number: int, parts: Sequence[bytes]) -> Known:
    """Return the :data:`Known` of the wanted operations of a share."""
    given = [packing.loaded(part) for part in parts]
    code = {name: n for n, name in enumerate(dict.fromkeys(n for of, _ in given for n in of))}
    numbered = [
        rows._replace(group=np.array([code[name] for name in of], dtype=np.int64)[rows.group])
        for of, rows in given
    ]
    rows = group_answers.joined(numbered)
    known = group_answers.knowledge(rows)
    names = list(code)
    asked = np.flatnonzero(rows.is_fetch & np.isin(rows.op, list(wanted)))
    columns = [column[asked].tolist() for column in (rows.op, rows.group, *known)]
    return {
        (op, names[group]): (knows, knew, knew_ns)
        for op, group, knows, knew, knew_ns in zip(*columns, strict=True)
    }
