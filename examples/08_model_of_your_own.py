"""A model says what the operations of a data type do; any history of it can then be judged.

This one is a semaphore with two permits. Three processes hold one at the same time, so no order of
the operations explains the history.
"""

from typing import Any

from checkers import objects
from checkers.linearizability.models import Inconsistent, Model, State
from checkers.linearizability.operations import Operation
from model.op import Op


class Semaphore(Model):
    """``take`` and ``give`` of one of two permits. The state is the number of free permits."""

    initial: State = 2

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        assert isinstance(state, int)
        if operation.f == "give":
            return state + 1
        return state - 1 if state else Inconsistent("no permit was free")


def event(index: int, process: int, kind: Any, f: str) -> Op:
    """Return an event; there is one event per millisecond."""
    return Op(index=index, time_ns=index * 10**6, process=process, type=kind, f=f)


HISTORY = [
    event(0, 1, "invoke", "take"),
    event(1, 1, "ok", "take"),
    event(2, 2, "invoke", "take"),
    event(3, 2, "ok", "take"),
    event(4, 3, "invoke", "take"),
    event(5, 3, "ok", "take"),
    event(6, 1, "invoke", "give"),
    event(7, 1, "ok", "give"),
]

verdict = objects.check(HISTORY, Semaphore())
print("valid:", verdict.valid)
for line in verdict.why:
    print(line)
