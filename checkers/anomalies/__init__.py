"""Anomalies: one table of everything that checkers can report.

An entry has all that verdicts, reports and docs/anomalies.md say about an anomaly. The invariants
of the brokers' state (:mod:`checkers.invariants.table`) are anomalies, too, with a prefix.
"""

from collections.abc import Mapping

from checkers.anomalies import cluster, groups, order, records, transactions, zookeeper
from checkers.anomalies.anomaly import Anomaly as Anomaly
from checkers.expectations import Contract
from checkers.invariants.table import INVARIANTS
from checkers.kernels.found import Found

INVARIANT = "invariant:"
"""Prefix of the anomalies of white-box checks, which clients need not have noticed."""

OF_HISTORIES: Mapping[str, Anomaly] = {
    anomaly.id: anomaly
    for module in (records, order, transactions, groups, cluster)
    for anomaly in module.ANOMALIES
}
"""The anomalies that checkers find in histories, in the order of docs/anomalies.md."""

OF_STATE: Mapping[str, Anomaly] = {
    INVARIANT + invariant.id: Anomaly(
        id=INVARIANT + invariant.id,
        checker="invariants",
        summary=invariant.summary,
        definition=f"a snapshot in which this does not hold: {invariant.holds}",
        counted_by="offset",
        is_excused_by_unclean_elections=False,
    )
    for invariant in INVARIANTS
}
"""The violations of invariants. They are never legal: an invariant that the settings suspend is not
checked."""

OF_ZOOKEEPER: Mapping[str, Anomaly] = {anomaly.id: anomaly for anomaly in zookeeper.ANOMALIES}
"""The anomalies of histories of ZooKeeper's workloads, in the order of docs/anomalies.md."""

_ALL = {**OF_HISTORIES, **OF_STATE, **OF_ZOOKEEPER}


class UnknownAnomaly(LookupError):
    """A finding has an id that the table does not have; the message names it."""


def of(id_: str) -> Anomaly:
    """Return the anomaly of this id. Raises :class:`UnknownAnomaly`.

    A finding without an entry would belong to no checker, and a verdict would call the checker that
    found it valid.
    """
    try:
        return _ALL[id_]
    except KeyError:
        raise UnknownAnomaly(f"{id_!r} is not an anomaly of checkers.anomalies") from None


def is_legal(found: Found, contract: Contract) -> bool:
    """Return whether the contract permits a finding. Raises :class:`UnknownAnomaly`."""
    anomaly = of(found.anomaly)
    if contract.unclean_elections and anomaly.is_excused_by_unclean_elections:
        return True
    return _is_of_late_end(anomaly, found, contract) or anomaly.allows(contract, found)


def _is_of_late_end(anomaly: Anomaly, found: Found, contract: Contract) -> bool:
    is_of_transaction = found.variant in ("txn", "proven")
    excused = {None: False, "always": True, "of transactions": is_of_transaction}
    return contract.late_ends and excused[anomaly.excused_by_late_end]


def summary(id_: str) -> str:
    """Return what an anomaly means, in one sentence; empty for one of another version."""
    return _ALL[id_].summary if id_ in _ALL else ""
