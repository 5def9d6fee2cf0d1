"""What coordinators of groups knew when they gave answers that a slice cannot judge alone."""

from collections.abc import Mapping

import numpy as np

from checkers.kernels.rows import UNKNOWN
from checkers.kernels.steps import FETCH, Steps
from checkers.tables import Tables

Knowledge = tuple[int, int, int]
"""What the coordinator knew, what the one before it knew, and when, as in
:class:`~checkers.kernels.steps.Steps`."""
Known = Mapping[tuple[int, str], Knowledge]
"""The knowledge behind the answers of some operations, by operation and group."""


def with_known(tables: Tables, known: Known | None) -> Steps:
    """Return the events of groups, with what is known of some answers."""
    steps = tables.steps
    if not known:
        return steps
    columns = [column.copy() for column in (steps.knows, steps.knew, steps.knew_ns)]
    ops = list({op for op, _ in known})
    for row in np.flatnonzero((steps.kind == FETCH) & np.isin(steps.op, ops)).tolist():
        group = int(steps.group[row])
        place = int(steps.op[row]), tables.groups[group].name if group != UNKNOWN else ""
        for column, number in zip(columns, known.get(place, ()), strict=False):
            column[row] = number
    knows, knew, knew_ns = columns
    return steps._replace(knows=knows, knew=knew, knew_ns=knew_ns)
