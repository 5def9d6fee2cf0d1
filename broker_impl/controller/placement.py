"""Replica placement: leaders round-robin over the brokers, replicas spread over the racks."""

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
    """Return the replicas of each partition, the preferred leader first.

    Leaders are assigned around the ring of brokers from a random start. Followers are taken from
    the brokers after the leader, shifted by one more in each round, so that the load of a failed
    broker is spread over many others. A rack is reused only when every other rack holds as many
    replicas of the partition. Without racks, each broker counts as a rack of its own.

    brokers: broker to its rack, or None. There must be at least as many brokers as replicas. Raises
    ApiError if only some brokers have a rack, because the distance between replicas is then
    unknown.
    """
    racked = [broker for broker, rack in brokers.items() if rack is not None]
    if racked and len(racked) < len(brokers):
        # Kafka has no error code for this case and answers UNKNOWN_SERVER_ERROR.
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "some brokers have no rack, so that replicas cannot be spread over racks",
        )
    assert 0 < replication_factor <= len(brokers), (
        "each replica of a partition needs its own broker"
    )
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
    """Return the brokers in an order in which neighbours are in different racks where possible."""
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
                key=lambda broker: crowding(racks[broker], used),
            )
        )
    return tuple(chosen)


def crowding(rack: str, used: Sequence[str]) -> int:
    """Return how many of a partition's replicas are in this rack; ``used``: the rack of each.

    The next replica goes to one of the racks with the fewest, so that the partition outlives as
    many racks as possible (KIP-36).
    """
    return used.count(rack)
