"""Which replica a consumer should read from: one of its own rack, if that has what it asks for.

Reading next door saves the way to the leader; a follower serves what it knows to be committed
(KIP-392).
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker_impl.wire.types import BrokerId, Offset


class Candidate(NamedTuple):
    """A replica that is alive, as its leader knows it."""

    broker: BrokerId
    rack: str | None
    log_start: Offset
    log_end: Offset
    is_in_sync: bool


def can_serve(candidate: Candidate, offset: Offset) -> bool:
    """Does the replica hold what lies at ``offset``, or will it next? Only who is in sync goes on
    to."""
    return candidate.is_in_sync and candidate.log_start <= offset <= candidate.log_end


def preferred(
    rack: str, leader: Candidate, followers: Iterable[Candidate], offset: Offset
) -> BrokerId | None:
    """Who is to be asked instead of the leader; None: the leader is as near, or alone has it.

    Of several in the reader's rack the one that holds most, of these the one with the highest id.
    """
    if not rack or leader.rack == rack:
        return None
    near = [each for each in followers if each.rack == rack and can_serve(each, offset)]
    if not near:
        return None
    return max(near, key=lambda each: (each.log_end, each.broker)).broker
