"""Dependencies of transactions that add elements to sets and read whole sets.

A set only grows, so a read shows for each element whether it was added before: the reader follows
the writers of the elements that it read, and precedes the writers of all others. Elements have no
order, so there are no edges between writers.

Source: Kingsbury and Alvaro, "Elle", VLDB 2020, section 3 (sets).
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.isolation import lattice
from checkers.isolation.edges import RW, WR, edges, whole
from checkers.isolation.examined import Examined
from checkers.isolation.findings import Findings, Found
from checkers.isolation.list_append import PRODUCT_MAX
from checkers.isolation.options import Options
from checkers.isolation.reading import Codes, Done, NotUnderstood, columns, hashable, text_of
from checkers.isolation.reading import transactions as transactions_of
from checkers.isolation.transactions import (
    NONE,
    READ,
    UNKNOWN,
    WRITE,
    History,
    MicroOps,
    Names,
)
from checkers.kernels.rows import FAIL, INFO, OK
from model.op import Op

ADDS = ("add", "append")
_TOO_MANY = "too many transactions read sets to compare them with all elements that were added"


class SetHistory(History):
    """Transactions that add to sets."""

    verb = "add"


class _Read(NamedTuple):
    """A set that an ok transaction read."""

    txn: int
    key: Hashable
    seen: frozenset[Any]
    known: frozenset[Any]
    """What the transaction had read or added before."""


class _Added(NamedTuple):
    """An element that a transaction added."""

    txn: int
    outcome: int


def examine(events: Sequence[Op], options: Options) -> Examined:
    """Examine a history. Raises :class:`~checkers.isolation.reading.NotUnderstood`."""
    return _Sets(list(transactions_of(events))).examine(options)


class _Sets:
    """All additions and reads of one history."""

    def __init__(self, done: Sequence[Done]) -> None:
        self._done = done
        self._added: dict[Hashable, dict[Any, _Added]] = {}
        """By key and element."""
        self._reads: list[_Read] = []
        self._keys, self._elements = Codes("keys"), Codes("elements")
        self._rows: list[tuple[int, int, int, int, int]] = []
        """Transaction, kind, key, element and length of each micro-operation."""
        for txn, each in enumerate(done):
            self._parse(txn, each)
        self._happened = np.array([each.outcome == OK for each in done], np.bool_)
        for read in self._reads:
            for element in read.seen:
                added = self._added_as(read.key, element)
                if added is not None and added.outcome == INFO:
                    self._happened[added.txn] = True

    def _parse(self, txn: int, done: Done) -> None:
        value = done.op.value
        if not isinstance(value, list | tuple | None):
            raise NotUnderstood(
                f"the value of event {done.op.index} is no list of micro-operations"
            )
        known: dict[Hashable, frozenset[Any]] = {}
        for each in value or ():
            match each:
                case [name, key, element] if name in ADDS:
                    known_key, one = hashable(key), hashable(element)
                    self._add(txn, done, known_key, one)
                    known[known_key] = known.get(known_key, frozenset()) | {one}
                case ["r", key, list() | tuple() | None as read]:
                    known_key = hashable(key)
                    seen = frozenset(map(hashable, read or ()))
                    is_known = done.outcome == OK
                    length = len(seen) if is_known else UNKNOWN
                    self._rows.append((txn, READ, self._keys(known_key), NONE, length))
                    if is_known:
                        before = known.get(known_key, frozenset())
                        self._reads.append(_Read(txn, known_key, seen, before))
                        known[known_key] = before | seen
                case _:
                    raise NotUnderstood(
                        f"event {done.op.index} has the unexpected micro-operation {each}"
                    )

    def _add(self, txn: int, done: Done, key: Hashable, element: Any) -> None:
        added = self._added.setdefault(key, {})
        if element in added:
            raise NotUnderstood(f"{element} is added to {key} more than once")
        added[element] = _Added(txn, done.outcome)
        self._rows.append((txn, WRITE, self._keys(key), self._elements(element), 0))

    def _added_as(self, key: Hashable, element: Any) -> _Added | None:
        return self._added.get(key, {}).get(element)

    def examine(self, options: Options) -> Examined:
        """Return the dependencies, and what single reads show."""
        certain = {
            key: {element for element, by in added.items() if self._happened[by.txn]}
            for key, added in self._added.items()
        }
        size = sum(len(certain.get(read.key, ())) for read in self._reads)
        is_complete = size <= PRODUCT_MAX
        rows = np.array(
            sorted({*self._dependencies(certain)}) if is_complete else [], np.int64
        ).reshape(-1, 5)
        parts = [
            edges(part[:, 0], part[:, 1], kind, part[:, 3], *versions)
            for kind in (WR, RW)
            for part in (rows[rows[:, 2] == kind],)
            for versions in ((part[:, 4],) if kind == WR else (NONE, part[:, 4]),)
        ]
        done = self._done
        found = self._findings(lattice.GARBAGE_READ in options.anomalies)
        history = SetHistory(
            columns(done),
            self._micro_ops(),
            Names(self._keys.names(), self._elements.names()),
            lambda txn: text_of(done[txn].op.value),
        )
        unknown = () if is_complete else (_TOO_MANY,)
        return Examined(history, [*map(whole, parts)], self._happened, found, unknown)

    def _micro_ops(self) -> MicroOps:
        table = np.array(self._rows, np.int64).reshape(-1, 5).T
        txn, kind, key, element, length = table
        return MicroOps(
            txn, kind.astype(np.int8), key, element, length, np.zeros(len(txn), np.uint64)
        )

    def _dependencies(
        self, certain: dict[Hashable, set[Any]]
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield source, target, kind, key and element of each edge."""
        for read in self._reads:
            key = self._keys(read.key)
            for element in certain.get(read.key, ()):
                writer = self._added[read.key][element].txn
                if writer == read.txn:
                    continue
                code = self._elements(element)
                if element in read.seen:
                    yield writer, read.txn, WR, key, code
                else:
                    yield read.txn, writer, RW, key, code

    def _findings(self, garbage: bool) -> Findings:
        found = Findings()
        for read in self._reads:
            key = f"{read.key}"
            for element in sorted(read.known - read.seen, key=str)[:1]:
                found.add(
                    self._found(
                        "internal",
                        read,
                        f"T1 read {key} without {element}, which T1 had read or added before.",
                        element,
                    )
                )
            for element in sorted(read.seen - read.known, key=str):
                added = self._added_as(read.key, element)
                if added is None:
                    if garbage:
                        why = f"T1 read {element} in {key}, but no transaction added that."
                        found.add(self._found(lattice.GARBAGE_READ, read, why, element))
                elif added.outcome == FAIL:
                    why = (
                        f"T1 read {element} in {key}, but T2, which added that, failed: T1 read an"
                        " aborted write."
                    )
                    found.add(self._found("G1a", read, why, element, added.txn))
                elif added.txn == read.txn:
                    why = f"T1 read {element} in {key}, but T1 added that later."
                    found.add(self._found("future-read", read, why, element))
        return found

    def _found(
        self, anomaly: str, read: _Read, why: str, element: Any, other: int | None = None
    ) -> Found:
        txns = [read.txn] if other is None else [read.txn, other]
        return Found(
            anomaly,
            tuple(self._done[txn].op.index for txn in txns),
            tuple(text_of(self._done[txn].op.value) for txn in txns),
            why,
            key=read.key,
            values=(element,),
        )
