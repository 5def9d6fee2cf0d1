"""The tables of docs/anomalies.md.

python -m checkers.anomalies.page    # print them, to be pasted into the page
"""

import sys
from collections.abc import Iterable, Sequence

from checkers.anomalies import INVARIANT, OF_HISTORIES, OF_ZOOKEEPER
from checkers.anomalies.anomaly import Anomaly
from checkers.invariants.table import INVARIANTS


def of_histories() -> str:
    """Return the table of the anomalies that histories of brokers show."""
    return _of(OF_HISTORIES.values())


def of_zookeeper() -> str:
    """Return the table of the anomalies that histories of ZooKeeper show."""
    return _of(OF_ZOOKEEPER.values())


def _of(anomalies: Iterable[Anomaly]) -> str:
    rows = ((f"`{a.id}`", a.definition, a.legal_when, a.counted_by) for a in anomalies)
    return _table(("id", "meaning", "legal when", "counted by"), rows)


def of_state() -> str:
    """Return the table of the invariants of the brokers' state."""
    rows = ((f"`{INVARIANT}{i.id}`", i.rules, i.holds, i.suspended_under) for i in INVARIANTS)
    return _table(("id", "rule", "what holds", "not checked under"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |\n" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{of_histories()}\n{of_zookeeper()}\n{of_state()}")
