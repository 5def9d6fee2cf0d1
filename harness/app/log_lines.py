"""Reads the time and the level with which a line of a node's log begins.

The formats are Python's logging, Kafka's and ZooKeeper's log4j patterns, and Toxiproxy's JSON. A
line without a time, such as one of a stack trace, belongs to the line before it.
"""

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any

import msgspec

BYTES_MAX = 256 << 20
"""How much of one log a report reads; the rest of a larger one is ignored."""
LINE_BYTES = 1024
"""How much of the beginning of a line is examined."""
_READ_BYTES = 1 << 16
"""How much of an overlong line is read at once."""

_STAMPS = (
    re.compile(rb"\[?(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"),
    re.compile(rb'\{.{0,600}?"time":"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z'),
)
"""How a line begins with its time: Python's, Kafka's (in brackets), ISO's, Toxiproxy's JSON."""
_STAMP_TEXT = re.compile(r"\[?\d{4}-\d\d-\d\d[ T][\d:.,]{8,18}Z?\]? ?")
_BEGIN = re.compile(rb"\[?\d{4}-\d\d-|\{")
_GRAVE = re.compile(rb"WARN|ERROR|FATAL|CRITICAL|\"level\":\"")
_LEVEL = re.compile(
    rb"\[?\d{4}-\d\d-\d\d[ T][\d:.,]{8,18}Z?\]? "
    rb"(?:\[myid:[^\]]{0,20}\] - )?"  # ZooKeeper
    rb"(WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
)
_LEVEL_JSON = re.compile(rb'\{(?:[^{}]{0,600},)?"level":"(warn|warning|error|fatal|panic)"')


class Level(IntEnum):
    """A level that deserves a reader's attention; a larger one is more serious."""

    WARN = 1
    ERROR = 2
    FATAL = 3


_LEVELS = {
    b"WARN": Level.WARN,
    b"WARNING": Level.WARN,
    b"ERROR": Level.ERROR,
    b"FATAL": Level.FATAL,
    b"CRITICAL": Level.FATAL,
    b"PANIC": Level.FATAL,
}


def lines(path: Path, bytes_max: int | None = BYTES_MAX) -> Iterator[tuple[int, bytes]]:
    """Yield the offset of each line, and the line's first :data:`LINE_BYTES`.

    Reading stops after ``bytes_max``. Only a part of an overlong line is in memory at a time.
    """
    at = 0
    with path.open("rb") as file:
        while line := file.readline(_READ_BYTES):
            begin, end = at, line
            at += len(line)
            while not end.endswith(b"\n") and (end := file.readline(_READ_BYTES)):
                at += len(end)
            yield begin, line[:LINE_BYTES]
            if bytes_max is not None and at > bytes_max:
                break


def may_have_stamp(line: bytes) -> bool:
    """Return whether a line begins like one with a time, in less time than :func:`stamp` takes."""
    return _BEGIN.match(line) is not None


def stamp(line: bytes) -> int | None:
    """Return the time of a line in nanoseconds since 1970; ``None`` if it has none."""
    found = next((match for form in _STAMPS if (match := form.match(line))), None)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return epoch_ns(moment) + int((found[7] or b"0").ljust(9, b"0"))


def level(line: bytes) -> Level | None:
    """Return the level of a line that begins with a time; ``None`` below a warning.

    A level name inside the text does not count.
    """
    if _GRAVE.search(line) is None:
        return None
    found = _LEVEL.match(line) or _LEVEL_JSON.match(line)
    return None if found is None else _LEVELS[found[1].upper()]


def plain(text: str) -> str:
    """Return a line without its time; for JSON, its level, name, message and error."""
    if text.startswith("{"):
        with contextlib.suppress(msgspec.DecodeError):
            said = msgspec.json.decode(text.encode(), type=dict[str, Any])
            parts = [said.get(name) for name in ("level", "name", "message", "error")]
            return ": ".join(part for part in parts if isinstance(part, str)) or text
    return text[found.end() :] if (found := _STAMP_TEXT.match(text)) else text


def epoch_ns(moment: datetime) -> int:
    """Return the nanoseconds from the beginning of 1970 to this time."""
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
