"""The tables that checkers read: events, joined into operations and split by partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from checkers import (
    completions,
    consumers,
    facts,
    jepsen,
    logs,
    memory,
    parquet,
    parse,
    positions,
    producers,
    uniqueness,
    wellformed,
)
from checkers import fault_intervals as bands_of
from checkers.columns import INVOKE, Columns, Rows
from checkers.facts import Crash, Fault
from checkers.kernels.compact import Operations
from checkers.kernels.history import History
from checkers.kernels.rows import (
    ASSIGNED,
    FAIL,
    I64,
    INFO,
    LOST,
    OK,
    REVOKED,
    Band,
    CatchUp,
    Log,
    Resets,
)
from model.history import BadHistory
from model.op import NEMESIS

_OUTCOMES = np.array([INFO, OK, FAIL, INFO], dtype=np.int8)
"""Outcome by type of an operation's last event: one that has only an invocation is in doubt."""


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
    def subscribes(self) -> bool:
        """Whether any client asked for a subscription."""
        operations = self.operations
        asked = [code for code, name in enumerate(operations.f) if name == "subscribe"]
        return bool(np.isin(operations.f_code, asked).any())

    @property
    def bands(self) -> tuple[Band, ...]:
        """When each fault was active, and what it may have misled."""
        return tuple(bands_of.band(fault) for fault in self.faults)

    def caught_up(self) -> dict[int, CatchUp]:
        """Return for each partition the last catch-up that was invoked after all acknowledgements.

        There are none in a cluster that had not recovered: the log end that it reports may not be
        the true one.
        """
        if self.recovered is False:
            return {}
        acked = self.sends.outcome == OK
        last = np.full(len(self.keys), -1)
        op = self.operations.op[self.sends.operation[acked]]
        np.maximum.at(last, self.sends.key[acked], op)
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
        caught_up, faults = self.caught_up(), self.bands
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

    def logs(self) -> Iterator[Log]:
        """Yield the log of each active partition."""
        return logs.logs(self.key_rows(), self.active(), len(self.keys))

    def _resets(self) -> tuple[Resets, I64]:
        """Return the resets by assignments of other partitions, and by rebalances. A rebalance
        takes effect with the operation that reports it."""
        resets, key = positions.resets(self.assignments, self.assigned, self._polling())
        steps = self.steps
        told = np.flatnonzero(np.isin(steps.kind, (ASSIGNED, REVOKED, LOST)))
        return (
            Resets(
                np.concatenate((resets.process, steps.process[told])),
                np.concatenate((resets.op, steps.invoked[told])),
            ),
            np.concatenate((key, self.step_key[told])),
        )

    def _polling(self) -> positions.Polling:
        """Return the operations that delivered records of a partition, or caught up with it."""
        key, operation = self.polls.key, self.polls.operation
        changes = np.ones(len(key), dtype=np.bool_)
        changes[1:] = (key[1:] != key[:-1]) | (operation[1:] != operation[:-1])
        first = np.flatnonzero(changes)
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


def read(path: Path, progress: parse.Progress) -> pa.Table:
    """Return the events of a ``.parquet``, a Jepsen ``.edn`` or a JSON-lines file. Raises
    :class:`BadHistory` if it holds none."""
    readers = {".parquet": parquet.read, ".edn": jepsen.read}
    try:
        history = readers.get(path.suffix, parse.read_jsonl)(path, progress)
    except RecursionError as error:
        raise BadHistory(f"{path} is nested too deeply") from error
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror}") from error
    if not history.num_rows:
        raise BadHistory(f"{path} has no events")
    memory.release()
    return history


def columns(history: pa.Table, source: Path | None = None) -> Columns:
    """Return the columns of a history that can be judged.

    Raises :class:`BadHistory` when its events break a rule of :mod:`checkers.wellformed` or
    :mod:`checkers.completions`, with the line in ``source``, the file that it was read from.
    """
    columns = Columns(history)
    if (broken := wellformed.broken(history, columns)) is not None:
        raise BadHistory(_place(columns, broken.row, source) + broken.why)
    doubts = []
    for misfit in completions.misfits(columns):
        if not misfit.is_doubt:
            raise BadHistory(_place(columns, misfit.row, source) + misfit.why)
        doubts.append(_place(columns, misfit.row, None) + misfit.why)
    columns.doubts = tuple(doubts)
    return columns


