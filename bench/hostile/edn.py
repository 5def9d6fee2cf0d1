"""Hostile histories in Jepsen's EDN."""

import gzip
import random
from collections.abc import Iterator
from typing import Any

from bench.hostile.case import ANY, DOUBTS, READS, REFUSED, REFUSES, VALID, Case
from bench.hostile.histories import TEXT, check

EDN = "history.edn"
MAPS = [
    "{:index 0, :time 1, :type :invoke, :process 0, :f :assign, :value [1 2]}",
    "{:index 1, :time 2, :type :ok, :process 0, :f :assign, :value [1 2]}",
    '{:index 2, :time 3, :type :info, :process :nemesis, :f :kill, :value {"n1" #{"n2"}}}',
    "{:index 3, :time 4, :type :invoke, :process 1, :f :send, :value [[:send 1 10]]}",
    "{:index 4, :time 5, :type :ok, :process 1, :f :send, :value [[:send 1 [0 10]]]}",
    "{:index 5, :time 6, :type :invoke, :process 0, :f :poll, :value [[:poll]]}",
    "{:index 6, :time 7, :type :ok, :process 0, :f :poll, :value [[:poll {1 [[0 10]]}]]}",
    "{:index 7, :time 8, :type :invoke, :process 1, :f :send, :value [[:send 1 11]]}",
    '{:index 8, :time 9, :type :fail, :process 1, :f :send, :value [[:send 1 11]], :error "e"}',
]
EDN_TEXT = "\n".join(MAPS) + "\n"


def _edn(name: str, text: str | bytes, **more: Any) -> Case:
    return check(f"EDN: {name}", text, history=EDN, **more)


