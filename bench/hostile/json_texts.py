"""Hostile JSON texts: what a decoder silently accepts, converts or ignores.

Each case differs from a valid history in a few characters of one line.
"""

import json
from collections.abc import Iterator
from typing import Any

from bench.hostile.case import ANY, READS, REFUSES, Case
from bench.hostile.histories import EVENTS, LINES, TEXT, check, line, places

MARK = "\ue000"
"""A placeholder for a token."""
NUMBERS = {
    "2^53+1": "9007199254740993",
    "2^63-1": "9223372036854775807",
    "-0": "-0",
    "an exponent": "1e2",
    "a point": "1.0",
}
"""Tokens that some decoders accept as an integer."""
NO_NUMBERS = {
    "2^63": "9223372036854775808",
    "-2^63-1": "-9223372036854775809",
    "1e400": "1e400",
    "-1e400": "-1e400",
    "a fraction": "1.5",
    "NaN": "NaN",
    "Infinity": "Infinity",
    "minus Infinity": "-Infinity",
    "hexadecimal": "0x10",
    "a leading zero": "07",
    "a plus": "+1",
    "underscores": "1_0",
    "a bare point": "1.",
    "no digit before the point": ".5",
    "wide digits": "\uff11",
    "text": '"1"',
    "an empty token": "",
    "5,000 digits": "7" * 5000,
    "undefined": "undefined",
    "True": "True",
}
TEXTS = {
    "a NUL": "a\\u0000b",
    "a line separator": "a\\u2028b",
    "a bidirectional override": "\\u202eabc",
    "a C1 control": "\\u009b2J",
    "an escape": "\\u001b]0;a\\u0007",
    "quotation marks": '\\"},{\\"index\\":7',
    "a backslash at the end": "a\\\\",
    "a colon": '\\":',
    "many letters": "x" * 50_000,
    "many words": "word " * 5000,
    "no text": "",
    "a pair of surrogates": "\\ud83d\\ude00",
    "a combining mark": "e\\u0301",
    "a line break": "a\\nb",
}
NO_TEXTS = {
    "a lone high surrogate": "\\ud800",
    "a lone low surrogate": "a\\udc00b",
    "surrogates in the wrong order": "\\udc00\\ud800",
    "a raw NUL": "a\0b",
    "a raw tab": "a\tb",
    "a raw line break": "a\nb",
    "a raw escape": "a\x1bb",
    "an unknown escape": "\\x41",
    "half an escape": "\\u12",
}


def doubled() -> Iterator[Case]:
    """Yield each event with each name of each object occurring twice."""
    for row, event in enumerate(EVENTS):
        for path in places(event):
            inner = _at(event, path)
            for name in inner if isinstance(inner, dict) else ():
                for how, colon in (("", ":"), (" with spaces", "  :"), (" by an escape", ":")):
                    text = _twice(event, (*path, name), colon, by_escape=how == " by an escape")
                    at = ".".join(map(str, (*path, name)))
                    yield _row(f"line {row + 1}, {at} twice{how}", row, text, REFUSES)


def tokens() -> Iterator[Case]:
    """Yield other tokens in the place of every number and every string."""
    for row, event in enumerate(EVENTS):
        for path in places(event):
            value = _at(event, path)
            at = ".".join(map(str, path))
            free = path[:1] == ("value",) and event["process"] == -1
            if type(value) is int:
                template = _marked(event, path).replace(f'"{MARK}"', MARK)
                for may, found in ((ANY, NUMBERS), (ANY if free else REFUSES, NO_NUMBERS)):
                    for name, token in found.items():
                        text = template.replace(MARK, token)
                        yield _row(f"line {row + 1}, {at}: {name}", row, text, may)
            elif type(value) is str and path not in (("type",), ("f",)):
                template = _marked(event, path)
                for may, found in ((ANY, TEXTS), (REFUSES, NO_TEXTS)):
                    for name, token in found.items():
                        text = template.replace(MARK, token)
                        yield _row(f"line {row + 1}, {at}: {name}", row, text, may)


