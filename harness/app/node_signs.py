"""Finds signs of a broken node in what it left behind: its log, and the files of its JVM.

A node that exits by itself is reported by its target. A node can also break and continue to run:
a thread that ended because of an ``OutOfMemoryError`` leaves a process that answers pings. The
signs are written into the run's folder once, after the nodes have ended, so that every later
judgement uses the same ones.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.app import files, log_lines, run_start
from harness.app.log_lines import Level
from harness.app.run_start import RunStart
from model import node_sign
from model.node_sign import Kind, NodeSign

NODES = "nodes"
LOG = "log.txt"
SAME_NS = 5_000_000_000
"""Lines of the same kind belong to one sign if no gap between them is longer."""
CHARACTERS = 200
"""The maximum length of a sign's line."""
_CRASH_FILES = "hs_err_pid*.log"
"""The files that a JVM writes as it crashes."""
_CRASH_BYTES = 1 << 14
"""How much of the beginning of such a file is read."""

_PATTERNS: tuple[tuple[Kind, bytes], ...] = (
    (
        "jvm-crash",
        rb"^# (?:A fatal error has been detected by|There is insufficient memory for) the Java "
        rb"Runtime",
    ),
    ("out-of-memory", rb"java\.lang\.OutOfMemoryError|^MemoryError\b"),
    (
        "disk-full",
        rb"No space left on device"
        rb"|Shutdown broker because all log dirs in .* have failed"
        rb"|Halting (?:due to unrecoverable I/O error|broker because dir )",
    ),
    ("dead-thread", rb'Uncaught exception in (?!scheduled task )|^Exception in thread "'),
    (
        "fatal-error",
        rb"Encountered (?!non-?fatal)[\w -]{1,60} fault: "
        rb"|Error processing fatal fault"
        rb"|Exiting Kafka due to fatal exception"
        rb"|Fatal error during Kafka\w+ startup",
    ),
    (
        "unexpected-error",
        rb"(?:request failed with|because of) an unexpected error"
        rb"|an invariant does not hold: "
        rb"|Task exception was never retrieved|Exception in callback ",
    ),
)
"""What shows each kind. The last one has the messages of Faultline's own brokers, and of asyncio,
about errors that no code expected. A line that has several kinds counts as the first of them."""
_SIGN = re.compile(b"|".join(b"(%b)" % pattern for _, pattern in _PATTERNS))
_WORDS = (
    *(b"fatal", b"Fatal", b"FATAL", b"CRITICAL", b"insufficient memory", b"MemoryError"),
    *(b"No space left", b"all log dirs", b"Halting", b"xception in", b" fault: "),
    *(b"unexpected error", b"invariant does not hold", b"never retrieved", b'"panic"'),
)
"""One of these is in every line that is a sign. Other lines are not examined further."""
_KINDS = [kind for kind, _ in _PATTERNS]
_SHUTDOWN = re.compile(rb"Fatal error during Kafka\w+ shutdown")
"""A broker that was asked to end could not end cleanly, because ZooKeeper did not answer."""
_CRASHED_BY = re.compile(rb"^#  ?((?:SIG[A-Z]+|Internal Error|EXCEPTION_\w+) .*)$", re.MULTILINE)
_CRASHED_AT = re.compile(rb"^Time: \w{3} (\w{3} +\d+ \d\d:\d\d:\d\d \d{4}) UTC", re.MULTILINE)


def record(folder: Path) -> None:
    """Write the signs of all nodes of a run's folder into ``node-signs.jsonl``."""
    signs = find(folder, run_start.read(folder))
    files.replace(folder / node_sign.FILE, b"".join(map(node_sign.encode, signs)))


def find(folder: Path, start: RunStart | None) -> list[NodeSign]:
    """Return the signs of all nodes of a run's folder, by node and time.

    Without the start of the run the signs have no times. Links are not followed.
    """
    start_ns = None if start is None else log_lines.epoch_ns(start.started)
    home = folder / NODES
    nodes = sorted(home.iterdir()) if home.is_dir() else []
    found = []
    for path in nodes:
        if path.is_dir() and not path.is_symlink():
            found += merged(_of_node(path, start_ns))
    return found


