"""The tables that checkers read: a history's events, joined into operations and split by key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from checkers import bands as bands_of
from checkers import (
    consumers,
    facts,
    jepsen,
    logs,
    parse,
    positions,
    producers,
    uniqueness,
    wellformed,
)
from checkers.columns import INVOKE, Columns
from checkers.facts import Crash, Fault
from checkers.kernels.rows import (
    ASSIGNED,
    FAIL,
    I8,
    I64,
    INFO,
    LOST,
    OK,
    REVOKED,
    Band,
    Bools,
    CatchUp,
    History,
    Log,
    Resets,
)
from model.history import BadHistory
from model.op import NEMESIS

_OUTCOMES = np.array([INFO, OK, FAIL, INFO], dtype=np.int8)
"""By type of the last event of an operation: one that is only an invocation is in doubt."""


@dataclass(frozen=True)
class Operations:
    """One row per operation of a client, in the order of their last events."""

    invoked: I64
    """Index of the first event."""
    op: I64
    """Index of the last event: the completion, if there is one."""
    process: I64
    f: tuple[str, ...]
    f_code: I64
    outcome: I8
    completed: Bools
    start_ns: I64
    end_ns: I64


@dataclass(frozen=True)
class Tables(History):
    """A whole history, ready to be asked."""

    operations: Operations
    assigned: tuple[I64, I64, I64]
    """Process, event and key of what an assignment kept or gave."""
    assignments: tuple[I64, I64]
    """Process and event of each assignment."""
    catch_ups: tuple[tuple[int, CatchUp, int, bool], ...]
    """Key, catch-up, index of its invocation, and whether it succeeded, of every attempt."""
    faults: tuple[Fault, ...]
    crashes: tuple[Crash, ...]
    compacted: frozenset[int]
    """Keys of which only the last record of each record key need stay."""
    deleted: frozenset[int]
    """Keys of topics that were deleted, or may have been."""
    recovered: bool | None
    """Was the cluster whole before the final reads? ``None``: the history does not tell."""
    event_index: I64
    event_ns: I64
    ignored: Mapping[str, int]
    """How many operations and micro-operations of clients have a name that no checker knows."""
    torn: str | None
    """What was left out because the writer of the file was interrupted."""

    @property
    def active_keys(self) -> list[int]:
        """The keys of which somebody tried to write or read something, or to commit an offset."""
        return self._keys_in(self.send_key, self.poll_key, self.step_key)

    @property
    def record_keys(self) -> list[int]:
        """Those of which somebody tried to write or read something."""
        return self._keys_in(self.send_key, self.poll_key)

    def _keys_in(self, *columns: I64) -> list[int]:
        rows = (np.bincount(key, minlength=len(self.keys)) for key in columns)
        used: list[int] = np.flatnonzero(sum(rows)).tolist()
        return used

    @property
    def subscribes(self) -> bool:
        """Did anybody ask for a subscription?"""
        operations = self.operations
        asked = [code for code, name in enumerate(operations.f) if name == "subscribe"]
        return bool(np.isin(operations.f_code, asked).any())

    @property
    def bands(self) -> tuple[Band, ...]:
        """When each fault was active."""
        return tuple(bands_of.band(fault) for fault in self.faults)

    def caught_up(self) -> dict[int, CatchUp]:
        """By key: the last catch-up that was asked for after all that was acknowledged. None of a
        cluster that had not recovered: its end of the log may not be the end of the log."""
        if self.recovered is False:
            return {}
        acked = self.sends.outcome == OK
        last = np.full(len(self.keys), -1)
        np.maximum.at(last, self.send_key[acked], self.sends.op[acked])
        return {
            key: catch_up
            for key, catch_up, invoked, reached in self.catch_ups
            if reached and invoked > last[key]
        }

    def key_rows(self) -> logs.Rows:
        """The rows of all keys."""
        return logs.Rows(
            sends=(self.sends, self.send_key),
            polls=(self.polls, self.poll_key),
            steps=(self.steps, self.step_key),
            resets=self._resets(),
            begins=positions.begins(self.assigned, (self.operations.op, self.operations.invoked)),
        )

    def active(self) -> list[logs.Key]:
        """The active keys, with what is known of each."""
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
        """Each key's rows."""
        return logs.logs(self.key_rows(), self.active(), len(self.keys))

    def _resets(self) -> tuple[Resets, I64]:
        """By assignments of other keys, and by rebalances. What a rebalance changes holds for the
        operation that tells of it."""
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
        """The operations that brought records of a key, or a process to its end."""
        key, op = self.poll_key, self.polls.op
        changes = np.ones(len(key), dtype=np.bool_)
        changes[1:] = (key[1:] != key[:-1]) | (op[1:] != op[:-1])
        first = np.flatnonzero(changes)
        ends = self.caught_up()
        end_process, end_op = (
            [getattr(e, name) for e in ends.values()] for name in ("process", "op")
        )
        return positions.Polling(
            np.concatenate((key[first], np.array(list(ends), dtype=np.int64))),
            np.concatenate((self.polls.process[first], np.array(end_process, dtype=np.int64))),
            np.concatenate((op[first], np.array(end_op, dtype=np.int64))),
        )

    def when(self, events: list[int]) -> I64:
        """The times of events, by their indices."""
        return self.event_ns[np.searchsorted(self.event_index, events)]

    def began(self, events: list[int]) -> I64:
        """When the operations began that these events end; an event of none began then itself."""
        ended = self.operations.op
        if not len(ended):
            return self.when(events)
        rows = np.minimum(np.searchsorted(ended, events), len(ended) - 1)
        return np.where(ended[rows] == events, self.operations.start_ns[rows], self.when(events))


