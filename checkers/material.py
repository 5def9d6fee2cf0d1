"""How much each checker had to judge, because a checker without input has proved nothing.

A history without transactions cannot show a torn one. Its verdict says so by a count of 0, and the
report shows such a checker in grey. The counts say how much there was, not how well it was covered.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from checkers.counts import Counts
from checkers.kernels import history_kernels, key


class Input(NamedTuple):
    """The input of all checkers of a history."""

    counts: Counts
    crashes: int
    """Number of nodes that exited by themselves."""
    groups_with_members: int
    folded: int
    """Number of findings, with those that they stand for."""
    nodes: int
    """Number of nodes whose exits were recorded; 0 for a history that another program wrote."""
    snapshots: int
    """Number of snapshots of the brokers' state."""
    of_zookeeper: Mapping[str, int] = {}
    """How much each checker of ZooKeeper had to judge, by its name."""


class Material(NamedTuple):
    """What a checker judges: the unit, and how to count it."""

    unit: str
    """Name of the unit, in the plural."""
    count: Callable[[Input], int]


_READ = Material("records read", lambda given: given.counts.read)
_TRANSACTIONS = Material("transactions", lambda given: given.counts.transactions)


def _of_zookeeper(checker: str, unit: str) -> tuple[str, Material]:
    return checker, Material(unit, lambda given: given.of_zookeeper.get(checker, 0))


MATERIAL: dict[str, Material] = {
    **dict.fromkeys((*key.BASIC, *key.DERIVED), _READ),
    **dict.fromkeys((*history_kernels.KERNELS, *history_kernels.REWRITES), _TRANSACTIONS),
    "availability": Material(
        "records sent after the last fault was healed",
        lambda given: given.counts.sent_after_healing,
    ),
    "commits": Material("committed offsets fetched", lambda given: given.counts.fetches),
    "compacted": Material(
        "records read of compacted topics", lambda given: given.counts.read_of_compacted
    ),
    "crashes": Material("nodes watched", lambda given: given.nodes or given.crashes),
    "deliveries": Material(
        "assignments and commits", lambda given: given.counts.assignments + given.counts.commits
    ),
    "folding": Material("folded findings", lambda given: given.folded),
    "invariants": Material("snapshots", lambda given: given.snapshots),
    "loss": Material("acknowledged records", lambda given: given.counts.accountable),
    "misrouted": _READ,
    "offsets": Material(
        "offsets acknowledged or read", lambda given: given.counts.placed + given.counts.read
    ),
    "order": Material("acknowledged records with an offset", lambda given: given.counts.placed),
    "outputs": Material(
        "offsets committed in transactions", lambda given: given.counts.commits_in_transactions
    ),
    "owners": Material(
        "assignments and revocations",
        lambda given: given.counts.assignments + given.counts.revocations,
    ),
    "precommitted": Material(
        "records read in transactions", lambda given: given.counts.read_in_transactions
    ),
    "producers": Material(
        "transactions begun after the last fault was healed",
        lambda given: given.counts.attempts_after_healing,
    ),
    "progress": Material("groups with members", lambda given: given.groups_with_members),
    "unproven": Material(
        "transactions with unknown outcome", lambda given: given.counts.transactions_in_doubt
    ),
    "watermarks": Material("log ends requested", lambda given: given.counts.log_ends),
    **dict(
        (
            _of_zookeeper("zk-updates", "states of znodes shown"),
            _of_zookeeper("zk-real-time", "acknowledged writes with a transaction"),
            _of_zookeeper("zk-origins", "znodes read"),
            _of_zookeeper("zk-linearizable", "writes and rejections"),
            _of_zookeeper("zk-session-order", "operations"),
            _of_zookeeper("zk-session-reads", "znodes read"),
            _of_zookeeper("zk-sync", "znodes read after sync"),
            _of_zookeeper("zk-lost-ephemerals", "ephemeral znodes"),
            _of_zookeeper("zk-ended-sessions", "ephemeral znodes"),
            _of_zookeeper("zk-expiries", "sessions with an acknowledged write"),
            _of_zookeeper("zk-intruders", "clients with a wrong password"),
            _of_zookeeper("zk-sequences", "sequential znodes"),
            _of_zookeeper("zk-lists", "lists of children"),
            _of_zookeeper("zk-list-versions", "lists of children"),
            _of_zookeeper("zk-torn-multis", "acknowledged multis"),
            _of_zookeeper("zk-multi-conditions", "acknowledged multis"),
            _of_zookeeper("zk-exclusion", "holders of locks and offices"),
            _of_zookeeper("zk-fences", "writes of holders"),
            _of_zookeeper("zk-elements", "elements taken"),
            _of_zookeeper("zk-queue-losses", "elements appended"),
            _of_zookeeper("zk-barriers", "clients that passed a barrier"),
            _of_zookeeper("zk-watches", "watches"),
            _of_zookeeper("zk-counter-bounds", "additions and reads"),
        )
    ),
}
"""The material of each checker, by its name in ``verdict.json``.

Unless the table says otherwise, a kernel of partitions judges the records that were read, and a
kernel of a whole history judges its transactions.
"""


def judged(checker: str, given: Input) -> int | None:
    """Return how much a checker had to judge; ``None`` for a checker that this table does not
    name."""
    material = MATERIAL.get(checker)
    return None if material is None else material.count(given)
