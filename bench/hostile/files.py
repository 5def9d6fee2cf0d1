"""Hostile files: whole files that are not valid histories, and special files in their place."""

import bz2
import gzip
import json
import lzma
import os
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cramjam

from bench.hostile.case import ANY, DOUBTS, READS, REFUSED, VALID, Case, file
from bench.hostile.histories import EVENTS, LINES, NAME, TEXT, check, line


def _doubled(events: list[Any]) -> bytes:
    return b"".join(map(line, events))


def whole_files() -> Iterator[Case]:
    """Yield other encodings and nestings, and content that is not an event."""
    yield check("empty", b"")
    yield check("only blank lines", b"\n \n\t\n")
    yield check("a byte order mark", b"\xef\xbb\xbf" + TEXT)
    yield check("UTF-16", TEXT.decode().encode("utf-16"))
    yield check("CRLF", TEXT.replace(b"\n", b"\r\n"), may=frozenset({VALID}))
    yield check("CR alone", TEXT.replace(b"\n", b"\r"))
    yield check("blank lines between", TEXT.replace(b"\n", b"\n\n"), may=frozenset({VALID}))
    yield check("a NUL byte between", TEXT + b"\0\n" + TEXT)
    yield check("NUL bytes at the end", TEXT + b"\0" * 4096, may=READS, mentions="torn")
    yield check("gzip", gzip.compress(TEXT, mtime=0))
    yield check("random bytes", random.Random(1).randbytes(5000))
    yield check("one list of all events", json.dumps(EVENTS))
    yield check("indented", json.dumps(EVENTS[0], indent=1) + "\n")
    yield check("two events in a line", TEXT.replace(b"}\n", b"}", 1))
    yield check("a comma between events", TEXT.replace(b"}\n", b"},\n"))
    yield check("comments", b"// a history\n" + TEXT)
    yield check("CSV", "index,time_ns,process,type,f,value\n0,1,2,invoke,send,\n")
    yield check("HTML", "<!doctype html><title>404</title>\n")
    yield check("a verdict", '{"valid":true}\n')
    yield check("an empty object", "{}\n")
    yield check("deep lists", LINES[0].replace(b"[[", b"[" * 20_000, 1))
    deep = b'"value":' + b"[" * 20_000 + b"]" * 20_000
    yield check(
        "deep lists that end", TEXT + line(EVENTS[0])[:-2].split(b'"value"')[0] + deep + b"}\n"
    )
    objects = b'"value":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000
    yield check("deep objects", TEXT + line(EVENTS[0])[:-2].split(b'"value"')[0] + objects + b"}\n")
    yield check("a line of a megabyte", line({**EVENTS[0], "f": "f" * 1_000_000}), may=ANY)
    yield check("digits without end", LINES[0].replace(b'"time_ns":0', b'"time_ns":' + b"9" * 9999))
    yield check("a number like 1e3", LINES[0].replace(b'"time_ns":0', b'"time_ns":1e3'), may=ANY)
    yield check("a number like 1.0", LINES[0].replace(b'"time_ns":0', b'"time_ns":1.0'), may=ANY)
    yield check("a number with a leading zero", LINES[0].replace(b'"time_ns":0', b'"time_ns":00'))
    yield check("NaN", LINES[0].replace(b'"time_ns":0', b'"time_ns":NaN'))
    yield check("a lone surrogate", LINES[0].replace(b'"x"', b'"\\ud800"'))
    yield check("bytes that are not UTF-8", LINES[0].replace(b'"x"', b'"\xff\xfe"'))
    yield check("overlong UTF-8", LINES[0].replace(b'"x"', b'"\xc0\xaf"'))
    yield check("a field twice", TEXT.replace(b'"f":"send"', b'"f":"send","f":"poll"', 1))
    yield check(
        "a key twice in a poll", TEXT.replace(b'{"x-0":[[0,7]]}', b'{"x-0":[[0,7]],"x-0":[]}')
    )
    for field in ("index", "time_ns", "process", "type", "f"):
        without = {name: value for name, value in EVENTS[2].items() if name != field}
        yield check(
            f"an event without {field}", b"".join(LINES[:2]) + line(without) + b"".join(LINES[3:])
        )
    unknown = line({**EVENTS[3], "errror": "Timeout"})
    yield check("an unknown field", TEXT.replace(LINES[3], unknown), may=READS, mentions="errror")
    yield check(
        "an unknown field everywhere",
        b"".join(line({**e, "node": "n1"}) for e in EVENTS),
        may=READS,
        mentions="node",
    )
    yield check(
        "a field in capitals", TEXT.replace(b'"error"', b'"Error"'), may=READS, mentions="Error"
    )
    for f in ("snd", "SEND", "\x1b[2Jsend", "send ", "f" * 5000, ""):
        name = f"the operation {f[:10]!r}"
        changed = [{**e, "f": f} if e["process"] == 7 else e for e in EVENTS]
        yield check(name, _doubled(changed), may=frozenset({*READS, REFUSED}), mentions="ignored")
    micro = [{**e, "value": [["snd", "x-0", 9]]} if e["process"] == 7 else e for e in EVENTS]
    yield check("an unknown micro-operation", _doubled(micro), may=READS, mentions="ignored")
    yield check("all events twice", TEXT + TEXT)
    yield check("in the opposite order", b"".join(reversed(LINES)))
    yield check("only completions", b"".join(LINES[1::2]))
    yield check("only invocations", b"".join(LINES[::2]), may=ANY)
    yield check(
        "an acknowledgement without a value",
        TEXT.replace(LINES[3], line({**EVENTS[3], "value": None})),
    )
    yield check(
        "an acknowledgement of another value",
        TEXT.replace(LINES[3], line({**EVENTS[3], "value": [["send", "x-0", [0, 70]]]})),
        may=DOUBTS,
    )
    yield check(
        "an acknowledgement of another key",
        TEXT.replace(LINES[3], line({**EVENTS[3], "value": [["send", "x-1", [0, 7]]]})),
    )
    yield check(
        "an acknowledgement of two for one",
        TEXT.replace(
            LINES[3],
            line({**EVENTS[3], "value": [["send", "x-0", [0, 7]], ["send", "x-0", [9, 70]]]}),
        ),
    )
    yield check(
        "an acknowledgement of none", TEXT.replace(LINES[3], line({**EVENTS[3], "value": []}))
    )
    yield check(
        "a transaction that completes a part",
        TEXT.replace(LINES[9], line({**EVENTS[9], "value": EVENTS[9]["value"][1:]})),
    )


