"""The tables that checkers read: a whole history, split by partition on demand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from checkers import fault_intervals, logs, positions
from checkers.columns import Rows
from checkers.facts import Crash, Fault, Silence
from checkers.kernels.arrays import changes
from checkers.kernels.compact import Operations
from checkers.kernels.faults import FaultInterval
from checkers.kernels.history import History
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, CatchUp, Resets
from checkers.kernels.steps import ASSIGNED, LOST, REVOKED


@dataclass(frozen=True)
class Tables(History):
    """A whole history, ready for checkers."""

    operations: Operations
    assigned: tuple[I64, I64, I64]
    """Process, event and partition of what an assignment kept or added."""
    assignments: tuple[I64, I64]
    """Process and event of each assignment."""
    catch_ups: tuple[tuple[int, CatchUp, int, bool], ...]
    """Partition, catch-up, index of its invocation, and success of every attempt."""
    faults: tuple[Fault, ...]
    crashes: tuple[Crash, ...]
    silences: tuple[Silence, ...]
    compacted: frozenset[int]
    """Partitions of which only the last record of each record key need stay."""
    deleted: frozenset[int]
    """Partitions of topics that were deleted, or may have been."""
    recovered: bool | None
    """Whether the cluster was whole before the final reads; ``None`` if the history does not
    say."""
    ignored: Mapping[str, int]
    """How many operations and micro-operations of clients have a name that no checker knows."""
    unknown: Mapping[str, int]
    """How many events have a field that no checker knows, by its name."""
    torn: str | None
    """What was left out because the writer of the file was interrupted."""
    doubts: tuple[str, ...]
    """Acknowledgements of other values than were sent, a sentence each."""

    @property
    def active_keys(self) -> list[int]:
        """The partitions of which a client tried to write or read something, or to commit an
        offset."""
        return self._keys_in(self.sends.key, self.polls.key, self.step_key)

    @property
    def record_keys(self) -> list[int]:
        """The partitions of which a client tried to write or read something."""
        return self._keys_in(self.sends.key, self.polls.key)

    def _keys_in(self, *columns: Rows) -> list[int]:
        rows = (np.bincount(key, minlength=len(self.keys)) for key in columns)
        used: list[int] = np.flatnonzero(sum(rows)).tolist()
        return used

    @property
    def intervals(self) -> tuple[FaultInterval, ...]:
        """When each fault was active, and what it may have misled."""
        return tuple(fault_intervals.interval(fault) for fault in self.faults)

    def caught_up(self) -> dict[int, CatchUp]:
        """Return for each partition the last catch-up that was invoked after all acknowledgements.

        There are none in a cluster that had not recovered: the log end that it reports may not be
        the true one.
        """
        return self._caught_up

    @cached_property
    def _caught_up(self) -> dict[int, CatchUp]:
        if self.recovered is False:
            return {}
        acked = np.flatnonzero(self.sends.outcome == OK)
        row = np.full(len(self.keys), -1)
        row[self.sends.key.take(acked)] = acked  # sends are in the order of their operations
        last = np.full(len(row), -1)
        last[row >= 0] = self.sends.where(row[row >= 0]).op
        return {
            key: catch_up
            for key, catch_up, invoked, reached in self.catch_ups
            if reached and invoked > last[key]
        }

    def key_rows(self) -> logs.Rows:
        """Return the rows of all partitions."""
        return logs.Rows(
            sends=(self.sends, self.sends.key),
            polls=(self.polls, self.polls.key),
            steps=(self.steps, self.step_key),
            resets=self._resets(),
            begins=positions.begins(self.assigned, (self.operations.op, self.operations.invoked)),
        )

    def active(self) -> list[logs.Key]:
        """Return the active partitions, with what is known of each."""
        caught_up, faults = self.caught_up(), self.intervals
        return [
            logs.Key(
                number=key,
                name=self.keys[key],
                caught_up=caught_up.get(key),
                is_deleted=key in self.deleted,
                is_compacted=key in self.compacted,
                faults=faults,
                groups=self.groups,
            )
            for key in self.active_keys
        ]

    def logs(self, keys: Sequence[logs.Key] | None = None) -> Iterator[Log]:
        """Yield the log of each of these partitions, by default of each active one."""
        chosen = self.active() if keys is None else keys
        return logs.logs(self.key_rows(), chosen, len(self.keys))

    def _resets(self) -> tuple[Resets, I64]:
        """Return the resets by assignments of other partitions, and by rebalances. A rebalance
        takes effect with the operation that reports it."""
        resets, key = positions.resets(self.assignments, self.assigned, self._polling())
        steps = self.steps
        rebalances = np.flatnonzero(np.isin(steps.kind, (ASSIGNED, REVOKED, LOST)))
        return (
            Resets(
                np.concatenate((resets.process, steps.process[rebalances])),
                np.concatenate((resets.op, steps.invoked[rebalances])),
            ),
            np.concatenate((key, self.step_key[rebalances])),
        )

    def _polling(self) -> positions.Polling:
        """Return the operations that delivered records of a partition, or caught up with it."""
        key, operation = self.polls.key, self.polls.operation
        first = np.flatnonzero(changes(key) | changes(operation))
        operation = operation[first]
        ends = self.caught_up()
        end = np.array(
            [(number, e.process, e.op) for number, e in ends.items()], dtype=np.int64
        ).reshape(-1, 3)
        return positions.Polling(
            np.concatenate((key[first], end[:, 0])),
            np.concatenate((self.operations.process[operation], end[:, 1])),
            np.concatenate((self.operations.op[operation], end[:, 2])),
        )

    def span(self, ops: Sequence[int]) -> tuple[int, int]:
        """Return from when to when the operations lasted that these events complete, in ns."""
        events = list(ops)
        return int(self.began(events).min()), int(self.when(events).max())

    def when(self, events: list[int]) -> I64:
        """Return the times of events, by their indices."""
        operations = self.operations
        return operations.event_ns[np.searchsorted(operations.event_index, events)]

    def began(self, events: list[int]) -> I64:
        """Return when the operations began that these events complete; for any other event, its
        own time."""
        ended = self.operations.op
        if not len(ended):
            return self.when(events)
        rows = np.minimum(np.searchsorted(ended, events), len(ended) - 1)
        begun = self.operations.event_ns[self.operations.first[rows]]
        return np.where(ended[rows] == events, begun, self.when(events))
