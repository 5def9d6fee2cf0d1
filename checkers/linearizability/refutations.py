"""Finds results that no order explains, whatever else happened: necessary conditions.

A monitor decides both ways, but needs values that are written once. These conditions hold for any
values, and only refute: a history without a conflict is left to the search. They find what a search
would prove last, because it would try every order of all other operations first.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from checkers.linearizability.models import (
    EMPTY,
    CasRegister,
    Counting,
    FifoQueue,
    KeyValue,
    Model,
    Register,
    Set,
    Stack,
    UnorderedQueue,
    frozen,
)
from checkers.linearizability.monitors import BEFORE, Conflict
from checkers.linearizability.operations import Operation

ELEMENTS_MAX = 2_000_000
"""A set is looked at if its reads have at most this many elements, counted with those missing."""
PAIRS_MAX = 2_000
"""The elements of a stack are compared with each other if there are at most this many."""


def refute(model: Model, operations: Sequence[Operation]) -> Conflict | None:
    """Return operations whose results no order explains; ``None`` if none were found."""
    rule = _RULES.get(type(model))
    return None if rule is None else rule(model, operations)


def _is_known(operation: Operation) -> bool:
    """Return whether the result of a read is known."""
    return not operation.is_pending and operation.value is not None


class _Latest:
    """Of operations with a call and an end: the greatest number of those up to a place."""

    def __init__(self, items: list[tuple[int, int, int]]) -> None:
        """``items`` are triples of a place, a number and a row."""
        items.sort()
        self._places = [place for place, _, _ in items]
        self._greatest = list(accumulate(((number, row) for _, number, row in items), max))

    def until(self, place: int, inclusive: bool) -> tuple[int, int] | None:
        """Return the greatest number up to a place, and its row."""
        find = bisect_right if inclusive else bisect_left
        count = find(self._places, place)
        return self._greatest[count - 1] if count else None


class _Overwrites:
    """Updates of an object with one value, of which each replaces the one before it."""

    def __init__(self, updates: Sequence[tuple[int, Operation]]) -> None:
        self._done = _Latest([(each.end, each.call, row) for row, each in updates])

    def conflict(self, row: int, read: Operation, writers: _Latest) -> Conflict | None:
        """Return why a read cannot have seen any of the updates that wrote its value."""
        latest = writers.until(read.end, inclusive=True)
        if latest is None:
            return Conflict((row,), "its value was never written")
        newer = self._done.until(read.call, inclusive=False)
        if newer is None or newer[0] <= latest[0]:
            return None
        rows = (latest[1], newer[1], row)
        return Conflict(
            tuple(each for each in rows if each >= 0), "its value was replaced before it was read"
        )


def _writers(initial: bool, updates: Sequence[tuple[int, Operation]]) -> _Latest:
    first = [(BEFORE, BEFORE, -1)] if initial else []
    return _Latest([*first, *((each.call, each.end, row) for row, each in updates)])


def _of_register(model: Model, operations: Sequence[Operation]) -> Conflict | None:
    updates: list[tuple[int, Operation]] = []
    by_value: dict[Hashable, list[tuple[int, Operation]]] = {}
    reads: list[tuple[int, Operation, Hashable]] = []
    for row, each in enumerate(operations):
        value = frozen(each.value)
        if each.f == "read":
            if _is_known(each):
                reads.append((row, each, value))
            continue
        if each.f == "cas":
            assert isinstance(value, tuple)
            if not each.is_pending:
                reads.append((row, each, value[0]))
            value = value[1]
        updates.append((row, each))
        by_value.setdefault(value, []).append((row, each))
    writers: dict[Hashable, _Latest] = {}
    overwrites = _Overwrites(updates)
    for row, read, value in reads:
        if value not in writers:
            writers[value] = _writers(value == model.initial, by_value.get(value, ()))
        found = overwrites.conflict(row, read, writers[value])
        if found is not None:
            return found
    return None


def _of_store(model: Model, operations: Sequence[Operation]) -> Conflict | None:
    """Refute a get: its text was put, or ends with a text that was appended."""
    if not all(each.value is None or isinstance(each.value, str) for each in operations):
        return None
    texts = [str(each.value) for each in operations]
    updates = [(row, each) for row, each in enumerate(operations) if each.f == "put" or texts[row]]
    updates = [(row, each) for row, each in updates if each.f != "get"]
    puts: dict[str, list[tuple[int, Operation]]] = {}
    appends: dict[str, list[tuple[int, Operation]]] = {}
    for row, each in updates:
        (puts if each.f == "put" else appends).setdefault(texts[row], []).append((row, each))
    lengths = sorted({len(text) for text in appends})
    overwrites, writers = _Overwrites(updates), dict[str, _Latest]()
    for row, each in enumerate(operations):
        if each.f != "get" or not _is_known(each):
            continue
        text = texts[row]
        if text not in writers:
            ends = (text[-size:] for size in lengths if size <= len(text))
            of_text = [*puts.get(text, ()), *(one for end in ends for one in appends.get(end, ()))]
            writers[text] = _writers(text == model.initial, of_text)
        found = overwrites.conflict(row, each, writers[text])
        if found is not None:
            return found
    return None


def _of_set(model: Model, operations: Sequence[Operation]) -> Conflict | None:
    """Refute a read by each element alone, which is there or is not."""
    reads = [
        (row, each, frozenset(map(frozen, each.value)))
        for row, each in enumerate(operations)
        if each.f == "read" and _is_known(each)
    ]
    adds, removes = (_by_element(operations, name) for name in ("add", "remove"))
    elements = {each for _, _, found in reads for each in found} | adds.keys() | model.initial
    if len(elements) * len(reads) > ELEMENTS_MAX:
        return None
    for element in elements:
        added, removed = adds.get(element, []), removes.get(element, [])
        overwrites = _Overwrites([*added, *removed])
        is_first = element in model.initial
        present, absent = _writers(is_first, added), _writers(not is_first, removed)
        for row, read, found in reads:
            conflict = overwrites.conflict(row, read, present if element in found else absent)
            if conflict is not None:
                why = "was not there" if element in found else "was there"
                return conflict._replace(why=f"the element {element} {why}")
    return None


def _by_element(
    operations: Sequence[Operation], f: str
) -> dict[Hashable, list[tuple[int, Operation]]]:
    found: dict[Hashable, list[tuple[int, Operation]]] = {}
    for row, each in enumerate(operations):
        if each.f == f:
            found.setdefault(frozen(each.value), []).append((row, each))
    return found


def _of_counter(model: Model, operations: Sequence[Operation]) -> Conflict | None:
    """Refute a read by the least and the greatest sum that it may see."""
    assert isinstance(model, Counting)
    certain, possible = list[tuple[int, int]](), list[tuple[int, int]]()
    for each in operations:
        amount = model.signs[each.f] * (1 if each.value is None else each.value)
        if amount:
            certain.append((each.end, amount))
            possible.append((each.call, amount))
    certain.sort()
    possible.sort()
    ends, calls = [end for end, _ in certain], [call for call, _ in possible]
    done = [list(accumulate((sign(n) for _, n in certain), initial=0)) for sign in _SIGNS]
    begun = [list(accumulate((sign(n) for _, n in possible), initial=0)) for sign in _SIGNS]
    for row, each in enumerate(operations):
        if each.f == "read" and _is_known(each):
            before, until = bisect_left(ends, each.call), bisect_right(calls, each.end)
            least = model.initial + done[0][before] + begun[1][until]
            most = model.initial + begun[0][until] + done[1][before]
            if not least <= each.value <= most:
                return Conflict((row,), f"the counter was between {least} and {most}")
    return None


_SIGNS: tuple[Callable[[int], int], ...] = (lambda n: max(n, 0), lambda n: min(n, 0))
"""The part of a number that increases a sum, and the part that decreases it."""


def _of_collection(model: Model, operations: Sequence[Operation]) -> Conflict | None:
    puts, takes = _PUTS[type(model)], _TAKES[type(model)]
    put: dict[Hashable, list[int]] = {}
    taken: list[tuple[int, int, Hashable]] = []
    for row, each in enumerate(operations):
        if each.f in puts:
            put.setdefault(frozen(each.value), []).append(each.call)
        elif each.f in takes and _is_known(each) and each.value != EMPTY:
            taken.append((each.end, row, frozen(each.value)))
    for element in model.initial:
        put.setdefault(element, []).append(BEFORE)
    calls = {value: sorted(places) for value, places in put.items()}
    seen: Counter[Hashable] = Counter()
    for end, row, value in sorted(taken, key=lambda each: each[:2]):
        seen[value] += 1
        if bisect_right(calls.get(value, []), end) < seen[value]:
            return Conflict((row,), "its element was not put in, or was taken before")
    if isinstance(model, Stack) and not model.initial:
        return _of_stack(operations)
    return None


def _of_stack(operations: Sequence[Operation]) -> Conflict | None:
    """Find two elements, pushed once, of which the lower one was popped before the upper one."""
    counts = Counter(frozen(each.value) for each in operations if each.f == "push")
    pushes, pops = dict[Hashable, int](), dict[Hashable, int]()
    for row, each in enumerate(operations):
        value = frozen(each.value)
        if each.f == "push" and counts[value] == 1:
            pushes[value] = row
        elif each.f == "pop" and _is_known(each) and counts.get(value) == 1:
            pops[value] = row
    has_doubt = any(each.f == "pop" and not _is_known(each) for each in operations)
    popped = [value for value in pops if value in pushes]
    if len(popped) > PAIRS_MAX:
        return None
    for lower in popped:
        low, out = operations[pushes[lower]], operations[pops[lower]]
        for upper, row in _pushed_between(operations, pushes, low.end, out.call):
            if upper not in pops and not has_doubt:
                rows = pushes[lower], row, pops[lower]
                return Conflict(rows, "an element was popped from below another one")
            if upper in pops and operations[pops[upper]].call > out.end:
                rows4 = pushes[lower], row, pops[lower], pops[upper]
                return Conflict(rows4, "an element was popped from below another one")
    return None


def _pushed_between(
    operations: Sequence[Operation], pushes: dict[Hashable, int], begin: int, end: int
) -> Iterator[tuple[Hashable, int]]:
    """Yield the elements that were certainly pushed between two places."""
    for value, row in pushes.items():
        if begin < operations[row].call and operations[row].end < end:
            yield value, row


_PUTS: dict[type[Model], tuple[str, ...]] = {
    FifoQueue: FifoQueue.puts, Stack: Stack.puts, UnorderedQueue: ("enqueue",),
}  # fmt: skip
_TAKES: dict[type[Model], tuple[str, ...]] = {
    FifoQueue: FifoQueue.takes, Stack: Stack.takes, UnorderedQueue: ("dequeue",),
}  # fmt: skip
_RULES: dict[type[Model], Callable[[Any, Sequence[Operation]], Conflict | None]] = {
    CasRegister: _of_register,
    Counting: _of_counter,
    FifoQueue: _of_collection,
    KeyValue: _of_store,
    Register: _of_register,
    Set: _of_set,
    Stack: _of_collection,
    UnorderedQueue: _of_collection,
}
