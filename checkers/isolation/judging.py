"""Judges a history of transactions: examine its data, search cycles, compare with the options."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from checkers.isolation import (
    buckets,
    closed_predicate,
    conclusion,
    cycles,
    lattice,
    list_append,
    reading,
    rw_register,
    set_append,
)
from checkers.isolation.examined import Examined
from checkers.isolation.findings import Findings, Result
from checkers.isolation.options import Options
from checkers.isolation.reading import NotUnderstood
from model.op import Op

Model = Literal["list-append", "set-append", "rw-register", "closed-predicate"]


def judge(
    events: Sequence[Op], model: Model = "list-append", options: Options | None = None
) -> Result:
    """Judge the isolation of the transactions of a history.

    The value of an event is a list of micro-operations: ``["append", key, element]`` to a list,
    ``["add", key, element]`` to a set, ``["w", key, value]``, ``["r", key, result]``, and for
    closed predicates also ``["delete", key]`` and ``["rp", predicate, {key: value}]``. Completions
    may be without invocations; then only the order of each process is known. A history that cannot
    be understood is ``unknown``, and the result says why.

    Source: Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
    Observations", VLDB 2020.
    """
    options = options or Options()
    try:
        examined = _MODELS[model](events, options)
    except NotUnderstood as error:
        return conclusion.nothing(str(error))
    return _judged(examined, options)


def _judged(examined: Examined, options: Options) -> Result:
    txns, happened = examined.history.txns, examined.happened
    all_invoked = conclusion.all_invoked(txns, happened)
    names = conclusion.order_names(options, all_invoked=all_invoked)
    edges = [*examined.edges, *conclusion.orders(txns, happened, names)]
    searched = cycles.search(examined.history, edges, options.prohibited, options.budget)
    found = Findings()
    found.merge(examined.found)
    return conclusion.result(
        found,
        searched,
        options,
        transactions=len(txns.event),
        is_empty=not any(len(part.source) for part in edges),
        unknown=examined.unknown_because,
    )


def _list_append(events: Sequence[Op], options: Options) -> Examined:
    history = reading.lists(events)
    known = buckets.examined(history)
    edges, is_complete = list_append.dependencies(history, known)
    garbage = lattice.GARBAGE_READ in options.anomalies
    found = buckets.findings(history, known, garbage=garbage)
    unknown = () if is_complete else (buckets.TOO_MANY,)
    return Examined(history, edges, known.happened, found, unknown)


_MODELS: Mapping[str, Callable[[Sequence[Op], Options], Examined]] = {
    "list-append": _list_append,
    "set-append": set_append.examine,
    "rw-register": rw_register.examine,
    "closed-predicate": closed_predicate.examine,
}