def tables(history: pa.Table, source: Path | None = None) -> Tables:
    """Return the tables of a history. Raises :class:`BadHistory` as :func:`columns` does."""
    return tables_of(columns(history, source))


def tables_of(columns: Columns) -> Tables:
    """Return the tables of a history, and drop its columns on the way.

    Unless the caller keeps the history, each column is freed after its last use.
    """
    operations = _operations(columns)
    memory.release()
    first, last, outcome = operations.first, operations.last, operations.outcome
    polls = consumers.polls(columns, operations)
    compacted = facts.compacted(columns)
    deleted = facts.deleted(columns, last[outcome != FAIL])
    ignored = facts.ignored(columns)
    assign_events, assigned = consumers.assignments(columns, last)
    catch_ups = consumers.catch_ups(columns, first, last, outcome)
    attempts = producers.attempts(columns, first, last, outcome)
    told = consumers.told(columns, operations)
    columns.forget_groups()
    memory.release()
    sends, sent_rows = producers.sends(columns, operations)
    waits = producers.waits(columns, sends, sent_rows)
    columns.forget_micro_ops()
    repeated = uniqueness.repeated(sends, polls, compacted)
    if repeated is not None:
        sends, polls = sends.only(repeated.sends), polls.only(repeated.polls)
        waits = waits and (waits[0][repeated.sends], waits[1][repeated.sends])
    sends = replace(sends, proven=producers.proven(sends, polls))
    group_steps, step_key, groups = consumers.group_steps(
        operations, told, sends, columns.group_names
    )
    faults = facts.faults(columns)
    ends = [fault.to_ns for fault in faults]
    tables = Tables(
        keys=columns.keys,
        operations=operations,
        sends=sends,
        polls=polls,
        waits=waits,
        inits=producers.inits(columns, first, last, outcome),
        assigned=assigned,
        assignments=(columns.process[assign_events].astype(np.int64), columns.index[assign_events]),
        catch_ups=catch_ups,
        faults=faults,
        crashes=facts.crashes(columns),
        compacted=compacted,
        deleted=deleted,
        recovered=facts.recovered(columns),
        attempts=attempts,
        steps=group_steps,
        step_key=step_key,
        groups=groups,
        finished=frozenset(),
        healed_ns=None if None in ends else max((end for end in ends if end), default=0),
        repeated=() if repeated is None else repeated.values,
        ignored=ignored,
        unknown=columns.unknown,
        torn=columns.torn,
        doubts=columns.doubts,
    )
    tables = replace(tables, finished=frozenset(tables.caught_up()))
    memory.release()
    return tables


def _place(columns: Columns, row: int, source: Path | None) -> str:
    """Return where the event of a row is, as the beginning of a message."""
    event = f"event {columns.index[row]}: "
    if source is None:
        return event
    line = jepsen.line_of(source, row) if source.suffix == ".edn" else _line_of(source, row)
    return f"{source}, line {line}: {event}" if line else f"{source}: {event}"


def _line_of(path: Path, row: int) -> int | None:
    """Return the line of an event, given its row from 0; ``None`` for a file without lines."""
    if path.suffix == ".parquet":
        return None
    with path.open("rb") as lines:
        events = (number for number, line in enumerate(lines, start=1) if line.strip())
        return next(islice(events, row, None))


def _operations(columns: Columns) -> Operations:
    """Return the operations of clients, each with the rows of its first and its last event."""
    clients = np.flatnonzero(columns.process != NEMESIS).astype(np.int32)
    order = clients[np.argsort(columns.process[clients], kind="stable")]
    process, invokes = columns.process[order], columns.type[order] == INVOKE
    same = np.append(process[1:] == process[:-1], False)
    paired = np.flatnonzero(invokes & same & np.append(~invokes[1:], False))
    alone = np.ones(len(order), dtype=np.bool_)
    alone[paired] = alone[paired + 1] = False
    rows = np.flatnonzero(alone)
    first = np.concatenate((order[paired], order[rows]))
    last = np.concatenate((order[paired + 1], order[rows]))
    by_last = np.argsort(last)
    first, last = first[by_last], last[by_last]
    return Operations(
        event_index=columns.index,
        event_ns=columns.time_ns,
        first=first,
        last=last,
        process=columns.process[last],
        f=columns.f_names,
        f_code=columns.f[last],
        outcome=_OUTCOMES[columns.type[last]],
        completed=columns.type[last] != INVOKE,
        txn=columns.is_txn(last),
    )