def edn() -> Iterator[Case]:
    """Yield EDN that a reader may encounter but that printed data does not contain."""
    valid = frozenset({VALID})
    yield _edn("unchanged", EDN_TEXT, may=valid)
    yield _edn("empty", "")
    yield _edn("only a comment", "; nothing\n")
    yield _edn("one vector", f"[{EDN_TEXT}]", may=valid)
    yield _edn("comments", EDN_TEXT.replace("\n", " ; next\n"), may=valid)
    yield _edn(
        "tags of Jepsen", EDN_TEXT.replace("{:index", "#jepsen.history.Op{:index"), may=valid
    )
    yield _edn(
        "a discarded form", EDN_TEXT.replace("{:index 3", "#_ {:index 99} {:index 3"), may=valid
    )
    yield _edn("commas and CRLF", EDN_TEXT.replace("\n", ",\r\n"), may=valid)
    yield _edn("a byte order mark", "\ufeff" + EDN_TEXT)
    yield _edn("UTF-16", EDN_TEXT.encode("utf-16"))
    yield _edn("JSON lines", TEXT)
    yield _edn("a number", "7")
    yield _edn("nil", "nil")
    yield _edn("a vector of numbers", "[1 2 3]")
    yield _edn("deep vectors", "[" * 50_000)
    yield _edn("deep vectors that end", EDN_TEXT.replace("[[:send 1 10]]", "[" * 9999 + "]" * 9999))
    yield _edn(
        "deep maps", EDN_TEXT.replace('{"n1" #{"n2"}}', "{1 " * 9999 + "1" + "}" * 9999), may=ANY
    )
    yield _edn("discards without end", "#_" * 5000)
    for name, form in {
        "a ratio": "1/2",
        "a char": "\\a",
        "a char by code": "\\u0041",
        "a tag": '#inst "2026"',
        "an unknown tag": "#no/such 7",
        "metadata": "^{:a 1} 10",
        "a reader conditional": "#?(:clj 1)",
        "a regular expression": '#"a+"',
        "a quoted form": "'a",
        "a var": "#'a",
        "a symbol": "foo/bar",
        "a keyword": ":a",
        "a namespaced keyword": "::a",
        "a set": "#{1}",
        "a set with doubles": "#{1 1}",
        "a list": "(1 2)",
        "a map": "{1 2}",
        "a decimal": "1.5M",
        "a big number": "10N",
        "a huge number": "9" * 400,
        "hexadecimal": "0xff",
        "octal": "012",
        "radix": "36rZZ",
        "NaN": "##NaN",
        "infinity": "##Inf",
        "1e400": "1e400",
        "an evaluated form": "#=(+ 1 2)",
        "a surrogate": '"\\ud800"',
        "an unknown escape": '"\\q"',
        "nil": "nil",
        "true": "true",
        "an anonymous function": "#(inc %)",
        "a dispatch macro": "#<Object>",
        "minus": "-",
        "underscores": "1_000",
        "wide digits": "\uff11\uff10",
        "text": '"10"',
    }.items():
        may = (
            frozenset({VALID, REFUSED})
            if form in ("10N", "#no/such 7", "^{:a 1} 10", "\\a")
            else REFUSES
        )
        if form in ("012", "0xff", "36rZZ"):
            may = REFUSES
        both = EDN_TEXT.replace("[:send 1 10]", f"[:send 1 {form}]").replace(
            "[0 10]", f"[0 {form}]"
        )
        yield _edn(f"{name} for a value", both, may=may)
        yield _edn(
            f"{name} for a time",
            EDN_TEXT.replace(":time 5", f":time {form}"),
            may=ANY if form in ("10N", "#no/such 7", "012") else REFUSES,
        )
    for at in (*range(len(MAPS[4]) // 9, len(MAPS[4]), 9),):
        torn = "\n".join(MAPS[:4]) + "\n" + MAPS[4][:at]
        yield _edn(f"the last map is cut behind {at}", torn, may=READS, mentions="torn")
        yield _edn(f"a map in the middle is cut behind {at}", torn + "\n" + "\n".join(MAPS[5:]))
    for closer in ("]", "}", ")"):
        yield _edn(f"a {closer} too many", EDN_TEXT.replace("10]]}", "10]]" + closer + "}", 1))
        yield _edn(f"a {closer} at the end", EDN_TEXT + closer)
    yield _edn("a key twice", EDN_TEXT.replace(":f :send", ":f :send, :f :poll", 1))
    yield _edn("a key without a value", EDN_TEXT.replace(":f :send,", ":f", 1))
    yield _edn("a map without a type", EDN_TEXT.replace(":type :ok, ", "", 1))
    yield _edn("a map without a process", EDN_TEXT.replace(":process 1, ", "", 1))
    yield _edn("a map without :f", EDN_TEXT.replace(":f :send, ", "", 1))
    yield _edn(
        'keys 1 and "1" in a poll', EDN_TEXT.replace("{1 [[0 10]]}", '{1 [[0 10]] "1" [[1 11]]}')
    )
    yield _edn(
        "an acknowledgement without a value", EDN_TEXT.replace(" :value [[:send 1 [0 10]]]", "")
    )
    yield _edn(
        "an unknown operation",
        EDN_TEXT.replace(":f :send, :value [[:send 1 11]]", ":f :snd, :value [[:send 1 11]]"),
        may=READS,
        mentions="ignored",
    )
    yield _edn(
        "an unknown micro-operation",
        EDN_TEXT.replace("[:send 1 11]", "[:snd 1 11]"),
        may=READS,
        mentions="ignored",
    )

    yield from _more()


def _more() -> Iterator[Case]:
    """Yield unknown fields, answers to other questions, unbounded numbers and long texts."""
    for key in (":node", ":Index", '"index"', "index/x", ":x/index", "7", '"\\u001b[2J"', "nil"):
        text = EDN_TEXT.replace("{:index 3", "{" + f'{key} "n1" :index 3')
        name = key.lstrip(":").strip('"')
        mentions = "fields that" if name in ("index", "nil") else name.removeprefix("\\u001b")
        may = REFUSES if name == "index" else READS
        yield _edn(f"the key {key}", text, may=may, mentions=mentions)
    other = EDN_TEXT.replace("[0 10]", "[0 99]", 1)
    yield _edn("an acknowledgement of another value", other, may=DOUBTS)
    for name, old, new in (
        ("another key", "[:send 1 [0 10]]", "[:send 2 [0 10]]"),
        ("two records", "[:send 1 [0 10]]", "[:send 1 [0 10]] [:send 1 [1 11]]"),
        ("an empty list", "[[:send 1 [0 10]]]", "[]"),
        ("nil", "[[:send 1 [0 10]]]", "nil"),
        ("a negative offset", "[0 10]", "[-5 10]"),
        ("a true offset", "[0 10]", "[true 10]"),
    ):
        yield _edn(f"an acknowledgement of {name}", EDN_TEXT.replace(old, new, 1))
    for name, new in (
        ("nil", "nil"),
        ("nothing", "[]"),
        ("a key twice", "[[:poll {1 [[0 10]] 1 []}]]"),
        ("a key twice by its text", '[[:poll {:a [[0 10]] "a" []}]]'),
        ("text for records", '[[:poll {1 "ab"}]]'),
        ("a map for records", "[[:poll {1 {0 10}}]]"),
        ("three numbers a record", "[[:poll {1 [[0 10 11]]}]]"),
        ("true for a value", "[[:poll {1 [[0 true]]}]]"),
        ("a fraction for a value", "[[:poll {1 [[0 10.0]]}]]"),
        ("a negative offset", "[[:poll {1 [[-1 10]]}]]"),
        ("an offset of 64 bits", f"[[:poll {{1 [[{1 << 63} 10]]}}]]"),
    ):
        yield _edn(f"a poll of {name}", EDN_TEXT.replace("[[:poll {1 [[0 10]]}]]", new))
    for field, old in ((":index", 3), (":time", 4), (":process", 1)):
        for number in (
            -1,
            1 << 31,
            1 << 63,
            1 << 64,
            10**400,
            -(1 << 63) - 1,
            "1e3",
            "true",
            "3.0",
        ):
            text = EDN_TEXT.replace(f"{field} {old}", f"{field} {number}")
            may = ANY if (field, number) in ((":time", 1 << 31), (":index", 1 << 31)) else REFUSES
            yield _edn(f"{field} {str(number)[:30]}", text, may=may)
    yield _edn("a long keyword", EDN_TEXT.replace(":f :send", ":f :" + "x" * 10**6), may=ANY)
    yield _edn("a long text", EDN_TEXT.replace('"e"', '"' + "x" * 10**6 + '"'), may=ANY)
    yield _edn("a long symbol", "x" * 10**6)
    yield _edn("a million spaces", EDN_TEXT + " " * 10**6, may=frozenset({VALID}))
    yield _edn("a million commas", EDN_TEXT + "," * 10**6, may=frozenset({VALID}))
    yield _edn("a million quotation marks", '"' * 10**6)
    yield _edn("a million backslashes", "\\" * 10**6)
    yield _edn("a million tags", "#a " * 10**5)
    yield _edn("a comment without an end", EDN_TEXT + ";" * 10**6, may=frozenset({VALID}))
    yield _edn("NUL between", EDN_TEXT.replace("\n", "\0\n", 1))
    yield _edn("NUL at the end", EDN_TEXT + "\0" * 4096, may=frozenset({*READS, REFUSED}))
    yield _edn("CR alone", EDN_TEXT.replace("\n", "\r"), may=frozenset({VALID}))
    yield _edn("UTF-16 without its mark", EDN_TEXT.encode("utf-16-le"))
    yield _edn("Latin-1", EDN_TEXT.replace('"e"', '"\xe9"').encode("latin-1"))
    yield _edn("gzip", gzip.compress(EDN_TEXT.encode(), mtime=0))
    yield _edn("all maps twice", EDN_TEXT + EDN_TEXT)
    yield _edn("two vectors", f"[{EDN_TEXT}][{EDN_TEXT}]")
    yield _edn("a vector in a vector", f"[[{EDN_TEXT}]]")
    yield _edn("a set of maps", "#{" + EDN_TEXT + "}")


def mutated(rng: random.Random, count: int) -> Iterator[Case]:
    """Yield histories in which single characters are changed, doubled or removed."""
    for number in range(count):
        text = list(EDN_TEXT)
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(text))
            text[at] = rng.choice(("", text[at] * 2, rng.choice("[]{}()#\\\":;^'@~`0 \0\x1b")))
        yield _edn(f"mutated characters {number}", "".join(text), may=ANY)
