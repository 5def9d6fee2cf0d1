"""Judges histories of sessions at the levels between read committed and serializable.

Each session is a process; its transactions read and write registers whose values are unique per
key. The order of versions need not be known: the axioms of a level, or a search, find one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from checkers.isolation import snapshots, weak
from checkers.isolation.reading import NotUnderstood
from checkers.isolation.sessions import Violation, sessions_of
from model.op import Op

STEPS = 1_000_000
"""Number of steps that a search tries by default."""

_SEARCHED: Mapping[str, snapshots.Level] = {
    "prefix": "prefix",
    "snapshot-isolation": "snapshot-isolation",
    "serializable": "serializable",
}
LEVELS = (*weak.AXIOMS, *_SEARCHED)
"""The levels, from weak to strong."""


@dataclass(frozen=True)
class Verdict:
    """Whether a history satisfies a level."""

    valid: bool | Literal["unknown"]
    why: str = ""
    """The argument, unless the history is valid."""
    events: tuple[int, ...] = ()
    """The events of the transactions of the argument."""


def judge_level(
    events: Sequence[Op], level: str, initial: Any = None, budget: int = STEPS
) -> Verdict:
    """Judge a history of sessions.

    Args:
        events: transactions of ``["w", key, value]`` and ``["r", key, value]``. The order of each
            process counts, realtime does not.
        level: one of :data:`LEVELS`.
        initial: a value, besides ``None``, of keys that nothing has written yet.
        budget: the number of steps that a search may try. The levels up to causal need none.

    Raises:
        ValueError: there is no such level.
    """
    if level not in LEVELS:
        raise ValueError(f"{level!r} is not a level; the levels are {', '.join(LEVELS)}")
    try:
        history = sessions_of(events, initial)
        found = weak.precedences(history, "causal" if level in _SEARCHED else level)
    except Violation as violation:
        return Verdict(False, violation.why, violation.events)
    except NotUnderstood as error:
        return Verdict("unknown", str(error))
    if level not in _SEARCHED:
        return Verdict(True)
    before: dict[int, set[int]] = {}
    for first, then in found:
        before.setdefault(then, set()).add(first)
    valid = snapshots.explained(history, _SEARCHED[level], before, budget)
    return Verdict(valid, _WHY.get(valid, ""))


_WHY: Mapping[bool | str, str] = {
    False: "No order of snapshots and commits explains what the transactions read.",
    "unknown": "The search for an order of snapshots and commits ended at its budget.",
}
