"""The rows of all partitions in little memory: what an operation says once is stored once.

A row holds the index of its operation, and the other columns are made from it when they are first
used. Most histories need few of them: kernels for a partition get its rows by ``where``.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from checkers.kernels.arrays import I32
from checkers.kernels.rows import I8, I64, OK, Bools, Polls, Sends


@dataclass(frozen=True)
class Operations:
    """One row per operation of a client, in the order of their last events."""

    event_index: I64
    """The index of each event, of any operation."""
    event_ns: I64
    first: I32
    """Row of the first event of each operation."""
    last: I32
    """Row of the last event of each operation: the completion, if there is one."""
    process: I32
    f: tuple[str, ...]
    f_code: I32
    outcome: I8
    completed: Bools
    txn: Bools

    @cached_property
    def op(self) -> I64:
        """Index of the last event."""
        return self.index_of(self.last)

    @property
    def invoked(self) -> I64:
        """Index of the first event."""
        return self.index_of(self.first)

    @cached_property
    def _first_index(self) -> int | None:
        """The index of the first event, if the indices of all events count from it."""
        index = self.event_index
        if not len(index) or int(index[-1]) - int(index[0]) != len(index) - 1:
            return None  # they increase, so that one is missing
        return int(index[0])

    def index_of(self, events: I32) -> I64:
        """Return the indices of events, given their rows."""
        if self._first_index is None:
            return self.event_index.take(events)
        return np.add(events, self._first_index, dtype=np.int64)

    @property
    def start_ns(self) -> I64:
        """Time of the first event."""
        return self.event_ns[self.first]

    @property
    def end_ns(self) -> I64:
        """Time of the last event."""
        return self.event_ns[self.last]

    def only(self, rows: Bools) -> "Operations":
        """Return some of the operations."""
        return replace(
            self,
            first=self.first[rows],
            last=self.last[rows],
            process=self.process[rows],
            f_code=self.f_code[rows],
            outcome=self.outcome[rows],
            completed=self.completed[rows],
            txn=self.txn[rows],
        )

    def of_events(self) -> I64:
        """Return the operation of each event; -1 for the events of the nemesis."""
        found = np.full(len(self.event_index), -1)
        for rows in (self.first, self.last):
            found[rows] = np.arange(len(rows))
        return found


@dataclass(frozen=True)
class _Records:
    """Records with the operations that report them."""

    operations: Operations
    operation: I32
    """The index of each row's operation."""
    key: I32
    value: I64
    offset: I64

    def __len__(self) -> int:
        return len(self.value)

    @cached_property
    def op(self) -> I64:
        """Index of the operation's last event, as in :class:`~checkers.kernels.rows.Sends` and
        ``Polls``, like the other columns."""
        return self.operations.index_of(self.operations.last.take(self.operation))

    @cached_property
    def process(self) -> I64:
        return self.operations.process.take(self.operation).astype(np.int64)

    @cached_property
    def txn(self) -> Bools:
        return self.operations.txn.take(self.operation)

    @cached_property
    def end_ns(self) -> I64:
        return self.operations.event_ns.take(self.operations.last.take(self.operation))


@dataclass(frozen=True)
class AllSends(_Records):
    """The :class:`~checkers.kernels.rows.Sends` of all partitions together."""

    outcome: I8
    proven: Bools

    @cached_property
    def invoked(self) -> I64:
        return self.operations.index_of(self.operations.first.take(self.operation))

    @cached_property
    def start_ns(self) -> I64:
        return self.operations.event_ns.take(self.operations.first.take(self.operation))

    @property
    def accountable(self) -> Bools:
        """Whether each row must be in the log: acknowledged, or proven to have happened."""
        rows: Bools = (self.outcome == OK) | self.proven
        return rows

    def only(self, rows: Bools) -> "AllSends":
        """Return some of the rows."""
        return AllSends(
            self.operations,
            self.operation[rows],
            self.key[rows],
            self.value[rows],
            self.offset[rows],
            self.outcome[rows],
            self.proven[rows],
        )

    def where(self, rows: I64 | I32) -> Sends:
        """Return some of the rows, by their numbers, with all their columns."""
        operation, operations = self.operation.take(rows), self.operations
        first, last = operations.first.take(operation), operations.last.take(operation)
        return Sends(
            value=self.value.take(rows),
            offset=self.offset.take(rows),
            op=operations.index_of(last),
            invoked=operations.index_of(first),
            process=operations.process.take(operation).astype(np.int64),
            outcome=self.outcome.take(rows),
            txn=operations.txn.take(operation),
            proven=self.proven.take(rows),
            start_ns=operations.event_ns.take(first),
            end_ns=operations.event_ns.take(last),
        )


@dataclass(frozen=True)
class AllPolls(_Records):
    """The :class:`~checkers.kernels.rows.Polls` of all partitions together."""

    @cached_property
    def outcome(self) -> I8:
        return self.operations.outcome[self.operation]

    def only(self, rows: Bools) -> "AllPolls":
        """Return some of the rows."""
        return AllPolls(
            self.operations,
            self.operation[rows],
            self.key[rows],
            self.value[rows],
            self.offset[rows],
        )

    def where(self, rows: I64 | I32) -> Polls:
        """Return some of the rows, by their numbers, with all their columns."""
        operation, operations = self.operation.take(rows), self.operations
        last = operations.last.take(operation)
        return Polls(
            value=self.value.take(rows),
            offset=self.offset.take(rows),
            op=operations.index_of(last),
            process=operations.process.take(operation).astype(np.int64),
            outcome=operations.outcome.take(operation),
            txn=operations.txn.take(operation),
            end_ns=operations.event_ns.take(last),
        )
