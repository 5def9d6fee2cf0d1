"""Rows of micro-operations on lists, or of some keys or transactions, and the history they make.

All that is known of a key follows from its own rows. So the rows of a large history are judged in
buckets of keys, and only the transactions that matter are put together again.
"""

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers import arrow
from checkers.isolation.list_append import read_list
from checkers.isolation.reading import text_of
from checkers.isolation.transactions import (
    NONE,
    READ,
    U64,
    UNKNOWN,
    WRITE,
    ListHistory,
    Lists,
    MicroOps,
    Names,
    Transactions,
    begins_of,
    contradicting,
    prefix_marks,
)
from checkers.kernels.arrays import BLOCK, I32, I64, changes
from checkers.kernels.rows import I8
from model.history import BadHistory

NOTHING = 2
"""The kind of the one row of a transaction without micro-operations."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Named(NamedTuple):
    """The names of keys and of elements by their numbers; ``None`` if these are the names."""

    keys: Sequence[Any] | None = None
    elements: Sequence[Any] | None = None


UNNAMED = Named()


class ListRows(NamedTuple):
    """Transactions, and their micro-operations in the order of execution."""

    txns: Transactions
    txn: I32
    """The transaction of each row."""
    kind: I8
    """READ, WRITE or NOTHING."""
    key: I64
    element: I64
    """What was appended."""
    length: I32
    """The number of elements that were read, each counted once; UNKNOWN without a result."""
    mark: U64
    listed: I64
    """The rows of which the list is kept: a longest read of each key, and all that contradict
    it."""
    lists: Lists
    """These lists."""
    repeats: I64
    """The rows of reads that have an element more than once."""

    def of_rows(self, rows: I64) -> "tuple[ListRows, I64]":
        """Return some rows, ascending, with their transactions; and which transactions these
        are."""
        txn = self.txn[rows]
        is_first = changes(txn)
        numbers = txn[is_first].astype(np.int64)
        listed = np.flatnonzero(_is_in_order(self.listed, rows))
        chosen = ListRows(
            self.txns.where(numbers),
            (np.cumsum(is_first) - 1).astype(np.int32),
            self.kind[rows],
            self.key[rows],
            self.element[rows],
            self.length[rows],
            self.mark[rows],
            np.searchsorted(rows, self.listed[listed]),
            _chosen(self.lists, listed),
            np.searchsorted(rows, self.repeats[_is_in_order(self.repeats, rows)]),
        )
        return chosen, numbers

    def of_transactions(self, numbers: I64) -> "ListRows":
        """Return the rows of some transactions, given in ascending order."""
        begin = np.searchsorted(self.txn, numbers)
        end = np.searchsorted(self.txn, numbers, "right")
        begins = begins_of(end - begin)
        rows = np.arange(begins[-1]) + np.repeat(begin - begins[:-1], end - begin)
        return self.of_rows(rows)[0]

    def buckets(self, count: int) -> "Buckets":
        """Divide the rows into so many buckets; those of one key are in one bucket."""
        orders, begins = [], []
        for begin in range(0, max(len(self.key), 1), BLOCK):
            mixed = self.key[begin : begin + BLOCK].astype(np.uint64) * _MIX >> np.uint64(40)
            bucket = (mixed % np.uint64(count)).astype(np.uint16 if count < 1 << 16 else np.int64)
            order = np.argsort(bucket, kind="stable")
            orders.append((begin + order).astype(np.int32))
            begins.append(np.searchsorted(bucket[order], np.arange(count + 1)))
        return Buckets(orders, begins)

    def longest(self, keys: I64) -> "Longest":
        """Return a longest list of each of these keys that has one; keys are ascending."""
        key = self.key[self.listed]
        at = np.flatnonzero(np.isin(key, keys))
        return longest_of(Longest(key[at], _chosen(self.lists, at)))


_NONE = np.zeros(0, np.int64)
NO_ROWS = ListRows(
    Transactions(_NONE, _NONE, _NONE.astype(np.int8), _NONE, _NONE),
    _NONE.astype(np.int32),
    _NONE.astype(np.int8),
    _NONE,
    _NONE,
    _NONE.astype(np.int32),
    _NONE.astype(np.uint64),
    _NONE,
    Lists(np.zeros(1, np.int64), _NONE),
    _NONE,
)


class Buckets(NamedTuple):
    """The rows of buckets."""

    orders: list[I32]
    """The rows of each block, one bucket after another."""
    begins: list[I64]
    """Where each bucket begins in these, and where the last one ends."""

    def rows(self, number: int) -> I64:
        """Return the rows of a bucket, ascending."""
        pairs = zip(self.orders, self.begins, strict=True)
        parts = [order[begin[number] : begin[number + 1]] for order, begin in pairs]
        return np.concatenate(parts).astype(np.int64)


class Longest(NamedTuple):
    """A list of each of some keys."""

    key: I64
    lists: Lists


def longest_of(found: Longest) -> Longest:
    """Return a longest one of the lists of each key, by ascending keys; of equal ones the first."""
    order = np.lexsort((-np.arange(len(found.key)), found.lists.length, found.key))
    key = found.key[order]
    is_last = np.append(key[1:] != key[:-1], [True])[: len(key)]
    return Longest(key[is_last], _chosen(found.lists, order[is_last]))


_ROW_COLUMNS = ("txn", "kind", "key", "element", "length", "mark")


def joined(parts: Iterable[ListRows], size: int) -> ListRows:
    """Return rows of several parts, in their order, each with transactions of its own.

    ``size`` is the number of all rows. A part is not needed any more when the next one is taken.
    """
    whole: dict[str, Any] = {}
    txns: list[list[Any]] = [[column] for column in NO_ROWS.txns]
    lists = [NO_ROWS.lists]
    listed, repeats = [NO_ROWS.listed], [NO_ROWS.repeats]
    begin = first = 0
    for part in parts:
        end = begin + len(part.txn)
        for name in _ROW_COLUMNS:
            column = getattr(part, name)
            into = whole.setdefault(name, np.empty(size, column.dtype))
            into[begin:end] = column
        whole["txn"][begin:end] += first
        listed.append(part.listed + begin)
        repeats.append(part.repeats + begin)
        lists.append(_chosen(part.lists, np.arange(len(part.listed))))
        for found, column in zip(txns, part.txns, strict=True):
            found.append(column)
        begin, first = end, first + len(part.txns.event)
        del part, column
    return NO_ROWS._replace(
        txns=Transactions(*(_concatenated(column) for column in txns)),
        **whole,
        listed=np.concatenate(listed),
        lists=joined_lists(lists),
        repeats=np.concatenate(repeats),
    )


def _concatenated(parts: list[Any]) -> Any:
    """Return parts of a column as one array, and forget them."""
    found = np.concatenate(parts)
    parts.clear()
    return found


def joined_lists(parts: Sequence[Lists]) -> Lists:
    """Return the lists of several parts, in their order."""
    lengths = np.concatenate([np.zeros(0, np.int64), *(part.length for part in parts)])
    element = [part.element[part.begin[0] : part.begin[-1]] for part in parts]
    return Lists(begins_of(lengths), np.concatenate([np.zeros(0, np.int64), *element]))


def _is_in_order(some: I64, rows: I64) -> Any:
    """Return which of these rows are among others; both are ascending."""
    place = np.searchsorted(rows, some)
    found = place < len(rows)
    found[found] = rows[place[found]] == some[found]
    return found


def _chosen(lists: Lists, at: I64) -> Lists:
    """Return some of the lists."""
    length = lists.length[at]
    begins = begins_of(length)
    rows = np.arange(begins[-1]) + np.repeat(lists.begin[:-1][at] - begins[:-1], length)
    return Lists(begins, lists.element[rows])


def history(rows: ListRows, named: Named, longest: Longest | None = None) -> ListHistory:
    """Return the history that rows make.

    ``longest`` are the longest lists of the keys, if not all rows of these are here. Raises
    :class:`~model.history.BadHistory` if a list is missing that is needed.
    """
    is_op = rows.kind != NOTHING
    listed, repeats = rows.listed, rows.repeats
    at: Any = slice(None)
    if not is_op.all():
        at = np.flatnonzero(is_op)
        listed, repeats = np.searchsorted(at, listed), np.searchsorted(at, repeats)
    kind, length, mark = rows.kind[at], rows.length[at].astype(np.int64), rows.mark[at]
    txn = rows.txn[at].astype(np.int64)
    key_names, code = _codes(rows.key[at])
    whole = rows.longest(np.sort(key_names)) if longest is None else longest
    lists = _by_code(whole, key_names)
    element = np.where(kind == WRITE, rows.element[at], NONE)
    reads = np.flatnonzero((kind == READ) & (length > 0))
    marks = prefix_marks(lists)
    others = contradicting(reads, code, length, mark, lists, marks)
    keys = key_names.tolist()
    names = Names(keys if named.keys is None else [named.keys[key] for key in keys], named.elements)
    if len(missing := others[~_is_in_order(others, listed)]):
        key = names.key(int(code[missing[0]]))
        raise BadHistory(f"a list is missing that a transaction read of {key}")
    is_prefix = np.ones(len(txn), np.bool_)
    is_prefix[others] = False
    reads = reads[is_prefix[reads]]
    element[reads] = lists.element[lists.begin[code[reads]] + length[reads] - 1]
    kept = _chosen(rows.lists, np.searchsorted(listed, others))
    element[others] = kept.element[kept.begin[1:] - 1]
    texts = _Texts()
    found = ListHistory(
        rows.txns,
        MicroOps(txn, kind, code, element, length, mark),
        names,
        texts,
        lists,
        marks,
        others,
        kept,
        repeats,
    )
    texts.history = weakref.proxy(found)  # a cycle of references would keep the columns
    return found


def _codes(key: I64) -> tuple[I64, I64]:
    """Return the distinct keys in the order of their first rows, and the number of each row."""
    encoded = arrow.column(key).dictionary_encode()
    return arrow.numbers(encoded.dictionary), arrow.numbers(encoded.indices).astype(np.int64)


def _by_code(longest: Longest, keys: I64) -> Lists:
    """Return the list of each of these keys; an empty one if there is none."""
    length = np.zeros(len(keys), np.int64)
    place = np.searchsorted(longest.key, keys)
    has = place < len(longest.key)
    has[has] = longest.key[place[has]] == keys[has]
    length[has] = longest.lists.length[place[has]]
    return Lists(begins_of(length), _chosen(longest.lists, place[has]).element)


class _Texts:
    """Describes transactions of a history."""

    history: ListHistory

    def __call__(self, txn: int) -> str:
        ops, names = self.history.ops, self.history.names
        first, end = (int(np.searchsorted(ops.txn, txn, side)) for side in ("left", "right"))
        found: list[Any] = []
        for row in range(first, end):
            key = names.key(int(ops.key[row]))
            if ops.kind[row] == WRITE:
                found.append(("append", key, names.element(int(ops.element[row]))))
            else:
                is_known = ops.length[row] != UNKNOWN
                found.append(("r", key, read_list(self.history, row) if is_known else None))
        return text_of(found)
