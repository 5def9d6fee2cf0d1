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
    match, at, length = _TOKEN.match, 0, len(text)
    stack: list[_Open] = []
    top: list[Any] = []
    items = top
    while at < length:
        token = match(text, at)
        if token is None:
            rest = text[at:].lstrip(", \n\r\t")
            raise BadEdn(f"{rest[:20]!r} is no EDN", _line(text, length - len(rest)))
        at, kind = token.end(), token.lastgroup
        value: Any
        if kind == "keyword":
            value = token["keyword"]
        elif kind == "atom":
            value = _atom(token["atom"])
        elif kind == "opening":
            bracket = token["opening"]
            stack.append(_Open(_CLOSERS[bracket], bracket == "{", [], token.start("opening")))
            items = stack[-1].items
            continue
        elif kind == "closing":
            if not stack or stack[-1].closer != token["closing"]:
                raise BadEdn(f"a {token['closing']} closes nothing", _line(text, at))
            value = _collection(stack.pop(), text)
            items = stack[-1].items if stack else top
        elif kind == "string":
            value = _ESCAPED.sub(_unescaped, token["string"][1:-1])
        elif kind == "char":
            value = _char(token["char"])
        elif kind == "discard":
            items.append(_DISCARD)
            continue
        else:
            continue
        if items and items[-1] is _DISCARD:
            items.pop()
            continue
        items.append(value)
        if not stack:
            yield at, top.pop()
    if stack or top:
        begin = stack[0].begin if stack else length
        raise Unfinished("it ends within a form", _line(text, begin))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _atom(text: str) -> Any:
    """A number if it looks like one, else a symbol."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in "+-0123456789":
        for number, suffix in ((int, "N"), (float, "M")):
            try:
                return number(text.removesuffix(suffix))
            except ValueError:
                pass
    return text


def _collection(read: _Open, text: str) -> Any:
    if not read.is_map:
        return read.items
    keys, values = read.items[::2], read.items[1::2]
    if len(keys) != len(values):
        raise BadEdn("a map has a key without a value", _line(text, read.begin))
    return {
        str(key) if isinstance(key, list | dict) else key: value
        for key, value in zip(keys, values, strict=True)
    }


def _unescaped(escape: re.Match[str]) -> str:
    what = escape[1]
    return chr(int(what[1:], 16)) if len(what) > 1 else _ESCAPES.get(what, what)


def _char(name: str) -> str:
    return chr(int(name[1:], 16)) if len(name) == 5 and name[0] == "u" else _CHARS.get(name, name)
