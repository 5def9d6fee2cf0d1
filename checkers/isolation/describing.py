"""Builds findings about rows of a history: names instead of codes, texts, and tables of reads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from checkers.isolation.findings import Findings, Found, ReadTable, ReadVersion, listed
from checkers.isolation.groups import Groups, first_reads
from checkers.isolation.list_append import read_list
from checkers.isolation.transactions import READ, UNKNOWN, History, ListHistory
from checkers.kernels.arrays import I64, changes

ROWS_MAX, COLUMNS_MAX, TABLES_MAX = 40, 60, 20
"""Number of versions and of positions in a table of reads, and of tables of one anomaly."""
COLUMNS_BEFORE = 20
"""Number of positions in a table before the first one that two versions disagree about."""
_OPENING, _CLOSING = "[({", "])}"


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

    def micro_ops(self, txn: int) -> tuple[str, ...]:
        """Return the text of each micro-operation of a transaction."""
        rows = self._rows(txn)
        found = _split(self._history.describe(txn))
        if len(rows) in (0, len(found)):
            return found
        return tuple(map(self._micro_op, rows))  # names contain brackets or commas

    def place(self, txn: int, kind: int, key: int, element: int) -> int | None:
        """Return which micro-operation of a transaction writes, or reads, a version of a key.

        If none reads exactly this version, it is the first read of the key.
        """
        rows, ops = self._rows(txn), self._history.ops
        among = [row for row in rows if ops.kind[row] == kind and ops.key[row] == key]
        exact = [row for row in among if ops.element[row] == element and ops.length[row] != UNKNOWN]
        chosen = exact or (among if kind == READ else [])
        return chosen[0] - rows.start if chosen else None

    def _rows(self, txn: int) -> range:
        """Return the rows of the micro-operations of a transaction."""
        column = self._history.ops.txn
        return range(int(np.searchsorted(column, txn)), int(np.searchsorted(column, txn, "right")))

    def _micro_op(self, row: int) -> str:
        history, ops = self._history, self._history.ops
        is_read, is_list = ops.kind[row] == READ, isinstance(history, ListHistory)
        verb = "r" if is_read else "append" if is_list else "w"
        value: Any = self.element(row)
        if isinstance(history, ListHistory) and is_read and ops.length[row] > 0:
            value = f"[{' '.join(map(str, read_list(history, row)))}]"
        return f"{verb} {self.key(row)} {'nil' if value is None else value}"

    def found(
        self,
        anomaly: str,
        txns: Sequence[int],
        why: str,
        row: int,
        values: Sequence[Any] = (),
        reads: ReadTable | None = None,
    ) -> Found:
        """Return a finding about transactions, and the key of a micro-operation."""
        return Found(
            anomaly,
            tuple(self._history.txns.event[[*txns]].tolist()),
            tuple(map(self._history.describe, txns)),
            why,
            key=self.key(row),
            values=tuple(values),
            micro_ops=tuple(map(self.micro_ops, txns)),
            reads=reads,
        )


def _split(text: str) -> tuple[str, ...]:
    """Return the micro-operations in the text of a transaction: what is between commas that are in
    no brackets."""
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if depth == 0 and text.startswith(", ", at):
            found.append(text[begin:at])
            begin = at + 2
    return (*found, text[begin:])


def read_tables(history: ListHistory, keys: Sequence[int]) -> Mapping[int, ReadTable]:
    """Return the tables of what was read of some keys, given their codes."""
    ops = history.ops
    rows = np.flatnonzero((ops.kind == READ) & (ops.length > 0) & np.isin(ops.key, keys))
    repeats = np.isin(rows, history.repeating)
    columns = (ops.key[rows], ops.length[rows], ops.mark[rows].view(np.int64), repeats)
    order = np.lexsort((rows, *columns[::-1]))
    is_new = np.logical_or.reduce([changes(column[order]) for column in columns])
    begin = np.append(np.flatnonzero(is_new), len(order))
    versions: dict[int, list[tuple[int, int]]] = {}
    """For each key the row of the first read of each version, and the number of transactions."""
    for first, end in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
        group = rows[order[first:end]]
        count = len(np.unique(ops.txn[group]))
        versions.setdefault(int(ops.key[group[0]]), []).append((int(group[0]), count))
    return {key: _table(history, key, found) for key, found in versions.items()}


def _table(history: ListHistory, key: int, versions: Sequence[tuple[int, int]]) -> ReadTable:
    """Return the table of a key; if not all versions fit, with those that say most."""
    longest = history.longest.of(key)
    read = {row: _codes(history, row) for row, _ in versions}
    differs = {row: _first_difference(codes, longest) for row, codes in read.items()}
    at = min((place for place in differs.values() if place is not None), default=0)
    first = max(0, min(at - COLUMNS_BEFORE, len(longest) - COLUMNS_MAX))

    def importance(version: tuple[int, int]) -> tuple[bool, bool, int]:
        """The longest version comes first, then those that differ from it, and near prefixes."""
        row = version[0]
        is_prefix = differs[row] is None
        is_longest = is_prefix and len(read[row]) == len(longest)
        return not is_longest, is_prefix, abs(len(read[row]) - at)

    kept = sorted(sorted(versions, key=importance)[:ROWS_MAX])

    def shown(codes: I64) -> tuple[Any, ...]:
        return tuple(map(history.names.element, codes[first : first + COLUMNS_MAX].tolist()))

    return ReadTable(
        history.names.key(key),
        first,
        shown(longest),
        len(longest),
        tuple(
            ReadVersion(
                int(history.txns.event[history.ops.txn[row]]),
                count,
                len(read[row]),
                shown(read[row]),
                bool(np.isin(row, history.repeating)),
            )
            for row, count in kept
        ),
        len(versions) - len(kept),
    )


def _codes(history: ListHistory, row: int) -> I64:
    """Return the elements that a read returned, as a part of a longer array."""
    at = int(np.searchsorted(history.other_rows, row))
    if at < len(history.other_rows) and history.other_rows[at] == row:
        return history.others.of(at)
    return history.longest.of(int(history.ops.key[row]))[: int(history.ops.length[row])]


def _first_difference(found: I64, longest: I64) -> int | None:
    """Return where a list differs from the longest one; ``None`` for a prefix of it."""
    shorter = min(len(found), len(longest))
    unequal = np.flatnonzero(found[:shorter] != longest[:shorter])
    if len(unequal):
        return int(unequal[0])
    return shorter if len(found) > shorter else None


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
