"""Reads a columnar history into blocks: the operations of some keys, key by key, as numbers.

In a block the place of an invocation is its position, and the place of a completion is the first
position that was invoked after it. The histories of several keys follow each other as if in time,
so that one pass of a monitor (:mod:`~checkers.linearizability.column_monitors`) judges all of them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.linearizability.columnar import Columns
from checkers.linearizability.models import EMPTY
from checkers.threads import THREADS, mapped
from model.history import BadHistory

I64 = NDArray[np.int64]
Numbers = NDArray[Any]
"""Whole numbers of 32 or 64 bits."""

SKIP, WRITE, READ, CAS, NOTHING, IN_DOUBT, ODD = range(7)
"""Kinds of operations: without any effect; an update; a result; a ``cas``; a dequeue that found
nothing; a dequeue that was never completed; and what no monitor of columns decides."""

STEP = 1 << 18
"""Number of rows that are worked on at once, so that what is temporary stays in the cache."""
BLOCK_ROWS = 1 << 20
"""About how many rows a block has if there are many keys."""
_TRIED = 4
_NOTHING = msgspec.json.encode(EMPTY).decode()


class Family(NamedTuple):
    """How the operations of a data type become kinds."""

    kinds: Mapping[str, int]
    """WRITE, READ or CAS by name."""
    has_lists: bool = False
    """Whether reads return lists of elements."""
    takes: bool = False
    """Whether a READ has an effect, as that of a queue."""


def steps(count: int, overlap: int = 0) -> Iterator[slice]:
    """Yield ranges that cover so many rows; each may have the last ones of the one before."""
    for begin in range(0, count, STEP):
        yield slice(max(begin - overlap, 0), min(begin + STEP, count))


@dataclass
class Block:
    """The operations of some keys. Positions count through all of them."""

    starts: I64
    """The first position of each key, and the number of positions."""
    kind: NDArray[np.int8]
    after: NDArray[np.int32]
    """The first position that was invoked after the completion; the end of the key if there is
    none."""
    value: Numbers
    expected: Numbers | None
    rows: I64 | None
    """The row in the file of each position; ``None``: they are the same."""
    key: Numbers | None
    """The number of the key within the block of each position; ``None``: there is one key."""
    lists: "Lists | None" = None
    is_pending: NDArray[np.bool_] | None = None
    """Whether each operation was never completed; where there is a ``cas``."""

    def keys_of(self, positions: I64) -> I64:
        """Return the numbers of keys that have any of these positions."""
        flags = np.zeros(len(self.starts) - 1, dtype=np.bool_)
        flags[np.searchsorted(self.starts, positions, side="right") - 1] = True
        return np.flatnonzero(flags)

    def ends(self) -> NDArray[np.int32]:
        """Return the end of its key for each position."""
        lengths = np.diff(self.starts)
        return np.repeat(self.starts[1:].astype(np.int32), lengths)


class Lists(NamedTuple):
    """The elements of the reads of a whole file."""

    offsets: I64
    """By row, where its elements begin; the last is their number."""
    elements: Numbers
    low: int
    high: int
    """The least and the largest element."""


@dataclass
class Loaded:
    """The columns of a file as numbers, by the order of the invocations."""

    kind: NDArray[np.int8]
    call: Numbers
    end: Numbers
    """The largest number of its type if the operation never ended."""
    value: Numbers
    expected: Numbers | None
    key: Numbers | None
    lists: Lists | None
    texts: Mapping[str, int] | None
    """The numbers of texts; ``None`` if values are numbers themselves."""
    rows: I64 | None = None
    """The row in the file of each operation; ``None``: they are the same."""

    def is_pending(self, rows: I64 | None = None) -> NDArray[np.bool_] | None:
        """Return which operations were never completed, if there is a ``cas``."""
        if self.expected is None:
            return None
        end = self.end if rows is None else self.end[rows]
        return end == np.iinfo(end.dtype).max  # type: ignore[no-any-return]


def load(columns: Columns, family: Family) -> Loaded:
    """Read what a monitor needs. Raises :class:`~model.history.BadHistory`."""
    count, names = len(columns), set(columns.schema.names)
    has_cas = CAS in family.kinds.values()
    wanted = {"f", "call", "end", "value", "elements", "other", "key"} & names
    wanted |= {"expected"} & names if has_cas else set()
    texts: dict[str, dict[str, int]] = {"key": {}, "value": {}}
    into = {
        name: np.zeros(count, dtype=columns.narrow(name))
        for name in ("call", "end", "value", "expected", "key")
        if name in wanted or name == "value"
    }
    kind = np.empty(count, dtype=np.int8)
    narrow = columns.narrow("elements")
    begins = np.cumsum([0, *(columns.rows_of(group) for group in columns.groups)])

    def read(group: int) -> Lists | None:
        table = columns.group(group, sorted(wanted))
        here = slice(int(begins[group]), int(begins[group + 1]))
        kind[here] = _kinds(table, family)
        for name, numbers in into.items():
            if name in wanted:
                column = table[name].combine_chunks()
                if name in ("call", "key") and column.null_count:
                    raise BadHistory(f"{columns.path}: {name} is null")
                known = texts["key" if name == "key" else "value"]
                missing = np.iinfo(numbers.dtype).max if name == "end" else 0
                numbers[here] = _numbers(column, known, missing)
        if not family.has_lists or "elements" not in wanted:
            return None
        lists = table["elements"].combine_chunks()
        if lists.flatten().null_count:
            raise BadHistory(f"{columns.path}: an element is null")
        elements = _numbers(lists.flatten(), texts["value"], 0)
        sizes = _numbers(pc.list_value_length(lists), {}, 0)
        low, high = (int(elements.min()), int(elements.max())) if len(elements) else (0, 0)
        return Lists(sizes, elements.astype(narrow, copy=False), low, high)

    has_texts = any(columns.is_text(name) for name in wanted - {"f", "other"})
    lists = list(mapped(read, columns.groups, 1 if has_texts else THREADS))
    if (into["end"] < into["call"]).any():
        raise BadHistory(f"{columns.path}: an operation ends before its call")
    is_text = "value" in names and columns.is_text("value")
    loaded = Loaded(
        kind,
        into["call"],
        into["end"],
        into["value"],
        into.get("expected"),
        into.get("key"),
        _joined([each for each in lists if each is not None], count),
        texts["value"] if is_text else None,
    )
    return _ordered(loaded)


def _numbers(column: pa.Array, known: dict[str, int], missing: int) -> Numbers:
    """Return a column as numbers; ``known`` has the numbers of texts, and grows."""
    if pa.types.is_string(column.type):
        coded = column.dictionary_encode()
        of = [known.setdefault(text, len(known)) for text in coded.dictionary.to_pylist()]
        column = pa.array(of, pa.int64()).take(coded.indices)
    if column.null_count:
        column = column.fill_null(missing)
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _joined(parts: list[Lists], count: int) -> Lists | None:
    """Return the elements of all row groups, whose offsets are still sizes."""
    if not parts:
        return None
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.concatenate([part.offsets for part in parts]), out=offsets[1:])
    elements = np.concatenate([part.elements for part in parts])
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    return Lists(offsets, elements, low, high)


def _ordered(loaded: Loaded) -> Loaded:
    """Sort operations by their invocations, if they are not."""
    call = loaded.call
    if all(bool((call[part][1:] >= call[part][:-1]).all()) for part in steps(len(call), 1)):
        return loaded
    order = np.argsort(call, kind="stable")
    return Loaded(
        loaded.kind[order],
        call[order],
        loaded.end[order],
        loaded.value[order],
        None if loaded.expected is None else loaded.expected[order],
        None if loaded.key is None else loaded.key[order],
        loaded.lists,
        loaded.texts,
        order,
    )


def _kinds(table: pa.Table, family: Family) -> NDArray[np.int8]:
    """Return the kind of each operation of a row group."""
    names = table["f"].combine_chunks()
    if names.null_count:
        raise BadHistory("an operation has no name in f")
    of_name = [family.kinds.get(name, ODD) for name in names.dictionary.to_pylist()]
    kind: NDArray[np.int8] = np.array([*of_name, ODD], dtype=np.int8)[names.indices.to_numpy()]
    is_pending = _is_null(table, "end")
    no_value, no_elements, no_other = (
        _is_null(table, name) for name in ("value", "elements", "other")
    )
    reads, updates = kind == READ, (kind == WRITE) | (kind == CAS)
    result, unlike = (no_elements, no_value) if family.has_lists else (no_value, no_elements)
    kind[updates & (no_value | ~no_elements | ~no_other)] = ODD
    if CAS in of_name:
        kind[(kind == CAS) & _is_null(table, "expected")] = ODD
    kind[reads & (result | is_pending)] = SKIP
    kind[reads & ~is_pending & ~(no_other & unlike)] = ODD
    if not family.takes:
        return kind
    kind[(kind == SKIP) & ~is_pending] = ODD
    kind[reads & is_pending] = IN_DOUBT
    if not no_other.all():
        other = table["other"].combine_chunks()
        says = [text == _NOTHING for text in other.dictionary.to_pylist()]
        is_nothing = np.array([*says, False])[other.indices.fill_null(-1).to_numpy()]
        kind[reads & ~is_pending & is_nothing & no_value & no_elements] = NOTHING
    return kind


def _is_null(table: pa.Table, name: str) -> NDArray[np.bool_]:
    if name not in table.column_names:
        return np.ones(table.num_rows, dtype=np.bool_)
    column = table[name]
    if not column.null_count:
        return np.zeros(table.num_rows, dtype=np.bool_)
    found = column.combine_chunks().is_null()
    return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def blocks(loaded: Loaded) -> Iterator[Callable[[], Block]]:
    """Yield how to make each block, which may be done in several threads."""
    count = len(loaded.kind)
    if loaded.key is None:
        yield lambda: _whole(loaded)
        return
    code = _dense(loaded.key)
    starts = np.append(0, np.cumsum(np.bincount(code))) if count else np.zeros(1, dtype=np.int64)
    size = max(BLOCK_ROWS, count // 16)
    begin, keys = 0, len(starts) - 1
    while begin < keys:
        end = int(np.searchsorted(starts, starts[begin] + size, side="right")) - 1
        end = max(min(end, keys), begin + 1)
        yield partial(_of_keys, loaded, code, begin, starts[begin : end + 1] - starts[begin])
        begin = end


def _dense(key: Numbers) -> Numbers:
    """Number keys from 0; not every number needs to have a key."""
    low, high = int(key.min(initial=0)), int(key.max(initial=0))
    if high - low <= 4 * len(key) + 1024:
        return key - low if low else key
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    found = np.empty(len(key), dtype=np.int32)
    found[order] = np.cumsum(np.append(False, ordered[1:] != ordered[:-1]), dtype=np.int32)
    return found


def _whole(loaded: Loaded) -> Block:
    """Return the block of a history without keys."""
    count = len(loaded.kind)
    return Block(
        np.array([0, count]),
        loaded.kind,
        _after(loaded.call, loaded.end),
        loaded.value,
        loaded.expected,
        loaded.rows,
        None,
        loaded.lists,
        loaded.is_pending(),
    )


def _of_keys(loaded: Loaded, code: Numbers, first: int, starts: I64) -> Block:
    """Return the block of some keys, grouped by key."""
    keys = len(starts) - 1
    rows = np.flatnonzero((code >= first) & (code < first + keys))
    order = _by_key(code[rows] - first, keys)
    key = np.repeat(np.arange(keys, dtype=np.int32), np.diff(starts))

    def grouped(column: Numbers) -> Numbers:
        return column[rows][order]  # what is near in the file first, and then within the cache

    rows_in_file = rows[order]
    return Block(
        starts,
        grouped(loaded.kind),
        _after_of_keys(grouped(loaded.call), grouped(loaded.end), key, starts),
        grouped(loaded.value),
        None if loaded.expected is None else grouped(loaded.expected),
        rows_in_file if loaded.rows is None else loaded.rows[rows_in_file],
        key,
        loaded.lists,
        loaded.is_pending(rows_in_file),
    )


def _by_key(key: Numbers, keys: int) -> I64:
    """Return the stable order by key. Numbers of 16 bits are sorted in linear time."""
    order = np.argsort(key.astype(np.uint16), kind="stable")
    if keys > 1 << 16:
        high = (key >> 16).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order


def _after(call: Numbers, end: Numbers) -> NDArray[np.int32]:
    """Return how many operations were invoked at or before each end."""
    count = len(call)
    found = np.empty(count, dtype=np.int32)
    if not count:
        return found
    low, high = int(call[0]), int(call[-1])
    if high - low > 4 * count + 1024:
        for part in steps(count):
            found[part] = np.searchsorted(call, end[part], side="right")
        return found
    before = np.zeros(high - low + 1, dtype=np.int32)
    for part in steps(count):
        before[call[part] - low] = np.arange(part.start + 1, part.stop + 1)
    np.maximum.accumulate(before, out=before)
    for part in steps(count):
        found[part] = before[np.minimum(end[part], high) - low]
    return found


def _after_of_keys(call: Numbers, end: Numbers, key: Numbers, starts: I64) -> NDArray[np.int32]:
    """Return the same for keys that follow each other: few operations on a key are concurrent, so
    that the next ones are tried before all are searched."""
    count = len(call)
    low, high = int(call.min(initial=0)), int(call.max(initial=0))
    width = high - low + 2
    if width * len(starts) >= 1 << 62:
        sorted_calls = np.sort(call)
        end = np.searchsorted(sorted_calls, end, side="right")
        call = np.searchsorted(sorted_calls, call, side="right")
        low, width = 0, count + 2
    place = np.full(count + 1, np.iinfo(np.int64).max)
    for part in steps(count):
        place[part] = key[part].astype(np.int64) * width + (call[part] - low)
    found = np.empty(count, dtype=np.int32)
    for part in steps(count):
        until = np.minimum(end[part].astype(np.int64), low + width - 1) - low
        until += key[part].astype(np.int64) * width
        after = np.arange(part.start + 1, part.stop + 1)
        waiting = np.flatnonzero(place[part.start + 1 : part.stop + 1] <= until)
        for _ in range(_TRIED):
            after[waiting] += 1
            waiting = waiting[place[after[waiting]] <= until[waiting]]
        after[waiting] = np.searchsorted(place, until[waiting], side="right")
        found[part] = after
    return found
