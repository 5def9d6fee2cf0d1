"""Generates large linearizable histories of objects, and plants one violation in them.

Operations take effect one after the other; each begins up to ten of them earlier, and ends up to
ten later. One in a thousand is never completed.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.linearizability import columnar

Array = NDArray[Any]
KINDS = ("register", "cas-register", "fifo-queue", "log", "linearizable-set")
"""The models, each with unique values."""
PENDING = 0.001
"""The share of operations that are never completed."""
SPREAD = 10
"""How many operations may take effect between the call, or the end, and the effect of another."""
READS = 3
"""About how many reads of a log or of a set each key has: they return all elements."""
PROCESSES = 2 * SPREAD

_NAMES = {
    "register": ("read", "write"),
    "cas-register": ("read", "write", "cas"),
    "fifo-queue": ("dequeue", "enqueue"),
    "log": ("read", "append"),
    "linearizable-set": ("read", "add"),
}
_READ, _UPDATE, _CAS = range(3)


@dataclass
class History:
    """The columns of a history, in the order of the invocations."""

    kind: str
    f: Array
    """The place of the name in those of the kind."""
    key: Array | None
    value: Array
    expected: Array | None
    is_null: Array
    """Whether there is no value."""
    is_nothing: Array
    """Whether a dequeue found nothing."""
    size: Array | None
    """How many elements a read of a log or of a set returned: the first ones of its key."""
    process: Array
    call: Array
    end: Array
    is_pending: Array
    elements: Array | None = None
    """All elements that were read, one after the other."""

    def __len__(self) -> int:
        return len(self.f)


def generate(kind: str, count: int, keys: int, seed: int) -> History:
    """Return a linearizable history; with one key, it has no column for it."""
    rng = np.random.default_rng([seed, count, keys, KINDS.index(kind)])
    key = rng.integers(0, keys, count) if keys > 1 else np.zeros(count, dtype=np.int64)
    order = np.argsort(key, kind="stable")
    starts = np.append(0, np.cumsum(np.bincount(key, minlength=keys)))
    of, at = key[order], np.arange(count)
    if kind in ("log", "linearizable-set"):
        is_read = rng.random(count) < READS * keys / count
        f = np.where(is_read, _READ, _UPDATE)
    else:
        f = rng.integers(0, len(_NAMES[kind]), count)
    written = np.cumsum(f != _READ)
    before = np.append(0, written)[starts[of]]
    number = written - before  # how many values the key has been given
    expected, nothing, size = None, np.zeros(count, dtype=np.bool_), None
    is_null = np.zeros(count, dtype=np.bool_)
    value = number
    if kind == "cas-register":
        expected = np.where(f == _CAS, number - 1, 0)
    elif kind == "fifo-queue":
        step = np.where(f == _UPDATE, 1, -1)
        length = np.cumsum(step)
        length -= np.append(0, length)[starts[of]]
        lowest = np.minimum.accumulate(length - of * (count + 1)) + of * (count + 1)
        lowest = np.minimum(lowest, 0)
        is_first = at == starts[of]
        nothing = (f == _READ) & (lowest < np.where(is_first, 0, np.append(0, lowest[:-1])))
        value = np.where(f == _UPDATE, number, number - length + lowest)
    elif kind in ("log", "linearizable-set"):
        is_null = f == _READ
        size = np.where(is_null, number, 0)
    back = np.empty(count, dtype=np.int64)
    back[order] = at
    is_pending = rng.random(count) < PENDING
    call, end = _places(rng, count)
    rows = np.argsort(call, kind="stable")
    mine = back[rows]  # by the order of the calls
    is_pending = is_pending[rows]
    f = f[mine]
    unknown = is_pending & (f == _READ)
    history = History(
        kind,
        f,
        key[rows] if keys > 1 else None,
        value[mine],
        None if expected is None else expected[mine],
        is_null[mine] | unknown | nothing[mine],
        nothing[mine] & ~unknown,
        None if size is None else np.where(unknown, 0, size[mine]),
        rows % PROCESSES,
        call[rows],
        end[rows],
        is_pending,
    )
    if history.size is None:
        return history
    reads = history.size[history.f == _READ]
    shift = np.repeat(np.append(0, np.cumsum(reads)[:-1]), reads)
    return replace(history, elements=np.arange(len(shift)) - shift + 1)


def _places(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return the places of calls and ends in the order of all events."""
    at = np.arange(count, dtype=np.float64)
    times = np.concatenate([at - rng.random(count) * SPREAD, at + rng.random(count) * SPREAD])
    place = np.empty(2 * count, dtype=np.int64)
    place[np.argsort(times, kind="stable")] = np.arange(2 * count)
    return place[:count], place[count:]


def plant(history: History, seed: int) -> tuple[History, tuple[str, ...]]:
    """Change one result so that no order explains it.

    Returns what the explanation must name: the operation, or the update that it lost.
    """
    rng = np.random.default_rng([seed, len(history)])
    done = np.flatnonzero((history.f == _READ) & ~history.is_pending & ~history.is_nothing)
    row = int(rng.choice(done[len(done) // 4 :]))
    named = f"(event {history.end[row]})"
    if history.elements is not None and history.size is not None:
        sizes = history.size[history.f == _READ]
        which = int(np.count_nonzero(history.f[:row] == _READ))
        begin, size = int(sizes[:which].sum()), int(sizes[which])
        lost = np.arange(begin + size // 2, begin + size)  # the log was read as it was before
        if history.kind != "log":
            lost = lost[:1]  # one element is missing
        fewer = replace(history, size=_with(history.size, row, size - len(lost)))
        update = f"{_NAMES[history.kind][_UPDATE]} {history.elements[lost[0]]} of process"
        return replace(fewer, elements=np.delete(history.elements, lost)), (named, update)
    value = history.value.copy()
    if history.kind == "fifo-queue":  # two dequeues return each other's element
        if history.key is not None:
            done = done[history.key[done] == history.key[row]]
        other = int(done[np.searchsorted(done, row) - len(done) // 5])
        value[[row, other]] = value[[other, row]]
        named = f"(event {history.end[other]})"
    else:  # a read returns a value that was replaced long before
        value[row] -= int(value[row]) // 2
    return replace(history, value=value), (named,)


def _with(column: Array, row: int, number: int) -> Array:
    changed = column.copy()
    changed[row] = number
    return changed


def table(history: History) -> pa.Table:
    """Return a history in the Parquet form of operations."""
    names = pa.array(_NAMES[history.kind])
    columns = {
        "f": names.take(pa.array(history.f)),
        "call": pa.array(history.call),
        "end": pa.array(history.end, mask=history.is_pending),
        "value": pa.array(history.value, mask=history.is_null),
        "process": pa.array(history.process),
    }
    if history.key is not None:
        columns["key"] = pa.array(history.key)
    if history.expected is not None:
        columns["expected"] = pa.array(history.expected, mask=history.f != _CAS)
    if history.is_nothing.any():
        columns["other"] = pa.array(['"empty"']).take(
            pa.array(np.zeros(len(history), dtype=np.int64), mask=~history.is_nothing)
        )
    if history.size is not None:
        none = (history.f != _READ) | history.is_pending
        offsets = np.append(0, np.cumsum(history.size)).astype(np.int32)
        columns["elements"] = pa.ListArray.from_arrays(
            pa.array(offsets, mask=np.append(none, False)), pa.array(history.elements)
        )
    return pa.table(columns)


def write(path: Path, history: History) -> None:
    """Write a history."""
    columnar.write_table(path, table(history))
