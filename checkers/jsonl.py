"""Reads ``history.jsonl``: one event per line, large files by two processes."""

import gc
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from checkers import memory, pieces
from checkers.event_blocks import EventBlocks
from checkers.events import SHAPE_ERRORS, Event, EventColumns, add_one, assembled, refuse
from checkers.pieces import Progress
from checkers.threads import THREADS
from model import json_fields
from model.history import BadHistory

CHUNK_BYTES = 512 << 10
"""Number of bytes that are decoded at once: the objects of these lines still fit into a core's
cache."""
PIECE_EVENTS = 1 << 15
"""Number of events that are packed into narrow columns together."""
SPLIT_BYTES = 64 << 20
"""Size from which on two processes read a file."""

FIELDS = frozenset(Event.__struct_fields__)
"""The fields that an event of a file may have; other fields are ignored, and reported."""

_EVENTS = msgspec.json.Decoder(list[Event])
EVENT = msgspec.json.Decoder(Event)
_UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is raised for a text that is not an event in JSON."""
_Open = Callable[[], IO[bytes]]
"""Opens a text at its beginning."""
_UNREADABLE = (
    *_UNDECODED,
    pa.ArrowException,
    EOFError,
    pickle.PickleError,
    *SHAPE_ERRORS,
)


def read(path: Path, progress: Progress) -> pa.Table:
    """Return the events of a ``history.jsonl``.

    A torn last line (its writer was killed) is left out. Raises :class:`BadHistory` for any other
    line that is not an event. Another process reads half of a large file, if it has a core of its
    own, since decoding is most of the work of judging.
    """
    size = path.stat().st_size
    try:
        if size < SPLIT_BYTES or THREADS == 1:
            return assembled(_read_part(_of_file(path), (0, size), progress))
        return assembled(*_read_halves(path, size, progress))
    except _UNREADABLE:
        pass
    try:
        part, torn = _read_carefully(_of_file(path), (0, size))
    except BadLine as error:
        raise BadHistory(f"{path}, line {error.line}: {error}") from error
    return assembled(part, torn=None if torn is None else torn_line(torn))


class BadLine(ValueError):
    """A line that is not an event; ``line`` is its number, from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line

    def __reduce__(self) -> tuple[type["BadLine"], tuple[int, str]]:
        return BadLine, (self.line, str(self))


class Range(NamedTuple):
    """The events of adjacent lines of a file."""

    events: pa.Table
    torn: int | None
    """The number of the incomplete last line within the range, from 1; it is left out."""


def read_range(path: Path, begin: int, end: int) -> Range:
    """Read the lines between two positions of a file, both at the beginning of a line.

    Raises :class:`BadLine`, with the number of the line within the range.
    """
    return _range(_of_file(path), (begin, end), has_events_before=begin > 0)


def read_bytes(lines: bytes, *, has_events_before: bool) -> Range:
    """Read a part of a text that begins and ends with a line.

    An incomplete last line is an error where no event is before it. Raises :class:`BadLine`, with
    the number of the line within the part.
    """
    return _range(partial(BytesIO, lines), (0, len(lines)), has_events_before=has_events_before)


def _of_file(path: Path) -> _Open:
    return lambda: path.open("rb")


def _range(text: _Open, place: tuple[int, int], *, has_events_before: bool) -> Range:
    try:
        events = assembled(_read_part(text, place, lambda done: None))
    except _UNREADABLE:
        part, torn = _read_carefully(text, place, has_events_before=has_events_before)
        return Range(assembled(part), torn)
    return Range(events, None)


def torn_line(number: int) -> str:
    """Return the note on an incomplete last line that was left out."""
    return f"line {number} is torn and was left out"


