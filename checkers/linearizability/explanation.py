"""Says in sentences why operations are not linearizable."""

from collections.abc import Hashable, Iterator, Sequence

from checkers.linearizability.judging import Part
from checkers.linearizability.operations import Operation
from checkers.linearizability.search import Illegal

SHOWN = 3
"""How many states are named."""


def sentences(part: Part) -> Iterator[str]:
    """Yield why the operations of a key have no order; nothing if they may have one."""
    of = "" if part.key is None else f"Of key {name_of(part.key)}: "
    if part.conflict is not None:
        involved = "; ".join(described(part.operations[row]) for row in part.conflict.rows)
        yield f"{of}no order explains {involved}: {part.conflict.why}."
    if isinstance(part.outcome, Illegal):
        yield from _of_search(of, part.operations, part.outcome)


def name_of(key: Hashable) -> str:
    """Return a key as text; a key within another one is joined to it."""
    if isinstance(key, tuple):
        return "/".join(name_of(each) for each in key if each is not None)
    return str(key)


def _of_search(of: str, operations: Sequence[Operation], outcome: Illegal) -> Iterator[str]:
    blocked = operations[outcome.blocked]
    ended = sum(each.end < blocked.end for each in operations)
    yield (
        f"{of}{described(blocked)} has no place in any order. The {ended} operations that ended"
        f" before it can be ordered; it is illegal in each state to which they can lead:"
    )
    for refusal in outcome.refusals[:SHOWN]:
        yield f"- {refusal.why}"
    more = len(outcome.refusals) - SHOWN + outcome.more
    if more > 0:
        yield f"- and {more} more states"


def described(operation: Operation) -> str:
    """Name an operation by its event, its process and what it did."""
    value = "" if operation.value is None else f" {operation.value}"
    doubt = " (never completed)" if operation.is_pending else ""
    return f"{operation.f}{value} of process {operation.process} (event {operation.event}){doubt}"
