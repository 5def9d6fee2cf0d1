"""A history is a file with one operation event per line, readable after any crash of its writer.

A long history is several such files, its segments, which follow each other.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from model.op import Op


class BadHistory(ValueError):
    """A history that cannot be read; the message says where and why, in one sentence."""


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Op)


def encode(op: Op) -> bytes:
    """Return one line of ``history.jsonl``, with its newline."""
    return _ENCODER.encode(op) + b"\n"


def decode(line: bytes) -> Op:
    """Parse the event of one line; raises :class:`BadHistory` if the line is not an event."""
    try:
        return _DECODER.decode(line)
    except msgspec.MsgspecError as error:
        raise BadHistory(str(error)) from error


def segment(first: Path, number: int) -> Path:
    """Return the path of a segment of a history; number 0 is the ``first`` one itself."""
    return first.with_name(f"{first.stem}-{number:06}{first.suffix}") if number else first


def segments(first: Path) -> list[Path]:
    """Return the segments of a history that exist, in their order."""
    found = [first]
    while (following := segment(first, len(found))).is_file():
        found.append(following)
    return found


def read(path: Path) -> Iterator[Op]:
    """Yield the events of a ``history.jsonl``, without a torn last line (its writer was killed)."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield _DECODER.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                if not line.endswith(b"\n"):
                    return
                raise BadHistory(f"{path}, line {number}: {error}") from error


def write(path: Path, ops: Iterable[Op]) -> None:
    """Write events as a ``history.jsonl`` (for tests and examples; a run uses the recorder)."""
    with path.open("wb") as file:
        file.writelines(map(encode, ops))
