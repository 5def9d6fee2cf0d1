"""The tables that checkers read: a history's events, joined into operations and split by key."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from checkers import jepsen, parse, steps
from checkers.kernels.rows import (
    ASSIGNED,
    FAIL,
    I8,
    I64,
    INFO,
    LOST,
    OK,
    REVOKED,
    UNKNOWN,
    Attempts,
    Band,
    Begins,
    Bools,
    CatchUp,
    Group,
    History,
    Init,
    Log,
    Polls,
    Resets,
    Sends,
    Steps,
)
from model.history import BadHistory
from model.op import CRASH, NEMESIS, RECOVER

EARLY_NS = 2_000_000
"""A delay may end so much too early, by the resolution of clocks."""

_INVOKE = parse.TYPES.index("invoke")
_OUTCOMES = np.array([INFO, OK, FAIL, INFO], dtype=np.int8)
"""By type of the last event of an operation: one that is only an invocation is in doubt."""


HARSH = ("kill", "restart", "restart-rolling", "power-loss", "disk-full", "bit-flip")
"""Faults that leave nobody behind who takes itself for a leader and is none any more."""


class Fault(msgspec.Struct, frozen=True):
    """A fault that was asked for, from the nemesis's own events."""

    id: int
    fault: str
    from_ns: int
    """When it was asked for."""
    to_ns: int | None
    """When it had been healed; ``None`` if it never was."""
    proved: bool
    """Was it measured to have bitten?"""
    how: str
    targets: Any = None
    unhealed: str | None = None
    """Why its healing is in doubt; ``None`` when it is not, or was not tried yet."""


class Crash(msgspec.Struct, frozen=True):
    """A node that ended by itself."""

    op: int
    time_ns: int
    node: str
    serves: bool
    """Is it one of the cluster's own, and not what only stands around it?"""
    status: int
    last_line: str


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
        return tuple(Band(f.id, f.from_ns, f.to_ns, f.fault not in HARSH) for f in self.faults)

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

    def resets(self, key: int) -> Resets:
        """When processes gave up their position in a key, or were given it anew. What a rebalance
        changes holds for the operation that tells of it."""
        process, event = self.assignments
        _, kept_event, kept_key = self.assigned
        gone = ~np.isin(event, kept_event[kept_key == key])
        told = (self.step_key == key) & np.isin(self.steps.kind, (ASSIGNED, REVOKED, LOST))
        return Resets(
            np.concatenate((process[gone], self.steps.process[told])),
            np.concatenate((event[gone], self.steps.invoked[told])),
        )

    def begins(self, key: int) -> Begins:
        """Who was assigned a key, and had none of its place before."""
        process, event, _ = (column[self.assigned[2] == key] for column in self.assigned)
        operations = self.operations
        return Begins(process, operations.invoked[np.searchsorted(operations.op, event)])

    def logs(self) -> Iterator[Log]:
        """Each key's rows."""
        send_rows, poll_rows, step_rows = (
            _by_key(key, len(self.keys)) for key in (self.send_key, self.poll_key, self.step_key)
        )
        caught_up = self.caught_up()
        for key in self.active_keys:
            yield Log(
                key=self.keys[key],
                sends=self.sends.where(send_rows[key]),
                polls=self.polls.where(poll_rows[key]),
                resets=self.resets(key),
                caught_up=caught_up.get(key),
                faults=self.bands,
                steps=self.steps.where(step_rows[key]),
                groups=self.groups,
                begins=self.begins(key),
                is_deleted=key in self.deleted,
                is_compacted=key in self.compacted,
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


def _by_key(column: I64, keys: int) -> list[I64]:
    """The row numbers of each key, in order."""
    small = column.astype(np.int16 if keys < 1 << 15 else np.int64)  # 16 bits: a radix sort
    order = np.argsort(small, kind="stable")
    return np.split(order, np.cumsum(np.bincount(column, minlength=keys))[:-1])


def read(path: Path, progress: parse.Progress) -> pa.Table:
    """The events of a ``.parquet``, a Jepsen ``.edn`` or a JSON-lines file; :class:`BadHistory` if
    they are none."""
    readers = {".parquet": parse.read_parquet, ".edn": jepsen.read}
    try:
        history = readers.get(path.suffix, parse.read_jsonl)(path, progress)
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror}") from error
    if not history.num_rows:
        raise BadHistory(f"{path} holds no events")
    return history


