"""Builds findings about rows of a history: names instead of codes, and texts of transactions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from checkers.isolation.findings import Findings, Found, listed
from checkers.isolation.groups import Groups, first_reads
from checkers.isolation.transactions import History
from checkers.kernels.arrays import I64


class Describer:
    """Names the parts of one history."""

    def __init__(self, history: History) -> None:
        self._history = history

    def txn(self, row: int) -> int:
        """Return the transaction of a micro-operation."""
        return int(self._history.ops.txn[row])

    def key(self, row: int) -> Any:
        """Return the key of a micro-operation."""
        return self._history.names.key(int(self._history.ops.key[row]))

    def element(self, row: int) -> Any:
        """Return what a micro-operation wrote, or the register or last element that it read."""
        return self._history.names.element(int(self._history.ops.element[row]))

    def found(
        self, anomaly: str, txns: Sequence[int], why: str, row: int, values: Sequence[Any] = ()
    ) -> Found:
        """Return a finding about transactions, and the key of a micro-operation."""
        return Found(
            anomaly,
            tuple(self._history.txns.event[[*txns]].tolist()),
            tuple(map(self._history.describe, txns)),
            why,
            key=self.key(row),
            values=tuple(values),
        )


def lost_updates(history: History, groups: Groups, version: Sequence[I64]) -> Findings:
    """Return the lost updates: several transactions read the same version of a key, and wrote it.

    Args:
        groups: the micro-operations of ok transactions.
        version: columns that tell the versions of a key apart, by the rows of micro-operations.
    """
    found, describe, ops = Findings(), Describer(history), history.ops
    reads = groups.first[first_reads(ops, groups) & groups.any_write(ops)]
    order = np.lexsort([column[reads] for column in (*version, ops.key)])
    reads = reads[order]
    is_new = np.ones(len(reads), np.bool_)
    if len(reads):
        is_new[1:] = np.logical_or.reduce(
            [c[reads[1:]] != c[reads[:-1]] for c in (*version, ops.key)]
        )
    begins = np.flatnonzero(is_new)
    ends = np.append(begins, len(reads))[1:]
    several = np.flatnonzero(ends - begins > 1)

    def finding(at: int) -> Found:
        rows = np.sort(reads[begins[at] : ends[at]]).tolist()
        names = listed(f"T{n}" for n in range(1, len(rows) + 1))
        return describe.found(
            "lost-update",
            [describe.txn(row) for row in rows],
            f"{names} read the same version of {describe.key(rows[0])}, and each of them then"
            " wrote it: all but one of these updates are lost.",
            rows[0],
            [describe.element(rows[0])],
        )

    found.add_rows("lost-update", several.tolist(), finding)
    return found