def _read_halves(path: Path, size: int, progress: Progress) -> tuple[pieces.Part, pieces.Part]:
    with path.open("rb") as file:
        file.seek(size // 2)
        file.readline()
        middle = file.tell()
    command = [sys.executable, "-m", "checkers.jsonl", str(path), str(middle), str(size)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other,
        ThreadPoolExecutor(1, "pieces") as thread,
    ):
        try:
            assert other.stdout is not None, "the pipe was requested"
            second = thread.submit(_received, other.stdout)
            first = _read_part(_of_file(path), (0, middle), progress)
            return first, second.result()
        except BaseException:
            other.kill()
            raise


def _received(stream: IO[bytes]) -> pieces.Part:
    """Receive the part that another process reads, while it reads."""
    part = pieces.Part()
    while not part.names:
        sent: pieces.Piece | Counter[str] | pieces.Names = pickle.load(stream)
        if isinstance(sent, pieces.Piece):
            part.add(sent)
        elif isinstance(sent, Counter):
            part.unknown = sent
        else:
            part.names = sent
    return part


def _read_part(text: _Open, place: tuple[int, int], progress: Progress) -> pieces.Part:
    """Read the lines between two positions of a text, both at the beginning of a line."""
    columns, part = EventColumns(), pieces.Part()
    for piece in _pieces(columns, text, place, progress):
        part.add(piece)
    return columns.finish(part)


def _pieces(
    columns: EventColumns, text: _Open, place: tuple[int, int], progress: Progress
) -> Iterator[pieces.Piece]:
    """Yield full pieces; the remaining events stay in the columns."""
    begin, end = place
    blocks = EventBlocks(columns, _add_lines)
    with text() as file, _no_collections():
        file.seek(begin)
        while (left := end - file.tell()) > 0:
            lines = file.read(min(CHUNK_BYTES, left))
            if left > CHUNK_BYTES:
                lines += file.readline()
            blocks.add(lines.strip())
            if len(columns.index) >= PIECE_EVENTS:
                yield columns.piece()
            progress((file.tell() - begin) / (end - begin))


def _add_lines(columns: EventColumns, lines: bytes) -> None:
    """Add events, one per line. Raises one of ``_UNREADABLE`` where the lines are not certain to be
    that."""
    events = _EVENTS.decode(b"[" + lines.replace(b"\n", b",") + b"]")
    if not lines.count(b"\n") == lines.count(b"}\n{") == len(events) - 1:
        refuse("a line must have exactly one event")
    before = columns.fields
    columns.add(events)
    # A decoder silently takes the last of two fields of one name. Fields are counted in the text,
    # where that is easy; where the counts differ, each line is checked.
    # To look for one byte first is four times as fast: most texts have no backslash and no tab.
    is_easy = not any(rare[:1] in lines and rare in lines for rare in _RARE)
    if not (is_easy and _colons(lines) == columns.fields - before):
        for line in lines.split(b"\n"):
            _check_fields(columns, line)


def _colons(lines: bytes) -> int:
    """Count the colons that follow a quotation mark."""
    text = np.frombuffer(lines, dtype=np.uint8)
    return int(np.count_nonzero((text[:-1] == _QUOTE) & (text[1:] == _COLON)))


_QUOTE, _COLON = b'":'
_RARE = (b'\\":', b" :", b"\t:", b"\r:")
"""If a text has any of these, a quotation mark before a colon may not end the name of a field, or a
name may end otherwise."""


def _check_fields(columns: EventColumns, line: bytes) -> None:
    """Count the fields of an event that are ignored. Raises :class:`ValueError` for a JSON object
    that has a field twice."""
    columns.unknown.update(name for name in json_fields.loads(line) if name not in FIELDS)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Switch the cyclic garbage collector off: decoding makes millions of lists, none of them in a
    cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_carefully(
    text: _Open, place: tuple[int, int], *, has_events_before: bool = False
) -> tuple[pieces.Part, int | None]:
    """Read line by line, for histories with blank or torn lines, and to say which line is wrong.

    The second value is the number of the incomplete last line, which is left out. Raises
    :class:`BadLine`.
    """
    begin, end = place
    columns, part = EventColumns(), pieces.Part()
    torn = None
    with text() as lines, _no_collections():
        lines.seek(begin)
        for number, line in enumerate(_until(lines, end), start=1):
            if not line.strip():
                continue
            try:
                event = EVENT.decode(line)
                _check_fields(columns, line)
            except (*_UNDECODED, json_fields.Doubled) as error:
                is_doubled = isinstance(error, json_fields.Doubled)
                is_torn = not line.endswith(b"\n") and not is_doubled
                if is_torn and (has_events_before or part.rows + len(columns.index)):
                    torn = number
                    break
                raise BadLine(number, _said(error)) from error
            try:
                add_one(columns, event)
            except BadHistory as error:
                raise BadLine(number, str(error)) from error
            if len(columns.index) >= PIECE_EVENTS:
                part.add(columns.piece())
    return columns.finish(part), torn


def _until(lines: IO[bytes], end: int) -> Iterator[bytes]:
    """Yield the lines that begin before a position."""
    place = lines.tell()
    for line in lines:
        if place >= end:
            return
        yield line
        place += len(line)


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the event is nested too deeply"
    return str(error).replace(" - at `$`", "")


def _main(path: str, begin: str, end: str) -> None:
    """Read a part of a history, and write its pieces and then its names to the standard output."""
    memory.reuse()
    columns = EventColumns()

    def send(what: pieces.Piece | Counter[str] | pieces.Names) -> None:
        pickle.dump(what, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)

    text = _of_file(Path(path))
    for piece in _pieces(columns, text, (int(begin), int(end)), lambda done: None):
        send(piece)
    send(columns.piece())
    send(columns.unknown)
    send(columns.known())


if __name__ == "__main__":
    _main(*sys.argv[1:])
