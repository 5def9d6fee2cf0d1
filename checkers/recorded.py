"""Reads histories of any system: events whose values have any shape.

The format follows from the content: EDN as Jepsen, Elle and Knossos write it, JSON (one list, or
one object in each line), the log lines of Jepsen's etcd test, the maps of Porcupine's tests, which
name a key apart from the value, the sessions of :mod:`checkers.session_texts` and
:mod:`checkers.dbcop_text`, or LiMo's text.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from checkers import dbcop_text, edn, limo_text, pieces, session_texts
from model import json_fields
from model.history import BadHistory
from model.op import NEMESIS, Op

NIL = "nil"
"""The value that an etcd log shows for a register that was never written."""

TRANSACTION = session_texts.TRANSACTION
"""The name of an event that has none, if its value is a list of micro-operations."""

_LINE = re.compile(
    r"^INFO\s+\S+\s+-\s+(?P<process>\S+)\s+:(?P<type>\w+)\s+:(?P<f>\S+)\s+(?P<value>.*)$"
)
_DBCOP = re.compile(r'\{\s*"(?:params|info|start|end|data)"\s*:')
_TIMED_OUT = ":timed-out"
_NEMESIS = ("nemesis", ":nemesis")


class Recorded(NamedTuple):
    """The events of a file."""

    events: list[Op]
    torn: str | None = None
    """What was left out at the end, because its writer was interrupted."""
    initial: Any = None
    """The value of a register before the first write, where the format says it."""
    certain: list[Op] | None = None
    """The events without the reads of which the format does not say what they saw, if there are
    any."""


def read(path: Path) -> Recorded:
    """Return the events of a file. Raises :class:`BadHistory` with the line and the reason."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadHistory(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadHistory(f"{path} is not text: {error}") from error
    return parse(text, path)


def parse(text: str, source: object) -> Recorded:
    """Return the events of a text; ``source`` names it in errors. Raises :class:`BadHistory`."""
    begin = text.lstrip()
    if begin and _LINE.match(begin.partition("\n")[0]):
        found = Recorded(list(_of_log(text, source)), initial=NIL)
    elif _is_one_json(begin):
        form = _json(text, source, 1)
        if (sessions := dbcop_text.sessions_of(form)) is not None:
            found = _of_sessions(dbcop_text.read_json(sessions, source))
        else:
            forms = form if isinstance(form, list) else [form]
            found = Recorded(_events(((1, each) for each in forms), source))
    elif dbcop_text.is_text(text):
        found = _of_sessions(dbcop_text.read(text, source))
    elif _is_json(begin[:2]):
        found = _of_lines(text, source)
    elif read_sessions := session_texts.reader(text):
        events = read_sessions(text, source)
        is_plain = read_sessions is session_texts.awdit  # 0 is a value like any other
        found = Recorded(events) if is_plain else _of_sessions(events)
    elif limo_text.is_limo(text):
        found = Recorded(limo_text.read(text, source))
    else:
        found = _of_edn(text, source)
    if not found.events:
        raise BadHistory(f"{source} has no events")
    return found


def _of_sessions(events: list[Op]) -> Recorded:
    return Recorded(events, certain=session_texts.certain(events))


def _is_one_json(begin: str) -> bool:
    """Return whether a text is a list, or a map of dbcop, in JSON."""
    if begin[:1] == "[":
        inner = begin[1:].lstrip()
        return _is_json(inner[:2]) or (inner[:1] == "[" and _is_json(inner[1:].lstrip()[:2]))
    return _is_json(begin[:2]) and _DBCOP.match(begin) is not None


def _is_json(begin: str) -> bool:
    return begin.startswith('{"') or begin in ("{\n", "{ ", "]", "]\n")


class _NoJson(BadHistory):
    """A text that is not JSON."""


