"""Reads transactions from the events of a history into columns."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.isolation.transactions import (
    NONE,
    READ,
    U64,
    UNKNOWN,
    WRITE,
    History,
    ListHistory,
    Lists,
    MicroOps,
    Names,
    Transactions,
    begins_of,
    contradicting,
    list_marks,
    prefix_marks,
)
from checkers.kernels.arrays import I64
from checkers.kernels.rows import FAIL, INFO, OK
from model.op import NEMESIS, Op

OUTCOMES = {"ok": OK, "fail": FAIL, "info": INFO}
_BLOCK = 1 << 20
"""Number of elements of lists after which they are reduced to marks."""


class NotUnderstood(ValueError):
    """A history that cannot be judged; the message says why."""


class _NotIntegers(Exception):
    """Some elements are no integers: they need a dictionary."""


class Done(NamedTuple):
    """A transaction of a history."""

    op: Op
    """The event that ended it, or its invocation."""
    outcome: int
    invoked: int
    completed: int


def transactions(events: Sequence[Op]) -> Iterator[Done]:
    """Yield the transactions in the order of completion; then those that nothing completed."""
    open_at: dict[int, int] = {}
    abandoned: list[int] = []
    for at, op in enumerate(events):
        if op.process == NEMESIS:
            continue
        if op.type == "invoke":
            if op.process in open_at:
                abandoned.append(open_at[op.process])
            open_at[op.process] = at
        else:
            yield Done(op, OUTCOMES[op.type], open_at.pop(op.process, UNKNOWN), at)
    for at in sorted((*abandoned, *open_at.values())):
        yield Done(events[at], INFO, at, UNKNOWN)


def columns(done: Sequence[Done]) -> Transactions:
    """Return transactions as columns."""
    return Transactions(
        np.array([each.op.index for each in done], np.int64),
        np.array([each.op.process for each in done], np.int64),
        np.array([each.outcome for each in done], np.int8),
        np.array([each.invoked for each in done], np.int64),
        np.array([each.completed for each in done], np.int64),
    )


class Codes:
    """Gives each key or element a number."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._code: dict[Hashable, int] = {}

    def __call__(self, name: Any) -> int:
        """Return the number of a name, the next free one if it is new."""
        try:
            return self._code.setdefault(name, len(self._code))
        except TypeError:  # a list, which is not hashable
            return self._code.setdefault(hashable(name), len(self._code))

    def names(self) -> list[Any]:
        """Return the names by their numbers.

        Raises :class:`NotUnderstood` if some are texts and others numbers: a converter probably
        changed some of them, and equal names would count as different ones.
        """
        kinds = {str if isinstance(name, str) else int for name in self._code if name is not None}
        if len(kinds) > 1:
            raise NotUnderstood(f"some {self._what} are texts and others are not")
        return list(self._code)


def hashable(name: Any) -> Hashable:
    """Return a list as a tuple. Raises :class:`NotUnderstood` for a map."""
    if isinstance(name, dict):
        raise NotUnderstood("a map stands where a key or an element is expected")
    return tuple(map(hashable, name)) if isinstance(name, list) else name


class _Integers:
    """Integers as their own codes."""

    def __call__(self, elements: list[Any]) -> I64:
        if not elements:
            return np.zeros(0, np.int64)
        try:
            found = np.array(elements)
        except (ValueError, OverflowError):
            raise _NotIntegers from None
        if found.dtype.kind != "i" or found.ndim != 1:
            raise _NotIntegers
        return found.astype(np.int64, copy=False)

    def names(self) -> None:
        return None


class _Dictionary:
    """Codes for elements of any kind."""

    def __init__(self) -> None:
        self._codes = Codes("elements")

    def __call__(self, elements: list[Any]) -> I64:
        return np.fromiter(map(self._codes, elements), np.int64, len(elements))

    def names(self) -> list[Any]:
        return self._codes.names()


_Encoder = _Integers | _Dictionary


def lists(events: Sequence[Op]) -> ListHistory:
    """Read transactions that append to lists. Raises :class:`NotUnderstood`."""
    done = list(transactions(events))
    try:
        return _Lists(_Integers()).read(done)
    except _NotIntegers:
        return _Lists(_Dictionary()).read(done)


