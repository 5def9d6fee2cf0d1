"""How much each checker had to judge, because a checker without input has proved nothing.

A history without transactions cannot show a torn one. Its verdict says so by a count of 0, and the
report shows such a checker in grey. The counts say how much there was, not how well it was covered.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from checkers.kernels import history_kernels, key
from checkers.kernels.compact import AllSends
from checkers.kernels.history import Attempts
from checkers.kernels.key import Report
from checkers.kernels.rows import INFO, UNKNOWN, Bools
from checkers.kernels.steps import ASSIGNED, COMMIT, FETCH, HIGH, LOST, REVOKED, STABLE, START
from checkers.tables import Tables


@dataclass(frozen=True)
class Input:
    """The input of all checkers of a history."""

    tables: Tables
    reports: Mapping[str, Report]
    nodes: int
    """Number of nodes whose exits were recorded; 0 for a history that another program wrote."""
    snapshots: int
    """Number of snapshots of the brokers' state."""

    def steps(self, *kinds: int) -> int:
        """Count the events of groups and log ends that are of these kinds."""
        return int(np.isin(self.tables.steps.kind, kinds).sum())

    def after_healing(self, began: AllSends | Attempts) -> int:
        """Count those that began after the last fault was healed; 0 without faults, or if one was
        not healed."""
        healed_ns = self.tables.healed_ns
        return int((began.start_ns >= healed_ns).sum()) if healed_ns and self.tables.faults else 0

    def transactions(self, which: Bools | None = None) -> int:
        """Count the transactions that sent records: all, or those of these rows of the sends."""
        sends = self.tables.sends
        rows = sends.txn if which is None else sends.txn & which
        return len(np.unique(sends.operation[rows]))

    @cached_property
    def of_compacted(self) -> int:
        """Number of records that were read from compacted topics."""
        compacted = np.array(sorted(self.tables.compacted), dtype=np.int64)
        return int(np.isin(self.tables.poll_key, compacted).sum())

    @property
    def acknowledged(self) -> Bools:
        """Rows of sends whose records are known to be in the log."""
        rows: Bools = self.tables.sends.accountable
        return rows

    @property
    def placed(self) -> int:
        """Number of acknowledged records whose offset the broker returned."""
        return int((self.acknowledged & (self.tables.sends.offset != UNKNOWN)).sum())

    @property
    def read(self) -> int:
        """Number of deliveries of records."""
        return len(self.tables.polls)


class Material(NamedTuple):
    """What a checker judges: the unit, and how to count it."""

    unit: str
    """Name of the unit, in the plural."""
    count: Callable[[Input], int]


_READ = Material("records read", lambda given: given.read)
_TRANSACTIONS = Material("transactions", lambda given: given.transactions())

MATERIAL: dict[str, Material] = {
    **dict.fromkeys((*key.BASIC, *key.DERIVED), _READ),
    **dict.fromkeys((*history_kernels.KERNELS, *history_kernels.REWRITES), _TRANSACTIONS),
    "availability": Material(
        "records sent after the last fault was healed",
        lambda given: given.after_healing(given.tables.sends),
    ),
    "commits": Material("committed offsets fetched", lambda given: given.steps(FETCH)),
    "compacted": Material("records read of compacted topics", lambda given: given.of_compacted),
    "crashes": Material("nodes watched", lambda given: given.nodes or len(given.tables.crashes)),
    "deliveries": Material("assignments and commits", lambda given: given.steps(ASSIGNED, COMMIT)),
    "folding": Material(
        "folded findings",
        lambda given: sum(1 + f.folded for report in given.reports.values() for f in report.found),
    ),
    "invariants": Material("snapshots", lambda given: given.snapshots),
    "loss": Material("acknowledged records", lambda given: int(given.acknowledged.sum())),
    "misrouted": _READ,
    "offsets": Material("offsets acknowledged or read", lambda given: given.placed + given.read),
    "order": Material("acknowledged records with an offset", lambda given: given.placed),
    "outputs": Material(
        "offsets committed in transactions",
        lambda given: int(((given.tables.steps.kind == COMMIT) & given.tables.steps.txn).sum()),
    ),
    "owners": Material("assignments and revocations",
                       lambda given: given.steps(ASSIGNED, REVOKED, LOST)),
    "precommitted": Material(
        "records read in transactions", lambda given: int(given.tables.polls.txn.sum())
    ),
    "producers": Material(
        "transactions begun after the last fault was healed",
        lambda given: given.after_healing(given.tables.attempts),
    ),
    "progress": Material(
        "groups with members", lambda given: sum(bool(g.members) for g in given.tables.groups)
    ),
    "unproven": Material(
        "transactions with unknown outcome",
        lambda given: given.transactions(given.tables.sends.outcome == INFO),
    ),
    "watermarks": Material("log ends requested", lambda given: given.steps(START, HIGH, STABLE)),
}  # fmt: skip
"""The material of each checker, by its name in ``verdict.json``.

Unless the table says otherwise, a kernel of partitions judges the records that were read, and a
kernel of a whole history judges its transactions.
"""


def judged(checker: str, given: Input) -> int | None:
    """Return how much a checker had to judge; ``None`` for a checker that this table does not
    name."""
    material = MATERIAL.get(checker)
    return None if material is None else material.count(given)
