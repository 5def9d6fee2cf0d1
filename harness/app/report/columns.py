"""Reads a history into numpy columns in one pass, with about 90 bytes and no object per event."""

import bisect
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from model import history
from model.op import NEMESIS, ZNODE_READS, Op, OpType

TYPES: tuple[OpType, ...] = ("invoke", "ok", "fail", "info")
INVOKE, OK, FAIL, INFO = range(4)

NO_KEY, SEVERAL_KEYS = -1, -2
"""Values of :attr:`Columns.key` for an event that touches no partition, or more than one."""

Ints = npt.NDArray[np.int64]


class Segment(NamedTuple):
    """One of the files of a history."""

    path: Path
    begin: int
    """The row of its first event."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The events of a history in order, as columns; codes are positions in the name lists."""

    segments: tuple["Segment", ...]
    at: Ints
    """The byte offset of the event's line in its segment."""
    line: Ints
    """The number of that line in its segment, from 1."""
    index: Ints
    time_ns: Ints
    process: Ints
    type: Ints
    """A position in :data:`TYPES`."""
    f: Ints
    key: Ints
    sent: Ints
    """The number of records that this event, an ``ok``, acknowledges."""
    read: Ints
    """The number of records that this event, an ``ok``, delivers."""
    latency_ns: Ints
    """For a completion: the time since its invocation; -1 for other events."""
    f_names: tuple[str, ...]
    key_names: tuple[str, ...]
    errors: Counter[tuple[str, str]]
    """How often operations ended in each (type, error)."""

    def __len__(self) -> int:
        return len(self.index)

    def row_of(self, index: int) -> int | None:
        """Return the row of the event with this index; ``None`` if the history lacks it."""
        if index < len(self.index) and self.index[index] == index:
            return index  # as the recorder numbers them
        found = np.flatnonzero(self.index == index)
        return int(found[0]) if len(found) else None

    def op(self, row: int) -> Op:
        """Read the whole event of a row from the file."""
        return history.decode(self._bytes(row))

    def text(self, row: int) -> str:
        """Return the line of a row as in the file, without its line end."""
        return self._bytes(row).decode(errors="replace").rstrip("\r\n")

    def path(self, row: int) -> Path:
        """Return the file that has the event of a row."""
        after = bisect.bisect_right(self.segments, row, key=lambda segment: segment.begin)
        return self.segments[after - 1].path

    def _bytes(self, row: int) -> bytes:
        with self.path(row).open("rb") as file:
            file.seek(int(self.at[row]))
            return file.readline()

    def clients(self) -> npt.NDArray[np.bool_]:
        """Return which rows are operations of clients, not of the nemesis."""
        return np.not_equal(self.process, NEMESIS)


class _Names:
    """Assigns small numbers to names, in the order of their first use."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, name: str) -> int:
        return self.codes.setdefault(name, len(self.codes))

    def all(self) -> tuple[str, ...]:
        return tuple(self.codes)


def keys_of(value: Any) -> list[str]:
    """Return the partitions that micro-operations touch, each once, in order.

    An operation on ZooKeeper touches a path. Returns none for any other value.
    """
    if isinstance(value, dict):
        place = value.get("place", value.get("path"))
        return [place] if isinstance(place, str) else []
    found: dict[str, None] = {}
    for micro in value if isinstance(value, list) else ():
        match micro:
            case ["subscribe" | "init" | "leave" | "freeze" | "delay", *_]:
                pass
            case ["commit" | "committed", _, dict(places), *_] | ["assigned", _, _, dict(places)]:
                found.update(dict.fromkeys(map(str, places)))
            case ["revoked" | "lost", _, _, list(places)]:
                found.update(dict.fromkeys(map(str, places)))
            case [_, str(key), *_]:
                found[key] = None
            case [_, dict(polled), *_]:
                found.update(dict.fromkeys(map(str, polled)))
            case _:
                pass
    return list(found)


def records_of(value: Any, f: str = "") -> tuple[int, int]:
    """Return how many records the micro-operations of a completed event sent and read.

    An operation on ZooKeeper is one write or one read.
    """
    if isinstance(value, dict) and "path" in value:
        return (0, 1) if f in ZNODE_READS else (1, 0)
    sent = read = 0
    for micro in value if isinstance(value, list) else ():
        match micro:
            case ["send", _, _]:
                sent += 1
            case ["poll", dict(polled)]:
                read += sum(len(rows) for rows in polled.values() if isinstance(rows, list))
            case _:
                pass
    return sent, read


def load(path: Path) -> Columns:
    """Return the columns of all segments of a ``history.jsonl``; a missing file is an empty one.

    A torn last line of a segment, left by a writer that was killed, is ignored. Raises
    :class:`model.history.BadHistory` for any other line that is not an event.
    """
    numbers = {
        name: array("q") for name in ("at", "line", "index", "time_ns", "process", "type", "f")
    }
    numbers |= {name: array("q") for name in ("type", "f", "key", "sent", "read", "latency_ns")}
    f_names, key_names = _Names(), _Names()
    errors: Counter[tuple[str, str]] = Counter()
    invoked_ns: dict[int, int] = {}
    segments = []
    for each in history.segments(path) if path.exists() else ():
        segments.append(Segment(each, len(numbers["at"])))
        for begin, number, op in _events(each):
            keys = keys_of(op.value) if op.process != NEMESIS else []
            sent, read = records_of(op.value, op.f) if op.type == "ok" else (0, 0)
            latency_ns = -1
            if op.type == "invoke":
                invoked_ns[op.process] = op.time_ns
            elif op.process in invoked_ns:
                latency_ns = op.time_ns - invoked_ns.pop(op.process)
            if op.error is not None:
                errors[op.type, op.error] += 1
            key = NO_KEY if not keys else SEVERAL_KEYS if keys[1:] else key_names.code(keys[0])
            place = (begin, number, op.index, op.time_ns, op.process)
            kind = (TYPES.index(op.type), f_names.code(op.f), key)
            row = (*place, *kind, sent, read, latency_ns)
            for column, part in zip(numbers.values(), row, strict=True):
                column.append(part)
    return Columns(
        segments=tuple(segments),
        f_names=f_names.all(),
        key_names=key_names.all(),
        errors=errors,
        **{name: np.frombuffer(column, dtype=np.int64) for name, column in numbers.items()},
    )


def _events(path: Path) -> Iterator[tuple[int, int, Op]]:
    """Yield the byte offset, the number of the line, and the event of each line of a segment."""
    at = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            begin, at = at, at + len(line)
            if not line.strip():
                continue
            try:
                op = history.decode(line)
            except history.BadHistory:
                if not line.endswith(b"\n"):
                    break
                raise
            yield begin, number, op
