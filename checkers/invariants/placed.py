"""Where the controller places the replicas of partitions.

- ``placed-over-racks``: the replicas of a partition are in as many racks as possible (KIP-36). A
  partition whose replicas are in one rack is lost with it. The controller places replicas itself if
  a request to create topics or partitions does not, and knows the racks of the brokers that are
  alive then. What an operator assigns is not judged.
- ``placed-as-asked``: a reassignment begins with the replicas as its target that the operator has
  named, in that order (KIP-455). The first one is the preferred leader.
"""

from collections.abc import Mapping, Sequence


def crowded(replicas: Sequence[int], racks: Mapping[int, str | None]) -> str | None:
    """Return why these replicas are in too few racks, or ``None``.

    ``racks``: the rack of each broker that was alive; without one of all of them nothing is judged.
    """
    known = [rack for rack in racks.values() if rack is not None]
    if len(known) < len(racks) or any(broker not in racks for broker in replicas):
        return None
    used = {racks[broker] for broker in replicas}
    possible = min(len(replicas), len(set(known)))
    if len(used) >= possible:
        return None
    return f"the replicas {list(replicas)} are in {len(used)} of {possible} possible racks"


def reordered(
    wanted: Sequence[int], replicas: Sequence[int], removing: Sequence[int]
) -> str | None:
    """Return how a reassignment differs from what was asked for, or ``None``.

    replicas: those of the partition, with the ones that the reassignment is ``removing``.
    """
    remaining = [broker for broker in replicas if broker not in removing]
    if remaining == list(wanted):
        return None
    return f"it is reassigned to {remaining}, where {list(wanted)} was asked for"
