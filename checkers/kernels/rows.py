"""The rows of one partition, as columns: what was sent and polled, and where readers began."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from checkers.kernels.arrays import changes, last_before

I64 = NDArray[np.int64]
I8 = NDArray[np.int8]
Bools = NDArray[np.bool_]

OK, FAIL, INFO = 0, 1, 2
"""Outcomes. An invocation that was never completed is INFO: it may have happened."""

UNKNOWN = -1
"""The offset of a record that no broker reported."""


class Rows:
    """Columns of equal length; a mixin of named tuples."""

    def where(self, mask: NDArray[Any]) -> Self:
        """Return the rows that a mask or an array of row numbers selects. A mask that selects all
        of them copies nothing."""
        rows = mask
        if mask.dtype == np.bool_:
            rows = mask.nonzero()[0]
            if len(rows) == len(mask):
                return self
        return self._make([column.take(rows) for column in self])  # type: ignore[attr-defined,no-any-return]


class _Sends(NamedTuple):
    value: I64
    offset: I64
    """The offset in the acknowledgement; UNKNOWN if the client did not receive one."""
    op: I64
    """Index of the completing event, or of the invocation when there is none."""
    invoked: I64
    """Index of the invocation."""
    process: I64
    outcome: I8
    txn: Bools
    proven: Bools
    """Whether the operation is INFO, and a value that it sent was read: then it did happen."""
    start_ns: I64
    end_ns: I64


class Sends(Rows, _Sends):
    """One row per record that a client tried to write, in the order of ``op`` and program order."""

    __slots__ = ()

    @property
    def accountable(self) -> Bools:
        """Whether each row must be in the log: acknowledged, or proven to have happened."""
        rows: Bools = (self.outcome == OK) | self.proven
        return rows


class _Polls(NamedTuple):
    value: I64
    offset: I64
    op: I64
    process: I64
    outcome: I8
    txn: Bools
    end_ns: I64


class Polls(Rows, _Polls):
    """One row per record delivered, in the order of delivery; polls of every outcome deliver."""

    __slots__ = ()


class _Resets(NamedTuple):
    process: I64
    op: I64


class Resets(Rows, _Resets):
    """The events at which a process lost its position in the partition, because an assignment did
    not include the partition. Of several resets without a poll between them, some may be
    missing."""

    __slots__ = ()

    def before(self, process: I64, op: I64) -> I64:
        """Return for each process and event the last reset before it; UNKNOWN if there is none."""
        row = last_before(self.process, self.op, process, op)
        return np.where(row < 0, UNKNOWN, self.op[row]) if len(self.op) else row


class _Begins(NamedTuple):
    process: I64
    invoked: I64


class Begins(Rows, _Begins):
    """One row per assignment of the partition to a process. ``invoked`` is the invocation of the
    assignment, the earliest event at which the process may have looked up the log start."""

    __slots__ = ()

    def since(self, process: I64, event: I64) -> I64:
        """Return the first assignment of each process at its event or later; UNKNOWN if there is
        none."""
        row = last_before(self.process, -self.invoked, process, 1 - event)
        return np.where(row < 0, UNKNOWN, self.invoked[row]) if len(self.invoked) else row


NO_BEGINS = Begins(np.zeros(0, np.int64), np.zeros(0, np.int64))


class CatchUp(NamedTuple):
    """The completion of a ``catch-up``, which compares the position of a reader in a partition with
    the high watermark. :attr:`Log.caught_up` is the last catch-up that reached the high watermark
    and was invoked after the last acknowledgement. Its reader began at the log start, and could
    therefore read every acknowledged record."""

    op: int
    process: int
    position: int
    time_ns: int


def groups(column: I64) -> tuple[I64, I64]:
    """Return begin and end (exclusive) of each run of equal values in a sorted column."""
    begins = np.flatnonzero(changes(column))
    ends = np.empty_like(begins)
    ends[:-1] = begins[1:]
    ends[-1:] = len(column)
    return begins, ends
