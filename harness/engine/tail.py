"""Cuts the history that is being recorded into batches, for a judge that works during the run."""

from collections import deque
from collections.abc import Iterable
from pathlib import Path

from model.batch import Batch
from model.history import encode
from model.op import NEMESIS, Op

CONTEXT_NS = 600_000_000_000
"""How long an event that concerns all partitions is kept for partitions that appear later."""
_OF_RECORDS = frozenset(("send", "poll", "txn", "commit", "committed", "crash", "catch-up",
                         "watermarks", "delete-records"))  # fmt: skip
"""Operations that concern no other partitions than those that they name."""
_OF_TOPICS = frozenset(("create-topic", "delete-topic"))
"""Operations that say for ever what a topic is, or that it may be gone."""


class Tail:
    """Observes a recorder; every call of :meth:`batches` returns what is new."""

    def __init__(self) -> None:
        self._place: tuple[Path, int] | None = None
        self._begin: tuple[Path, int] | None = None
        self._number = 1  # an empty batch may be judged before
        self._next_index = 0
        self._now_ns = 0
        self._open: dict[int, Op] = {}
        """The invocations that are not completed, by process."""
        self._carried: tuple[str, ...] = ()
        self._context: deque[tuple[int, str]] = deque()
        """Time and line of each event that concerns all partitions, before this batch."""
        self._shared: list[tuple[int, str]] = []
        """The same, in this batch."""
        self._faults: dict[int, list[tuple[int, str]]] = {}
        """The events of faults that are not healed, by fault: these are kept however old."""
        self._of_topics: list[tuple[int, str]] = []
        """The events of topics: these are kept, too."""
        self._keys: dict[str, None] = {}
        self._new_keys: dict[str, None] = {}
        self._ready: list[Batch] = []

    def observe(self, op: Op, path: Path, begin: int, end: int) -> None:
        """Note an event that was written to a file between two positions."""
        if self._begin is not None and self._begin[0] != path:
            self._cut()
        if self._begin is None:
            self._begin = path, begin
        self._place = path, end
        self._next_index, self._now_ns = op.index + 1, op.time_ns
        if op.process == NEMESIS:
            self._share(op)
        elif op.type == "invoke":
            self._open[op.process] = op
            self._name(op.value)
            if op.f not in _OF_RECORDS:
                self._share(op)
        else:
            self._open.pop(op.process, None)
            self._name(op.value)
            if op.f not in _OF_RECORDS:
                self._share(op)

    def batches(self) -> list[Batch]:
        """Return the events since the last call: no batch, one, or one for each file."""
        self._cut()
        ready, self._ready = self._ready, []
        return ready

    def _cut(self) -> None:
        """End the current batch, if it has any event."""
        if self._begin is None or self._place is None:
            return
        path, begin = self._begin
        reading = [op for op in self._open.values() if op.f != "send"]
        oldest = min(reading, key=lambda op: op.index, default=None)
        batch = Batch(
            number=self._number,
            path=str(path),
            begin=begin,
            end=self._place[1],
            now_ns=self._now_ns,
            open_event=self._next_index if oldest is None else oldest.index,
            open_ns=self._now_ns if oldest is None else oldest.time_ns,
            carried=self._carried,
            keys=tuple(self._keys),
            new_keys=tuple(self._new_keys),
            context=self._context_lines() if self._new_keys else (),
        )
        self._number += 1
        self._begin = self._place = None
        self._carried = tuple(_line(op) for op in self._open.values())
        self._keys |= self._new_keys
        self._new_keys = {}
        self._context.extend(self._shared)
        self._shared = []
        while self._context and self._context[0][0] < self._now_ns - CONTEXT_NS:
            self._context.popleft()
        self._ready.append(batch)

    def _context_lines(self) -> tuple[str, ...]:
        first_ns = self._context[0][0] if self._context else self._now_ns
        kept = (*self._faults.values(), self._of_topics)
        older = sorted(each for events in kept for each in events if each[0] < first_ns)
        return tuple(line for _, line in (*older, *self._context))

    def _share(self, op: Op) -> None:
        event = op.time_ns, _line(op)
        self._shared.append(event)
        if op.f in _OF_TOPICS:
            self._of_topics.append(event)
        if op.process != NEMESIS or not isinstance(op.value, dict):
            return
        fault, phase = op.value.get("id"), op.value.get("phase")
        if not isinstance(fault, int):
            return
        if phase == "heal" and op.type != "invoke":
            self._faults.pop(fault, None)
        else:
            self._faults.setdefault(fault, []).append(event)

    def _name(self, value: object) -> None:
        for key in _keys(value):
            if key not in self._keys:
                self._new_keys[key] = None


def _keys(value: object) -> Iterable[str]:
    """Yield the partitions that records of an operation are sent to, read or deleted from."""
    if not isinstance(value, list | tuple):
        return
    for micro_op in value:
        if not isinstance(micro_op, list | tuple) or len(micro_op) < 2:
            continue
        if micro_op[0] in ("send", "delete-records"):
            yield micro_op[1]
        elif micro_op[0] == "poll" and isinstance(micro_op[1], dict):
            yield from micro_op[1]


def _line(op: Op) -> str:
    return encode(op).decode().rstrip("\n")
