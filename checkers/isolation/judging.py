"""Judges a history of transactions: examine its data, search cycles, compare with the options."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from checkers.isolation import (
    closed_predicate,
    cycles,
    lattice,
    list_anomalies,
    list_append,
    reading,
    rw_register,
    set_append,
)
from checkers.isolation.edges import Part, Parts, process_order, realtime_order
from checkers.isolation.examined import Examined
from checkers.isolation.findings import Findings, Result
from checkers.isolation.options import Options
from checkers.isolation.reading import NotUnderstood
from checkers.isolation.transactions import UNKNOWN, ListHistory
from model.op import Op

Model = Literal["list-append", "set-append", "rw-register", "closed-predicate"]

_EMPTY = "no transaction depends on another one, so the history shows nothing about cycles"


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
        return _unknown((str(error),))
    return _judged(examined, options)


def judge_lists(history: ListHistory, options: Options | None = None) -> Result:
    """Judge transactions on lists that are in columns already, as :func:`judge` does."""
    options = options or Options()
    try:
        return _judged(_examined(history, options), options)
    except NotUnderstood as error:
        return _unknown((str(error),))


def _judged(examined: Examined, options: Options) -> Result:
    edges = [*examined.edges, *_orders(examined, options)]
    searched = cycles.search(examined.history, edges, options.prohibited, options.budget)
    found = Findings()
    found.merge(examined.found)
    found.merge(searched.found)
    return _result(examined, edges, searched, found, options)


def _orders(examined: Examined, options: Options) -> list[Part]:
    txns = examined.history.txns
    tables: Mapping[str, Callable[[], Parts]] = {
        "process": lambda: process_order(txns),
        "realtime": lambda: realtime_order(txns, examined.happened),
    }
    names = options.orders
    if "realtime" in names and (txns.invoked[examined.happened] == UNKNOWN).any():
        names |= {"process"}  # realtime order contains it only where invocations are known
    return [part for name in sorted(names) for part in tables[name]()]


def _result(
    examined: Examined, edges: Parts, searched: cycles.Cycles, found: Findings, options: Options
) -> Result:
    prohibited = options.prohibited
    is_empty = not any(len(part.source) for part in edges)
    bad = {name for name in found.counts if name in prohibited and name not in searched.hidden}
    ruled_out = lattice.boundary(found.counts)
    unknown = list(examined.unknown_because)
    if is_empty:
        unknown.append(_EMPTY)
    if unfinished := sorted(searched.unfinished & prohibited):
        unknown.append(f"the search for {', '.join(unfinished)} ended at its budget")
    types = lattice.in_order(bad)
    return Result(
        valid=False if bad else "unknown" if unknown else True,
        anomaly_types=(*types, lattice.EMPTY_GRAPH) if is_empty else types,
        anomalies={name: tuple(found.shown[name]) for name in types},
        counts={name: found.counts[name] for name in types},
        allowed={
            name: found.counts[name] for name in lattice.in_order({*found.counts} - prohibited)
        },
        ruled_out=ruled_out.weakest,
        also_ruled_out=ruled_out.also,
        unknown_because=tuple(unknown),
        transactions=len(examined.history.txns.event),
    )


def _unknown(reasons: tuple[str, ...]) -> Result:
    return Result("unknown", (), {}, {}, {}, (), (), reasons, 0)


def _list_append(events: Sequence[Op], options: Options) -> Examined:
    return _examined(reading.lists(events), options)


def _examined(history: ListHistory, options: Options) -> Examined:
    twice = list_append.appended_twice(history)
    if len(twice):
        key = history.names.key(int(history.ops.key[twice[0]]))
        element = history.names.element(int(history.ops.element[twice[0]]))
        raise NotUnderstood(f"{element} is appended to {key} more than once")
    known = list_append.orders(history)
    edges, is_complete = list_append.dependencies(history, known)
    found = list_anomalies.anomalies(history, known)
    if lattice.GARBAGE_READ in options.anomalies:
        found.merge(list_anomalies.garbage_reads(history, known))
    unknown = (
        ()
        if is_complete
        else ("too many transactions read last versions to compare them with all later appends",)
    )
    return Examined(history, edges, known.happened, found, unknown)


_MODELS: Mapping[str, Callable[[Sequence[Op], Options], Examined]] = {
    "list-append": _list_append,
    "set-append": set_append.examine,
    "rw-register": rw_register.examine,
    "closed-predicate": closed_predicate.examine,
}