def _json(text: str, source: object, line: int) -> Any:
    try:
        form = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _NoJson(f"{source}, line {line}: {error}") from error
    if isinstance(form, dict) and text.count(":") == len(form):
        return form  # no field can have been given twice
    try:
        json_fields.loads(text)
    except (json_fields.Doubled, RecursionError) as error:
        raise BadHistory(f"{source}, line {line}: {error}") from error
    return form


def _of_lines(text: str, source: object) -> Recorded:
    found: list[tuple[int, Any]] = []
    torn = None
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append((number, _json(line, source, number)))
        except _NoJson:
            if number < len(lines):
                raise
            torn = _torn(number)
    return Recorded(_events(found, source), torn)


def _torn(line: int) -> str:
    return f"the end of the file, from line {line} on, is torn and was left out"


def _of_edn(text: str, source: object) -> Recorded:
    found: list[tuple[int, Any]] = []
    torn = None
    try:
        found.extend((edn.line(text, at), form) for at, form in edn.elements(text))
    except edn.Unfinished as error:
        torn = _torn(error.line)
        found = [(edn.line(text, at), form) for at, form in _complete(text)]
    except (edn.BadEdn, RecursionError) as error:
        line = error.line if isinstance(error, edn.BadEdn) else 1
        why = error if isinstance(error, edn.BadEdn) else "it is nested too deeply"
        raise BadHistory(f"{source}, line {line}: {why}") from error
    return Recorded(_events(found, source), torn)


def _complete(text: str) -> Iterator[tuple[int, Any]]:
    try:
        yield from edn.elements(text)
    except edn.Unfinished:
        return


def _events(found: Iterable[tuple[int, Any]], source: object) -> list[Op]:
    return [_event(form, row, f"{source}, line {line}") for row, (line, form) in enumerate(found)]


def _event(form: Any, row: int, place: str) -> Op:
    """Convert a map to an event. Without an index or a time, the row stands for it."""
    if not isinstance(form, dict) or form.get("type") not in pieces.TYPES:
        raise BadHistory(f"{place}: {str(form)[:80]!r} is not an operation with a type")
    f, process, index = form.get("f"), form.get("process", 0), form.get("index", row)
    if f is None and isinstance(form.get("value"), list):
        f = TRANSACTION
    if not isinstance(f, str):
        raise BadHistory(f"{place}: an operation has no name in f")
    if type(index) is not int:
        raise BadHistory(f"{place}: the index is not a whole number")
    value = form.get("value")
    if "key" in form:
        value = [form["key"], value]
    time_ns = form.get("time", form.get("time_ns", row))
    return Op(
        index=index,
        time_ns=time_ns if type(time_ns) is int else row,
        process=_process(process, place),
        type=form["type"],
        f=f,
        value=value,
        error=None if form.get("error") is None else str(form["error"]),
    )


def _process(said: Any, place: str) -> int:
    """Return the number of a process; nothing, or its name, stands for the nemesis."""
    if type(said) is int:
        return said
    if said in (None, *_NEMESIS):
        return NEMESIS
    raise BadHistory(f"{place}: process {str(said)[:80]!r} is neither a number nor nemesis")


def _of_log(text: str, source: object) -> Iterator[Op]:
    """Yield the events of a log of Jepsen. A read that timed out did not happen, a write may
    have."""
    row = 0
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if match is None or not match["process"].isdigit():
            continue
        kind, f, value = match["type"], match["f"], match["value"].strip()
        if kind not in pieces.TYPES:
            raise BadHistory(f"{source}, line {number}: {kind} is not a type of event")
        is_late = value == _TIMED_OUT
        try:
            said = None if is_late else next(edn.forms(value))[1]
        except (edn.BadEdn, StopIteration) as error:
            raise BadHistory(f"{source}, line {number}: {error}") from error
        if f == "read" and kind == "ok" and said is None:
            said = NIL
        if kind == "fail" and is_late and f != "read":
            kind = "info"
        process = int(match["process"])
        yield Op(index=row, time_ns=row, process=process, type=kind, f=f, value=said)  # type: ignore[arg-type]
        row += 1