def tables(history: pa.Table) -> Tables:
    """The tables of a history; :class:`BadHistory` when its events do not fit together."""
    return _Builder(history).tables()


def _ints(column: Any, unknown: int = UNKNOWN) -> I64:
    if column.null_count:
        column = column.fill_null(unknown)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def _codes(column: Any) -> tuple[I64, tuple[str, ...]]:
    """Codes and names of a text column; -1 stands for null."""
    codes = _ints(column.indices)
    return codes, tuple(column.dictionary.to_pylist())


def _only(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class _Builder:
    def __init__(self, history: pa.Table) -> None:
        columns = {name: _only(history[name]) for name in history.column_names}
        self.index, self.time_ns = _ints(columns["index"]), _ints(columns["time_ns"])
        self.process = _ints(columns["process"])
        codes, names = _codes(columns["type"])
        self.type = np.array([parse.TYPES.index(name) for name in names], dtype=np.int8)[codes]
        self.f, self.f_names = _codes(columns["f"])
        self.error, self.error_names = _codes(columns["error"])
        self.detail = columns["detail"]
        value = columns["value"]
        self.micro_op_end = _ints(value.offsets)
        micro_ops = value.values
        self.op, self.op_names = _codes(micro_ops.field("op"))
        self.op_key, op_keys = _codes(micro_ops.field("key"))
        self.op_group, self.group_names = _codes(micro_ops.field("name"))
        self.op_offset, self.op_value = (
            _ints(micro_ops.field(name)) for name in ("offset", "value")
        )
        self.op_offset = np.maximum(self.op_offset, UNKNOWN)  # clients have several "no offset"
        records = micro_ops.field("records")
        self.record_end = _ints(records.offsets)
        self.record_key, record_keys = _codes(records.values.field("key"))
        self.record_offset, self.record_value = (
            _ints(records.values.field(name)) for name in ("offset", "value")
        )
        self.keys = op_keys
        if record_keys != op_keys:  # another writer may use a dictionary per column
            self.keys = tuple(dict.fromkeys((*op_keys, *record_keys)))
            self.record_key = np.array([self.keys.index(key) for key in record_keys], np.int64)[
                self.record_key
            ]

    def tables(self) -> Tables:
        steps = np.flatnonzero(np.diff(self.index) <= 0)
        if len(steps):
            later = int(self.index[steps[0] + 1])
            raise BadHistory(f"event {later} does not come in its place: indices must increase")
        first, last = self._operations()
        outcome = _OUTCOMES[self.type[last]]
        sends, send_key, sent_rows = self._sends(first, last, outcome)
        send_after, send_until = self._delayed(sends, sent_rows)
        polls, poll_key = self._polls(last, outcome)
        sends = sends._replace(proven=_proven(sends, send_key, polls, poll_key))
        assign_events, assigned = self._assignments(last)
        group_steps, step_key, groups = self._steps(first, last, outcome, sends)
        faults = self._faults()
        ends = [fault.to_ns for fault in faults]
        tables = Tables(
            keys=self.keys,
            operations=Operations(
                invoked=self.index[first],
                op=self.index[last],
                process=self.process[last],
                f=self.f_names,
                f_code=self.f[last],
                outcome=outcome,
                completed=self.type[last] != _INVOKE,
                start_ns=self.time_ns[first],
                end_ns=self.time_ns[last],
            ),
            sends=sends,
            send_key=send_key,
            send_after=send_after,
            send_until=send_until,
            polls=polls,
            poll_key=poll_key,
            inits=self._inits(first, last, outcome),
            assigned=assigned,
            assignments=(self.process[assign_events], self.index[assign_events]),
            catch_ups=self._catch_ups(first, last, outcome),
            faults=faults,
            crashes=self._crashes(),
            compacted=self._compacted(),
            deleted=self._deleted(last[outcome != FAIL]),
            recovered=self._recovered(),
            event_index=self.index,
            event_ns=self.time_ns,
            attempts=self._attempts(first, last, outcome),
            steps=group_steps,
            step_key=step_key,
            groups=groups,
            finished=frozenset(),
            healed_ns=None if None in ends else max((end for end in ends if end), default=0),
        )
        return replace(tables, finished=frozenset(tables.caught_up()))

    def _operations(self) -> tuple[I64, I64]:
        """First and last event (by row) of each operation of a client."""
        clients = np.flatnonzero(self.process != NEMESIS)
        order = clients[np.argsort(self.process[clients], kind="stable")]
        process, invokes = self.process[order], self.type[order] == _INVOKE
        same = np.append(process[1:] == process[:-1], False)
        followed = same & np.append(~invokes[1:], False)
        twice = np.flatnonzero(invokes & same & ~followed)
        if len(twice):
            a, b = order[twice[0]], order[twice[0] + 1]
            raise BadHistory(
                f"process {self.process[a]} invoked event {self.index[b]} before its event"
                f" {self.index[a]} was completed"
            )
        paired = np.flatnonzero(invokes & followed)
        alone = np.ones(len(order), dtype=np.bool_)
        alone[paired] = alone[paired + 1] = False
        rows = np.flatnonzero(alone)
        first = np.concatenate((order[paired], order[rows]))
        last = np.concatenate((order[paired + 1], order[rows]))
        by_last = np.argsort(last)
        return first[by_last], last[by_last]

    def _sends(self, first: I64, last: I64, outcome: I8) -> tuple[Sends, I64, I64]:
        """The records of each operation as its completion tells them; those that only its
        invocation names were tried too, and nobody knows what came of them. With the key of each,
        and which micro-operation it is."""
        is_send = self._is(parse.SEND)
        count = np.diff(np.concatenate(([0], np.cumsum(is_send)))[self.micro_op_end])
        rows, operation = self._micro_ops(last, is_send)
        partial = np.flatnonzero((count[first] > count[last]) & (first != last))
        rest, their_operation = self._micro_ops(first[partial], is_send)
        their_operation = partial[their_operation]
        told = {
            (at, key, value)
            for at, key, value in zip(
                *(
                    c[np.isin(operation, partial)].tolist()
                    for c in (operation, self.op_key[rows], self.op_value[rows])
                ),
                strict=True,
            )
        }
        untold = np.array(
            [
                entry not in told
                for entry in zip(
                    their_operation.tolist(),
                    self.op_key[rest].tolist(),
                    self.op_value[rest].tolist(),
                    strict=True,
                )
            ],
            dtype=np.bool_,
        )
        in_doubt = np.concatenate(
            (np.zeros(len(rows), np.bool_), np.ones(int(untold.sum()), np.bool_))
        )
        rows = np.concatenate((rows, rest[untold]))
        operation = np.concatenate((operation, their_operation[untold]))
        if len(in_doubt) and in_doubt.any():
            order = np.argsort(operation, kind="stable")
            rows, operation, in_doubt = rows[order], operation[order], in_doubt[order]
        begin, end = first[operation], last[operation]
        result = np.where(self._aborted(first)[operation], np.int8(FAIL), outcome[operation])
        sends = Sends(
            value=self.op_value[rows],
            offset=self.op_offset[rows],
            op=self.index[end],
            invoked=self.index[begin],
            process=self.process[end],
            outcome=np.where(in_doubt & (result == OK), np.int8(INFO), result),
            txn=self._txn(end),
            proven=np.zeros(len(rows), dtype=np.bool_),
            start_ns=self.time_ns[begin],
            end_ns=self.time_ns[end],
        )
        return sends, self.op_key[rows], rows

    def _delayed(self, sends: Sends, rows: I64) -> tuple[I64, I64]:
        """Of each send: an event after which it was made, and one after which its operation went
        on, by what it was asked to wait for. Its invocation where that says no more."""
        if parse.DELAY not in self.op_names or (np.diff(self.time_ns) < 0).any():
            return sends.invoked, sends.invoked
        waits = np.where(self._is(parse.DELAY), np.maximum(self.op_offset, 0), 0)
        waited = np.concatenate(([0], np.cumsum(waits))) * 1_000_000
        of = np.searchsorted(self.micro_op_end, rows, side="right") - 1
        begin, end = self.micro_op_end[of], self.micro_op_end[of + 1]

        def after(place: I64) -> I64:
            passed = sends.start_ns + waited[place] - waited[begin] - EARLY_NS
            last = np.searchsorted(self.time_ns, passed) - 1
            event: I64 = np.maximum(self.index[np.maximum(last, 0)], sends.invoked)
            return event

        return after(rows), after(end)

    def _aborted(self, first: I64) -> Bools:
        """Operations that were to end in an abort: they did not happen, even when nobody answered,
        as nobody but their producer could have had them committed."""
        aborted = np.zeros(len(first), dtype=np.bool_)
        if parse.ABORT in self.op_names:
            aborted[self._micro_ops(first, self._is(parse.ABORT))[1]] = True
        return aborted

    def _polls(self, last: I64, outcome: I8) -> tuple[Polls, I64]:
        rows, operation = self._micro_ops(last, self._is(parse.POLL))
        begin, stop = self.record_end[rows], self.record_end[rows + 1]
        length = stop - begin
        # Records lie in the order of their polls, and as a rule none of them is left out.
        all_of_them = length.sum() == len(self.record_value)
        records = slice(None) if all_of_them else _spread(begin, stop)[0]
        end = last[operation]
        polls = Polls(
            value=self.record_value[records],
            offset=self.record_offset[records],
            op=np.repeat(self.index[end], length),
            process=np.repeat(self.process[end], length),
            outcome=np.repeat(outcome[operation], length),
            txn=np.repeat(self._txn(end), length),
            end_ns=np.repeat(self.time_ns[end], length),
        )
        return polls, self.record_key[records]

    def _assignments(self, last: I64) -> tuple[I64, tuple[I64, I64, I64]]:
        """Events that assigned keys (an assignment in doubt did so too), and what they assigned."""
        kinds = [code for code, name in enumerate(self.f_names) if name in ("assign", "subscribe")]
        kind = self.type[last]
        done = (kind != _INVOKE) & (kind != parse.TYPES.index("fail"))
        events = last[done & np.isin(self.f[last], kinds)]
        rows, place = self._micro_ops(events, self._is(parse.ASSIGN))
        at = events[place]
        return events, (self.process[at], self.index[at], self.op_key[rows])

    def _catch_ups(
        self, first: I64, last: I64, outcome: I8
    ) -> tuple[tuple[int, CatchUp, int, bool], ...]:
        rows, operation = self._micro_ops(last, self._is(parse.CATCH_UP))
        return tuple(
            (
                int(self.op_key[row]),
                CatchUp(
                    op=int(self.index[last[at]]),
                    process=int(self.process[last[at]]),
                    position=int(self.op_offset[row]),
                    time_ns=int(self.time_ns[last[at]]),
                ),
                int(self.index[first[at]]),
                bool(outcome[at] == OK),
            )
            for row, at in zip(rows.tolist(), operation.tolist(), strict=True)
        )

    def _steps(
        self, first: I64, last: I64, outcome: I8, sends: Sends
    ) -> tuple[Steps, I64, tuple[Group, ...]]:
        wanted, is_poll = self._is(*steps.KINDS), self._is(parse.POLL)
        polling = [self._micro_ops(events, is_poll)[1] for events in (first, last)]
        ops = steps.Ops(
            op=self.index[last],
            invoked=self.index[first],
            process=self.process[last],
            outcome=outcome,
            txn=self._txn(last),
            polls=np.isin(np.arange(len(last)), np.concatenate(polling)),
            start_ns=self.time_ns[first],
            end_ns=self.time_ns[last],
            frozen_ns=self._frozen_ns(last),
        )
        rows, operation = self._micro_ops(last, wanted)
        is_commit = self._is(parse.COMMIT, parse.COMMIT_PLAINLY)
        asked, asker = self._micro_ops(first, is_commit)
        untold = ~np.isin(asker, operation[is_commit[rows]])
        is_asked = np.concatenate((np.zeros(len(rows), np.bool_), np.ones(untold.sum(), np.bool_)))
        rows = np.concatenate((rows, asked[untold]))
        operation = np.concatenate((operation, asker[untold]))
        order = np.argsort(operation, kind="stable")
        rows, operation, is_asked = rows[order], operation[order], is_asked[order]
        records, place = _spread(self.record_end[rows], self.record_end[rows + 1])
        micro = steps.MicroOps(
            kind=[self.op_names[code] for code in self.op[rows].tolist()],
            group=self.op_group[rows],
            generation=self.op_value[rows],
            operation=operation,
            is_asked=is_asked,
            place=place,
            key=self.record_key[records],
            offset=self.record_offset[records],
            value=self.record_value[records],
        )
        once = self._once(last)
        proven = sends.op[sends.proven]
        found, key, groups = steps.steps(ops, micro, once, self.group_names, proven)
        return found, key, groups

    def _frozen_ns(self, last: I64) -> I64:
        """How long each operation of its own accord did nothing, to begin with."""
        rows, operation = self._micro_ops(last, self._is(parse.FREEZE))
        frozen = np.zeros(len(last), dtype=np.int64)
        frozen[operation] = self.op_offset[rows] * 1_000_000
        return frozen

    def _inits(self, first: I64, last: I64, outcome: I8) -> tuple[Init, ...]:
        return tuple(
            Init(
                transactional_id=once.what[1],
                process=int(self.process[last[once.operation]]),
                invoked=int(self.index[first[once.operation]]),
                op=int(self.index[last[once.operation]]),
                end_ns=int(self.time_ns[last[once.operation]]),
            )
            for once in self._once(last)
            if _takes_id(once) and outcome[once.operation] == OK
        )

    def _attempts(self, first: I64, last: I64, outcome: I8) -> Attempts:
        inits = {once.operation: str(once.what[1]) for once in self._once(last) if _takes_id(once)}
        number = {name: code for code, name in enumerate(dict.fromkeys(inits.values()))}
        ids = {int(self.process[last[row]]): number[name] for row, name in inits.items()}
        _, sending = self._micro_ops(first, self._is(parse.SEND))
        every = np.arange(len(last))
        rows = every[(self._txn(last) & np.isin(every, sending)) | np.isin(every, list(inits))]
        begin, end = first[rows], last[rows]
        aborts = [code for code, name in enumerate(self.error_names) if name == "aborted"]
        process = self.process[end]
        return Attempts(
            transactional_id=np.array([ids.get(p, UNKNOWN) for p in process.tolist()], np.int64),
            process=process,
            op=self.index[end],
            succeeded=(outcome[rows] == OK) | np.isin(self.error[end], aborts),
            start_ns=self.time_ns[begin],
            end_ns=self.time_ns[end],
        )

    def _once(self, last: I64) -> list[steps.Once]:
        """What processes did once, each as far as it was told."""
        codes = [code for code, name in enumerate(self.f_names) if name in parse.ONCE]
        found = []
        for operation in np.flatnonzero(np.isin(self.f[last], codes)).tolist():
            text = self.detail[int(last[operation])].as_py()
            value = msgspec.json.decode(text) if text else []
            found += [steps.Once(operation, what) for what in value if isinstance(what, list)]
        return found

    def _faults(self) -> tuple[Fault, ...]:
        found: dict[int, dict[str, Any]] = {}
        for row, value in self._of_nemesis():
            if not isinstance(value.get("id"), int):
                continue
            time_ns, done = int(self.time_ns[row]), self.type[row] != _INVOKE
            fault = found.setdefault(
                value["id"],
                {
                    "fault": self.f_names[self.f[row]],
                    "from_ns": time_ns,
                    "to_ns": None,
                    "proved": False,
                    "how": "nothing was measured",
                    "targets": value.get("targets"),
                    "unhealed": None,
                },
            )
            effect = value.get("effect")
            if value.get("phase") == "heal":
                if done:
                    told = effect if isinstance(effect, dict) else {"proved": True}
                    healed = told.get("proved") is True
                    fault["to_ns"] = time_ns if healed else None
                    fault["unhealed"] = None if healed else str(told.get("how", ""))
            elif done and isinstance(effect, dict):
                fault["to_ns"] = fault["unhealed"] = None  # it may be another try
                fault["proved"] = effect.get("proved") is True
                fault["how"] = str(effect.get("how", ""))
                fault["targets"] = value.get("targets")
        return tuple(Fault(id=id_, **fault) for id_, fault in sorted(found.items()))

    def _compacted(self) -> frozenset[int]:
        return self._of_topics(np.flatnonzero(self._is(parse.CREATE_COMPACTED)))

    def _deleted(self, events: I64) -> frozenset[int]:
        return self._of_topics(self._micro_ops(events, self._is(parse.DELETE_TOPIC))[0])

    def _of_topics(self, rows: I64) -> frozenset[int]:
        """The keys of the topics that micro-operations name."""
        topics = {self.keys[code] for code in np.unique(self.op_key[rows]).tolist()}
        return frozenset(
            code for code, key in enumerate(self.keys) if key.rpartition("-")[0] in topics
        )

    def _crashes(self) -> tuple[Crash, ...]:
        return tuple(
            Crash(
                op=int(self.index[row]),
                time_ns=int(self.time_ns[row]),
                node=str(value.get("node")),
                serves=value.get("serves") is not False,
                status=int(value.get("status", 0)),
                last_line=str(value.get("last_line", "")),
            )
            for row, value in self._of_nemesis()
            if self.f_names[self.f[row]] == CRASH
        )

    def _recovered(self) -> bool | None:
        told = [
            value.get("recovered") is True
            for row, value in self._of_nemesis()
            if self.f_names[self.f[row]] == RECOVER
        ]
        return told[-1] if told else None

    def _of_nemesis(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Rows of the nemesis's events that say something, and what."""
        for row in np.flatnonzero(self.process == NEMESIS).tolist():
            text = self.detail[row].as_py()
            value = msgspec.json.decode(text) if text else None
            if isinstance(value, dict):
                yield row, value

    def _is(self, *names: str) -> Bools:
        codes = [code for code, known in enumerate(self.op_names) if known in names]
        return np.isin(self.op, codes)

    def _txn(self, events: I64) -> Bools:
        codes = [code for code, name in enumerate(self.f_names) if name == "txn"]
        return np.isin(self.f[events], codes)

    def _micro_ops(self, events: I64, wanted: Bools) -> tuple[I64, I64]:
        """Rows of the wanted micro-operations of events, and which of the events each is of."""
        rows, place = _spread(self.micro_op_end[events], self.micro_op_end[events + 1])
        keep = wanted[rows]
        return rows[keep], place[keep]


def _takes_id(once: steps.Once) -> bool:
    return bool(once.what[0] == "init")


def _spread(begin: I64, end: I64) -> tuple[I64, I64]:
    """All numbers of the ranges ``begin … end``, and which range each is of."""
    length = end - begin
    place = np.repeat(np.arange(len(begin)), length)
    inside = np.arange(len(place)) - np.repeat(np.cumsum(length) - length, length)
    return begin[place] + inside, place


def _proven(sends: Sends, send_key: I64, polls: Polls, poll_key: I64) -> Bools:
    """Which rows are of operations in doubt of which a value was read by an ok poll: they happened
    (Jepsen's ``must-have-committed?``)."""
    doubt: Bools = sends.outcome == INFO
    if not doubt.any():
        return doubt
    near = np.flatnonzero((polls.outcome == OK) & np.isin(polls.value, sends.value[doubt]))
    read = set(zip(poll_key[near].tolist(), polls.value[near].tolist(), strict=True))
    ops = {
        op
        for key, value, op in zip(
            send_key[doubt].tolist(),
            sends.value[doubt].tolist(),
            sends.op[doubt].tolist(),
            strict=True,
        )
        if (key, value) in read
    }
    return doubt & np.isin(sends.op, np.array(sorted(ops), dtype=np.int64))
