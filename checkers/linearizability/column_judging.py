"""Judges a columnar history by a model, as :mod:`~checkers.linearizability.judging` does.

Monitors of columns find the keys that are certainly linearizable. Only the operations of the others
become objects, and are judged one key after the other, so that verdicts and explanations are those
of a history of events.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from checkers import memory
from checkers.linearizability import (
    column_blocks,
    column_chains,
    column_lists,
    column_monitors,
    judging,
)
from checkers.linearizability.column_blocks import (
    CAS,
    NOTHING,
    READ,
    WRITE,
    Block,
    Family,
    Loaded,
)
from checkers.linearizability.columnar import Columns
from checkers.linearizability.judging import Budget, Judgement
from checkers.linearizability.models import (
    EMPTY,
    CasRegister,
    FifoQueue,
    Keyed,
    KeyValue,
    Log,
    Model,
    Register,
    Set,
)
from checkers.linearizability.monitors import I64
from checkers.threads import THREADS, mapped

_REGISTER = {"read": READ, "write": WRITE}
_FAMILIES: dict[type[Model], Family] = {
    Register: Family(_REGISTER),
    CasRegister: Family({**_REGISTER, "cas": CAS}),
    KeyValue: Family({"get": READ, "put": WRITE}),
    FifoQueue: Family(
        {**dict.fromkeys(FifoQueue.puts, WRITE), **dict.fromkeys(FifoQueue.takes, READ)},
        takes=True,
    ),
    Log: Family({"read": READ, "append": WRITE}, has_lists=True),
    Set: Family({"read": READ, "add": WRITE}, has_lists=True),
}


def judge(columns: Columns, model: Model, budget: Budget | None = None) -> Judgement:
    """Return whether a history is linearizable. The parts of the judgement are those of the keys
    that no monitor of columns decided.

    Values of a history with keys are pairs, of which the model must have parts: see
    :class:`~checkers.linearizability.models.Keyed`. Raises :class:`~model.history.BadHistory`.
    """
    left = _undecided(columns, model)
    if left is None:
        return judging.judge(columns.operations(), model, budget)
    if not left.any():
        return Judgement(True, ())
    return judging.judge(columns.operations(left), model, budget)


def _undecided(columns: Columns, model: Model) -> Any:
    """Return which rows belong to keys that are not decided; ``None``: there is no monitor."""
    of = model.of if isinstance(model, Keyed) else model
    has_parts = isinstance(model, Keyed | KeyValue)
    is_nested = isinstance(model, Keyed) and isinstance(of, Keyed | KeyValue)
    family = _FAMILIES.get(type(of))
    if family is None or is_nested or has_parts is not columns.has_keys:
        return None
    if isinstance(of, FifoQueue | Log | Set) and of.initial:
        return None
    memory.reuse()
    loaded = column_blocks.load(columns, family)
    if family.takes and loaded.texts is not None and EMPTY in loaded.texts:
        is_empty = (loaded.kind == READ) & (loaded.value == loaded.texts[EMPTY])
        loaded.kind[is_empty] = NOTHING
    monitor = _monitor(of, loaded)
    if monitor is None:
        return None
    is_left = np.zeros(len(columns), dtype=np.bool_)

    def decide(make: Callable[[], Block]) -> None:
        block = make()
        for key in monitor(block).tolist():
            mine = slice(int(block.starts[key]), int(block.starts[key + 1]))
            is_left[mine if block.rows is None else block.rows[mine]] = True

    for _ in mapped(decide, column_blocks.blocks(loaded), THREADS):
        pass
    return is_left


Monitor = Callable[[Block], I64]


def _monitor(model: Model, loaded: Loaded) -> Monitor | None:
    if isinstance(model, FifoQueue):
        return column_monitors.queue
    if isinstance(model, Log):
        return column_lists.log
    if isinstance(model, Set):
        return column_lists.set_of
    known, initial = _initial(model.initial, loaded.texts)
    if not known:
        return None
    if isinstance(model, CasRegister):
        return lambda block: column_chains.cas_register(block, initial)
    return lambda block: column_monitors.register(block, initial)


def _initial(initial: Any, texts: Mapping[str, int] | None) -> tuple[bool, int | None]:
    """Return whether values of the columns can be compared with an initial value, and its number;
    ``None`` if none of them is equal to it."""
    if initial is None or isinstance(initial, str):
        return True, None if initial is None or texts is None else texts.get(initial)
    return type(initial) is int, initial if texts is None else None
