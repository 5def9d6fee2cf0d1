"""From dependencies and findings to the result: which orders count, and what is illegal."""

from collections.abc import Callable, Mapping

from checkers.isolation import lattice
from checkers.isolation.cycles import Cycles
from checkers.isolation.edges import Part, Parts, process_order, realtime_order
from checkers.isolation.findings import Findings, Result
from checkers.isolation.options import Options
from checkers.isolation.transactions import UNKNOWN, Transactions
from checkers.kernels.rows import Bools

_EMPTY = "no transaction depends on another one, so the history shows nothing about cycles"


def order_names(options: Options, *, all_invoked: bool) -> frozenset[str]:
    """Return the orders between transactions that count.

    ``all_invoked`` is true if the invocation of each transaction that happened is known:
    realtime order contains that of processes only then.
    """
    names = options.orders
    return names if all_invoked else names | {"process"} if "realtime" in names else names


def orders(txns: Transactions, happened: Bools, names: frozenset[str]) -> list[Part]:
    """Return the edges of these orders."""
    tables: Mapping[str, Callable[[], Parts]] = {
        "process": lambda: process_order(txns),
        "realtime": lambda: realtime_order(txns, happened),
    }
    return [part for name in sorted(names) for part in tables[name]()]


def all_invoked(txns: Transactions, happened: Bools) -> bool:
    """Return whether the invocation of each transaction that happened is known."""
    return not (txns.invoked[happened] == UNKNOWN).any()


def result(
    found: Findings,
    searched: Cycles,
    options: Options,
    *,
    transactions: int,
    is_empty: bool,
    unknown: tuple[str, ...],
) -> Result:
    """Return the result.

    Args:
        found: the anomalies that need no cycle; the cycles are added to them.
        is_empty: whether there is no edge at all.
        unknown: why a part of the history could not be judged.
    """
    found.merge(searched.found)
    prohibited = options.prohibited
    bad = {name for name in found.counts if name in prohibited and name not in searched.hidden}
    ruled_out = lattice.boundary(found.counts)
    reasons = [*unknown]
    if is_empty:
        reasons.append(_EMPTY)
    if unfinished := sorted(searched.unfinished & prohibited):
        reasons.append(f"the search for {', '.join(unfinished)} ended at its budget")
    types = lattice.in_order(bad)
    return Result(
        valid=False if bad else "unknown" if reasons else True,
        anomaly_types=(*types, lattice.EMPTY_GRAPH) if is_empty else types,
        anomalies={name: tuple(found.shown[name]) for name in types},
        counts={name: found.counts[name] for name in types},
        allowed={
            name: found.counts[name] for name in lattice.in_order({*found.counts} - prohibited)
        },
        ruled_out=ruled_out.weakest,
        also_ruled_out=ruled_out.also,
        unknown_because=tuple(reasons),
        transactions=transactions,
    )


def nothing(reason: str) -> Result:
    """Return the result about a history that cannot be understood."""
    return Result("unknown", (), {}, {}, {}, (), (), (reason,), 0)
