"""The recorder gives each event its index and time, and writes it to the operating system at once.

Recorded events survive a SIGKILL of this process: each takes one unbuffered ``write``. A long
history is written to several files, its segments, one after the other.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from model.history import encode, segment
from model.op import Op, OpType

Observer = Callable[[Op], None]
"""Called with each event after it has been written."""
PlaceObserver = Callable[[Op, Path, int, int], None]
"""Called likewise, also with the file, and the positions in bytes before and after the event."""


class Roll(NamedTuple):
    """When a segment ends: an event that would exceed one of these begins the next segment."""

    bytes: int = 256 << 20
    ns: int = 3600 * 1_000_000_000
    """How long after its first event."""


ROLL = Roll()


class Lines:
    """A file that grows by whole lines, each written to the operating system without a buffer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        """How many bytes were written."""
        self._file = path.open("xb", buffering=0)
        self._torn: OSError | None = None
        """The error that left a part of a line, which could not be removed."""

    def append(self, line: bytes) -> None:
        """Write ``line``; raise :class:`OSError` with the path if it cannot be written in full.

        The part of it that was written is then removed. If that fails, no line can follow it: all
        further calls raise the same error.
        """
        if self._torn is not None:
            raise self._named(self._torn) from self._torn
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._remove_part(error)
            raise self._named(error) from error
        self.bytes += len(line)

    def _remove_part(self, error: OSError) -> None:
        try:
            self._file.truncate(self.bytes)
            self._file.seek(self.bytes)
        except OSError:
            self._torn = error

    def _named(self, error: OSError) -> OSError:
        return OSError(error.errno, error.strerror, str(self.path))

    def close(self) -> None:
        self._file.close()


class Recorder:
    """Writes ``history.jsonl`` and further segments (:func:`model.history.segment`); the only place
    that assigns an event its index and time."""

    def __init__(
        self,
        path: Path,
        clock_ns: Callable[[], int],
        observers: Sequence[Observer] = (),
        *,
        of_places: Sequence[PlaceObserver] = (),
        roll: Roll = ROLL,
    ) -> None:
        self._first, self._segments = path, 1
        self._lines = Lines(path)
        self._roll, self._since_ns = roll, 0
        self._clock_ns = clock_ns
        self._observers, self._of_places = tuple(observers), tuple(of_places)
        self._next_index = 0
        self._last_ns = 0

    def now_ns(self) -> int:
        """Nanoseconds since the run began; never goes back."""
        self._last_ns = max(self._last_ns, self._clock_ns())
        return self._last_ns

    def record(
        self, process: int, kind: OpType, f: str, value: Any = None, error: str | None = None
    ) -> Op:
        """Write an event and return it with its index and time."""
        op = Op(
            index=self._next_index,
            time_ns=self.now_ns(),
            process=process,
            type=kind,
            f=f,
            value=value,
            error=error,
        )
        line = encode(op)
        self._roll_over(len(line), op.time_ns)
        begin = self._lines.bytes
        self._lines.append(line)
        self._next_index += 1
        for observe in self._observers:
            observe(op)
        for observe_place in self._of_places:
            observe_place(op, self._lines.path, begin, self._lines.bytes)
        return op

    def _roll_over(self, size: int, time_ns: int) -> None:
        """Begin the next segment if an event of this size and time does not belong to this one."""
        written = self._lines.bytes
        if not written:
            self._since_ns = time_ns
        elif written + size > self._roll.bytes or time_ns - self._since_ns > self._roll.ns:
            self._lines.close()
            self._lines = Lines(segment(self._first, self._segments))
            self._segments += 1
            self._since_ns = time_ns

    def close(self) -> None:
        self._lines.close()


class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``schedule.jsonl``; times are nanoseconds since the run began."""

    id: int
    fault: str
    targets: Any
    asked_ns: int
    applied_ns: int | None
    healed_ns: int | None
    effect: dict[str, Any]
    """``proved``: whether a measurement showed the fault's effect; ``how``: what was measured."""
    late_ns: int = 0
    """How much later than planned the fault was requested."""
    overran_ns: int | None = None
    """How much longer than planned the fault lasted, from its application to its heal; ``None`` if
    it was not applied or not healed."""


_ROW = msgspec.json.Encoder()


def encode_row(row: FaultRow) -> bytes:
    """Encode one line of ``schedule.jsonl``, newline included."""
    return _ROW.encode(row) + b"\n"
