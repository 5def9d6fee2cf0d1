"""Sessions: the committed transactions of each process in their order, and what each one read.

This is the input of the checkers of weak levels and of snapshots. Transaction 0 writes the initial
version of every key, and precedes all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from checkers.isolation.reading import (
    Done,
    NotUnderstood,
    hashable,
    micro_ops,
    text_of,
    transactions,
)
from checkers.kernels.rows import FAIL, OK
from model.op import Op

INITIAL = 0
"""The number of the transaction that wrote the initial versions."""


class Violation(Exception):
    """A history violates every level; the message is the argument."""

    def __init__(self, why: str, events: Sequence[int]) -> None:
        super().__init__(why)
        self.why, self.events = why, tuple(events)


@dataclass
class Transaction:
    """A committed transaction."""

    event: int
    """The event that completed it; -1 for the initial one."""
    session: int
    place: int
    """Its place in its session."""
    text: str
    reads: list[tuple[Any, int]] = field(default_factory=list)
    """The keys that it read before it wrote them, in order, with the transactions that had written
    what it read."""
    writes: set[Any] = field(default_factory=set)


class _Write(NamedTuple):
    txn: int | None
    """The transaction, if it is committed."""
    event: int
    is_last: bool
    is_failed: bool


@dataclass(frozen=True)
class Sessions:
    """The transactions of all sessions."""

    txns: Sequence[Transaction]
    """All transactions; the initial one is the first."""
    sessions: Sequence[Sequence[int]]
    """The numbers of the transactions of each session."""


def sessions_of(events: Sequence[Op], initial: Any = None) -> Sessions:
    """Return the sessions of a history of registers.

    Args:
        events: a process is a session. Values are unique per key. A transaction in doubt is
            committed if something that it wrote was read.
        initial: the value of a key that nothing has written yet, besides ``None``.

    Raises:
        Violation: a transaction reads what no committed transaction wrote as its last value, or
            what contradicts its own writes. No level allows that.
        NotUnderstood: the history has other micro-operations, or two transactions write the same
            value to a key, so that a read does not say which of them it saw.
    """
    done = list(transactions(events))
    read = {
        (key, value)
        for each in done
        if each.outcome == OK
        for name, key, value in _micro_ops(each)
        if name == "r"
    }
    txns = [Transaction(-1, -1, -1, "the initial state")]
    writes: dict[tuple[Any, Any], _Write] = {}
    sessions: dict[int, list[int]] = {}
    committed = []
    for each in done:
        found = _micro_ops(each)
        last = {key: value for name, key, value in found if name == "w"}
        number = None
        if each.outcome == OK or (each.outcome != FAIL and not read.isdisjoint(last.items())):
            number = len(txns)
            session = sessions.setdefault(each.op.process, [])
            txns.append(
                Transaction(
                    each.op.index, each.op.process, len(session), text_of(found), writes={*last}
                )
            )
            session.append(number)
            committed.append((number, found if each.outcome == OK else ()))
        for name, key, value in found:
            if name == "w":
                if (key, value) in writes and writes[key, value].event != each.op.index:
                    raise NotUnderstood(f"{value} is written to {key} by more than one transaction")
                write = _Write(number, each.op.index, last[key] == value, each.outcome == FAIL)
                writes[key, value] = write
    for number, found in committed:
        _read(txns[number], number, found, writes, initial)
    txns[INITIAL].writes.update(key for txn in txns for key in txn.writes)
    txns[INITIAL].writes.update(key for txn in txns for key, _ in txn.reads)
    return Sessions(txns, list(sessions.values()))


def _micro_ops(done: Done) -> Sequence[tuple[str, Any, Any]]:
    return [(name, hashable(key), hashable(value)) for name, key, value in micro_ops(done, "w")]


def _read(
    txn: Transaction,
    number: int,
    found: Sequence[Any],
    writes: dict[tuple[Any, Any], _Write],
    initial: Any,
) -> None:
    """Fill in what a transaction read."""
    mine: dict[Any, Any] = {}
    for name, key, value in found:
        if name == "w":
            mine[key] = value
            continue
        if key in mine:
            if mine[key] != value:
                raise Violation(
                    f"T1 = {txn.text} read {key} as {value}, but had written {mine[key]} to it.",
                    [txn.event],
                )
            continue
        write = writes.get((key, value))
        if write is None and value in (None, initial):
            txn.reads.append((key, INITIAL))
            continue
        if why := _is_wrong(write, number):
            events = [txn.event] if write is None else [txn.event, write.event]
            raise Violation(f"T1 = {txn.text} read {key} as {value}, {why}.", events)
        assert write is not None, "a read of nothing is wrong"
        assert write.txn is not None, "what was read is committed, or has failed"
        txn.reads.append((key, write.txn))


def _is_wrong(write: _Write | None, reader: int) -> str:
    """Return what is wrong with the read of a write; an empty text if nothing is."""
    if write is None:
        return "which no transaction wrote"
    if write.is_failed:
        return "but the transaction that wrote that failed"
    if write.txn == reader:
        return "which it wrote only later"
    return "" if write.is_last else "but the transaction that wrote that wrote the key again"
