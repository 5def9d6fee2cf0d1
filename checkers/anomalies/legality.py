"""Rules that decide whether a contract permits a finding."""

from collections.abc import Callable

from checkers.expectations import PATIENCE_S, Contract
from checkers.kernels.found import Found

Rule = Callable[[Contract, Found], bool]


def never(contract: Contract, found: Found) -> bool:
    """Permit nothing."""
    return False


def always(contract: Contract, found: Found) -> bool:
    """Permit everything: a late record is not lost, an unchecked one is not known to be, and Kafka
    never isolates writes."""
    return True


def uncommitted(contract: Contract, found: Found) -> bool:
    """Permit what readers of uncommitted records may see."""
    return not contract.read_committed


def _is_unproven(contract: Contract, found: Found) -> bool:
    """Return whether a read of uncommitted records is the only sign that a transaction was
    committed."""
    return found.variant == "proven" and not contract.read_committed


def unproven(contract: Contract, found: Found) -> bool:
    """Permit findings about transactions that are known only from a read of uncommitted records."""
    return _is_unproven(contract, found)


def aborted(contract: Contract, found: Found) -> bool:
    """Permit reads of aborted transactions by readers of uncommitted records."""
    return found.variant == "txn" and not contract.read_committed


def lost(contract: Contract, found: Found) -> bool:
    """Permit losses of acknowledged records that were not on all in-sync replicas. A record that
    was read was on all of them."""
    is_lost = contract.loses and found.variant not in ("read", "deleted-read")
    if found.variant in ("deleted", "deleted-read"):
        return is_lost or found.also[0] >= contract.delete_retention_ms
    return is_lost or _is_unproven(contract, found)


def stale_key(contract: Contract, found: Found) -> bool:
    """Permit the loss of a key's last record."""
    return contract.loses or _is_unproven(contract, found)


def resurrected_key(contract: Contract, found: Found) -> bool:
    """Permit the loss of a tombstone, and its deletion after its time."""
    return contract.loses or found.also[0] >= contract.delete_retention_ms


def duplicated(contract: Contract, found: Found) -> bool:
    """Permit what a producer without idempotence sends again, unless the place that was
    acknowledged first must have stayed."""
    if found.variant == "contradicted":
        return not contract.idempotent and _moves_acknowledged(contract)
    return found.variant == "deleted" or not contract.idempotent


def _moves_acknowledged(contract: Contract) -> bool:
    """Return whether the next leader may give the place of an acknowledged record to another."""
    return contract.acks != "all" and contract.replication_factor > 1


def misacknowledged(contract: Contract, found: Found) -> bool:
    """Permit acknowledged offsets that the next leader gives to other records."""
    return found.variant == "ack" and _moves_acknowledged(contract)


def reordered_sends(contract: Contract, found: Found) -> bool:
    """Permit what retries of several requests in flight reorder: the records of one operation."""
    is_reordered = not contract.idempotent and contract.in_flight > 1
    return is_reordered or reordered(contract, found)


def reordered(contract: Contract, found: Found) -> bool:
    """Permit records out of order of which one may be lost."""
    return contract.acks == "0" or (contract.loses and found.variant == "ack")


def rebalanced(contract: Contract, found: Found) -> bool:
    """Permit what a rebalance between two polls explains."""
    return contract.subscribes


def from_former_leader(contract: Contract, found: Found) -> bool:
    """Permit the answer of a replaced leader that may not have heard of its successor yet."""
    return found.variant == "stale" and found.also[0] <= contract.hears_s


def lost_or_from_former_leader(contract: Contract, found: Found) -> bool:
    """Permit an end below a record that may be lost, or that a former leader does not have. A
    record that was read is on all in-sync replicas."""
    is_lost = contract.loses and found.variant != "read"
    return is_lost or from_former_leader(contract, found)


def committed_alone(contract: Contract, found: Found) -> bool:
    """Permit what automatic commits explain."""
    return found.variant == "alone"


def begun_at_end(contract: Contract, found: Found) -> bool:
    """Permit a member without a committed offset to begin at the end of the log."""
    return found.variant == "start" and contract.begins_at_end


def transaction_timeout(contract: Contract, found: Found) -> bool:
    """Permit a standstill for as long as a transaction that nothing ends may cause it."""
    return found.also[0] <= PATIENCE_S + contract.transaction_timeout_s


def disturbed(contract: Contract, found: Found) -> bool:
    """Permit a stale read after ``sync`` where a fault may have replaced ZooKeeper's leader."""
    return found.variant == "disturbed"


def member_timeout(contract: Contract, found: Found) -> bool:
    """Permit a standstill for as long as a silent member may cause it."""
    return found.also[0] <= PATIENCE_S + contract.member_timeout_s
