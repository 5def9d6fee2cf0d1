"""Reads the texts of testers of isolation: sessions of transactions on registers, without times.

Each session is a process, and each transaction is a completion, so that only the order of a session
is known. Keys and values are whole numbers. There are two formats:

- that of Plume, which PolySI and IsoVista share: ``w(key,value,session,transaction)`` and
  ``r(key,value,session,transaction)``, one in each line. The transaction -1 was aborted. Keys hold
  0 at first.
- that of AWDIT's tests: ``w key value`` and ``r key value``, one in each line, with a line of
  hyphens between transactions and a line of equals signs between sessions.

Sources: https://github.com/hengxin/Plume, https://github.com/lassemoldrup/AWDIT (README, Formats).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from model.history import BadHistory
from model.op import Op

TRANSACTION = "txn"
"""The name of each event."""
_ABORTED = -1
_INITIAL = 0

_NUMBER = r"\s*(-?\d+)\s*"
_PLUME = re.compile(rf"([rw])\({_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}\)")
_AWDIT = re.compile(r"([rw])\s+(-?\d+)\s+(-?\d+)")
_BETWEEN_TRANSACTIONS = re.compile(r"-{3,}")
_BETWEEN_SESSIONS = re.compile(r"={3,}")
_BEGINNINGS = {
    "plume": re.compile(r"\s*[rw]\("),
    "awdit": re.compile(r"\s*(?:[rw][ \t]+-?\d+[ \t]+\S|-{3,}\s|={3,}\s)"),
}

MicroOp = list[str | int | None]


@dataclass
class Transaction:
    """A transaction of a session."""

    session: int
    outcome: Literal["ok", "fail"] = "ok"
    micro_ops: list[MicroOp] = field(default_factory=list)

    def event(self, index: int) -> Op:
        """Return the completion of the transaction."""
        return Op(
            index=index,
            time_ns=index,
            process=self.session,
            type=self.outcome,
            f=TRANSACTION,
            value=self.micro_ops,
        )


def reader(text: str) -> Callable[[str, object], list[Op]] | None:
    """Return what reads a text, given how the text begins; ``None`` if it has another format."""
    readers = {"plume": plume, "awdit": awdit}
    return next((readers[name] for name, begin in _BEGINNINGS.items() if begin.match(text)), None)


def plume(text: str, source: object) -> list[Op]:
    """Return the transactions of Plume's format by their first lines.

    A write of an aborted transaction is a transaction of its own that failed; its reads are left
    out. Reads of 0 are those of :func:`with_initial`. Raises
    :class:`~model.history.BadHistory`.
    """
    sessions: dict[int, int] = {}
    committed: dict[tuple[int, int], Transaction] = {}
    found: list[Transaction] = []
    for place, line in lines(text, source):
        match = _PLUME.fullmatch(line)
        if match is None:
            raise BadHistory(
                f"{place}: {line[:80]!r} is not r(key,value,session,transaction) or"
                " w(key,value,session,transaction) with whole numbers"
            )
        key, value, name, number = map(int, match.groups()[1:])
        session = sessions.setdefault(name, len(sessions))
        if number == _ABORTED:
            if match[1] == "w":
                found.append(Transaction(session, "fail", [["w", key, value]]))
            continue
        transaction = committed.get((session, number))
        if transaction is None:
            transaction = committed[session, number] = Transaction(session)
            found.append(transaction)
        transaction.micro_ops.append([match[1], key, value])
    return with_initial(found)


def with_initial(found: Sequence[Transaction]) -> list[Op]:
    """Return the events of transactions. A read of 0 is a read of the initial state, unless a
    committed transaction wrote 0 to the key: see :func:`certain`."""
    micro_ops = [each for transaction in found for each in transaction.micro_ops]
    committed = (op for each in found if each.outcome == "ok" for op in each.micro_ops)
    written = {op[1] for op in committed if op[0] == "w" and op[2] == _INITIAL}
    for micro_op in micro_ops:
        if micro_op[0] == "r" and micro_op[2] == _INITIAL and micro_op[1] not in written:
            micro_op[2] = None
    return [each.event(index) for index, each in enumerate(found)]


def certain(events: Sequence[Op]) -> list[Op] | None:
    """Return the events of :func:`with_initial` without reads of 0 that may be reads of the initial
    state as well as of a write; ``None`` if there are none.

    Such a read is certain only after a write of its own transaction.
    """
    found = [replace(event, value=list(_certain(event.value))) for event in events]
    return None if found == list(events) else found


def _certain(micro_ops: Sequence[MicroOp]) -> Iterator[MicroOp]:
    mine = set()
    for f, key, value in micro_ops:
        if f == "w":
            mine.add(key)
        if f == "w" or value != _INITIAL or key in mine:
            yield [f, key, value]


def awdit(text: str, source: object) -> list[Op]:
    """Return the transactions of the format of AWDIT's tests, one session after the other.

    Nothing is said of the initial state, so a read of a value that no transaction wrote is wrong.
    Raises :class:`~model.history.BadHistory`.
    """
    found: list[Transaction] = []
    session, is_open = 0, False
    for place, line in lines(text, source):
        if _BETWEEN_SESSIONS.fullmatch(line):
            session, is_open = session + 1, False
            continue
        if _BETWEEN_TRANSACTIONS.fullmatch(line):
            is_open = False
            continue
        match = _AWDIT.fullmatch(line)
        if match is None:
            raise BadHistory(
                f"{place}: {line[:80]!r} is not 'r key value' or 'w key value' with whole numbers,"
                " and no line between transactions (-----) or sessions (=====)"
            )
        if not is_open:
            found.append(Transaction(session))
            is_open = True
        found[-1].micro_ops.append([match[1], int(match[2]), int(match[3])])
    return [each.event(index) for index, each in enumerate(found)]


def lines(text: str, source: object) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not blank, each with its place."""
    for number, line in enumerate(text.split("\n"), 1):
        if stripped := line.strip():
            yield f"{source}, line {number}", stripped