def kind_of(line: bytes) -> Kind | None:
    """Return of which kind of sign a line is; ``None`` for any other line."""
    if not any(word in line for word in _WORDS):
        return None
    found = _SIGN.search(line)
    if found is not None and found.lastindex is not None:
        return _KINDS[found.lastindex - 1]
    if log_lines.level(line) is Level.FATAL and _SHUTDOWN.search(line) is None:
        return "fatal-error"
    return None


def merged(signs: Iterable[NodeSign]) -> list[NodeSign]:
    """Merge the signs of one node that have the same kind and are close in time; sort by time.

    Signs without a time come first.
    """
    done: list[NodeSign] = []
    last: dict[Kind, int] = {}
    for sign in sorted(signs, key=_when):
        place = last.get(sign.kind)
        if place is not None and _is_close(done[place], sign):
            before = done[place]
            done[place] = msgspec.structs.replace(
                before, last_ns=sign.last_ns, count=before.count + sign.count
            )
            continue
        last[sign.kind] = len(done)
        done.append(sign)
    return done


def _when(sign: NodeSign) -> tuple[bool, int]:
    return sign.time_ns is not None, sign.time_ns or 0


def _is_close(before: NodeSign, after: NodeSign) -> bool:
    if before.last_ns is None or after.time_ns is None:
        return before.last_ns is after.time_ns is None
    return after.time_ns - before.last_ns <= SAME_NS


def _of_node(home: Path, start_ns: int | None) -> list[NodeSign]:
    """Return the signs of one node; the files of a JVM's crashes stand for the lines about them.

    A file has the time of the crash, which the lines on the standard output do not have.
    """
    logged, crashes = list(_of_log(home, start_ns)), list(_of_files(home, start_ns))
    if crashes and sum(sign.kind == "jvm-crash" for sign in logged) <= len(crashes):
        logged = [sign for sign in logged if sign.kind != "jvm-crash"]
    return logged + crashes


def _of_log(home: Path, start_ns: int | None) -> Iterator[NodeSign]:
    """Yield a sign for each line that is one; a line without a time has that of the line before."""
    log = home / LOG
    if log.is_symlink() or not log.is_file():
        return
    stamped = b""
    for _, line in log_lines.lines(log, bytes_max=None):
        if log_lines.may_have_stamp(line):
            stamped = line
        if (kind := kind_of(line)) is not None:
            stamp_ns = log_lines.stamp(stamped)
            time_ns = None if stamp_ns is None or start_ns is None else stamp_ns - start_ns
            yield _sign(home.name, kind, time_ns, log_lines.plain(_text(line)))


def _of_files(home: Path, start_ns: int | None) -> Iterator[NodeSign]:
    """Yield a sign for each file that a JVM wrote as it crashed."""
    for path in sorted(home.glob(_CRASH_FILES)):
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            head = file.read(_CRASH_BYTES)
        by = _CRASHED_BY.search(head)
        why = "the JVM crashed" if by is None else _text(by[1])
        yield _sign(home.name, "jvm-crash", _crashed_ns(head, start_ns), f"{path.name}: {why}")


def _crashed_ns(head: bytes, start_ns: int | None) -> int | None:
    found = _CRASHED_AT.search(head)
    if found is None or start_ns is None:
        return None
    try:
        moment = datetime.strptime(found[1].decode(), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
    return log_lines.epoch_ns(moment) - start_ns


def _text(line: bytes) -> str:
    return line.decode(errors="replace").strip()


def _sign(node: str, kind: Kind, time_ns: int | None, text: str) -> NodeSign:
    line = text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…"
    return NodeSign(node=node, kind=kind, time_ns=time_ns, last_ns=time_ns, line=line)
