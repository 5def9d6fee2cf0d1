"""A reader for EDN as Clojure prints it, the format of Jepsen's histories.

Keywords and symbols become strings without their colon; vectors, lists and sets become lists, maps
become dictionaries. A tag (``#jepsen.history.Op``) is dropped, and its value is kept. Syntax that
never occurs in printed data (metadata, reader conditionals) is not supported.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_TOKEN = re.compile(
    r"""[\s,]*(?:
      (?P<comment>;[^\n]*|\#![^\n]*)
    | (?P<opening>[\[({]|\#\{)
    | (?P<closing>[\])}])
    | (?P<string>"(?:[^"\\]|\\.)*")
    | \\(?P<char>newline|space|tab|return|u[0-9A-Fa-f]{4}|[^\s])
    | (?P<discard>\#_)
    | (?P<tag>\#[^\s,;\[\](){}"]+)
    | :(?P<keyword>[^\s,;\[\](){}"]+)
    | (?P<atom>[^\s,;\[\](){}"#:\\][^\s,;\[\](){}"]*)
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_CLOSERS = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_CONSTANTS = {"nil": None, "true": True, "false": False}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)N?")
_FRACTION = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?M?")
"""Clojure's numbers. Python accepts more: 012 is octal in Clojure, and 1_000 a symbol."""
_DIGITS_MAX = 1000
"""The longest integer that is converted: Python rejects much longer ones, and no column holds
them."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARS = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r"}


class BadEdn(ValueError):
    """A text that is not EDN; the message says what is wrong, and ``line`` says where (from 1)."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Unfinished(BadEdn):
    """A text that ends within a form: its writer was interrupted."""


_DISCARD = object()
"""Placeholder for ``#_`` until the form that it discards has been read."""


class _Open(NamedTuple):
    """A collection that is being read."""

    closer: str
    is_map: bool
    items: list[Any]
    begin: int
    """The position in the text at which it begins."""


def forms(text: str) -> Iterator[tuple[int, Any]]:
    """Yield each top-level form of a text, and the position where it ends. Raises
    :class:`BadEdn`."""
    return _read(text, inside=False)


def elements(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements of an outer vector or list one by one, and other top-level forms whole.

    Each is yielded as soon as it is complete: a text that ends within a vector still yields the
    elements before its end.
    """
    return _read(text, inside=True)


def _read(text: str, *, inside: bool) -> Iterator[tuple[int, Any]]:
    match, at, length = _TOKEN.match, 0, len(text)
    stack: list[_Open] = []
    top: list[Any] = []
    items = top
    outer = 0  # how many collections are open around the forms that are yielded
    tag_at: int | None = None
    while at < length:
        token = match(text, at)
        if token is None:
            rest = text[at:].lstrip(", \n\r\t")
            begin = length - len(rest)
            if rest in _PARTS or rest.startswith('"'):
                raise _unfinished(text, stack[outer].begin if len(stack) > outer else begin)
            raise BadEdn(f"{rest[:20]!r} is not EDN", line(text, begin))
        at, kind = token.end(), token.lastgroup
        value: Any
        if kind == "keyword":
            value = token["keyword"]
        elif kind == "atom":
            value = _atom(token["atom"])
        elif kind == "opening":
            bracket = token["opening"]
            outer = outer or int(inside and not stack and not items and bracket in "[(")
            stack.append(_Open(_CLOSERS[bracket], bracket == "{", [], token.start("opening")))
            items = stack[-1].items
            tag_at = None
            continue
        elif kind == "closing":
            if not stack or stack[-1].closer != token["closing"]:
                raise BadEdn(f"a {token['closing']} has no opening bracket", line(text, at))
            closed = stack.pop()
            items = stack[-1].items if stack else top
            if len(stack) < outer:
                if closed.items:
                    raise BadEdn("no form follows a #_", line(text, at))
                outer = 0
                continue  # its elements were yielded already
            value = _collection(closed, text)
        elif kind == "string":
            value = _ESCAPED.sub(_unescaped, token["string"][1:-1])
            _refuse_surrogates(value, text, at)
        elif kind == "char":
            value = _char(token["char"])
            _refuse_surrogates(value, text, at)
        elif kind == "discard":
            items.append(_DISCARD)
            continue
        else:
            tag_at = token.start("tag") if kind == "tag" else tag_at
            continue
        tag_at = None
        if items and items[-1] is _DISCARD:
            items.pop()
            continue
        items.append(value)
        if len(stack) == outer:
            yield at, items.pop()
    if stack or top or tag_at is not None:
        raise _unfinished(text, stack[outer].begin if len(stack) > outer else tag_at or length)


_PARTS = ("#", ":", "\\")
"""What is left of a token that is cut after its first character."""
_NEXT = re.compile(r"\n\s*(\#[\w.]+\s*)?\{:(index\b|type :(invoke|ok|fail|info)\b)")
"""Matches a line on which another operation begins."""


def _unfinished(text: str, begin: int) -> BadEdn:
    """Return the error for a form that does not end. Only the last form can be torn: if others seem
    to follow, a bracket or a quotation mark is missing, and they must not be taken for a part of
    it."""
    if _NEXT.search(text, begin):
        return BadEdn("a form begins here and is not closed", line(text, begin))
    return Unfinished("the text ends inside a form", line(text, begin))


def _refuse_surrogates(value: str, text: str, at: int) -> None:
    """Reject half of a surrogate pair: it is not a character, and cannot be written to any file."""
    if not value.isascii() and _SURROGATE.search(value):
        raise BadEdn("the text has half of a surrogate pair", line(text, at))


def line(text: str, at: int) -> int:
    """Return the line number of a position in a text, from 1."""
    return text.count("\n", 0, at) + 1


def _atom(text: str) -> Any:
    """Convert a text to a number if it looks like one; otherwise it is a symbol."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _WHOLE.fullmatch(text):
        number = text.removesuffix("N")
        return int(number) if len(number) <= _DIGITS_MAX else text
    return float(text.removesuffix("M")) if _FRACTION.fullmatch(text) else text


def _collection(read: _Open, text: str) -> Any:
    if not read.is_map:
        return read.items
    keys, values = read.items[::2], read.items[1::2]
    if len(keys) != len(values):
        raise BadEdn("a map has a key without a value", line(text, read.begin))
    found = {
        str(key) if isinstance(key, list | dict) else key: value
        for key, value in zip(keys, values, strict=True)
    }
    if len(found) < len(keys):
        twice = next(key for key in found if keys.count(key) > 1)
        raise BadEdn(f"a map has two entries with the key {twice}", line(text, read.begin))
    return found


def _unescaped(escape: re.Match[str]) -> str:
    what = escape[1]
    return chr(int(what[1:], 16)) if len(what) > 1 else _ESCAPES.get(what, what)


def _char(name: str) -> str:
    return chr(int(name[1:], 16)) if len(name) == 5 and name[0] == "u" else _CHARS.get(name, name)
