"""Where the replicas of a new topic go: leaders in turn, copies far from each other."""

import random
from collections.abc import Mapping, Sequence

from broker_impl.errors import ApiError, ErrorCode
from broker_impl.wire.types import BrokerId


def assign(
    brokers: Mapping[BrokerId, str | None],
    partitions: int,
    replication_factor: int,
    rng: random.Random,
) -> dict[int, tuple[BrokerId, ...]]:
    """The replicas of each partition, the preferred leader first.

    Leaders go round the ring of brokers from a random start; followers are taken from behind the
    leader, a step further in each round, so that one broker's load falls to many when it dies. A
    rack is used again only when every other holds as many copies. Without racks each broker stands
    alone.

    brokers: to its rack, if it has one. There must be as many as copies. ApiError: some have a
    rack, others not, so that nobody knows how far from each other copies would be.
    """
    racked = [broker for broker, rack in brokers.items() if rack is not None]
    if racked and len(racked) < len(brokers):
        # Kafka has no code of its own for this, and answers as to an unforeseen failure.
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "not all brokers have a rack, which is needed to place replicas by racks",
        )
    assert 0 < replication_factor <= len(brokers), "each copy has a broker of its own"
    ring = _ring(brokers)
    start, shift = rng.randrange(len(ring)), rng.randrange(len(ring))
    racks = {broker: _rack(brokers, broker) for broker in ring}
    return {
        partition: _replicas(
            ring, racks, replication_factor, start + partition, shift + partition // len(ring)
        )
        for partition in range(partitions)
    }


def _rack(brokers: Mapping[BrokerId, str | None], broker: BrokerId) -> str:
    rack = brokers[broker]
    return str(broker) if rack is None else rack


def _ring(brokers: Mapping[BrokerId, str | None]) -> list[BrokerId]:
    """The brokers in an order in which neighbours are of different racks, where that can be."""
    by_rack: dict[str, list[BrokerId]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(_rack(brokers, broker), []).append(broker)
    places = [
        (place, rack, broker)
        for rack, members in by_rack.items()
        for place, broker in enumerate(members)
    ]
    if len(by_rack) == len(brokers):
        return sorted(brokers)
    return [broker for _, _, broker in sorted(places)]


def _replicas(
    ring: Sequence[BrokerId], racks: Mapping[BrokerId, str], count: int, first: int, shift: int
) -> tuple[BrokerId, ...]:
    leader = ring[first % len(ring)]
    others = len(ring) - 1
    behind = [ring[(first + 1 + (shift + step) % others) % len(ring)] for step in range(others)]
    chosen = [leader]
    while len(chosen) < count:
        used = [racks[broker] for broker in chosen]
        chosen.append(
            min(
                (broker for broker in behind if broker not in chosen),
                key=lambda broker: used.count(racks[broker]),
            )
        )
    return tuple(chosen)
