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
from checkers.isolation.edges import Edges, joined, process_order, realtime_order
from checkers.isolation.examined import Examined
from checkers.isolation.findings import Findings, Result
from checkers.isolation.options import Options
from checkers.isolation.reading import NotUnderstood
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
    may be without invocations; then there is no realtime order. A history that cannot be understood
    is ``unknown``, and the result says why.

    Source: Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
    Observations", VLDB 2020.
    """
    options = options or Options()
    try:
        examined = _MODELS[model](events, options)
    except NotUnderstood as error:
        return _unknown((str(error),))
    edges = joined((examined.edges, *_orders(examined, options)))
    searched = cycles.search(examined.history, edges, options.prohibited, options.budget)
    found = Findings()
    found.merge(examined.found)
    found.merge(searched.found)
    return _result(examined, edges, searched, found, options)


def _orders(examined: Examined, options: Options) -> Sequence[Edges]:
    txns = examined.history.txns
    tables: Mapping[str, Callable[[], Edges]] = {
        "process": lambda: process_order(txns),
        "realtime": lambda: realtime_order(txns, examined.happened),
    }
    return [tables[name]() for name in sorted(options.orders)]


def _result(
    examined: Examined, edges: Edges, searched: cycles.Cycles, found: Findings, options: Options
) -> Result:
    prohibited = options.prohibited
    bad = {name for name in found.counts if name in prohibited and name not in searched.hidden}
    ruled_out = lattice.boundary(found.counts)
    unknown = list(examined.unknown_because)
    if not len(edges.source):
        unknown.append(_EMPTY)
    if unfinished := sorted(searched.unfinished & prohibited):
        unknown.append(f"the search for {', '.join(unfinished)} ended at its budget")
    types = lattice.in_order(bad)
    return Result(
        valid=False if bad else "unknown" if unknown else True,
        anomaly_types=types if len(edges.source) else (*types, lattice.EMPTY_GRAPH),
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
    history = reading.lists(events)
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
