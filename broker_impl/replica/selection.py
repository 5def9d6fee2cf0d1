"""The choice of the replica that a consumer reads from: preferably one in the consumer's own rack.

Reading within the rack avoids traffic to a remote leader. A follower serves the records that it
knows to be committed (KIP-392).
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker_impl.wire.types import BrokerId, Offset


class Candidate(NamedTuple):
    """A live replica, as its leader knows it."""

    broker: BrokerId
    rack: str | None
    log_start: Offset
    log_end: Offset
    is_in_sync: bool


def can_serve(candidate: Candidate, offset: Offset) -> bool:
    """Return whether the replica holds the record at ``offset``, or will hold it next.

    Only an in-sync replica can be expected to receive the next record.
    """
    return candidate.is_in_sync and candidate.log_start <= offset <= candidate.log_end


def preferred(
    rack: str, leader: Candidate, followers: Iterable[Candidate], offset: Offset
) -> BrokerId | None:
    """The replica to fetch from instead of the leader; None to stay with the leader.

    The consumer stays with the leader if the leader is in its rack, or if no follower in its rack
    can serve ``offset``. Of several followers in the rack, the one with the highest log end is
    chosen, then the one with the highest broker id.
    """
    if not rack or leader.rack == rack:
        return None
    near = [each for each in followers if each.rack == rack and can_serve(each, offset)]
    if not near:
        return None
    return max(near, key=lambda each: (each.log_end, each.broker)).broker
