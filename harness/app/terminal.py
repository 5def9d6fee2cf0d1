"""Keeps control characters of histories, plans, logs and file names out of the terminal.

A terminal obeys escape sequences (C0 and C1 characters) that clear it, rename its window or write
to the clipboard. After Unicode's characters for bidirectional text it shows text in another order.
:func:`filtered` puts a filter around standard output and standard error, so that no message needs
its own protection. JSON keeps such characters as JSON escapes (:func:`json_text`).
"""

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import msgspec

from model.text import BRIEF_MAX, brief

REPLACEMENT = "\ufffd"
_LAYOUT = "\n\t"
_BREAKS = re.compile("[\t-\r\x1c-\x1e\x85\u2028\u2029]+")


def text(raw: str) -> str:
    """Replace every character that is neither printable nor a new line or a tab."""
    if raw.isprintable():
        return raw
    return "".join(c if c.isprintable() or c in _LAYOUT else REPLACEMENT for c in raw)


def line(raw: str) -> str:
    """Return the text as one line, so that it cannot imitate several lines of output."""
    return text(_BREAKS.sub(" ", raw))


def sentence(raw: str) -> str:
    """Return a message as one line of bounded length, whatever text it repeats.

    A word, such as a number or a name, is cut after :data:`~model.text.BRIEF_MAX` characters; a
    path loses its middle.
    """
    shown = _LONG_WORD.sub(_cut, line(raw))
    return shown if len(shown) <= SENTENCE_MAX else f"{shown[:SENTENCE_MAX]}…"


SENTENCE_MAX = 1000
PATH_MAX = 400
_LONG_WORD = re.compile(rf"(\S{{{BRIEF_MAX + 1},}}?)([\"'`)\]:;,.]*)(?=\s|$)")


def _cut(found: re.Match[str]) -> str:
    word, after = found.groups()
    if "/" not in word:
        return f"{brief(word)}{after}"
    if len(word) <= PATH_MAX:
        return found[0]
    return f"{word[: PATH_MAX // 2]}…{word[-PATH_MAX // 2 :]}{after}"


def json_text(value: Any) -> str:
    """Return a value as indented JSON in which characters that are not printable are escaped."""
    return escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def escaped(document: str) -> str:
    """Escape the unprintable characters of a JSON document, all of which are in its strings."""
    if document.isprintable():
        return document
    return "".join(c if c.isprintable() or c in _LAYOUT else _escape(c) for c in document)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class Filter(io.TextIOBase):
    """A text stream that filters its text through :func:`text`, in the other stream's encoding."""

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self.beneath, "encoding", None) or "utf-8"

    def write(self, raw: str, /) -> int:
        if not isinstance(raw, str):
            raise TypeError(f"only text can be written to this stream, not {type(raw).__name__}")
        shown = text(raw)
        how = getattr(self.beneath, "errors", None) or "strict"
        lossy = "replace" if how == "strict" else how
        self.beneath.write(shown.encode(self.encoding, lossy).decode(self.encoding))
        return len(raw)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self.beneath.flush()

    def isatty(self) -> bool:
        return self.beneath.isatty()

    def fileno(self) -> int:
        return self.beneath.fileno()


@contextlib.contextmanager
def filtered() -> Iterator[None]:
    """Filter everything that Python writes to standard output and standard error within the block.

    A stream that was closed when the program started stays unchanged.
    """
    before = sys.stdout, sys.stderr
    for name, stream in zip(("stdout", "stderr"), before, strict=True):
        if stream is not None and not isinstance(stream, Filter):
            setattr(sys, name, Filter(stream))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream beneath the filter, for a writer that filters its own text.

    Such a writer needs control sequences, as for a progress bar.
    """
    return stream.beneath if isinstance(stream, Filter) else stream
