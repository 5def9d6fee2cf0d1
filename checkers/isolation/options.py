"""Options of a judgement: what is prohibited, and what is known about the order of versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from checkers.isolation import lattice

BUDGET = 10_000_000
"""Number of edges that the search for witnesses follows by default; a few seconds of work."""
GRAPHS = ("process", "realtime")


@dataclass(frozen=True)
class Options:
    """What is prohibited, and what is known. Raises ``ValueError`` for names that do not exist."""

    consistency: tuple[str, ...] = ("strict-serializable",)
    """Consistency models by any of their names; each one prohibits anomalies."""
    anomalies: tuple[str, ...] = ()
    """Further anomalies to prohibit, and all that imply them."""
    additional_graphs: tuple[str, ...] = ()
    """``process`` or ``realtime``: orders that count although no prohibited anomaly needs them."""
    linearizable_keys: bool = False
    """For registers: each key alone is linearizable."""
    sequential_keys: bool = False
    """For registers: each key alone is sequentially consistent."""
    wfr_keys: bool = False
    """For registers: a transaction writes the next version of what it read."""
    transaction_order: Mapping[int, int] | None = None
    """For registers: the places of transactions in a known order of commits, by their events."""
    initial: Any = None
    """For registers: a value, besides ``None``, of keys that nothing has written yet."""
    budget: int = BUDGET
    """The number of edges that the search for witnesses may follow."""

    def __post_init__(self) -> None:
        """Check all names."""
        for model in self.consistency:
            lattice.canonical(model)
        for anomaly in self.anomalies:
            lattice.check_anomaly(anomaly)
        for graph in self.additional_graphs:
            if graph not in GRAPHS:
                raise ValueError(f"{graph!r} is not a graph; the graphs are {', '.join(GRAPHS)}")

    @property
    def prohibited(self) -> frozenset[str]:
        """All anomalies that the options prohibit."""
        by_models = map(lattice.prohibited_by, self.consistency)
        return lattice.special_cases(self.anomalies).union(*by_models)

    @property
    def orders(self) -> frozenset[str]:
        """The orders between transactions that count.

        Realtime order contains the order of each process, because a process is single-threaded; so
        that one counts only if no prohibited anomaly needs realtime order, or on request.
        """
        needed = (
            graph
            for graph in reversed(GRAPHS)
            if any(name.endswith(f"-{graph}") for name in self.prohibited)
        )
        return frozenset((*self.additional_graphs, *islice(needed, 1)))
