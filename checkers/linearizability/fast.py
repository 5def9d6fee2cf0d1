"""Decides by a monitor where one applies: see :mod:`checkers.linearizability.monitors`.

A monitor applies where every value is written once. Otherwise the history is left to the search.
Where that takes long, :func:`refute` may find results that no order explains.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from checkers.linearizability import chains, monitors, refutations
from checkers.linearizability.models import (
    EMPTY,
    CasRegister,
    FifoQueue,
    KeyValue,
    Log,
    Model,
    OwnedMutex,
    Register,
    Set,
    Stack,
    frozen,
)
from checkers.linearizability.monitors import BEFORE, I64, Conflict, NotUnique
from checkers.linearizability.operations import NEVER, Operation


class Decision(NamedTuple):
    """What a monitor decided."""

    conflict: Conflict | None
    """``None``: the operations are linearizable. Rows are those of the operations."""


def decide(model: Model, operations: Sequence[Operation]) -> Decision | None:
    """Return what a monitor decides; ``None`` if none applies."""
    monitor = _MONITORS.get(type(model))
    if monitor is None:
        return None
    try:
        return monitor(model, operations)
    except NotUnique:
        return None


def refute(model: Model, operations: Sequence[Operation]) -> Conflict | None:
    """Return operations whose results no order explains; ``None`` if none were found, which does
    not say that the operations are linearizable."""
    found = refutations.refute(model, operations)
    if found is None and type(model) is FifoQueue:
        found = _refuted_queue(model, operations)
    return found


def _column(numbers: list[int]) -> I64:
    return np.array(numbers, dtype=np.int64)


def _places(operations: Sequence[Operation]) -> tuple[I64, I64]:
    return _column([each.call for each in operations]), _column([each.end for each in operations])


class _Codes:
    """Numbers for values."""

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}

    def of(self, value: Any) -> int:
        """Return the number of a value."""
        return self._codes.setdefault(frozen(value), len(self._codes))


_WRITES, _READS = ("write", "put"), ("read", "get")


def _of_register(model: Model, operations: Sequence[Operation]) -> Decision | None:
    """Decide about a register, perhaps with ``cas``, and about a key of a key-value store."""
    codes = _Codes()
    initial = codes.of(model.initial)
    rows, kinds, before, value = [], [], [], []
    for row, each in enumerate(operations):
        if each.f in _READS:
            if each.is_pending or each.value is None:
                continue
            kinds.append(monitors.READ)
            old, new = -1, codes.of(each.value)
        elif each.f in _WRITES:
            kinds.append(monitors.WRITE)
            old, new = -1, codes.of(each.value)
        elif each.f == "cas":
            kinds.append(monitors.CAS)
            old, new = (codes.of(part) for part in each.value)
        else:
            return None
        rows.append(row)
        before.append(old)
        value.append(new)
    call, end = _places([operations[row] for row in rows])
    kind = np.array(kinds, dtype=np.int8)
    if monitors.CAS in kinds:
        found = chains.cas_register(kind, _column(before), _column(value), call, end, initial)
    else:
        found = monitors.register(kind == monitors.WRITE, _column(value), call, end, initial)
    return Decision(_renumbered(found, rows))


def _renumbered(found: Conflict | None, rows: Sequence[int]) -> Conflict | None:
    return None if found is None else found._replace(rows=tuple(rows[row] for row in found.rows))


def _of_queue(model: Model, operations: Sequence[Operation]) -> Decision | None:
    """Decide about a queue. A dequeue whose result is unknown took any element, or nothing: where
    none of them had an effect, or where they may have taken all that was left."""
    assert isinstance(model, FifoQueue)
    puts = [row for row, each in enumerate(operations) if each.f in model.puts]
    takes = [row for row, each in enumerate(operations) if each.f in model.takes]
    if model.initial or len(puts) + len(takes) < len(operations):
        return None
    known = [
        row for row in takes if not operations[row].is_pending and operations[row].value is not None
    ]
    if any(not operations[row].is_pending for row in set(takes).difference(known)):
        return None
    found = _by_elements(operations, puts, known)
    if found is None or len(known) == len(takes):
        return Decision(found)
    taken = {frozen(operations[row].value) for row in known}
    gone = [row for row in puts if frozen(operations[row].value) in taken]
    found = _by_elements(operations, gone, known)
    if found is not None:
        return Decision(found)
    left = [row for row in puts if frozen(operations[row].value) not in taken]
    return _with_doubts(operations, puts, known, left, set(takes).difference(known))


def _with_doubts(
    operations: Sequence[Operation],
    puts: list[int],
    known: list[int],
    left: Iterable[int],
    doubts: Iterable[int],
) -> Decision | None:
    """Decide that a queue is linearizable if the dequeues in doubt may have taken what was left.

    Each takes one element, the first ones in the order in which they were enqueued. There may be
    another way if this is none.
    """
    completed = [row for row in left if not operations[row].is_pending]
    pairs = zip(
        sorted(doubts, key=lambda row: operations[row].call),
        sorted(completed, key=lambda row: operations[row].end),
        strict=False,
    )
    resolved = list(operations)
    took = []
    for doubt, put in pairs:
        resolved[doubt] = operations[doubt]._replace(value=operations[put].value)
        took.append(doubt)
    return Decision(None) if _by_elements(resolved, puts, [*known, *took]) is None else None


def _refuted_queue(model: Model, operations: Sequence[Operation]) -> Conflict | None:
    """Find a conflict between elements of a queue that were enqueued once, and that were dequeued.

    What a queue does with some of its elements is what a queue does that has no others.
    """
    assert isinstance(model, FifoQueue)
    if model.initial:
        return None
    count = Counter(frozen(each.value) for each in operations if each.f in model.puts)
    puts, takes = list[int](), list[int]()
    for row, each in enumerate(operations):
        if count.get(frozen(each.value)) == 1:
            if each.f in model.puts:
                puts.append(row)
            elif not each.is_pending:
                takes.append(row)
    taken = {frozen(operations[row].value) for row in takes}
    puts = [row for row in puts if frozen(operations[row].value) in taken]
    return _by_elements(operations, puts, takes)


def _by_elements(
    operations: Sequence[Operation], puts: list[int], takes: list[int]
) -> Conflict | None:
    codes = _Codes()
    empty = [row for row in takes if operations[row].value == EMPTY]
    full = [row for row in takes if operations[row].value != EMPTY]

    def columns(rows: list[int]) -> tuple[I64, I64, I64]:
        mine = [operations[row] for row in rows]
        return (_column([codes.of(each.value) for each in mine]), *_places(mine))

    found = monitors.queue(columns(puts), columns(full), columns(empty)[1:])
    return _renumbered(found, [*puts, *full, *empty])


def _of_log(model: Model, operations: Sequence[Operation]) -> Decision | None:
    if model.initial or any(each.f not in ("append", "read") for each in operations):
        return None
    appends, reads = _split(operations, "append")
    if any(not isinstance(operations[row].value, list | tuple) for row in reads):
        return None  # the model says whether it has such a value
    values: dict[int, Any] = {row: frozen(operations[row].value) for row in reads}
    order = max(values.values(), key=len, default=())
    position = {element: place for place, element in enumerate(order)}
    if len(position) < len(order):
        return None
    longest = next((row for row in reads if values[row] is order), -1)
    for row, value in values.items():
        if value != order[: len(value)]:
            why = "neither of the two reads begins with what the other one returned"
            return Decision(Conflict((row, longest), why))
    written = [frozen(operations[row].value) for row in appends]
    return _by_levels(
        operations,
        (appends, [2 * position.get(value, len(order)) + 1 for value in written], written),
        (reads, [2 * len(values[row]) for row in reads], position),
    )


def _of_set(model: Model, operations: Sequence[Operation]) -> Decision | None:
    if model.initial or any(each.f not in ("add", "read") for each in operations):
        return None
    adds, reads = _split(operations, "add")
    sizes = sorted({len(operations[row].value) for row in reads})
    known: dict[Hashable, int] = {}
    last = -1
    of_size: dict[int, frozenset[Hashable]] = {}
    for row in sorted(reads, key=lambda row: len(operations[row].value)):
        value = operations[row].value
        elements = frozenset(map(frozen, value))
        before = of_size.setdefault(len(value), elements)
        if len(elements) < len(value):
            return None  # the search says why
        if before != elements or not known.keys() <= elements:
            why = "each of the two reads has an element that the other one does not have"
            return Decision(Conflict((last, row), why))
        last = row
        for element in elements:
            known.setdefault(element, sizes.index(len(value)))
    written = [frozen(operations[row].value) for row in adds]
    level = {size: 2 * number + 2 for number, size in enumerate(sizes)}
    return _by_levels(
        operations,
        (adds, [2 * known.get(value, len(sizes)) + 1 for value in written], written),
        (reads, [level[len(operations[row].value)] for row in reads], known),
    )


def _of_mutex(model: Model, operations: Sequence[Operation]) -> Decision | None:
    """Decide about a lock that each process acquires and then releases, one operation after the
    other, without tokens."""
    assert isinstance(model, OwnedMutex)
    held: dict[Hashable, int] = {}
    ended: dict[Hashable, int] = {}
    spans: list[tuple[int, int]] = []
    for row, each in enumerate(operations):
        acquired = held.pop(each.process, None)
        if each.is_pending or each.f not in ("acquire", "release"):
            return None
        if each.call <= ended.get(each.process, BEFORE):
            return None
        ended[each.process] = each.end
        if (each.f == "acquire") != (acquired is None) or isinstance(each.value, int):
            return None
        if acquired is None:
            held[each.process] = row
        else:
            spans.append((acquired, row))
    if model.depth != 1 or model.initial[0] is not None:
        return None
    begins = [*(acquired for acquired, _ in spans), *held.values()]
    releases = [*(operations[row].call for _, row in spans), *(NEVER for _ in held)]
    acquires = _column([operations[row].end for row in begins])
    found = monitors.holders(acquires, _column(releases))
    return Decision(_renumbered(found, begins))


def _split(operations: Sequence[Operation], f: str) -> tuple[list[int], list[int]]:
    """Return the rows of an update, and of the reads that have a result."""
    updates = [row for row, each in enumerate(operations) if each.f == f]
    reads = [
        row
        for row, each in enumerate(operations)
        if each.f == "read" and not each.is_pending and each.value is not None
    ]
    return updates, reads


def _by_levels(
    operations: Sequence[Operation],
    updates: tuple[list[int], list[int], list[Hashable]],
    reads: tuple[list[int], list[int], dict[Hashable, int]],
) -> Decision | None:
    """Compare updates and reads by the places that the longest read gives to them."""
    (changing, levels, written), (reading, read_levels, seen) = updates, reads
    if len(set(written)) < len(written):
        return None
    if not seen.keys() <= set(written):
        strange = seen.keys() - set(written)
        row = next(
            row for row in reading if not strange.isdisjoint(map(frozen, operations[row].value))
        )
        return Decision(Conflict((row,), "it has an element that was never added"))
    kept = [
        place
        for place, row in enumerate(changing)
        if operations[row].end < NEVER or written[place] in seen
    ]
    rows = [*(changing[place] for place in kept), *reading]
    level = _column([*(levels[place] for place in kept), *read_levels])
    call, end = _places([operations[row] for row in rows])
    return Decision(_renumbered(monitors.levels(level, level, call, end), rows))


Monitor = Callable[[Model, Sequence[Operation]], Decision | None]

_MONITORS: dict[type[Model], Monitor] = {
    Register: _of_register,
    CasRegister: _of_register,
    KeyValue: _of_register,
    FifoQueue: _of_queue,
    Log: _of_log,
    OwnedMutex: _of_mutex,
    Set: _of_set,
}
assert Stack not in _MONITORS, "a stack is a queue only in the names of its operations"
