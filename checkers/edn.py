"""EDN as Clojure prints it, into plain values: what a history of another tool is written in.

Keywords and symbols become strings without their colon; vectors, lists and sets become lists, maps
dictionaries. A tag (``#jepsen.history.Op``) is dropped, and what it is put to is kept. What has no
place in printed data (metadata, reader conditionals) is not read.
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
"""Python's own numbers are more: 012 is octal in Clojure, and 1_000 a symbol."""
_DIGITS_MAX = 1000
"""Python does not read much longer ones, and nothing here holds them."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHARS = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r"}


class BadEdn(ValueError):
    """A text that is no EDN; the message says what is wrong, ``line`` where (from 1)."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Unfinished(BadEdn):
    """A text that ends within a form: whoever wrote it was interrupted."""


_DISCARD = object()
"""Stands for ``#_`` until the form comes that is not to be read."""


class _Open(NamedTuple):
    """A collection that is being read."""

    closer: str
    is_map: bool
    items: list[Any]
    begin: int
    """Where it begins in the text."""


def forms(text: str) -> Iterator[tuple[int, Any]]:
    """Each form at the top of a text, and where it ends. Raises :class:`BadEdn`."""
    return _read(text, inside=False)


def elements(text: str) -> Iterator[tuple[int, Any]]:
    """The same, but the elements of a vector or list in place of it, each as soon as it is
    complete: a text that ends within a vector still has those before its end."""
    return _read(text, inside=True)


def _read(text: str, *, inside: bool) -> Iterator[tuple[int, Any]]:
    match, at, length = _TOKEN.match, 0, len(text)
    stack: list[_Open] = []
    top: list[Any] = []
    items = top
    outer = 0  # how many collections are open around the forms that are given one by one
    tag_at: int | None = None
    while at < length:
        token = match(text, at)
        if token is None:
            rest = text[at:].lstrip(", \n\r\t")
            begin = length - len(rest)
            if rest in _PARTS or rest.startswith('"'):
                raise _unfinished(text, stack[outer].begin if len(stack) > outer else begin)
            raise BadEdn(f"{rest[:20]!r} is no EDN", line(text, begin))
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
                raise BadEdn(f"a {token['closing']} closes nothing", line(text, at))
            closed = stack.pop()
            items = stack[-1].items if stack else top
            if len(stack) < outer:
                if closed.items:
                    raise BadEdn("a #_ has nothing behind it", line(text, at))
                outer = 0
                continue  # its elements were given already
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
"""What is left of a token that is cut behind its first character."""
_NEXT = re.compile(r"\n\s*(\#[\w.]+\s*)?\{:(index\b|type :(invoke|ok|fail|info)\b)")
"""A line on which another operation begins."""


def _unfinished(text: str, begin: int) -> BadEdn:
    """A form that does not end. Only the last one can be torn: where others seem to follow, a
    bracket or a quotation mark is missing, and they must not be taken for a part of it."""
    if _NEXT.search(text, begin):
        return BadEdn("a form begins here that does not end", line(text, begin))
    return Unfinished("it ends within a form", line(text, begin))


def _refuse_surrogates(value: str, text: str, at: int) -> None:
    """Half of a pair of UTF-16 is no character, and cannot be written to any file."""
    if not value.isascii() and _SURROGATE.search(value):
        raise BadEdn("it holds half of a surrogate pair", line(text, at))


def line(text: str, at: int) -> int:
    """The line of a place in a text, from 1."""
    return text.count("\n", 0, at) + 1


def _atom(text: str) -> Any:
    """A number if it looks like one, else a symbol."""
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
        raise BadEdn(f"a map has the key {twice} twice", line(text, read.begin))
    return found


def _unescaped(escape: re.Match[str]) -> str:
    what = escape[1]
    return chr(int(what[1:], 16)) if len(what) > 1 else _ESCAPES.get(what, what)


def _char(name: str) -> str:
    return chr(int(name[1:], 16)) if len(name) == 5 and name[0] == "u" else _CHARS.get(name, name)
