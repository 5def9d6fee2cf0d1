"""The state of one partition while its history grows: what is judged, and what is settled.

Whatever was judged and is older than :data:`SETTLED_NS` is left out, so that the state does not
grow with the history: readers had gone past it, and what was wrong with it was found. Records that
no reader went past stay for :data:`KEPT_NS`. Two small sets keep the values of records that were
left out, so that such a value is not taken for one that no process has sent.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from checkers import arrow, findings, micro_ops, overview, table_builder
from checkers.columns import Columns, only
from checkers.distributed import packing
from checkers.expectations import Contract
from checkers.kernels import history_kernels, key, loss
from checkers.kernels.checker_runs import CheckerRun
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, I64, INFO, UNKNOWN, Bools
from checkers.kernels.steps import ASSIGNED, DELETE, LOST, REVOKED, Steps
from checkers.live.batches import Part, merged
from checkers.live.ranges import NONE, Ranges
from checkers.pieces import SCHEMA
from checkers.tables import Tables
from model.finding import Finding

SETTLED_NS = 30_000_000_000
"""How long a record that readers have gone past is kept."""
KEPT_NS = 600_000_000_000
"""How long any other event is kept."""

FINAL = frozenset(
    (
        "lost-write",
        "duplicate",
        "inconsistent-offsets",
        "phantom",
        "G1a",
        "G1c-process",
        "G1c-realtime",
        "nonmonotonic-send",
        "int-nonmonotonic-send",
        "realtime-order",
        "poll-skip",
        "int-poll-skip",
        "nonmonotonic-poll",
        "int-nonmonotonic-poll",
        "precommitted-read",
        "dirty-read",
        "wr-cycle",
        "crash",
    )
)
"""Anomalies that later events cannot explain, so that the beginning of a history shows them. For
``lost-write`` that is so once every operation has ended that may still deliver the record."""
_OF_RECORDS = ("send", "poll", "txn", "commit", "committed", "watermarks", "catch-up")
"""Operations that are kept for records alone."""
_DELETIONS = ("delete-records", "delete-topic")
"""Operations that may have their effect at any later time, if they are in doubt."""
_OF_TRANSACTIONS = {name: history_kernels.KERNELS[name] for name in ("transactions", "cycles")}
"""The kernels of whole histories that find such anomalies also in a single partition."""


Shown = tuple[str, int | None, int | None, tuple[int, ...]]
"""What distinguishes a finding: anomaly, offset, value and operations."""


class Seen(NamedTuple):
    """An illegal anomaly that the history so far shows."""

    finding: Finding
    batch: int
    """The number of the batch after which it was found."""
    witnessed_ns: int
    """The time of the last event that shows it."""


class Looked(NamedTuple):
    """What a batch has shown of a partition."""

    seen: tuple[Seen, ...]
    crashed: tuple[str, ...]
    """Why checkers did not finish, a sentence each."""


@dataclass
class Partition:
    """The state of a partition; :meth:`judge` is its only way in."""

    key: str
    events: pa.Table
    bound: int = 0
    """Records below this offset are judged and left out."""
    settled: Ranges = NONE
    """The values of records that were left out, and whose offsets were known."""
    doubtful: Ranges = NONE
    """The values of other records that were left out: they may or may not be in the log."""
    shown: frozenset[Shown] = frozenset()
    """What was returned already."""

    @classmethod
    def new(cls, key: str) -> "Partition":
        """Return the state before the first event."""
        return cls(key, SCHEMA.empty_table())

    @classmethod
    def loaded(cls, data: bytes) -> "Partition":
        """Return a state that :meth:`dumped` made."""
        key, events, bound, settled, doubtful, shown = pickle.loads(data)
        events = packing.unpacked([events])
        return cls(key, events, bound, Ranges(*settled), Ranges(*doubtful), shown)

    def dumped(self) -> bytes:
        """Return the state as bytes."""
        events, values = packing.packed(self.events), (tuple(self.settled), tuple(self.doubtful))
        return pickle.dumps((self.key, events, self.bound, *values, self.shown))

    def judge(self, parts: Sequence[Part], contract: Contract) -> Looked:
        """Add the events of these parts, and return what they show that was not shown before.

        Parts must come in the order of their batches.
        """
        events = [packing.unpacked([part.events]) for part in parts]
        self.events = merged([self.events, *events])
        if not self.events.num_rows:
            return Looked((), ())
        tables = table_builder.build(Columns(self.events))
        last = parts[-1]
        looked = self._looked(tables, contract, last)
        self._leave_out(Columns(self.events), tables, last)
        return looked

    def _looked(self, tables: Tables, contract: Contract, last: Part) -> Looked:
        found, runs = list[Found](), list[CheckerRun]()
        for log in self._logs(tables):
            rest = self._rest(log)
            report = key.judge(rest)
            found += [*report.found, *self._again(log)]
            runs += report.checker_runs
        if tables.operations.txn.any():
            whole = history_kernels.judge(tables, found, _OF_TRANSACTIONS, rewrites={})
            found, runs = whole.found, [*runs, *whole.checker_runs]
        results = findings.findings(found, overview.of(tables), contract)
        final = [each for each in results if self._is_final(each, last.open_event)]
        new = [each for each in final if _shown(each) not in self.shown]
        self.shown |= {_shown(each) for each in new}
        return Looked(
            tuple(Seen(each, last.number, _witnessed_ns(tables, each)) for each in new),
            tuple(
                f"the checker {run.checker} crashed: {run.crash}"
                for run in runs
                if run.crash is not None
            ),
        )

    @staticmethod
    def _is_final(finding: Finding, open_event: int) -> bool:
        if finding.legal or finding.anomaly not in FINAL:
            return False
        return finding.anomaly != "lost-write" or max(finding.ops) < open_event

    def _logs(self, tables: Tables) -> list[Log]:
        mine = [each for each in tables.active() if each.name == self.key]
        return [
            replace(log, caught_up=None, steps=_of_readers(log.steps)) for log in tables.logs(mine)
        ]

    def _rest(self, log: Log) -> Log:
        """Return the log without the records that were left out."""
        sends, polls = log.sends, log.polls
        gone = self._is_gone(sends.value) | ((sends.offset >= 0) & (sends.offset < self.bound))
        read = self._is_gone(polls.value) | ((polls.offset >= 0) & (polls.offset < self.bound))
        return replace(log, sends=sends.where(~gone), polls=polls.where(~read))

    def _is_gone(self, values: I64) -> Bools:
        return self.settled.has(values) | self.doubtful.has(values)

    def _again(self, log: Log) -> list[Found]:
        """Find records that were left out and are read at another, higher offset."""
        polls = log.polls
        again = polls.where((polls.offset >= self.bound) & self.settled.has(polls.value))
        _, first = np.unique(again.value, return_index=True)
        return [
            Found(
                anomaly="duplicate",
                key=self.key,
                offset=int(again.offset[row]),
                value=int(again.value[row]),
                ops=(int(again.op[row]),),
                why=f"value {again.value[row]} was sent once and is in the log below offset"
                f" {self.bound}, but process {again.process[row]} read it at offset"
                f" {again.offset[row]} at {at(int(again.end_ns[row]))}",
            )
            for row in first.tolist()
        ]

    def _leave_out(self, columns: Columns, tables: Tables, last: Part) -> None:
        """Leave out what is settled or old."""
        settled_ns, old_ns = min(last.now_ns - SETTLED_NS, last.open_ns), last.now_ns - KEPT_NS
        needed = np.zeros(0, dtype=np.int64)
        repeated = [value for key, value, _ in tables.repeated if tables.keys[key] == self.key]
        self.doubtful = self.doubtful.union(np.array(repeated, dtype=np.int64))
        for log in self._logs(tables):
            rest = self._rest(log)
            sends = rest.sends
            self.bound = max(self.bound, _bound(rest, settled_ns, old_ns))
            offset = np.where(sends.offset >= 0, sends.offset, rest.known.offset_of(sends.value))
            is_placed = (offset != UNKNOWN) & (sends.outcome != FAIL)
            is_old = sends.end_ns < np.where(sends.outcome == FAIL, settled_ns, old_ns)
            self.settled = self.settled.union(sends.value[is_placed & (offset < self.bound)])
            self.doubtful = self.doubtful.union(sends.value[~is_placed & is_old])
            rest = self._rest(rest)
            needed = np.concatenate((rest.sends.op, rest.polls.op))
        self.events = self.events.take(arrow.column(_kept_rows(columns, tables, needed, old_ns)))
        oldest = int(arrow.numbers(only(self.events["index"])).min(initial=last.open_event))
        self.shown = frozenset(each for each in self.shown if max(each[-1], default=0) >= oldest)


def _of_readers(steps: Steps) -> Steps:
    """Return the events after which a reader may skip records or go back, without their groups."""
    kept = steps.where(np.isin(steps.kind, (DELETE, ASSIGNED, REVOKED, LOST)))
    return kept._replace(group=np.full_like(kept.group, UNKNOWN))


def _shown(finding: Finding) -> Shown:
    return finding.anomaly, finding.offset, finding.value, finding.ops


def _witnessed_ns(tables: Tables, finding: Finding) -> int:
    return int(tables.when(list(finding.ops)).max(initial=0))


def _bound(log: Log, settled_ns: int, old_ns: int) -> int:
    """Return the offset below which everything is settled or old; that record itself stays, as
    the position of readers."""
    known = log.known
    is_settled = (known.offset <= loss.frontier(log)) & (known.time_ns <= settled_ns)
    others = np.flatnonzero(~is_settled & (known.time_ns > old_ns))
    count = int(others[0]) if len(others) else len(known.offset)
    return int(known.offset[count - 1]) if count else 0


def _kept_rows(columns: Columns, tables: Tables, needed: I64, old_ns: int) -> I64:
    """Return the rows of the events to keep, given the operations that records need."""
    operations = tables.operations
    names = [code for code, name in enumerate(operations.f) if name in _OF_RECORDS]
    is_kept = np.isin(operations.op, needed) | ~operations.completed
    is_kept |= ~np.isin(operations.f_code, names)
    deletions = [code for code, name in enumerate(operations.f) if name in _DELETIONS]
    in_doubt = np.isin(operations.f_code, deletions) & (operations.outcome == INFO)
    is_kept &= np.isin(operations.op, needed) | (operations.end_ns >= old_ns) | in_doubt
    rows = [operations.first[is_kept], operations.last[is_kept]]
    active = {fault.id for fault in tables.faults if fault.to_ns is None}
    of_nemesis = [
        row
        for row, value in columns.of_nemesis()
        if columns.time_ns[row] >= old_ns or value.get("id") in active
    ]
    compacted = columns.event[columns.is_op(micro_ops.CREATE_COMPACTED)]
    return np.unique(np.concatenate((*rows, np.array(of_nemesis, dtype=np.int64), compacted)))