def read(path: Path, progress: parse.Progress) -> pa.Table:
    """The events of a ``.parquet``, a Jepsen ``.edn`` or a JSON-lines file; :class:`BadHistory` if
    they are none."""
    readers = {".parquet": parse.read_parquet, ".edn": jepsen.read}
    try:
        history = readers.get(path.suffix, parse.read_jsonl)(path, progress)
    except RecursionError as error:
        raise BadHistory(f"{path} is nested too deeply") from error
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror}") from error
    if not history.num_rows:
        raise BadHistory(f"{path} holds no events")
    return history


def tables(history: pa.Table, source: Path | None = None) -> Tables:
    """The tables of a history. Raises :class:`BadHistory` when its events break a rule of
    :mod:`checkers.wellformed`, with the line in ``source``, the file that it was read from."""
    columns = Columns(history)
    if (broken := wellformed.broken(history, columns)) is not None:
        raise BadHistory(_place(columns, broken.row, source) + broken.why)
    first, last = _operations(columns)
    outcome = _OUTCOMES[columns.type[last]]
    sends, send_key, sent_rows = producers.sends(columns, first, last, outcome)
    send_after, send_until = producers.delayed(columns, sends, sent_rows)
    polls, poll_key = consumers.polls(columns, last, outcome)
    compacted = facts.compacted(columns)
    repeated = uniqueness.repeated(sends, send_key, polls, poll_key, compacted)
    if repeated is not None:
        sends, polls = sends.where(repeated.sends), polls.where(repeated.polls)
        send_key, poll_key = send_key[repeated.sends], poll_key[repeated.polls]
        send_after, send_until = send_after[repeated.sends], send_until[repeated.sends]
    sends = sends._replace(proven=producers.proven(sends, send_key, polls, poll_key))
    assign_events, assigned = consumers.assignments(columns, last)
    group_steps, step_key, groups = consumers.group_steps(columns, first, last, outcome, sends)
    faults = facts.faults(columns)
    ends = [fault.to_ns for fault in faults]
    tables = Tables(
        keys=columns.keys,
        operations=Operations(
            invoked=columns.index[first],
            op=columns.index[last],
            process=columns.process[last],
            f=columns.f_names,
            f_code=columns.f[last],
            outcome=outcome,
            completed=columns.type[last] != INVOKE,
            start_ns=columns.time_ns[first],
            end_ns=columns.time_ns[last],
        ),
        sends=sends,
        send_key=send_key,
        send_after=send_after,
        send_until=send_until,
        polls=polls,
        poll_key=poll_key,
        inits=producers.inits(columns, first, last, outcome),
        assigned=assigned,
        assignments=(columns.process[assign_events], columns.index[assign_events]),
        catch_ups=consumers.catch_ups(columns, first, last, outcome),
        faults=faults,
        crashes=facts.crashes(columns),
        compacted=compacted,
        deleted=facts.deleted(columns, last[outcome != FAIL]),
        recovered=facts.recovered(columns),
        event_index=columns.index,
        event_ns=columns.time_ns,
        attempts=producers.attempts(columns, first, last, outcome),
        steps=group_steps,
        step_key=step_key,
        groups=groups,
        finished=frozenset(),
        healed_ns=None if None in ends else max((end for end in ends if end), default=0),
        repeated=() if repeated is None else repeated.values,
        ignored=facts.ignored(columns),
        torn=parse.torn(history),
    )
    return replace(tables, finished=frozenset(tables.caught_up()))


def _place(columns: Columns, row: int, source: Path | None) -> str:
    """Where the event of a row is, as the beginning of a message."""
    event = f"event {columns.index[row]}: "
    if source is None:
        return event
    line = jepsen.line_of(source, row) if source.suffix == ".edn" else parse.line_of(source, row)
    return f"{source}, line {line}: {event}" if line else f"{source}: {event}"


def _operations(columns: Columns) -> tuple[I64, I64]:
    """First and last event (by row) of each operation of a client."""
    clients = np.flatnonzero(columns.process != NEMESIS)
    order = clients[np.argsort(columns.process[clients], kind="stable")]
    process, invokes = columns.process[order], columns.type[order] == INVOKE
    same = np.append(process[1:] == process[:-1], False)
    followed = same & np.append(~invokes[1:], False)
    paired = np.flatnonzero(invokes & followed)
    alone = np.ones(len(order), dtype=np.bool_)
    alone[paired] = alone[paired + 1] = False
    rows = np.flatnonzero(alone)
    first = np.concatenate((order[paired], order[rows]))
    last = np.concatenate((order[paired + 1], order[rows]))
    by_last = np.argsort(last)
    return first[by_last], last[by_last]
