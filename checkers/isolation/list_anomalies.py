"""Anomalies of lists that need no cycle: what single reads, transactions and keys show."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from checkers.isolation import lattice
from checkers.isolation.describing import TABLES_MAX, Describer, lost_updates, read_tables
from checkers.isolation.findings import SHOWN_MAX, Findings, Found, ReadTable
from checkers.isolation.groups import Groups, by_key, last_writes
from checkers.isolation.internal import contradictions, future_reads, replayed
from checkers.isolation.list_append import Orders, read_list
from checkers.isolation.transactions import READ, ListHistory
from checkers.kernels.arrays import I64
from checkers.kernels.rows import FAIL, OK, Bools


def anomalies(history: ListHistory, known: Orders) -> Findings:
    """Return all anomalies of a history except cycles and garbage reads."""
    groups = by_key(history.ops, history.txns.outcome == OK)
    each = _Anomalies(history, known)
    each.aborted_reads()
    each.intermediate_reads()
    each.contradictions(groups)
    each.dirty_updates()
    each.duplicates()
    each.incompatible_orders()
    found = each.found
    version = history.ops.length, history.ops.mark.view(np.int64)
    found.merge(lost_updates(history, groups, version))
    return found


def garbage_reads(history: ListHistory, known: Orders) -> Findings:
    """Return the reads of elements that no transaction appended."""
    each = _Anomalies(history, known)
    each.garbage_reads()
    return each.found


class _Anomalies:
    """Finds and describes the anomalies of one history."""

    def __init__(self, history: ListHistory, known: Orders) -> None:
        self.found = Findings()
        self._history, self._known, self._ops = history, known, history.ops
        self._names = Describer(history)
        self._ok = history.txns.outcome == OK

    def aborted_reads(self) -> None:
        """G1a: an ok transaction reads an element whose append failed."""
        others = self._known.other_row
        failed = np.zeros(len(others), np.bool_)
        failed[others >= 0] = self._is_failed(others[others >= 0])

        def why(row: int, element: object) -> str:
            return (
                f"T1 read {self._names.key(row)} as {self._list(row)}, but T2, which appended"
                f" {element}, failed: T1 read an aborted write."
            )

        self._containing("G1a", self._known.outcome == FAIL, failed, why)

    def garbage_reads(self) -> None:
        """An ok transaction reads an element that no transaction appended."""

        def why(row: int, element: object) -> str:
            return (
                f"T1 read {self._names.key(row)} as {self._list(row)}, but no transaction"
                f" appended {element}."
            )

        missing = self._known.row < 0, self._known.other_row < 0
        self._containing(lattice.GARBAGE_READ, *missing, why)

    def intermediate_reads(self) -> None:
        """G1b: an ok transaction reads a list that ends in the middle of another transaction."""
        ops, known, history = self._ops, self._known, self._history
        rows = np.flatnonzero(self._ok[ops.txn] & (ops.kind == READ) & (ops.length > 0))
        writer = np.full(len(ops.txn), -1)
        prefixes = rows[history.is_prefix[rows]]
        end = history.longest.begin[ops.key[prefixes]] + ops.length[prefixes]
        writer[prefixes] = known.row[end - 1]
        writer[history.other_rows] = known.other_row[history.others.begin[1:] - 1]
        rows = rows[writer[rows] >= 0]
        by = writer[rows]
        intermediate = ~last_writes(ops)[by] & (ops.txn[by] != ops.txn[rows])
        intermediate &= ~self._is_failed(by)

        def found(row: int) -> Found:
            key, element = self._names.key(row), self._names.element(row)
            return self._names.found(
                "G1b",
                [self._names.txn(row), self._names.txn(int(writer[row]))],
                f"T1 read {key} as {self._list(row)}, but T2 appended more to {key} after"
                f" {element}: T1 read an intermediate state of T2.",
                row,
                [element],
            )

        self.found.add_rows("G1b", rows[intermediate].tolist(), found)

    def contradictions(self, groups: Groups) -> None:
        """internal and future-read: a transaction contradicts itself."""
        groups = groups.where(groups.size > 1)
        wrong = contradictions(self._history, groups)

        def internal(at: int) -> Found:
            row = int(wrong.row[at])
            expected = replayed(self._history, groups.of(int(wrong.group[at])), row)
            return self._names.found(
                "internal",
                [self._names.txn(row)],
                f"T1 read {self._names.key(row)} as {self._list(row)}, but after its own earlier"
                f" reads and appends it must be [{' '.join(map(str, expected))}].",
                row,
                expected,
            )

        self.found.add_rows("internal", range(len(wrong.row)), internal)
        read, append = future_reads(self._history, self._known.place, groups)

        def future(at: int) -> Found:
            row, element = int(read[at]), self._names.element(int(append[at]))
            return self._names.found(
                "future-read",
                [self._names.txn(row)],
                f"T1 read {self._names.key(row)} as {self._list(row)}, which contains {element},"
                " but T1 appended that element later.",
                row,
                [element],
            )

        self.found.add_rows("future-read", range(len(read)), future)

    def dirty_updates(self) -> None:
        """An element of a failed transaction is followed by one of an ok transaction."""
        known = self._known
        failed = np.flatnonzero(known.outcome == FAIL)
        ok = np.flatnonzero((known.txn >= 0) & (known.outcome == OK))
        following = np.searchsorted(ok, failed)
        has = following < len(ok)
        has[has] = known.key[ok[following[has]]] == known.key[failed[has]]
        failed, following = failed[has], ok[following[has]]

        def found(at: int) -> Found:
            first, then = int(known.row[failed[at]]), int(known.row[following[at]])
            elements = [self._names.element(first), self._names.element(then)]
            return self._names.found(
                "dirty-update",
                [self._names.txn(first), self._names.txn(then)],
                f"T1, which appended {elements[0]} to {self._names.key(first)}, failed, but reads"
                f" show T2's append of {elements[1]} after it: T2 updated an aborted version.",
                first,
                elements,
            )

        self.found.add_rows("dirty-update", range(len(failed)), found)

    def duplicates(self) -> None:
        """A read lists an element more than once."""

        rows = self._history.repeating.tolist()
        tables = self._tables(rows)

        def found(row: int) -> Found:
            return self._names.found(
                "duplicate-elements",
                [self._names.txn(row)],
                f"T1 read {self._names.key(row)} as a list that contains an element more than"
                f" once. With each element once the list is {self._list(row)}.",
                row,
                reads=tables.get(int(self._ops.key[row])),
            )

        self.found.add_rows("duplicate-elements", rows, found)

    def incompatible_orders(self) -> None:
        """Two reads of a key, neither of which is a prefix of the other."""
        rows, ops = self._history.other_rows, self._ops
        order = np.lexsort((rows, ops.mark[rows], ops.key[rows]))
        key, mark = ops.key[rows[order]], ops.mark[rows[order]]
        is_new = np.ones(len(rows), np.bool_)
        is_new[1:] = (key[1:] != key[:-1]) | (mark[1:] != mark[:-1])
        length = self._history.longest.length
        reads = np.flatnonzero(self._history.is_prefix)
        full = reads[ops.length[reads] == length[ops.key[reads]]][::-1]
        owner = np.full(len(length), -1)
        owner[ops.key[full]] = full
        contradicting = np.sort(rows[order[is_new]]).tolist()
        tables = self._tables(contradicting)

        def found(row: int) -> Found:
            other = int(owner[ops.key[row]])
            return self._names.found(
                "incompatible-order",
                [self._names.txn(row), self._names.txn(other)],
                f"T1 read {self._names.key(row)} as {self._list(row)} and T2 read it as"
                f" {self._list(other)}. Neither is a prefix of the other, so the versions have no"
                " single order.",
                row,
                [read_list(self._history, row), read_list(self._history, other)],
                tables.get(int(ops.key[row])),
            )

        self.found.add_rows("incompatible-order", contradicting, found)

    def _tables(self, rows: Sequence[int]) -> Mapping[int, ReadTable]:
        """Return the tables of the first keys that these micro-operations use."""
        keys = dict.fromkeys(self._ops.key[[*rows[:SHOWN_MAX]]].tolist()) if rows else {}
        return read_tables(self._history, list(keys)[:TABLES_MAX]) if keys else {}

    def _containing(
        self, anomaly: str, flagged: Bools, others: Bools, why: Callable[[int, object], str]
    ) -> None:
        """Add a finding for each flagged element of each ok read.

        Args:
            flagged: the flagged elements of the longest reads.
            others: those of the reads that contradict them.
        """
        history, ops = self._history, self._ops
        at, begin = np.flatnonzero(flagged), history.longest.begin
        rows = np.flatnonzero(history.is_prefix & self._ok[ops.txn])
        first, end = (
            np.searchsorted(at, x)
            for x in (begin[ops.key[rows]], begin[ops.key[rows]] + ops.length[rows])
        )
        kept = self._ok[ops.txn[history.other_rows]]
        other_at = np.flatnonzero(others & np.repeat(kept, history.others.length))
        shown = self.found.shown.setdefault(anomaly, [])
        for row, begins, ends in _some(rows, first, end):
            for place in at[begins:ends].tolist():
                writer, code = int(self._known.row[place]), int(history.longest.element[place])
                shown.append(self._contains(anomaly, row, writer, code, why))
        owner = np.repeat(history.other_rows, history.others.length)
        for place in other_at[:SHOWN_MAX].tolist():
            writer, code = int(self._known.other_row[place]), int(history.others.element[place])
            shown.append(self._contains(anomaly, int(owner[place]), writer, code, why))
        self.found.shown[anomaly] = sorted(shown, key=lambda found: found.events)[:SHOWN_MAX]
        if number := int((end - first).sum()) + len(other_at):
            self.found.counts[anomaly] = number
        else:
            del self.found.shown[anomaly]

    def _contains(
        self, anomaly: str, row: int, writer: int, code: int, why: Callable[[int, object], str]
    ) -> Found:
        element = self._history.names.element(code)
        txns = [self._names.txn(row), *([self._names.txn(writer)] if writer >= 0 else [])]
        return self._names.found(anomaly, txns, why(row, element), row, [element])

    def _is_failed(self, rows: I64) -> Bools:
        found: Bools = self._history.txns.outcome[self._ops.txn[rows]] == FAIL
        return found

    def _list(self, row: int) -> str:
        return f"[{' '.join(map(str, read_list(self._history, row)))}]"


def _some(rows: I64, first: I64, end: I64) -> Iterator[tuple[int, int, int]]:
    """Yield the first rows that contain a flagged element, and which ones."""
    shown = 0
    for at in np.flatnonzero(end > first).tolist():
        if shown >= SHOWN_MAX:
            return
        yield int(rows[at]), int(first[at]), int(end[at])
        shown += int(end[at] - first[at])
