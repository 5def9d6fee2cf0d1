"""What one data model finds in a history before cycles are searched."""

from dataclasses import dataclass

from checkers.isolation.edges import Parts
from checkers.isolation.findings import Findings
from checkers.isolation.transactions import History
from checkers.kernels.rows import Bools


@dataclass(frozen=True)
class Examined:
    """Dependencies between transactions, and anomalies that need no cycle."""

    history: History
    edges: Parts
    happened: Bools
    """Whether each transaction certainly happened."""
    found: Findings
    unknown_because: tuple[str, ...] = ()
