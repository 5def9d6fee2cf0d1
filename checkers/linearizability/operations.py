"""Operations with the interval in which each may have taken effect.

Only the order of invocations and completions counts: an operation precedes another one if it was
completed before the other one was invoked. Clocks are not compared.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from model.history import BadHistory
from model.op import NEMESIS, Op

NEVER = 1 << 62
"""The completion of an operation that was not completed, or that ended in doubt: it may have taken
effect at any time since its invocation, or never."""


class Operation(NamedTuple):
    """An operation of a client that may have taken effect."""

    f: str
    value: Any
    """What the client asked for; in an operation that succeeded, what it was answered."""
    call: int
    """The place of the invocation in the order of all events."""
    end: int
    """The place of the completion; NEVER if the operation may take effect at any later time."""
    process: Hashable = 0
    invoked: int = -1
    """Index of the event of the invocation; -1 if there is none."""
    completed: int = -1
    """Index of the event of the completion; -1 if there is none."""

    @property
    def is_pending(self) -> bool:
        """Whether it may never have taken effect."""
        return self.end == NEVER

    @property
    def event(self) -> int:
        """The index of its last event."""
        return self.completed if self.completed >= 0 else self.invoked


def of_events(events: Iterable[Op]) -> list[Operation]:
    """Return the operations of clients by the order of their invocations.

    An operation that failed did not happen, and is left out. A completion without an invocation is
    an operation that began at that event, and ended there if it succeeded. Raises
    :class:`~model.history.BadHistory` if a process invokes an operation before its last one was
    completed.
    """
    found: list[Operation] = []
    is_open: dict[int, int] = {}
    failed: set[int] = set()
    for place, event in enumerate(events):
        if event.process == NEMESIS:
            continue
        if event.type == "invoke":
            if event.process in is_open:
                raise BadHistory(
                    f"event {event.index}: process {event.process} invokes an operation before its"
                    " last one was completed"
                )
            is_open[event.process] = len(found)
            found.append(Operation(event.f, event.value, place, NEVER, event.process, event.index))
            continue
        row = is_open.pop(event.process, None)
        if row is None:
            if event.type != "fail":
                end = place if event.type == "ok" else NEVER
                mine = (event.process, -1, event.index)
                found.append(Operation(event.f, event.value, place, end, *mine))
            continue
        if event.type == "fail":
            failed.add(row)
        elif event.type == "ok":
            found[row] = _completed(found[row], event, place)
        else:
            found[row] = found[row]._replace(completed=event.index)
    return [operation for row, operation in enumerate(found) if row not in failed]


def _completed(operation: Operation, event: Op, place: int) -> Operation:
    """Return an operation that succeeded. A completion without a value confirms what was asked."""
    value = operation.value if event.value is None else event.value
    return operation._replace(value=value, end=place, completed=event.index)


def parts(
    operations: Sequence[Operation], keys: Iterable[Hashable]
) -> dict[Hashable, list[Operation]]:
    """Return the operations of each key, in their order."""
    found: dict[Hashable, list[Operation]] = {}
    for operation, key in zip(operations, keys, strict=True):
        found.setdefault(key, []).append(operation)
    return found