def _link(to: str) -> Any:
    return lambda folder: (folder / NAME).symlink_to(to)


def _socket(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as bound:  # the socket's own path may be too long
        bound.bind(f"/proc/self/fd/{here}/{NAME}")
    os.close(here)


def _compressed(name: str, content: bytes) -> Case:
    return check(f"{name} with the name of a JSON lines file", content)


def _folder(name: str) -> Callable[[Path], None]:
    """Return a function that creates a run's folder with ``name`` in place of its history."""

    def prepare(folder: Path) -> None:
        run = folder / "run"
        run.mkdir()
        match name:
            case "a loop of links":
                (run / NAME).symlink_to(NAME)
            case "a named pipe":
                os.mkfifo(run / NAME)
            case "a device":
                (run / NAME).symlink_to("/dev/zero")
            case "a link to a history":
                (folder / NAME).write_bytes(TEXT)
                (run / NAME).symlink_to(folder / NAME)
            case "a folder":
                (run / NAME).mkdir()
            case "a folder in itself":
                (run / "run").symlink_to(run)
            case "an empty history":
                (run / NAME).write_bytes(b"")
            case "a folder with a history and a pipe":
                (run / NAME).write_bytes(TEXT)
                os.mkfifo(run / "verdict.json")
            case _:
                (run / NAME.upper()).write_bytes(TEXT)

    return prepare


FOLDERS = (
    "a loop of links",
    "a named pipe",
    "a device",
    "a link to a history",
    "a folder",
    "a folder in itself",
    "an empty history",
    "a folder with a history and a pipe",
    "another name",
)


ZIPPED = gzip.compress(TEXT, mtime=0)
VALIDS = frozenset({VALID})


def _linked(folder: Path) -> None:
    (folder / "lines").write_bytes(TEXT)
    (folder / NAME).symlink_to("lines")


def special_files() -> Iterator[Case]:
    """Yield special files in the place of a regular one."""
    arguments = ("check", NAME, "--inline")
    yield Case("a folder in place of the file", arguments, lambda folder: (folder / NAME).mkdir())
    yield Case("a named pipe", arguments, lambda folder: os.mkfifo(folder / NAME))
    yield Case("a socket", arguments, _socket)
    yield Case("a loop of links", arguments, _link(NAME))
    yield Case("a link to nothing", arguments, _link("nothing"))
    yield Case("a link to a device", arguments, _link("/dev/zero"))
    yield Case("an unreadable file", arguments, _link("/proc/self/mem"))
    yield Case("nothing", arguments)
    yield Case("the empty path", ("check", "", "--inline"))
    yield Case("a path below a file", ("check", "a/b", "--inline"), file("a", "x"))
    yield Case("a path that is too long", ("check", "x" * 5000, "--inline"))
    yield Case("a path with a new line", ("check", "a\nINVALID  b", "--inline"))
    yield Case("a path with escapes", ("check", "\x1b]0;a\x07\x9b2J", "--inline"))
    yield Case("a path that is not UTF-8", ("check", "\udcff\udcfe", "--inline"))
    name = "\x1b[31m\nx.jsonl"
    yield Case("a bad file whose name has escapes", ("check", name, "--inline"), file(name, "{"))
    for device in ("/dev/null", "/dev/full", "/dev/tty", "/dev/stdin", "/proc/self/fd/0", "/proc"):
        yield Case(f"the file {device}", ("check", device, "--inline"))
    yield Case("a link to a folder without a run", ("check", NAME, "--inline"), _link("/etc"))
    yield Case("a link to a valid history", ("check", NAME, "--inline"), _linked, VALIDS)
    yield Case("a history twice", ("check", NAME, NAME, "--inline"), file(NAME, TEXT), VALIDS)
    yield Case(
        "one of two histories is missing", ("check", NAME, "none", "--inline"), file(NAME, TEXT)
    )
    for name in FOLDERS:
        yield Case(f"a run's folder with {name}", ("check", "run", "--inline"), _folder(name))
    for verb in ("replay", "shrink"):
        yield Case(f"{verb} of a loop of links", (verb, NAME), _link(NAME))
        yield Case(f"{verb} of a pipe", (verb, "pipe"), lambda folder: os.mkfifo(folder / "pipe"))
        yield Case(f"{verb} of the empty path", (verb, ""))
    for name in (
        "history.jsonl.gz",
        "history.csv",
        "history",
        "history.JSONL",
        ".jsonl",
        "-x.jsonl",
    ):
        arguments = ("check", "--inline", "--", name)
        yield Case(f"JSON lines with the name {name}", arguments, file(name, TEXT), VALIDS)
    yield Case(
        "JSON lines with the name of an EDN file",
        ("check", "a.edn", "--inline"),
        file("a.edn", TEXT),
    )
    yield _compressed("gzip", gzip.compress(TEXT, mtime=0))
    yield _compressed("zstd", bytes(cramjam.zstd.compress(TEXT)))
    yield _compressed("bzip2", bz2.compress(TEXT))
    yield _compressed("xz", lzma.compress(TEXT))
    yield _compressed("a tar archive", b"history.jsonl" + b"\0" * 500 + TEXT)
    yield _compressed("a zip archive", b"PK\x03\x04" + TEXT)
    yield Case(
        "a gzip file with its own name",
        ("check", "a.jsonl.gz", "--inline"),
        file("a.jsonl.gz", ZIPPED),
    )
