"""Dependencies of transactions that read by predicates, when all keys and versions are known.

A predicate read returns the keys whose versions match. A key that is missing from the result shows
something too: the transaction saw one of the versions that do not match. If all of these follow
another version, the transaction follows the writer of the first; and it precedes the writer of a
version that matches and follows all of them. If there is none, the read missed a key.

The versions of a key are in this order: the one from ``init``, or the one before any insert; then
what was written, where a transaction that read a version writes a later one; then the deletion.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.isolation.edges import RW, RWP, WR, WRP, WW, Edges, edges, joined, whole
from checkers.isolation.examined import Examined
from checkers.isolation.findings import Findings, Found
from checkers.isolation.options import Options
from checkers.isolation.reading import (
    Done,
    NotUnderstood,
    columns,
    hashable,
    text_of,
    transactions,
)
from checkers.isolation.transactions import NONE, Absent, History, MicroOps, Names
from checkers.kernels.rows import FAIL, OK
from model.op import Op

INIT = "init"
UNBORN, DEAD = Absent.UNBORN, Absent.DEAD


class _Version(NamedTuple):
    """A version of a key."""

    value: Any
    """What was written; UNBORN or DEAD if there is nothing to read."""
    writer: int | None
    """The transaction that wrote it; ``None`` for UNBORN."""
    is_certain: bool
    """Whether its transaction happened."""

    @property
    def exists(self) -> bool:
        """Whether there is a value to read."""
        return not isinstance(self.value, Absent)


class _Read(NamedTuple):
    """What a transaction saw of a key."""

    txn: int
    key: str
    seen: frozenset[int]
    """The numbers of the versions of which it saw one."""
    followed_by: frozenset[int]
    """Versions that it did not see, but would have seen if they had existed."""
    is_predicate: bool


class _PredicateRead(NamedTuple):
    """What a transaction read of the keys that it had not written itself before."""

    predicate: Any
    found: dict[str, Any]
    own: frozenset[str]
    """The keys that it had written before. Their results are no evidence about other transactions,
    and need not be its own writes: Elle does not ask for that either."""


def matches(predicate: Any, value: Any) -> bool:
    """Return whether a value matches: ``true``, ``["=", value]`` or ``["mod", divisor, rest]``.

    Raises :class:`NotUnderstood` for another predicate.
    """
    match predicate:
        case "true" | True:
            return True
        case ["=", wanted]:
            return bool(value == wanted)
        case ["mod", int(divisor), rest] if divisor and isinstance(value, int):
            return bool(value % divisor == rest)
        case _:
            raise NotUnderstood(f"the predicate {predicate} is not known")


def examine(events: Sequence[Op], _: Options) -> Examined:
    """Examine a history. Raises :class:`~checkers.isolation.reading.NotUnderstood`."""
    return _Universe(list(transactions(events))).examine()


class _Universe:
    """All keys, versions and reads of one history."""

    def __init__(self, done: Sequence[Done]) -> None:
        self._done = done
        self._writes: list[list[tuple[str, Any]]] = [[] for _ in done]
        self._items: list[list[tuple[str, Any]]] = [[] for _ in done]
        self._predicates: list[list[_PredicateRead]] = [[] for _ in done]
        self._contradictions: list[tuple[int, str, str]] = []
        """Transactions that did not read what they had written, or that read what does not match
        their predicate, with the key and the reason."""
        for number, each in enumerate(done):
            self._parse(number, each)
        self._versions: dict[str, list[_Version]] = {}
        """The versions of each key; the first one is the first in their order."""
        self._number: dict[tuple[str, Any], int] = {}
        self._no_versions: dict[tuple[str, Any], int] = {}
        """What transactions wrote that failed, or that wrote the key again: the writers."""
        self._add_versions()
        self._later = {key: self._order(key) for key in self._versions}
        """For each key the versions that follow each of its versions."""

    def _parse(self, number: int, done: Done) -> None:
        value = done.op.value
        if isinstance(value, dict):
            self._writes[number] = [(str(key), hashable(each)) for key, each in value.items()]
            return
        if not isinstance(value, list | tuple | None):
            raise NotUnderstood(
                f"the value of event {done.op.index} is no list of micro-operations"
            )
        mine: dict[str, Any] = {}
        for each in value or ():
            match each:
                case ["w" | "insert", key, written]:
                    mine[str(key)] = hashable(written)
                    self._writes[number].append((str(key), hashable(written)))
                case ["delete", key, *_]:
                    mine[str(key)] = DEAD
                    self._writes[number].append((str(key), DEAD))
                case ["r", key, read]:
                    if done.outcome == OK or read is not None:
                        self._read_item(number, str(key), hashable(read), mine)
                case ["rp", predicate, dict() | None as read]:
                    if read is not None:
                        found = {str(key): hashable(seen) for key, seen in read.items()}
                        if done.outcome == OK:
                            self._compare(number, predicate, found)
                        for own in mine:
                            found.pop(own, None)
                        self._predicates[number].append(
                            _PredicateRead(predicate, found, frozenset(mine))
                        )
                case _:
                    raise NotUnderstood(
                        f"event {done.op.index} has the unexpected micro-operation {each}"
                    )

    def _read_item(self, txn: int, key: str, value: Any, mine: dict[str, Any]) -> None:
        if key not in mine:
            self._items[txn].append((key, value))
        elif value != (expected := None if mine[key] is DEAD else mine[key]):
            why = f"T1 read {key} as {value}, but T1 itself had left it as {expected}."
            self._contradictions.append((txn, key, why))

    def _compare(self, txn: int, predicate: Any, found: dict[str, Any]) -> None:
        """Note the results of a predicate read that do not match the predicate."""
        for key, value in found.items():
            if value is not None and not matches(predicate, value):
                why = (
                    f"A predicate read of T1 returns {key} as {value}, which does not match the"
                    f" predicate {text_of([[predicate]])}."
                )
                self._contradictions.append((txn, key, why))

    def _add_versions(self) -> None:
        """Collect the versions of all keys."""
        done = range(len(self._done))
        born = {k for n in done if self._is_init(n) for k, _ in self._writes[n]}
        for txn in done:
            for key, _ in (*self._writes[txn], *self._items[txn], *self._named(txn)):
                if key not in self._versions:
                    self._versions[key] = []
                    if key not in born:
                        self._add(key, _Version(UNBORN, None, True))
        read = {pair for txn in done if self._done[txn].outcome == OK for pair in self._shown(txn)}
        for txn in sorted(done, key=lambda each: not self._is_init(each)):
            outcome = self._done[txn].outcome
            self._no_versions.update((pair, txn) for pair in self._writes[txn])
            if outcome != FAIL:
                final = dict(self._writes[txn])
                is_certain = outcome == OK or not read.isdisjoint(final.items())
                for key, value in final.items():
                    self._add(key, _Version(value, txn, is_certain))

    def _add(self, key: str, version: _Version) -> None:
        if (key, version.value) in self._number:
            raise NotUnderstood(f"{version.value} is written to {key} more than once")
        self._number[key, version.value] = len(self._versions[key])
        self._versions[key].append(version)

    def _is_init(self, txn: int) -> bool:
        return isinstance(self._done[txn].op.value, dict)

    def _named(self, txn: int) -> Iterator[tuple[str, Any]]:
        for read in self._predicates[txn]:
            yield from read.found.items()

    def _shown(self, txn: int) -> Iterator[tuple[str, Any]]:
        """Yield the keys and values that a transaction read."""
        yield from self._items[txn]
        yield from self._named(txn)

    def _order(self, key: str) -> list[frozenset[int]]:
        """Return for each version of a key those that follow it."""
        versions = self._versions[key]
        following: list[set[int]] = [set() for _ in versions]
        following[0].update(range(1, len(versions)))
        for number, version in enumerate(versions):
            if version.value == DEAD:
                for each in range(number), range(number + 1, len(versions)):
                    for other in each:
                        following[other].add(number)
            elif version.writer is not None:
                for name, value in self._shown(version.writer):
                    before = self._number.get((key, value), number) if name == key else number
                    if before != number and versions[before].value != DEAD:
                        following[before].add(number)
        return [frozenset(_reached(following, start)) for start in range(len(versions))]

    def _reads(self) -> Iterator[_Read]:
        """Yield what ok transactions saw of each key."""
        for txn, done in enumerate(self._done):
            if done.outcome != OK:
                continue
            for key, value in self._items[txn]:
                absent = (UNBORN, DEAD)
                seen = self._those(key, absent if value is None else (value,))
                yield _Read(txn, key, seen, frozenset(range(len(self._versions[key]))), False)
            for predicate, found, own in self._predicates[txn]:
                for key, versions in self._versions.items():
                    if key in own:
                        continue
                    everything = frozenset(range(len(versions)))
                    if key in found:
                        if seen := self._those(key, (found[key],)):
                            yield _Read(txn, key, seen, everything, True)
                        continue
                    shown = frozenset(
                        n
                        for n, v in enumerate(versions)
                        if v.exists and matches(predicate, v.value)
                    )
                    yield _Read(txn, key, everything - shown, shown, True)

    def _those(self, key: str, values: Iterable[Any]) -> frozenset[int]:
        numbers = (self._number.get((key, value)) for value in values)
        return frozenset(number for number in numbers if number is not None)

    def examine(self) -> Examined:
        """Return the dependencies, and the reads that missed a key."""
        rows: list[tuple[int, int, int, int, int, int]] = []
        keys = {key: code for code, key in enumerate(self._versions)}
        elements: list[Any] = []
        code: dict[tuple[str, int], int] = {}
        for key, versions in self._versions.items():
            for number, version in enumerate(versions):
                code[key, number] = len(elements)
                elements.append(version.value)
        found = Findings()
        for txn, key, why in self._contradictions:
            if self._done[txn].outcome == OK:
                found.add(self._found("internal", txn, key, why))
        for txn, done in enumerate(self._done):
            if done.outcome == OK:
                for key, value in dict.fromkeys(self._shown(txn)):
                    self._examine_value(found, txn, key, value)
        for read in self._reads():
            if not read.seen and read.is_predicate and read.followed_by:
                found.add(self._missed(read))
                continue
            for kind, source, target, before, after in self._of_read(read):
                names = (NONE if n is None else code[read.key, n] for n in (before, after))
                rows.append((source, target, kind, keys[read.key], *names))  # type: ignore[arg-type]
        for key in self._versions:
            for source, target, before, after in self._of_writes(key):
                rows.append((source, target, WW, keys[key], code[key, before], code[key, after]))
        history = History(
            columns(self._done),
            _NO_MICRO_OPS,
            Names(list(keys), elements),
            lambda txn: text_of(self._done[txn].op.value),
        )
        happened = np.array([each.outcome == OK for each in self._done], np.bool_)
        for versions in self._versions.values():
            for version in versions:
                if version.writer is not None and version.is_certain:
                    happened[version.writer] = True
        return Examined(history, [whole(_edges(rows))], happened, found)

    def _of_read(self, read: _Read) -> Iterator[tuple[int, int, int, int | None, int | None]]:
        """Yield the edges of a read: kind, source, target, and two versions."""
        versions, later = self._versions[read.key], self._later[read.key]
        reads, overwrites = (WRP, RWP) if read.is_predicate else (WR, RW)
        for number in read.seen:
            writer = versions[number].writer
            if writer not in (None, read.txn) and read.seen <= later[number] | {number}:
                assert writer is not None
                yield reads, writer, read.txn, number, None
        for number in read.followed_by - read.seen:
            version = versions[number]
            if version.writer in (None, read.txn) or not version.is_certain:
                continue
            if read.seen and all(number in later[each] for each in read.seen):
                assert version.writer is not None
                yield overwrites, read.txn, version.writer, min(read.seen), number

    def _of_writes(self, key: str) -> Iterator[tuple[int, int, int, int]]:
        """Yield the edges between writers: source, target, and their versions."""
        versions = self._versions[key]
        for before, later in enumerate(self._later[key]):
            source = versions[before].writer
            for after in later:
                target = versions[after].writer
                certain = versions[before].is_certain and versions[after].is_certain
                if source is not None and target is not None and source != target and certain:
                    yield source, target, before, after

    def _examine_value(self, found: Findings, txn: int, key: str, value: Any) -> None:
        """Report a value that was aborted, intermediate, or written only later."""
        number = self._number.get((key, value))
        writer = self._no_versions.get((key, value))
        if number is not None:
            writer = self._versions[key][number].writer
        if writer is None or (number is not None and writer != txn):
            return
        read = f"T1 read {key} as {value}, but"
        if writer == txn:
            found.add(self._found("future-read", txn, key, f"{read} T1 wrote that later."))
        elif self._done[writer].outcome == FAIL:
            why = f"{read} T2, which wrote that, failed: T1 read an aborted write."
            found.add(self._found("G1a", txn, key, why, writer))
        else:
            why = f"{read} T2 wrote {key} again after that: T1 read an intermediate state of T2."
            found.add(self._found("G1b", txn, key, why, writer))

    def _missed(self, read: _Read) -> Found:
        why = (
            f"A predicate read of T1 does not return {read.key}, but all versions of {read.key}"
            " match the predicate."
        )
        return self._found("predicate-read-miss", read.txn, read.key, why)

    def _found(self, anomaly: str, txn: int, key: str, why: str, other: int | None = None) -> Found:
        ops = [self._done[each].op for each in (txn, *(() if other is None else (other,)))]
        texts = tuple(text_of(op.value) for op in ops)
        return Found(anomaly, tuple(op.index for op in ops), texts, why, key=key)


_NOTHING = np.zeros(0, np.int64)
_NO_MICRO_OPS = MicroOps(
    _NOTHING,
    _NOTHING.astype(np.int8),
    _NOTHING,
    _NOTHING,
    _NOTHING,
    _NOTHING.astype(np.uint64),
)


def _reached(following: Sequence[set[int]], start: int) -> set[int]:
    """Return what can be reached from a version, without the version itself."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for number in following[waiting.pop()] - found:
            found.add(number)
            waiting.append(number)
    return found - {start}


def _edges(rows: Sequence[tuple[int, int, int, int, int, int]]) -> Edges:
    """Return rows of (source, target, kind, key, value, next value) as columns."""
    table = np.array(sorted({*rows}), np.int64).reshape(-1, 6)
    return joined(
        edges(part[:, 0], part[:, 1], kind, part[:, 3], part[:, 4], part[:, 5])
        for kind in (WW, WR, RW, WRP, RWP)
        for part in (table[table[:, 2] == kind],)
    )
