"""Dependencies and anomalies of transactions that write and read registers.

Every value is written to a key at most once, so a read shows its writer. Transactions that happened
are those that succeeded, and those in doubt of which a read shows a value.
"""

from collections.abc import Sequence

import numpy as np

from checkers.isolation import lattice, reading
from checkers.isolation.describing import Describer, lost_updates
from checkers.isolation.edges import NO_EDGES, RW, WR, WW, Edges, edges, joined, whole
from checkers.isolation.examined import Examined
from checkers.isolation.findings import Findings, Found, listed
from checkers.isolation.groups import Groups, by_key, last_writes
from checkers.isolation.list_append import PRODUCT_MAX
from checkers.isolation.options import Options
from checkers.isolation.transactions import NONE, READ, UNKNOWN, WRITE, History, Pairs
from checkers.isolation.version_orders import (
    Cyclic,
    Uses,
    Versions,
    infer,
    named,
    shortened,
    uses_of,
    versions_of,
)
from checkers.kernels.arrays import I64
from checkers.kernels.rows import FAIL, INFO, OK, Bools
from model.op import Op


def examine(events: Sequence[Op], options: Options) -> Examined:
    """Examine a history of registers. Raises :class:`~checkers.isolation.reading.NotUnderstood`."""
    return _Registers(reading.registers(events, options.initial)).examine(options)


class _Registers:
    """The writers and readers of one history."""

    def __init__(self, history: History) -> None:
        ops = history.ops
        self._history, self._ops, self._names = history, ops, Describer(history)
        outcome = history.txns.outcome
        self._writes = np.flatnonzero(ops.kind == WRITE)
        self._refuse_ambiguous()
        pairs = Pairs(ops.key[self._writes], ops.element[self._writes])
        self._reads = np.flatnonzero(
            (ops.kind == READ) & (ops.length != UNKNOWN) & (outcome[ops.txn] == OK)
        )
        """The reads of ok transactions."""
        at = pairs.rows(ops.key[self._reads], ops.element[self._reads])
        self._source = np.where(at < 0, -1, self._writes[at]) if len(self._writes) else at
        """The row that wrote what each of them read; -1 for none."""
        writer = ops.txn[self._source[self._source >= 0]]
        self.happened: Bools = outcome == OK
        self.happened[writer[outcome[writer] == INFO]] = True
        self._last = last_writes(ops)
        self._groups = by_key(ops, outcome == OK)

    def _refuse_ambiguous(self) -> None:
        """Raise for a value that two transactions write to a key, and for a write of nothing."""
        ops = self._ops
        key, element = ops.key[self._writes], ops.element[self._writes]
        order = np.lexsort((ops.txn[self._writes], element, key))
        key, element, txn = key[order], element[order], ops.txn[self._writes][order]
        twice = np.flatnonzero(
            (key[1:] == key[:-1]) & (element[1:] == element[:-1]) & (txn[1:] != txn[:-1])
        )
        for row in self._writes[order[twice]].tolist():
            raise reading.NotUnderstood(
                f"several transactions write {self._names.element(row)} to {self._names.key(row)}"
            )
        for row in self._writes[ops.element[self._writes] == NONE].tolist():
            raise reading.NotUnderstood(f"a transaction writes nothing to {self._names.key(row)}")

    def examine(self, options: Options) -> Examined:
        writes = self._writes[self._last[self._writes]]
        writes = writes[self.happened[self._ops.txn[writes]]]
        versions = versions_of(self._history, self._groups, writes)
        uses = uses_of(self._history, self._groups, versions, self._last)
        order = infer(self._history, versions, uses, options)
        writer = np.full(len(versions.key), -1)
        writer[versions.find(self._ops.key[writes], self._ops.element[writes])] = self._ops.txn[
            writes
        ]
        earlier, later = shortened(versions, order, writer >= 0)
        found, is_complete = _dependencies(versions, uses, writer, earlier, later)
        unknown = () if is_complete else ("there are too many dependencies on initial versions",)
        anomalies = self._anomalies(options)
        anomalies.add_rows(
            "cyclic-versions",
            range(len(order.cyclic)),
            lambda at: self._cyclic(versions, writer, order.cyclic[at]),
        )
        return Examined(self._history, [whole(found)], self.happened, anomalies, unknown)

    def _anomalies(self, options: Options) -> Findings:
        found, ops = Findings(), self._ops
        source, reads = self._source, self._reads
        outcome = self._history.txns.outcome
        has = source >= 0
        writer = np.where(has, ops.txn[source], -1) if len(source) else source
        failed = has & (outcome[writer] == FAIL)
        found.add_rows("G1a", np.flatnonzero(failed).tolist(), self._aborted)
        intermediate = has & (writer != ops.txn[reads]) & ~failed & ~self._last[source]
        found.add_rows("G1b", np.flatnonzero(intermediate).tolist(), self._intermediate)
        own = has & (writer == ops.txn[reads]) & (source > reads)
        found.add_rows("future-read", np.flatnonzero(own).tolist(), self._future)
        wrong, expected = contradictions(self._history, self._groups)
        found.add_rows(
            "internal",
            range(len(wrong)),
            lambda at: self._internal(int(wrong[at]), int(expected[at])),
        )
        found.merge(lost_updates(self._history, self._groups, [ops.element]))
        if lattice.GARBAGE_READ in options.anomalies:
            missing = np.flatnonzero(~has & (ops.element[reads] != NONE))
            found.add_rows(lattice.GARBAGE_READ, missing.tolist(), self._garbage)
        return found

    def _aborted(self, at: int) -> Found:
        row, by = int(self._reads[at]), int(self._source[at])
        return self._names.found(
            "G1a",
            [self._names.txn(row), self._names.txn(by)],
            f"T1 read {self._names.key(row)} as {self._names.element(row)}, but T2, which wrote"
            " that, failed: T1 read an aborted write.",
            row,
            [self._names.element(row)],
        )

    def _intermediate(self, at: int) -> Found:
        row, by = int(self._reads[at]), int(self._source[at])
        return self._names.found(
            "G1b",
            [self._names.txn(row), self._names.txn(by)],
            f"T1 read {self._names.key(row)} as {self._names.element(row)}, but T2 wrote"
            f" {self._names.key(row)} again after that: T1 read an intermediate state of T2.",
            row,
            [self._names.element(row)],
        )

    def _future(self, at: int) -> Found:
        row = int(self._reads[at])
        return self._names.found(
            "future-read",
            [self._names.txn(row)],
            f"T1 read {self._names.key(row)} as {self._names.element(row)}, but T1 wrote that"
            " later.",
            row,
            [self._names.element(row)],
        )

    def _internal(self, row: int, expected: int) -> Found:
        value = self._history.names.element(expected)
        return self._names.found(
            "internal",
            [self._names.txn(row)],
            f"T1 read {self._names.key(row)} as {_shown(self._names.element(row))}, but after its"
            f" own earlier reads and writes it must be {_shown(value)}.",
            row,
            [value],
        )

    def _garbage(self, at: int) -> Found:
        row = int(self._reads[at])
        return self._names.found(
            lattice.GARBAGE_READ,
            [self._names.txn(row)],
            f"T1 read {self._names.key(row)} as {self._names.element(row)}, but no transaction"
            " wrote that.",
            row,
            [self._names.element(row)],
        )

    def _cyclic(self, versions: Versions, writer: I64, cyclic: Cyclic) -> Found:
        values = [named(self._history, versions, number) for number in cyclic.versions]
        txns = sorted({int(writer[number]) for number in cyclic.versions} - {-1})
        shown = listed(_shown(value) for value in values)
        return Found(
            "cyclic-versions",
            tuple(self._history.txns.event[txns].tolist()),
            tuple(map(self._history.describe, txns)),
            f"The versions {shown} of {self._history.names.key(cyclic.key)} precede each other in a"
            f" circle, by what {listed(cyclic.sources)} implies.",
            key=self._history.names.key(cyclic.key),
            values=(tuple(values), tuple(cyclic.sources)),
        )


