"""Transactions as columns: what each one wrote and read, in arrays that hold millions of them.

A read of a list is three numbers: its length, its last element, and a mark, which is a hash of its
elements and their places. A list is a prefix of another one if its mark equals the mark of as many
elements of the other. So full lists are kept only once per key (the longest), and for the few reads
that contradict it.

Other sources than a sequence of events (:mod:`checkers.isolation.reading`) can fill the same
arrays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from checkers.kernels.arrays import I64
from checkers.kernels.rows import I8, Bools, Rows

U64 = NDArray[np.uint64]

WRITE, READ = 0, 1
"""Kinds of micro-operations. An append and an insert are writes."""

NONE = -(1 << 62)
"""The code of no element: the last element of an empty list, and a register's initial version."""
UNKNOWN = -1
"""The length of a read whose result is not known, and the position of a missing event."""

_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
_THIRD, _FOURTH = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Absent(Enum):
    """Versions of a key that has no value."""

    UNBORN = "unborn"
    """Before the key was inserted."""
    DEAD = "dead"
    """After the key was deleted."""


class _Transactions(NamedTuple):
    event: I64
    """The index of the event that ended it; of its invocation, if nothing did."""
    process: I64
    outcome: I8
    """OK, FAIL or INFO, as in :mod:`checkers.kernels.rows`."""
    invoked: I64
    """The position of its invocation in the history; UNKNOWN if the history has none."""
    completed: I64
    """The position of its completion in the history; UNKNOWN if the history has none."""


class Transactions(Rows, _Transactions):
    """One row per transaction, in the order of completion."""

    __slots__ = ()


class _MicroOps(NamedTuple):
    txn: I64
    kind: I8
    key: I64
    element: I64
    """What was written; what a register was read as; or the last element of a list."""
    length: I64
    """The number of elements read; 1 for the read of a register, or UNKNOWN; 0 for a write."""
    mark: U64
    """The mark of the list; 0 except for reads of lists."""


class MicroOps(Rows, _MicroOps):
    """One row per micro-operation, in the order of transactions, and of execution inside each."""

    __slots__ = ()


class Lists(NamedTuple):
    """Lists of elements, one after another."""

    begin: I64
    """Where each list begins, and where the last one ends."""
    element: I64

    def __getitem__(self, at: Any) -> Any:
        raise TypeError("the lists have a method of their own for this: of")

    def of(self, at: int) -> I64:
        """Return the list with a number."""
        return self.element[self.begin[at] : self.begin[at + 1]]

    @property
    def length(self) -> I64:
        """The length of each list."""
        return np.diff(self.begin)


@dataclass(frozen=True)
class Names:
    """The keys and elements behind the codes."""

    keys: Sequence[Any]
    elements: Sequence[Any] | None = None
    """The elements by their codes; ``None`` if each code is the element itself."""

    def key(self, code: int) -> Any:
        """Return the key with a code."""
        return self.keys[code]

    def element(self, code: int) -> Any:
        """Return the element with a code; ``None`` for no element."""
        if code == NONE:
            return None
        return int(code) if self.elements is None else self.elements[code]


@dataclass(frozen=True)
class History:
    """Transactions on registers or on lists."""

    txns: Transactions
    ops: MicroOps
    names: Names
    describe: Callable[[int], str]
    """Return the micro-operations of a transaction as text."""
    verb = "write"
    """What a transaction does to a key to change it."""


@dataclass(frozen=True)
class ListHistory(History):
    """Transactions on lists, whose ``length`` and ``mark`` count each element of a list once."""

    longest: Lists
    """The longest read of each key, with each element once."""
    marks: U64
    """The marks of its prefixes: one more than it has elements, for each key."""
    other_rows: I64
    """The reads that are no prefix of the longest one, by their rows, ascending."""
    others: Lists
    """What they read, with each element once."""
    repeating: I64
    """The reads that list an element more than once, by their rows, ascending."""
    verb = "append"

    @property
    def is_prefix(self) -> Bools:
        """Whether each row is a read of a prefix of the longest one of its key."""
        found: Bools = (self.ops.kind == READ) & (self.ops.length != UNKNOWN)
        found[self.other_rows] = False
        return found


def marks_of(element: I64, place: I64) -> U64:
    """Return for each element of a list, and its place in the list, what it adds to the mark."""
    mixed = element.astype(np.uint64) * _FIRST + (place.astype(np.uint64) + np.uint64(1)) * _SECOND
    mixed ^= mixed >> np.uint64(30)
    mixed *= _THIRD
    mixed ^= mixed >> np.uint64(27)
    mixed *= _FOURTH
    found: U64 = mixed ^ (mixed >> np.uint64(31))
    return found


def places_within(begin: I64) -> I64:
    """Return the place of each row in its list, given where lists begin and the last one ends."""
    return np.arange(int(begin[-1])) - np.repeat(begin[:-1], np.diff(begin))


def begins_of(lengths: Sequence[int] | I64) -> I64:
    """Return where each list begins, and where the last one ends, given their lengths."""
    found = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=found[1:])
    return found


def list_marks(lists: Lists) -> U64:
    """Return the mark of each list."""
    total = np.zeros(len(lists.element) + 1, np.uint64)
    np.cumsum(marks_of(lists.element, places_within(lists.begin)), out=total[1:])
    return total[lists.begin[1:]] - total[lists.begin[:-1]]


def prefix_marks(lists: Lists) -> U64:
    """Return the marks of all prefixes of each list, from the empty one to the list itself."""
    added = marks_of(lists.element, places_within(lists.begin))
    total = np.zeros(len(added) + 1, np.uint64)
    np.cumsum(added, out=total[1:])
    rows = np.arange(len(added) + len(lists.begin) - 1) - np.repeat(
        np.arange(len(lists.begin) - 1), lists.length + 1
    )
    return total[rows] - np.repeat(total[lists.begin[:-1]], lists.length + 1)


def contradicting(rows: I64, key: I64, length: I64, mark: U64, longest: Lists, marks: U64) -> I64:
    """Return those of these reads that are no prefix of the longest one."""
    key, length, mark = key[rows], length[rows], mark[rows]
    is_short = length <= longest.length[key]
    at = longest.begin[key] + key + np.where(is_short, length, 0)
    found: I64 = rows[~is_short | (marks[at] != mark)]
    return found


class Pairs:
    """Finds the row of a pair of a key and an element."""

    def __init__(self, key: I64, element: I64) -> None:
        """Index these pairs; of equal ones, the first is found."""
        self._names = np.unique(element)
        code = key * (len(self._names) + 1) + np.searchsorted(self._names, element)
        self._row = np.argsort(code, kind="stable")
        self._code = code[self._row]

    def rows(self, key: I64, element: I64) -> I64:
        """Return the row of each pair; -1 for a pair that was not indexed."""
        found = np.full(len(key), -1)
        if not len(self._code) or not len(key):
            return found
        place = np.searchsorted(self._names, element)
        place[place == len(self._names)] = 0
        known = np.flatnonzero(self._names[place] == element)
        code = key[known] * (len(self._names) + 1) + place[known]
        at = np.searchsorted(self._code, code)
        at[at == len(self._code)] = 0
        hit = self._code[at] == code
        found[known[hit]] = self._row[at[hit]]
        return found

    def repeated(self) -> I64:
        """Return the rows of pairs that an earlier row has too."""
        return np.sort(self._row[1:][self._code[1:] == self._code[:-1]])
