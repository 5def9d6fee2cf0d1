"""A judge of transactions that tries every order of commits, and every snapshot.

It knows what the data types do from :mod:`bench.oracles.transactions` alone, and no dependencies.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bench.oracles.transactions import SET, Drawn, State, Txn, changed, is_read, result

Precedes = list[frozenset[int]]
"""For each transaction those that must be committed before it starts."""


class Level(NamedTuple):
    """What an order of transactions must keep to."""

    order: str = "none"
    """``process``, ``realtime``, ``session`` or ``none``."""
    is_snapshot: bool = False
    """Whether a transaction may read an older state than the one that it changes."""
    has_conflicts: bool = True
    """Whether two transactions that write the same key may not overlap."""


LEVELS = {
    "serializable": Level(),
    "strong-session-serializable": Level("process"),
    "strict-serializable": Level("realtime"),
    "snapshot-isolation": Level(is_snapshot=True),
    "strong-session-snapshot-isolation": Level("process", is_snapshot=True),
    "strong-snapshot-isolation": Level("realtime", is_snapshot=True),
}
"""The models of the lattice, by their names."""
SESSIONS = {
    "serializable": Level("session"),
    "prefix": Level("session", is_snapshot=True, has_conflicts=False),
    "snapshot-isolation": Level("session", is_snapshot=True),
}
"""The levels of sessions: each transaction that happened counts in the order of its process."""


def is_explained(model: str, drawn: Drawn, level: Level) -> bool:
    """Return whether an order of commits explains what all transactions read.

    A transaction that ended in doubt may be left out. Under snapshot isolation, a transaction reads
    the state after any number of commits, and none of the later ones before its own may have
    changed a key that it changes; additions to a set never conflict.
    """
    txns = [txn for txn in drawn.txns if txn.outcome != "fail"]
    precedes = _precedes(txns, level.order)
    certain = frozenset(row for row, txn in enumerate(txns) if txn.outcome == "ok")
    written = [frozenset(m[1] for m in txn.micro_ops if not is_read(m)) for txn in txns]
    has_conflicts = level.has_conflicts and model != SET

    def explains(order: tuple[int, ...], states: tuple[State, ...]) -> bool:
        if certain <= frozenset(order):
            return True
        for row in range(len(txns)):
            if row in order or not precedes[row] <= {*order} | ({*range(len(txns))} - certain):
                continue
            if any(row in precedes[other] for other in order):
                continue
            before = [at for at, other in enumerate(order) if other in precedes[row]]
            earliest = 1 + max(before, default=-1) if level.is_snapshot else len(order)
            if has_conflicts:
                overlapping = [at for at, o in enumerate(order) if written[o] & written[row]]
                earliest = max(earliest, 1 + max(overlapping, default=-1))
            if not any(_fits(model, state, txns[row]) for state in states[earliest:]):
                continue
            after = _applied(model, states[-1], txns[row])
            if after is not None and explains((*order, row), (*states, after)):
                return True
        return False

    return explains((), (drawn.initial,))


def _fits(model: str, state: State, txn: Txn) -> bool:
    """Return whether a transaction may run in a state, and reads what it did."""
    now: State | None = state
    for micro_op in txn.micro_ops:
        assert now is not None, "an earlier change was allowed"
        if not is_read(micro_op):
            now = changed(model, now, micro_op)
            if now is None:
                return False
        elif txn.outcome == "ok" and result(model, now, micro_op) != _read(model, micro_op[2]):
            return False
    return True


def _read(model: str, value: object) -> object:
    return sorted(value) if model == SET and isinstance(value, list) else value


def _applied(model: str, state: State, txn: Txn) -> State | None:
    now: State | None = state
    for micro_op in txn.micro_ops:
        if now is not None and not is_read(micro_op):
            now = changed(model, now, micro_op)
    return now


def _precedes(txns: Sequence[Txn], order: str) -> Precedes:
    if order == "realtime" and any(txn.call < 0 for txn in txns):
        order = "process"  # without invocations, it is all that is known
    return [
        frozenset(before for before, other in enumerate(txns) if _is_before(other, txn, order))
        for txn in txns
    ]


def _is_before(first: Txn, then: Txn, order: str) -> bool:
    if order == "none" or first.outcome != "ok":
        return False
    if order == "realtime":
        return first.end < then.call
    is_same = first.process == then.process and first.end < then.end
    return is_same and (order == "session" or then.outcome == "ok")
