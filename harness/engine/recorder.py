"""The recorder gives each event its place and time, and hands it to the operating system at once.

What has been recorded survives a SIGKILL of this process: one ``write`` per event, no buffer.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from model.history import encode
from model.op import Op, OpType

Observer = Callable[[Op], None]
"""Told of each event after it has been written."""


class Lines:
    """A file that grows by whole lines, each written through to the operating system."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("xb", buffering=0)

    def append(self, line: bytes) -> None:
        """Raises :class:`OSError`, with the path, when the line cannot be written in full."""
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def close(self) -> None:
        self._file.close()


class Recorder:
    """Writes ``history.jsonl``; the one place that assigns index and time."""

    def __init__(
        self, path: Path, clock_ns: Callable[[], int], observers: Sequence[Observer] = ()
    ) -> None:
        self._lines = Lines(path)
        self._clock_ns = clock_ns
        self._observers = tuple(observers)
        self._next_index = 0
        self._last_ns = 0

    def now_ns(self) -> int:
        """Nanoseconds since the run began; never goes back."""
        self._last_ns = max(self._last_ns, self._clock_ns())
        return self._last_ns

    def record(
        self, process: int, kind: OpType, f: str, value: Any = None, error: str | None = None
    ) -> Op:
        """The event as it stands in the history."""
        op = Op(
            index=self._next_index,
            time_ns=self.now_ns(),
            process=process,
            type=kind,
            f=f,
            value=value,
            error=error,
        )
        self._next_index += 1
        self._lines.append(encode(op))
        for observe in self._observers:
            observe(op)
        return op

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
    """``proved``: was the mechanism measured to have bitten; ``how``: by what."""
    late_ns: int = 0
    """How much later than planned the fault was asked for."""
    overran_ns: int | None = None
    """How much longer than planned it lasted, from its application to its heal; ``None`` for a
    fault that lacks one of the two."""


_ROW = msgspec.json.Encoder()


def encode_row(row: FaultRow) -> bytes:
    """One line of ``schedule.jsonl``, newline included."""
    return _ROW.encode(row) + b"\n"