def _shown(value: object) -> str:
    return "nil" if value is None else str(value)


def contradictions(history: History, groups: Groups) -> tuple[I64, I64]:
    """Return the reads that are not what their transactions had read or written before, and what
    they should have read."""
    ops = history.ops
    groups = groups.where(groups.size > 1)
    known = np.full(len(groups.size), NONE - 1)
    rows, expected = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, group, row in groups.rounds():
        wrong = (ops.kind[row] == READ) & (ops.element[row] != known[group]) & (number > 0)
        rows.append(row[wrong])
        expected.append(known[group[wrong]])
        known[group] = ops.element[row]
    found, should = np.concatenate(rows), np.concatenate(expected)
    order = np.argsort(found)
    return found[order], should[order]


def _dependencies(
    versions: Versions, uses: Uses, writer: I64, earlier: I64, later: I64
) -> tuple[Edges, bool]:
    """Return the edges ww, wr and rw, and whether these are all."""
    reads = uses.read != UNKNOWN
    reader, read = uses.txn[reads], uses.read[reads]
    order = np.argsort(read, kind="stable")
    reader, read = reader[order], read[order]
    key, element = versions.key, versions.element
    by = writer[read]
    seen = (by >= 0) & (by != reader)
    parts = [edges(by[seen], reader[seen], WR, key[read[seen]], element[read[seen]])]
    written = writer[later] >= 0
    earlier, later = earlier[written], later[written]
    both = (writer[earlier] >= 0) & (writer[earlier] != writer[later])
    first, then = earlier[both], later[both]
    parts.append(edges(writer[first], writer[then], WW, key[first], element[first], element[then]))
    begin, end = np.searchsorted(read, earlier), np.searchsorted(read, earlier, "right")
    count = end - begin
    is_complete = int(count.sum()) <= PRODUCT_MAX
    if is_complete and len(count):
        at = np.repeat(begin - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
        first, then = np.repeat(earlier, count), np.repeat(later, count)
        found = edges(reader[at], writer[then], RW, key[first], element[first], element[then])
        parts.append(found.where(found.source != found.target))
    return joined((NO_EDGES, *parts)), is_complete
