"""Reads TOML files, and finds the line of a file that an error message is about."""

import re
import stat
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.app.refused import Refused

BYTES_MAX = 16 << 20
"""The largest file that is read; far larger than a schedule of ten thousand faults."""
LINES_MAX = 2000
CHARACTERS_MAX = 1 << 20
"""Longer files are not searched for a line, because the search parses many prefixes of the file."""
TRIES_MAX = 100
"""The number of prefixes that are parsed at most; a statement may extend over many lines."""

Path_ = tuple[str | int, ...]
_KEYS = {"time-limit": ("time-limit", "time_limit_s"), "rate": ("rate", "rate_hz"),
         "mutant": ("mutant", "mutants")}  # fmt: skip


def read(path: Path) -> dict[str, Any]:
    """Return the document of a TOML file; raises :class:`~harness.app.refused.Refused`.

    Anything but a regular file is refused: a pipe would block the reader, and a device may never
    end.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            raise Refused(f"{path}: this is not a regular file")
        if found.st_size > BYTES_MAX:
            raise Refused(
                f"{path}: the file has {found.st_size:,} bytes; the maximum is {BYTES_MAX:,}"
            )
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    except RecursionError:
        raise Refused(f"{path}: the file is nested too deeply") from None
    except ValueError as error:  # not TOML, not UTF-8, or a number that Python does not read
        raise Refused(f"{path}: {error}") from None


def check_below_here(folder: object, name: str, where: str) -> None:
    """Refuse a folder in a file that is not below the current folder.

    ``name`` is the name of the field, and of the option that may name any folder.
    """
    if not isinstance(folder, str) or not folder:
        raise Refused(f"{where}: {name}: must be the name of a folder")
    path = Path(folder)
    if path.is_absolute() or ".." in path.parts or folder.startswith("~"):
        raise Refused(
            f"{where}: {name}: {folder} is not below the current folder; only the"
            f" option --{name} may name another folder"
        )


def line_of(text: str, path: Path_) -> int | None:
    """Return the number of the line on which a key's statement or table begins.

    Returns ``None`` if there is no such key, and for a file that is too long to search. The search
    looks for the shortest prefix of the file that is valid TOML and contains the key.
    """
    lines = text.splitlines()
    if not path or len(lines) > LINES_MAX or len(text) > CHARACTERS_MAX:
        return None
    if not _has(_parsed(text), path):
        return None
    before, low, high, tries = 0, 1, len(lines) - 1, 0
    while low <= high:
        middle = end = (low + high) // 2
        document = None
        while end <= high and document is None:  # the next prefix of whole statements
            document = _parsed("\n".join(lines[:end]))
            end += 1
            tries += 1
            if tries > TRIES_MAX:
                return None
        if document is None or _has(document, path):
            high = middle - 1
        else:
            before, low = end - 1, end
    return before + 1


def _parsed(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # also for numbers that Python does not read
        return None


def _has(document: Any, path: Path_) -> bool:
    for part in path:
        if isinstance(part, int):
            if not isinstance(document, list) or len(document) <= part:
                return False
        elif not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return True


def _of_set(found: re.Match[str]) -> Iterator[Path_]:
    """Yield both forms of a setting's key: quoted as one name, or unquoted as nested tables."""
    component, key = found[1], found[2]
    yield component, key
    yield component, *key.split(".")


def _of_option(found: re.Match[str]) -> Iterator[Path_]:
    for key in _KEYS.get(found[1], (found[1],)):
        yield (key,)


def _of_path(found: re.Match[str]) -> Iterator[Path_]:
    """Parse ``$.matrix[0].target``, as msgspec writes it."""
    parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", found[1].removeprefix("$."))
    whole: Path_ = tuple(int(number) if number else name for number, name in parts)
    for end in range(len(whole), 0, -1):
        yield whole[:end]
    if whole[0] == "time_limit_s" or whole[0] == "rate_hz":
        yield (str(whole[0]).replace("_s", "").replace("_hz", "").replace("_", "-"),)


def _of_fault(found: re.Match[str]) -> Iterator[Path_]:
    yield "schedule", int(found[1])


PATTERNS: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], Iterator[Path_]]]] = (
    (re.compile(r"^--set (producer|consumer)\.….*?property:? [\"']([\w.]+)[\"']"), _of_set),
    (re.compile(r"^--set (broker|producer|consumer|expect)\.([^=:\s]+)"), _of_set),
    (re.compile(r"^--([a-z-]+)"), _of_option),
    (re.compile(r"`\$?\.?([\w.\[\]-]+)`$"), _of_path),
    (re.compile(r"matrix (\d+): no setting is called (\S+?)[;,]"),
     lambda found: iter([("matrix", int(found[1]) - 1, found[2])])),
    (re.compile(r"configuration (\S+): no setting is called (\S+?)[;,]"),
     lambda found: iter([("configurations", found[1], found[2])])),
    (re.compile(r"no setting is called (\S+?)[;,]"), lambda found: iter([(found[1],)])),
    (re.compile(r"^options: (?:there is no )?([\w-]+)"),
     lambda found: iter([("options", found[1])])),
    (re.compile(r"^expect\b"), lambda found: iter([("expect",)])),
    (re.compile(r"^schedule\b"), lambda found: iter([("schedule",)])),
    (re.compile(r"matrix (\d+): (\w[\w-]*)\b"),
     lambda found: iter([("matrix", int(found[1]) - 1, found[2])])),
    (re.compile(r"matrix (\d+)"), lambda found: iter([("matrix", int(found[1]) - 1)])),
    (re.compile(r"matrix\[(\d+)\]\.([\w-]+)"),
     lambda found: iter([("matrix", int(found[1]), found[2])])),
    (re.compile(r"configuration '?([\w.-]+)'?"),
     lambda found: iter([("configurations", found[1])])),
    (re.compile(r"^([a-z][\w-]*)\b"), lambda found: iter([(found[1],)])),
)  # fmt: skip
"""How messages name their subject, and where that subject may be in a file.

The first pattern that leads to a line wins.
"""


def located(message: str, path: Path, given: Collection[str] = ()) -> str:
    """Prefix the message with file and line, if it is about something in this file.

    ``given`` are the options of the command line, which override the file.
    """
    prefix, short = f"{path}: ", message
    if message.startswith(prefix):
        short = message.removeprefix(prefix)
    elif any(message.startswith(option) for option in given):
        return message
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError):
        return message
    for pattern, places in PATTERNS:
        found = pattern.search(short)
        for place in places(found) if found else ():
            if (line := line_of(text, place)) is not None:
                return f"{path}:{line}: {short}"
    return message


@contextmanager
def about(path: Path | None, given: Collection[str] = ()) -> Iterator[None]:
    """Within this context, refusals name the line of the file that they are about."""
    try:
        yield
    except Refused as error:
        if path is None:
            raise
        raise Refused(located(str(error), path, given)) from None
