"""Judges the history of any data type: linearizability, isolation, and Jepsen's small checkers.

This is the function for a history in memory, and what ``faultline check --model`` calls.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from checkers import aggregates, isolation, transaction_models
from checkers.distributed.runner import Runner
from checkers.isolation.columnar import ListFile
from checkers.linearizability import column_judging, explanation, judging, models, operations
from checkers.linearizability.columnar import Columns
from checkers.linearizability.judging import Budget, Judgement
from checkers.linearizability.models import Model
from checkers.linearizability.sessions import Together
from checkers.object_verdict import SHOWN, ObjectVerdict
from model.history import BadHistory
from model.op import Op

UNSET = object()
"""The initial value is that of the model."""

LINEARIZABLE: dict[str, Callable[[Any], Model]] = {
    "register": lambda initial: models.Register(models.frozen(initial)),
    "cas-register": lambda initial: models.CasRegister(models.frozen(initial)),
    "multi-register": lambda initial: models.MultiRegister(default=models.frozen(initial)),
    "kv": models.KeyValue,
    "linearizable-set": lambda initial: models.Set(),
    "linearizable-counter": models.Counting,
    "fifo-queue": lambda initial: models.FifoQueue(),
    "unordered-queue": lambda initial: models.UnorderedQueue(),
    "stack": lambda initial: models.Stack(),
    "mutex": lambda initial: models.Mutex(),
    "owned-mutex": lambda initial: models.OwnedMutex(),
    "reentrant-mutex": lambda initial: models.OwnedMutex(depth=2),
    "linearizable-ids": lambda initial: models.UniqueIds(),
    "linearizable-bank": lambda initial: models.Bank(models.frozen(initial)),
    "log": lambda initial: models.Log(),
}
"""Models by name; each takes its initial value: see :func:`model_of`."""

REGISTERS = ("register", "cas-register", "multi-register")
_INITIAL: dict[str, Any] = {
    **dict.fromkeys(REGISTERS, 0),
    "kv": "",
    "linearizable-counter": 0,
    "linearizable-bank": {},
}
"""The initial values of the models that have one to choose."""

LINEAR = "linearizable"
ANOMALIES = {LINEAR: "nonlinearizable", "sequential": "nonsequential", "zookeeper": "session-order"}
"""The anomaly of a history that does not have a consistency."""
CONSISTENCY = (LINEAR, *judging.SESSIONS)
"""What the order of operations must keep to: see :mod:`checkers.linearizability.sessions`."""

NAMES = (*LINEARIZABLE, *transaction_models.NAMES, *aggregates.RULES)
"""The models that :func:`check` knows."""


def check(
    history: Sequence[Op] | Columns | ListFile,
    model: str | Model,
    *,
    initial: Any = UNSET,
    keyed: bool = False,
    consistency: str | Sequence[str] = (),
    anomalies: Sequence[str] = (),
    assume: Sequence[str] = (),
    budget: Budget | None = None,
    runner: Runner | None = None,
) -> ObjectVerdict:
    """Judge a history.

    Args:
        history: its events, of which only the order counts, and no clock; or its operations in a
            Parquet file, whose values are pairs if it has keys; or transactions on lists in one.
        model: one of :data:`NAMES`, or a :class:`~checkers.linearizability.models.Model`.
        initial: the value of registers and of a counter before the first update, by default 0; the
            value of each key of a store, by default an empty text; the balances of a bank. For
            transactions on registers, a value besides null that was there before them.
        keyed: values are pairs of a key and the value, and each key is judged alone.
        consistency: one of :data:`CONSISTENCY`; for transactions, names of consistency models.
        anomalies: for transactions, further anomalies that are illegal.
        assume: for transactions on registers, some of
            :data:`~checkers.transaction_models.ASSUMPTIONS`.
        budget: for how long to search.
        runner: where transactions in a Parquet file are judged, by default in this process.

    Raises:
        ValueError: a name does not exist, or an option or its value does not belong to the model.
        BadHistory: the model does not have an operation, or it needs events.
    """
    return judged(
        history,
        model,
        initial=initial,
        keyed=keyed,
        consistency=consistency,
        anomalies=anomalies,
        assume=assume,
        budget=budget,
        runner=runner,
    ).verdict


class Judged(NamedTuple):
    """A verdict, and how it was reached."""

    verdict: ObjectVerdict
    consistency: str
    """What was asked for, in one text."""
    model: Model | None = None
    judgement: Judgement | None = None
    """The two where an order of operations was searched."""
    result: isolation.Result | None = None
    """What was found in transactions."""


def judged(
    history: Sequence[Op] | Columns | ListFile,
    model: str | Model,
    *,
    initial: Any = UNSET,
    keyed: bool = False,
    consistency: str | Sequence[str] = (),
    anomalies: Sequence[str] = (),
    assume: Sequence[str] = (),
    budget: Budget | None = None,
    runner: Runner | None = None,
) -> Judged:
    """Judge a history, as :func:`check` does, and return what was found besides the verdict."""
    asked = (consistency,) if isinstance(consistency, str) else tuple(consistency)
    if isinstance(model, str) and model in transaction_models.NAMES:
        if not isinstance(history, ListFile):
            history = _events(history, model)
        if keyed:
            raise ValueError(f"the model {model} has its keys in its micro-operations")
        transactions = transaction_models.Asked(
            model,
            asked,
            tuple(anomalies),
            tuple(assume),
            None if budget is None else budget.steps,
            None if initial is UNSET else initial,
        )
        if initial is not UNSET and model not in transaction_models.REGISTERS:
            raise _has_no_initial(model)
        verdict, result = transaction_models.judge(history, transactions, runner)
        return Judged(verdict, transactions.said(), result=result)
    if anomalies or assume:
        raise ValueError("only models of transactions take anomalies and assumptions")
    if isinstance(model, str) and model in aggregates.RULES:
        if asked:
            raise ValueError(f"the model {model} has no consistency to choose")
        if initial is not UNSET:
            raise _has_no_initial(model)
        return Judged(_counted(model, _events(history, model)), "counted")
    name = model if isinstance(model, str) else type(model).__name__
    if isinstance(model, str):
        model = model_of(model, initial)
    elif initial is not UNSET:
        raise _has_no_initial(name)
    order = ", ".join(asked) or LINEAR
    if order not in CONSISTENCY:
        raise ValueError(f"the consistency must be one of {', '.join(CONSISTENCY)}")
    if isinstance(history, Columns):
        keyed = keyed or (history.has_keys and not isinstance(model, models.KeyValue))
    if isinstance(history, ListFile):
        history = _events(history, name)
    whole = models.Keyed(model) if keyed else model
    has_owners = order != LINEAR or whole.inner.has_owners
    if has_owners and isinstance(history, Columns) and not history.has_processes:
        needs = f"the consistency {order}" if order != LINEAR else f"the model {name}"
        raise BadHistory(f"{history.path} has no column process, which {needs} needs")
    if isinstance(history, Columns) and order == LINEAR:
        judgement = column_judging.judge(history, whole, budget)
        return Judged(_verdict(name, order, len(history), judgement), order, whole, judgement)
    operated = (
        history.operations() if isinstance(history, Columns) else operations.of_events(history)
    )
    if order == LINEAR:
        judgement = judging.judge(operated, whole, budget)
    else:
        whole = Together(whole)
        judgement = judging.judge_sessions(operated, whole, order, budget)
    return Judged(_verdict(name, order, len(operated), judgement), order, whole, judgement)


def model_of(name: str, initial: Any = UNSET) -> Model:
    """Return the model of linearizability with a name. Raises ``ValueError`` if there is none, or
    if its initial value cannot be the one that is given."""
    if name not in LINEARIZABLE:
        raise ValueError(f"there is no model {name}: it must be one of {', '.join(NAMES)}")
    if initial is UNSET:
        return LINEARIZABLE[name](_INITIAL.get(name))
    if name not in _INITIAL:
        raise _has_no_initial(name)
    if name == "linearizable-counter" and type(initial) is not int:
        raise ValueError(f"the initial value of {name} is a whole number")
    if name == "kv" and type(initial) not in (int, str):
        raise ValueError(f"the initial value of {name} is one text or number, which each key holds")
    if name == "linearizable-bank" and not (
        isinstance(initial, Mapping) and all(type(each) is int for each in initial.values())
    ):
        raise ValueError(f"the initial value of {name} is a map of accounts to whole numbers")
    return LINEARIZABLE[name](initial)


def _has_no_initial(name: str) -> ValueError:
    return ValueError(f"the model {name} has no initial value to choose")


def _events(history: Sequence[Op] | Columns | ListFile, model: str) -> Sequence[Op]:
    if isinstance(history, ListFile):
        raise BadHistory(f"{history.path}: these are transactions on lists, not of {model}")
    if isinstance(history, Columns):
        raise BadHistory(f"{history.path}: the model {model} needs events, not operations")
    return history


def _verdict(name: str, order: str, count: int, judgement: Judgement) -> ObjectVerdict:
    illegal = judgement.illegal
    return ObjectVerdict(
        valid=judgement.valid,
        model=name,
        operations=count,
        anomalies={ANOMALIES[order]: len(illegal)} if illegal else {},
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
