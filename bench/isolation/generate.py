"""Writes a large history of transactions on lists, strict serializable or with planted anomalies.

    python -m bench.isolation.generate 1000000 history.parquet --planted

Transactions take effect one after the other. Each one is invoked some time before that, and
completes some time after it. Keys are used for a while, and then new ones are.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from checkers import arrow
from checkers.isolation import columnar
from checkers.isolation.columnar import list_column
from checkers.isolation.transactions import READ, UNKNOWN, WRITE, begins_of, marks_of
from checkers.kernels.arrays import I64, changes
from checkers.kernels.rows import FAIL, INFO, OK

KEYS, USERS = 16, 512
"""How many keys are in use at a time, and by how many transactions."""
APART, DELAY = 10, 200
"""How far apart transactions take effect, and the most that one is invoked before that, or
completes after it."""
PROCESSES = 64
LENGTH = 6
"""The most micro-operations of a transaction; at least one."""
CRASHED = 0.01
"""The share of transactions that fail, and of those that are in doubt."""
BLOCK = 1 << 17
"""How many transactions are generated at a time: a multiple of :data:`USERS`, because keys of one
block are not used in another one."""
_PLACES = 1 << 10

Txn = tuple[int, Sequence[tuple[str, int, Any]]]
_SKEW: Sequence[Txn] = (
    (OK, [("r", -3, []), ("append", -4, 1)]),
    (OK, [("r", -4, []), ("append", -3, 1)]),
    (OK, [("r", -3, [1]), ("r", -4, [1])]),
)
_LOST_UPDATE: Sequence[Txn] = (
    (OK, [("r", -2, []), ("append", -2, 1)]),
    (OK, [("r", -2, []), ("append", -2, 2)]),
    (OK, [("r", -2, [1, 2])]),
)
_ABORTED_READ: Sequence[Txn] = ((FAIL, [("append", -1, 1)]), (OK, [("r", -1, [1])]))
_ORDERS: Sequence[Txn] = (
    (OK, [("append", -5, 1)]),
    (OK, [("append", -5, 2)]),
    (OK, [("r", -5, [1, 2])]),
    (OK, [("r", -5, [2])]),
)
PLANTED = (_SKEW, _LOST_UPDATE, _ABORTED_READ, _ORDERS)
"""Transactions that overlap in time, with one anomaly or a few."""


def write(path: Path, transactions: int, *, planted: bool = False, seed: int = 0) -> None:
    """Write a history block by block."""
    columnar.write(path, _tables(transactions, planted, seed))


def _tables(transactions: int, planted: bool, seed: int) -> Iterator[pa.Table]:
    rng, left = np.random.default_rng(seed), None
    for begin in range(0, transactions, BLOCK):
        count = min(BLOCK, transactions - begin)
        parts = [*([] if left is None else [left]), _block(rng, begin, count)]
        if planted and begin <= transactions // 2 < begin + count:
            parts.append(_extra(transactions // 2))
        rows = pa.concat_tables(parts)
        completed = rows["completed"].to_numpy()
        order = np.argsort(completed, kind="stable")
        is_over = completed[order] < _position(np.array([begin + count]), 0)[0]
        if begin + count == transactions:
            is_over[:] = True
        yield rows.take(arrow.column(order[is_over]))
        left = rows.take(arrow.column(order[~is_over]))


def _position(number: I64, delay: Any) -> I64:
    """Return a position in the history, which no other transaction has."""
    found: I64 = ((number * APART + delay) * _PLACES + number % _PLACES + DELAY * _PLACES) * 2
    return found


def _block(rng: np.random.Generator, begin: int, count: int) -> pa.Table:
    number = np.arange(begin, begin + count)
    chance = rng.random(count)
    outcome = np.where(chance < CRASHED, FAIL, np.where(chance > 1 - CRASHED, INFO, OK))
    has_effect = (outcome == OK) | ((outcome == INFO) & (rng.random(count) < 0.5))
    txn = np.repeat(np.arange(count), rng.integers(1, LENGTH + 1, count))
    size = len(txn)
    kind = np.where(rng.random(size) < 0.5, READ, WRITE)
    key = number[txn] // USERS * KEYS + rng.integers(0, KEYS, size)
    order = np.argsort(key, kind="stable")
    key, kind, of = key[order], kind[order], txn[order]
    begins = np.flatnonzero(changes(key))
    first = np.repeat(begins, np.diff(np.append(begins, size)))
    appended = _running(kind == WRITE, first)
    is_there = (kind == WRITE) & has_effect[of]
    length = _running(is_there, first)
    element = np.where(kind == WRITE, appended + 1, 0)
    added = np.where(is_there, marks_of(element, length), np.uint64(0))
    mark = _running(added, first)
    is_known = (kind == READ) & (outcome[of] == OK)
    listed = _longest(is_known, length, begins, size)
    elements = _elements(listed, is_there, element, first, length)
    length = np.where(is_known, length, np.where(kind == READ, UNKNOWN, 0))
    mark = np.where(is_known, mark, np.uint64(0))
    back = np.empty(size, np.int64)
    back[order] = np.arange(size)
    back = back[np.argsort(of[back], kind="stable")]
    of = of[back]
    completed = _position(number, rng.integers(0, DELAY, count))
    invoked = _position(number, -rng.integers(0, DELAY, count)) + 1
    columns = [
        arrow.column(completed[of]),
        arrow.column((number % PROCESSES)[of]),
        arrow.column(outcome[of].astype(np.int8)),
        arrow.column(invoked[of]),
        arrow.column(completed[of]),
        arrow.column(kind[back].astype(np.int8)),
        arrow.column(key[back]),
        arrow.column(element[back]),
        arrow.column(length[back].astype(np.int32)),
        arrow.column(mark[back]),
        elements.take(arrow.column(back)),
        pa.repeat(pa.scalar(False), size),
    ]
    return pa.table(columns, schema=columnar.SCHEMA)


def _running(column: Any, first: I64) -> Any:
    """Return the sum of the rows before each row, from the first row of its key on."""
    total = np.zeros(len(column) + 1, np.uint64 if column.dtype == np.uint64 else np.int64)
    np.cumsum(column, out=total[1:])
    return total[:-1] - total[first]


def _longest(is_known: Any, length: I64, begins: I64, size: int) -> I64:
    """Return the last row of each key that reads its longest list."""
    place = np.where(is_known, np.arange(size), -1)
    last = np.maximum.reduceat(place, begins)
    last = last[last >= 0]
    found: I64 = last[length[last] > 0]
    return found


def _elements(rows: I64, is_there: Any, element: I64, first: I64, length: I64) -> pa.Array:
    """Return the column of lists; only those of some rows are stored."""
    size = np.zeros(len(element), np.int64)
    size[rows] = length[rows]
    written = np.flatnonzero(is_there)
    begin = np.searchsorted(written, first[rows])
    begins = begins_of(size[rows])
    at = np.arange(begins[-1]) + np.repeat(begin - begins[:-1], size[rows])
    is_null = np.ones(len(element), np.bool_)
    is_null[rows] = False
    return list_column(begins_of(size), element[written[at]], is_null)


def _extra(middle: int) -> pa.Table:
    """Return transactions with anomalies, all of them at the same time."""
    rows = []
    for number, (outcome, micro_ops) in enumerate(each for part in PLANTED for each in part):
        invoked = int(_position(np.array([middle]), 0)[0]) + 101 + 2 * number
        completed = invoked + 999
        for f, key, value in micro_ops:
            is_read = f == "r"
            listed = np.array(value if is_read else [], np.int64)
            mark = int(marks_of(listed, np.arange(len(listed))).sum(dtype=np.uint64))
            element = 0 if is_read else value
            kind = READ if is_read else WRITE
            txn = completed, PROCESSES + number, outcome, invoked, completed
            elements = value if is_read and value else None
            rows.append((*txn, kind, key, element, len(listed), mark, elements, False))
    columns = [list(column) for column in zip(*rows, strict=True)]
    fields = zip(columns, columnar.SCHEMA, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in fields], schema=columnar.SCHEMA)


def main() -> None:
    """Write the history that the command line describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("transactions", type=int, metavar="COUNT")
    parser.add_argument("path", type=Path)
    parser.add_argument("--planted", action="store_true", help="plant anomalies")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    write(asked.path, asked.transactions, planted=asked.planted, seed=asked.seed)


if __name__ == "__main__":
    main()
