"""Reads the histories of dbcop: sessions of transactions on registers, without times.

There are two formats, and an older form of the second one:

- text: ``[x:=1 y==2 z==?]`` is a transaction that writes x, reads y and finds z without a value. A
  ``!`` after it means that it was not committed. A line of hyphens begins another session.
- JSON: a list of sessions, or a map with these in ``data``. A session is a list of transactions
  such as ``{"events": [{"Write": {"variable": 0, "version": 1}}], "committed": true}``; an event
  may also be ``["w", 0, 1]``. In the older form it is ``{"write": true, "variable": 0, "value": 1,
  "success": true}``, and transactions have ``success``.

A read of 0 is a read of the initial state, unless a committed transaction wrote 0 to the variable.
Of transactions that were not committed, only the writes count.

Source: https://github.com/rnbguy/dbcop (docs/history-format.md; src/db/history.rs of the branch
oopsla-2019).
"""

import re
from collections.abc import Iterator
from typing import Any

from checkers.session_texts import MicroOp, Transaction, lines, with_initial
from model.history import BadHistory
from model.op import Op

_EVENT = re.compile(r"(\w+)(?:(:=|==)(\d+)|(==\?))")
_TRANSACTION = re.compile(r"\s*\[([^\]]*)\](!?)")
_BEGIN = re.compile(r"(?:\s*//[^\n]*\n|\s*-+\s*\n)*\s*\[\s*\w+(?::=|==)")
_SEPARATOR = re.compile(r"-+")


def is_text(text: str) -> bool:
    """Return whether a text is in the first format, by its first transaction."""
    return _BEGIN.match(text) is not None


def read(text: str, source: object) -> list[Op]:
    """Return the transactions of a text. Raises :class:`~model.history.BadHistory`."""
    found: list[Transaction] = []
    session = 0
    for place, line in lines(text, source):
        if line.startswith("//"):
            continue
        if _SEPARATOR.fullmatch(line):
            session += 1
            continue
        at = 0
        while at < len(line):
            match = _TRANSACTION.match(line, at)
            if match is None:
                raise BadHistory(f"{place}: {line[at : at + 80]!r} is not [x:=1 y==2 z==?]")
            micro_ops = [_micro_op(each, place) for each in match[1].split()]
            found += _transaction(session, micro_ops, is_committed=not match[2])
            at = match.end()
    return with_initial(found)


def _micro_op(text: str, place: str) -> MicroOp:
    match = _EVENT.fullmatch(text)
    if match is None:
        raise BadHistory(f"{place}: {text[:80]!r} is not x:=1, x==1 or x==?")
    value = None if match[4] else int(match[3])
    return ["w" if match[2] == ":=" else "r", match[1], value]


def sessions_of(form: Any) -> Any:
    """Return the sessions of a history in JSON; ``None`` if it is none of dbcop."""
    found = form.get("data") if isinstance(form, dict) else form
    if not isinstance(found, list) or not all(isinstance(each, list) for each in found):
        return None
    transactions = [one for session in found for one in session]
    is_dbcop = all(isinstance(one, dict) and "events" in one for one in transactions)
    return found if transactions and is_dbcop else None


def read_json(sessions: Any, source: object) -> list[Op]:
    """Return the transactions of sessions. Raises :class:`~model.history.BadHistory`."""
    found: list[Transaction] = []
    for session, transactions in enumerate(sessions):
        for number, each in enumerate(transactions):
            place = f"{source}, session {session + 1}, transaction {number + 1}"
            is_committed = each.get("committed", each.get("success"))
            events = each["events"]
            if not isinstance(is_committed, bool) or not isinstance(events, list):
                raise BadHistory(f"{place}: it needs a list of events, and committed or success")
            micro_ops = [_of_json(event, place) for event in events]
            found += _transaction(session, [e for e in micro_ops if e], is_committed=is_committed)
    return with_initial(found)


def _of_json(event: Any, place: str) -> MicroOp | None:
    """Return the micro-operation of an event; ``None`` for one that failed."""
    match event:
        case {"Write": {"variable": variable, "version": int() as version}}:
            return ["w", variable, version]
        case {"Read": {"variable": variable, "version": int() | None as version}}:
            return ["r", variable, version]
        case ["w", variable, int() as version]:
            return ["w", variable, version]
        case ["r", variable, int() | None as version]:
            return ["r", variable, version]
        case {"write": bool() as is_write, "variable": variable, "value": int() as value}:
            kind = "w" if is_write else "r"
            return [kind, variable, value] if event.get("success", True) else None
        case _:
            raise BadHistory(f"{place}: {str(event)[:80]!r} is not an event of dbcop")


def _transaction(
    session: int, micro_ops: list[MicroOp], *, is_committed: bool
) -> Iterator[Transaction]:
    """Yield a transaction, but not one that was not committed and wrote nothing."""
    if is_committed:
        yield Transaction(session, "ok", micro_ops)
    elif writes := [each for each in micro_ops if each[0] == "w"]:
        yield Transaction(session, "fail", writes)