def registers(events: Sequence[Op], initial: Any = None) -> History:
    """Read transactions that write registers; a read of ``initial`` is one of nothing.

    Raises :class:`NotUnderstood`, also if a transaction writes ``initial``.
    """
    done = list(transactions(events))
    try:
        return _registers(done, _Integers(), initial)
    except _NotIntegers:
        return _registers(done, _Dictionary(), initial)


def micro_ops(done: Done, known: str) -> Sequence[Any]:
    """Return the micro-operations of a transaction. Raises :class:`NotUnderstood` if it has others
    than reads and those that are known."""
    found = done.op.value
    if found is None:
        return ()
    if not isinstance(found, list | tuple):
        raise NotUnderstood(f"the value of event {done.op.index} is no list of micro-operations")
    for each in found:
        if not isinstance(each, list | tuple) or len(each) != 3 or each[0] not in (known, "r"):
            raise NotUnderstood(f"event {done.op.index} has the unexpected micro-operation {each}")
    return found


def _registers(done: Sequence[Done], encode: _Encoder, initial: Any) -> History:
    keys = Codes("keys")
    count: list[int] = []
    kind: list[int] = []
    key: list[int] = []
    element: list[Any] = []
    length: list[int] = []
    for each in done:
        found = micro_ops(each, "w")
        count.append(len(found))
        for name, k, value in found:
            is_read = name == "r"
            if initial is not None and value == initial:
                if not is_read:
                    raise NotUnderstood(f"a transaction writes {value} to {k}, its initial value")
                value = None
            kind.append(READ if is_read else WRITE)
            key.append(keys(k))
            element.append(value)
            unknown = each.outcome != OK and value is None
            length.append((UNKNOWN if unknown else 1) if is_read else 0)
    given = np.array([value is not None for value in element], np.bool_)
    codes = np.full(len(element), NONE)
    codes[given] = encode([value for value in element if value is not None])
    ops = MicroOps(
        np.repeat(np.arange(len(done)), count),
        np.array(kind, np.int8),
        np.array(key, np.int64),
        codes,
        np.array(length, np.int64),
        np.zeros(len(element), np.uint64),
    )
    return History(columns(done), ops, Names(keys.names(), encode.names()), description(done))


def description(done: Sequence[Done]) -> Callable[[int], str]:
    """Return a function that describes each transaction."""
    return lambda txn: text_of(done[txn].op.value)


ELEMENTS_SHOWN = 12
"""Number of elements of a list that a description shows: the last ones."""


def text_of(value: Any) -> str:
    """Return micro-operations as text, with the last elements of long lists."""

    def part(each: Any) -> str:
        if isinstance(each, list | tuple):
            cut = len(each) > ELEMENTS_SHOWN
            shown = [part(one) for one in each[-ELEMENTS_SHOWN if cut else 0 :]]
            return f"[{' '.join(['…'] * cut + shown)}]"
        return "nil" if each is None else str(each)

    if not isinstance(value, list | tuple):
        return part(value)
    return ", ".join(" ".join(map(part, each)) for each in value)


