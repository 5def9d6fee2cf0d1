"""``invariants.jsonl``: what the white-box checks of a run saw, recorded while it ran."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from model.history import BadHistory

FILE = "invariants.jsonl"


class Violation(msgspec.Struct, frozen=True, kw_only=True, tag="violation", omit_defaults=True):
    """An invariant did not hold in a snapshot of the cluster."""

    invariant: str
    """Its name, as in docs/anomalies.md."""
    time_ns: int
    """Of the snapshot, since the run began."""
    key: str | None = None
    """``topic-partition``; None when it is about the cluster."""
    offset: int | None = None
    brokers: tuple[int, ...] = ()
    """The witnesses."""
    epochs: tuple[int, ...] = ()
    """Leader epochs or controller epochs of theirs, as the argument names them."""
    why: str
    """The argument, in one sentence."""


class Watched(msgspec.Struct, frozen=True, kw_only=True, tag="watched"):
    """The last line: how much was looked at."""

    snapshots: int
    until_ns: int


Row = Violation | Watched


class BadRecord(BadHistory):
    """A line that cannot be read; the message says which and why."""


class Record(NamedTuple):
    """All that a run's white-box checks left."""

    violations: tuple[Violation, ...]
    end: Watched | None
    """None: they came to no end."""


_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Row] = msgspec.json.Decoder(Row)


def encode(row: Row) -> bytes:
    """One line, newline included."""
    return _ENCODER.encode(row) + b"\n"


def read(path: Path) -> Record:
    """What a file holds; a torn last line (the writer was killed) is left out."""
    violations, end = [], None
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = _DECODER.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                if not line.endswith(b"\n"):
                    break
                raise BadRecord(f"{path}, line {number}: {error}") from error
            if isinstance(row, Watched):
                end = row
            else:
                violations.append(row)
    return Record(tuple(violations), end)
