"""Compares the checkers of isolation with a judge that tries every order of transactions.

Where an order exists, the verdict must not be invalid: for every data type, at every level of
:data:`~bench.oracles.serial_orders.LEVELS`, and with the assumptions that follow from the level.

Where there is none, the verdict must be invalid if the history shows the order of all versions, and
no read has an element that no transaction wrote (none is drawn):

- ``list-append, complete``: the last transaction read every element of every ok transaction.
- ``set-append``: always, as additions have no order.
- ``rw-register, reads first``: with ``wfr-keys``, as each write follows a read of its key, if no
  transaction ended in doubt.
- ``sessions``: always, as these levels are decided by a search.

``rw-register`` without these reads and ``closed-predicate`` are compared in the first direction
alone, and so is a list whose last elements were not read.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from bench.oracles import planted, serial_orders, transactions
from bench.oracles.serial_orders import LEVELS, SESSIONS
from bench.oracles.transactions import LIST, PREDICATE, REGISTER, SET, Drawn
from checkers import objects

Compared = tuple[bool, Any]
"""Whether there is an order, and what the checker says; where it may say either, the same."""

ASSUMPTIONS = {
    "serializable": ("wfr-keys",),
    "snapshot-isolation": ("wfr-keys",),
    "strong-session-serializable": ("wfr-keys", "sequential-keys"),
    "strong-session-snapshot-isolation": ("wfr-keys", "sequential-keys"),
    "strict-serializable": ("wfr-keys", "sequential-keys", "linearizable-keys"),
    "strong-snapshot-isolation": ("wfr-keys", "sequential-keys", "linearizable-keys"),
}
"""What each level implies about the versions of registers."""


def _never(drawn: Drawn) -> bool:
    return False


def _always(drawn: Drawn) -> bool:
    return True


def _is_complete(drawn: Drawn) -> bool:
    return drawn.is_complete


def _has_no_doubt(drawn: Drawn) -> bool:
    return all(txn.outcome != "info" for txn in drawn.txns)


def compared(
    model: str, drawn: Drawn, level: str, assume: Sequence[str], *, must_find: bool
) -> Compared:
    """Compare a history at a level of the lattice."""
    wanted = serial_orders.is_explained(model, drawn, LEVELS[level])
    found = objects.check(drawn.events, model, consistency=level, assume=assume).valid
    if wanted:
        return True, found is not False
    return False, found if must_find else False


def _of_model(
    model: str, must_find: Callable[[Drawn], bool], **how: bool
) -> Callable[[Random], Compared]:
    def compare(rng: Random) -> Compared:
        level = rng.choice([*LEVELS])
        drawn = transactions.draw(model, rng, **how)
        assume: Sequence[str] = ()
        if model == REGISTER:
            known = ASSUMPTIONS[level]
            assume = known if how else rng.sample(known, rng.randrange(len(known) + 1))
        return compared(model, drawn, level, assume, must_find=must_find(drawn))

    return compare


def _of_sessions(level: str) -> Callable[[Random], Compared]:
    def compare(rng: Random) -> Compared:
        drawn = transactions.draw(REGISTER, rng)
        wanted = serial_orders.is_explained(REGISTER, drawn, SESSIONS[level])
        return wanted, objects.check(drawn.events, "sessions", consistency=level).valid

    return compare


def _of_planted(model: str) -> Callable[[Random], Compared]:
    def compare(rng: Random) -> Compared:
        anomaly = rng.choice(planted.of_model(model))
        consistency, assume = planted.OPTIONS[anomaly.variant]
        found = objects.check(
            planted.history(anomaly, model, rng),
            model,
            consistency=consistency,
            anomalies=(anomaly.name,),
            assume=assume if model == REGISTER else (),
        )
        is_found = found.valid is False and anomaly.name in found.anomalies
        return False, False if is_found else f"{anomaly.name} is not in {[*found.anomalies]}"

    return compare


def comparisons() -> Iterator[tuple[str, Callable[[Random], Compared]]]:
    """Yield what is compared, by name."""
    yield LIST, _of_model(LIST, _never)
    yield f"{LIST}, complete", _of_model(LIST, _is_complete, final=True)
    yield SET, _of_model(SET, _always)
    yield REGISTER, _of_model(REGISTER, _never)
    yield f"{REGISTER}, reads first", _of_model(REGISTER, _has_no_doubt, reads_first=True)
    yield PREDICATE, _of_model(PREDICATE, _never)
    for level in SESSIONS:
        yield f"sessions, {level}", _of_sessions(level)
    for model in (LIST, SET, REGISTER, PREDICATE):
        yield f"{model}, planted anomalies", _of_planted(model)