class _Lists:
    """Reads transactions on lists."""

    def __init__(self, encode: _Encoder) -> None:
        self._encode = encode
        self._keys = Codes("keys")
        self._longest: list[Sequence[Any]] = []
        self._count: list[int] = []
        self._kind: list[int] = []
        self._key: list[int] = []
        self._element: list[Any] = []
        """What was appended, and for a read anything."""
        self._length: list[int] = []
        self._pending: list[Any] = []
        """Elements of lists that were read, for which there is no mark yet."""
        self._lengths: list[int] = []
        self._marks: list[U64] = []

    def read(self, done: Sequence[Done]) -> ListHistory:
        """Read these transactions."""
        for each in done:
            self._add(each)
        self._flush()
        length = np.array(self._length, np.int64)
        kind = np.array(self._kind, np.int8)
        mark = np.zeros(len(kind), np.uint64)
        mark[length > 0] = np.concatenate(self._marks) if self._marks else 0
        element = np.full(len(kind), NONE)
        is_write = kind == WRITE
        element[is_write] = self._encode(self._element)
        ops = MicroOps(
            np.repeat(np.arange(len(done)), self._count),
            kind,
            np.array(self._key, np.int64),
            element,
            length,
            mark,
        )
        return _settled(done, ops, self._longest, self._keys, self._encode)

    def _add(self, done: Done) -> None:
        found = micro_ops(done, "append")
        self._count.append(len(found))
        is_ok, is_failed = done.outcome == OK, done.outcome == FAIL
        for name, k, value in found:
            key = self._keys(k)
            if key == len(self._longest):
                self._longest.append(())
            self._key.append(key)
            if name != "r":
                self._kind.append(WRITE)
                self._length.append(0)
                self._element.append(value)
                continue
            self._kind.append(READ)
            if is_failed or (value is None and not is_ok):
                self._length.append(UNKNOWN)
                continue
            if not isinstance(value, list | tuple | None):
                raise NotUnderstood(f"event {done.op.index} reads {value} of {k}, which is no list")
            elements: Sequence[Any] = value or ()
            length = len(elements)
            self._length.append(length)
            if length:
                self._pending += elements
                self._lengths.append(length)
                if length > len(self._longest[key]):
                    self._longest[key] = elements
        if len(self._pending) > _BLOCK:
            self._flush()

    def _flush(self) -> None:
        """Reduce the elements that were read so far to marks."""
        self._marks.append(list_marks(Lists(begins_of(self._lengths), self._encode(self._pending))))
        self._pending, self._lengths = [], []


def _settled(
    done: Sequence[Done], ops: MicroOps, raw: list[Sequence[Any]], keys: Codes, encode: _Encoder
) -> ListHistory:
    """Return the history, given the longest read of each key as it was read.

    A read that is no prefix of it is looked up; so are all reads of a key whose longest read lists
    an element more than once, because they are compared with each element once.
    """
    reads = np.flatnonzero((ops.kind == READ) & (ops.length > 0))
    place = np.arange(len(ops.txn)) - np.searchsorted(ops.txn, ops.txn)

    def full(row: int) -> I64:
        value = done[int(ops.txn[row])].op.value
        return encode(list(value[int(place[row])][2]))

    encoded = [encode(list(each)) for each in raw]
    repeats = np.array([len(np.unique(each)) < len(each) for each in encoded], np.bool_)
    length, mark, element = ops.length.copy(), ops.mark.copy(), ops.element.copy()
    repeating: list[int] = []
    once: dict[int, I64] = {}

    def reduce(row: int) -> None:
        """Count each element of a read once."""
        found = full(row)
        if len(kept := _once(found)) < len(found):
            repeating.append(row)
        once[row], length[row] = kept, len(kept)
        mark[row] = list_marks(Lists(begins_of([len(kept)]), kept))[0]

    for row in reads[repeats[ops.key[reads]]].tolist() if repeats.any() else ():
        reduce(row)
        if len(once[row]) > len(_once(encoded[key := int(ops.key[row])])):
            encoded[key] = once[row]
    longest = _joined(
        [_once(each) if again else each for each, again in zip(encoded, repeats, strict=True)]
    )
    marks = prefix_marks(longest)
    others = contradicting(reads, ops.key, length, mark, longest, marks)
    for row in others.tolist():
        if row not in once:
            reduce(row)
    others = contradicting(others, ops.key, length, mark, longest, marks)
    is_prefix = np.setdiff1d(reads, others, assume_unique=True)
    element[is_prefix] = longest.element[longest.begin[ops.key[is_prefix]] + length[is_prefix] - 1]
    element[others] = [once[row][-1] for row in others.tolist()]
    return ListHistory(
        columns(done),
        ops._replace(element=element, length=length, mark=mark),
        Names(keys.names(), encode.names()),
        description(done),
        longest,
        marks,
        others,
        _joined([once[row] for row in others.tolist()]),
        np.array(sorted(repeating), np.int64),
    )


def _once(elements: I64) -> I64:
    """Return a list with each element once, where it is first."""
    _, first = np.unique(elements, return_index=True)
    return elements if len(first) == len(elements) else elements[np.sort(first)]


def _joined(found: list[I64]) -> Lists:
    return Lists(
        begins_of([len(each) for each in found]),
        np.concatenate(found) if found else np.zeros(0, np.int64),
    )
