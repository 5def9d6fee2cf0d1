"""A history is a file with one operation event a line, readable after any crash of its writer."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from model.op import Op


class BadHistory(ValueError):
    """A history that cannot be read; the message says where and why, in one sentence."""


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Op)


def encode(op: Op) -> bytes:
    """One line of ``history.jsonl``, newline included."""
    return _ENCODER.encode(op) + b"\n"


def decode(line: bytes) -> Op:
    """The event of one line; raises :class:`BadHistory` when it is none."""
    try:
        return _DECODER.decode(line)
    except msgspec.MsgspecError as error:
        raise BadHistory(str(error)) from error


def read(path: Path) -> Iterator[Op]:
    """The events of a ``history.jsonl``; a torn last line (the writer was killed) is left out."""
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
    """A ``history.jsonl`` of these events (for tests and examples; a run uses the recorder)."""
    with path.open("wb") as file:
        file.writelines(map(encode, ops))
