"""``placed-over-racks``: the replicas of a partition are in as many racks as possible (KIP-36).

A partition whose replicas are in one rack is lost with it. The controller places replicas itself if
a request to create topics or partitions does not, and knows the racks of the brokers that are alive
then. What an operator assigns is not judged.
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