def shapes() -> Iterator[Case]:
    """Yield other encodings, lengths and depths, and unknown fields."""
    for name in ("utf-16-le", "utf-16-be", "utf-32", "cp037"):
        yield check(f"all in {name}", TEXT.decode().encode(name))
    accents = TEXT.replace(b'"NotLeader"', '"Änderung"'.encode("latin-1"))
    yield check("one word in Latin-1", accents)
    yield check("surrogates as UTF-8", TEXT.replace(b'"NotLeader"', b'"\xed\xa0\xbd\xed\xb8\x80"'))
    yield check("UTF-8 of five bytes", TEXT.replace(b'"NotLeader"', b'"\xf8\x88\x80\x80\x80"'))
    yield check("a byte order mark in the middle", TEXT.replace(b"\n", b"\n\xef\xbb\xbf", 1))
    yield check("record separators", TEXT.replace(b'{"index"', b'\x1e{"index"'))
    yield check("a byte order mark alone", b"\xef\xbb\xbf")
    yield check("line separators of Unicode", TEXT.decode().replace("\n", "\u2028"))
    yield check("form feeds", TEXT.replace(b"\n", b"\f"))
    yield check("single quotes", TEXT.replace(b'"', b"'"))
    yield check("a trailing comma in an object", TEXT.replace(b"}\n", b",}\n", 1))
    yield check("a trailing comma in a list", TEXT.replace(b"]]}", b"],]}", 1))
    yield check("a comment in a line", TEXT.replace(b"}\n", b"} // kill\n", 1))
    yield check(
        "a million spaces", TEXT.replace(b"}\n", b"}" + b" " * 1_000_000 + b"\n", 1), may=ANY
    )
    yield check("a million blank lines", TEXT + b"\n" * 1_000_000, may=ANY)
    yield check("a million brackets", LINES[0][:-2] + b"[" * 1_000_000)
    yield check("an error of a million letters", _with(33, error="x" * 10**6), may=ANY)
    yield check("a line of a million digits", b"7" * 1_000_000)
    yield check("a line of a million letters", b"x" * 1_000_000 + b"\n" + TEXT)
    yield check("a line of ten million NUL", b"\0" * 10_000_000)
    names = {f"field{number}": number for number in range(10_000)}
    yield check("ten thousand fields", _with(3, **names), may=READS, mentions="field0 (1)")
    yield check(
        "a field with a long name", _with(3, **{"x" * 100_000: 1}), may=READS, mentions="xxx"
    )
    yield check("a field with escapes", _with(3, **{"\x1b]0;a\x07": 1}), may=READS, mentions="]0;a")
    yield check("a field without a name", _with(3, **{"": 1}), may=READS, mentions="fields that no")
    yield check("fields of another case", _with(3, Index=7, TYPE="ok"), may=READS, mentions="TYPE")
    for depth in (100, 900, 1100, 20_000, 200_000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            deep = opening * depth + "1" + closing * depth
            kind = "lists" if opening == "[" else "objects"
            free = _marked(EVENTS[4], ("value",)).replace(f'"{MARK}"', deep)
            yield _row(f"{depth:,} {kind} in a fault", 4, free, ANY)
            operation = _marked(EVENTS[3], ("value",)).replace(f'"{MARK}"', deep)
            yield _row(f"{depth:,} {kind} in an operation", 3, operation, REFUSES)
            more = _marked({**EVENTS[3], "more": MARK}, ("more",)).replace(f'"{MARK}"', deep)
            yield _row(f"{depth:,} {kind} in an unknown field", 3, more, ANY, "more")
    yield _row("a doubled name in an unknown field", 3, _odd('{"a":1,"a":2}'), REFUSES)
    yield _row("NaN in an unknown field", 3, _odd("NaN"), REFUSES)
    yield _row("a number of 5,000 digits in an unknown field", 3, _odd("7" * 5000), ANY, "more")
    for field, most in (("index", 1 << 63), ("time_ns", 1 << 63), ("process", 1 << 31)):
        for number in (most, most + 1, 1 << 64, -most - 1, 10**30):
            lines = [line({**event, field: number}) for event in EVENTS[-2:]]
            yield check(f"{field} {number:.3g} at the end", b"".join([*LINES[:-2], *lines]))
        last = [
            line({**e, field: most - 2 + n * (field == "index")}) for n, e in enumerate(EVENTS[-2:])
        ]
        yield check(f"{field} {most - 2:.3g} at the end", b"".join([*LINES[:-2], *last]), may=READS)


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _row(name: str, row: int, text: str, may: frozenset[int], mentions: str = "") -> Case:
    lines = [*LINES]
    lines[row] = text.encode() + b"\n"
    return check(name, b"".join(lines), may=may, mentions=mentions)


def _with(row: int, **fields: Any) -> bytes:
    return b"".join([*LINES[:row], line({**EVENTS[row], **fields}), *LINES[row + 1 :]])


def _odd(token: str) -> str:
    return _marked({**EVENTS[3], "more": MARK}, ("more",)).replace(f'"{MARK}"', token)


def _marked(event: Any, path: tuple[Any, ...]) -> str:
    """Return the line of an event with the mark as a string in one place."""
    return _text(event, path, lambda value: f'"{MARK}"')


def _twice(event: Any, path: tuple[Any, ...], colon: str, *, by_escape: bool) -> str:
    """Return the line of an event with one name twice.

    The first one is followed by ``colon``, or has one letter written as an escape.
    """
    *before, name = path

    def inner(found: dict[str, Any]) -> str:
        first = f"\\u{ord(name[0]):04x}{name[1:]}" if by_escape else name
        pairs = [f'"{first}"{colon}{json.dumps(found[name])}']
        pairs += [f"{json.dumps(key)}:{json.dumps(value)}" for key, value in found.items()]
        return "{" + ",".join(pairs) + "}"

    return _text(event, tuple(before), inner)


def _text(value: Any, path: tuple[Any, ...], write: Any) -> str:
    """Return a value as compact JSON, with another text in one place."""
    if not path:
        text: str = write(value)
        return text
    step, *rest = path
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    texts = [
        (key, _text(part, tuple(rest), write) if key == step else _compact(part))
        for key, part in parts
    ]
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in texts) + "}"
    return "[" + ",".join(text for _, text in texts) + "]"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
