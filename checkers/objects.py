"""Judges the history of any data type by its model: linearizability, and Jepsen's small checkers.

This is the function for a history in memory, and what ``faultline check --model`` calls.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from checkers import aggregates
from checkers.linearizability import explanation, judging, models, operations
from checkers.linearizability.judging import Budget, Judgement
from checkers.linearizability.models import Model
from checkers.linearizability.sessions import Together
from model.history import BadHistory
from model.op import Op

Valid = bool | Literal["unknown"]
UNSET = object()
"""The initial value is that of the model."""

_REGISTER_INITIAL = 0

LINEARIZABLE: dict[str, Callable[[Any], Model]] = {
    "register": models.Register,
    "cas-register": models.CasRegister,
    "multi-register": lambda initial: models.MultiRegister(default=initial),
    "kv": lambda initial: models.KeyValue(),
    "linearizable-set": lambda initial: models.Set(),
    "linearizable-counter": lambda initial: models.Counting(initial),
    "fifo-queue": lambda initial: models.FifoQueue(),
    "unordered-queue": lambda initial: models.UnorderedQueue(),
    "stack": lambda initial: models.Stack(),
    "mutex": lambda initial: models.Mutex(),
    "owned-mutex": lambda initial: models.OwnedMutex(),
    "reentrant-mutex": lambda initial: models.OwnedMutex(depth=2),
    "linearizable-ids": lambda initial: models.UniqueIds(),
    "linearizable-bank": lambda initial: models.Bank(),
    "log": lambda initial: models.Log(),
}
"""Models by name; each takes the initial value of its registers."""

LINEAR = "linearizable"
ANOMALIES = {LINEAR: "nonlinearizable", "sequential": "nonsequential", "zookeeper": "session-order"}
"""The anomaly of a history that does not have a consistency."""
CONSISTENCY = (LINEAR, *judging.SESSIONS)
"""What the order of operations must keep to: see :mod:`checkers.linearizability.sessions`."""

NAMES = (*LINEARIZABLE, *aggregates.RULES)
"""The models that :func:`check` knows."""


class ObjectVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict about a history of any data type."""

    valid: Valid
    model: str
    operations: int
    """How many operations of clients were judged."""
    anomalies: dict[str, int] = {}
    """By anomaly, how many were found."""
    why: tuple[str, ...] = ()
    """Sentences that explain the first anomalies."""
    figures: dict[str, Any] = {}
    """Counts and lists of Jepsen's checkers."""
    unknown_because: str | None = None
    notes: tuple[str, ...] = ()


SHOWN = 5
"""How many anomalies of a kind are explained."""


def check(
    history: Sequence[Op],
    model: str | Model,
    *,
    initial: Any = UNSET,
    keyed: bool = False,
    consistency: str = LINEAR,
    budget: Budget | None = None,
) -> ObjectVerdict:
    """Judge a history.

    ``model`` is one of :data:`NAMES`, or a :class:`~checkers.linearizability.models.Model`.
    ``initial`` is the value of registers before the first write, by default 0. With ``keyed``,
    values are pairs of a key and the value, and the history of each key is judged alone.
    ``consistency`` is one of :data:`CONSISTENCY`. Raises :class:`ValueError` for an unknown model
    or consistency, and :class:`~model.history.BadHistory` for an operation that the model does not
    have.
    """
    return judged(
        history, model, initial=initial, keyed=keyed, consistency=consistency, budget=budget
    ).verdict


class Judged(NamedTuple):
    """A verdict, and how it was reached; ``None`` where no order was looked for."""

    verdict: ObjectVerdict
    consistency: str
    model: Model | None = None
    judgement: Judgement | None = None


def judged(
    history: Sequence[Op],
    model: str | Model,
    *,
    initial: Any = UNSET,
    keyed: bool = False,
    consistency: str = LINEAR,
    budget: Budget | None = None,
) -> Judged:
    """Judge a history, as :func:`check` does, and return what was found besides the verdict."""
    if consistency not in CONSISTENCY:
        raise ValueError(f"the consistency must be one of {', '.join(CONSISTENCY)}")
    if isinstance(model, str) and model in aggregates.RULES:
        if consistency != LINEAR:
            raise ValueError(f"the model {model} has no consistency to choose")
        return Judged(_counted(model, history), "counted")
    name = model if isinstance(model, str) else type(model).__name__
    if isinstance(model, str):
        if model not in LINEARIZABLE:
            raise ValueError(f"there is no model {model}: it must be one of {', '.join(NAMES)}")
        model = LINEARIZABLE[model](_REGISTER_INITIAL if initial is UNSET else initial)
    asked = operations.of_events(history)
    whole = models.Keyed(model) if keyed else model
    if consistency == LINEAR:
        judgement = judging.judge(asked, whole, budget)
    else:
        whole = Together(whole)
        judgement = judging.judge_sessions(asked, whole, consistency, budget)
    verdict = _linearized(name, ANOMALIES[consistency], asked, judgement)
    return Judged(verdict, consistency, whole, judgement)


def _linearized(
    name: str, anomaly: str, asked: Sequence[operations.Operation], judgement: Judgement
) -> ObjectVerdict:
    illegal = judgement.illegal
    return ObjectVerdict(
        valid=judgement.valid,
        model=name,
        operations=len(asked),
        anomalies={anomaly: len(illegal)} if illegal else {},
        why=tuple(line for part in illegal[:SHOWN] for line in explanation.sentences(part)),
        unknown_because=judgement.unknown_because,
    )


def _counted(name: str, history: Sequence[Op]) -> ObjectVerdict:
    try:
        found = aggregates.RULES[name](history)
    except models.MISFITS as error:
        if isinstance(error, BadHistory):
            raise
        raise BadHistory(f"a value does not fit the model {name}: {error}") from error
    return ObjectVerdict(
        valid=found.valid,
        model=name,
        operations=sum(event.type != "invoke" for event in history),
        anomalies={anomaly: len(each) for anomaly, each in found.anomalies.items()},
        why=tuple(
            f"{anomaly}: {line}"
            for anomaly, lines in found.anomalies.items()
            for line in lines[:SHOWN]
        ),
        figures=dict(found.figures),
        unknown_because=found.unknown_because,
    )
