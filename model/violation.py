"""``invariants.jsonl``: the violations that a run's invariant checks recorded while it ran."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from model.history import BadHistory

FILE = "invariants.jsonl"


class Violation(msgspec.Struct, frozen=True, kw_only=True, tag="violation", omit_defaults=True):
    """An invariant did not hold in a snapshot of the cluster."""

    invariant: str
    """The name of the invariant, as in docs/anomalies.md."""
    time_ns: int
    """The time of the snapshot, since the run began."""
    key: str | None = None
    """``topic-partition``; ``None`` if the violation is about the cluster."""
    offset: int | None = None
    brokers: tuple[int, ...] = ()
    """The ids of the brokers that witness the violation."""
    epochs: tuple[int, ...] = ()
    """The leader epochs or controller epochs of the witnesses, as the argument names them."""
    why: str
    """The argument, in one sentence."""


class Watched(msgspec.Struct, frozen=True, kw_only=True, tag="watched"):
    """The last line of the file: how many snapshots were checked, and until when."""

    snapshots: int
    until_ns: int
    zookeeper_leaders: int = 0
    """The number of epochs in which a server of a ZooKeeper ensemble served as the leader."""


Row = Violation | Watched


class BadRecord(BadHistory):
    """A line that cannot be read; the message says which and why."""


class Record(NamedTuple):
    """The content of ``invariants.jsonl``."""

    violations: tuple[Violation, ...]
    end: Watched | None
    """``None`` if the checks did not run to the end."""


_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Row] = msgspec.json.Decoder(Row)


def encode(row: Row) -> bytes:
    """Return one line of the file, with its newline."""
    return _ENCODER.encode(row) + b"\n"


def read(path: Path) -> Record:
    """Read the file; a torn last line (its writer was killed) is left out."""
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
