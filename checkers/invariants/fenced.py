"""Requests of another epoch: a broker answers those of its own epoch alone.

``refused-by-epoch``: a request names the epoch in which its sender believes to act, and the broker
refuses it if it knows a later one, or, of leader epochs, none so late. The epochs are:

- the leader epoch of Fetch, ListOffsets and OffsetForLeaderEpoch, of clients and of followers
  (KIP-320; KAFKA-7395);
- the controller epoch and the broker epoch of LeaderAndIsr, StopReplica and UpdateMetadata
  (KAFKA-1188, KIP-380);
- the coordinator epoch and the producer epoch of the markers of transactions (KIP-98).

A broker's epochs only grow. It may therefore decide by each value between the one that it knows
when the request arrives and the one that it knows when it answers.
"""

from typing import Final, NamedTuple

NONE: Final = 0
STALE_CONTROLLER_EPOCH: Final = 11
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
STALE_BROKER_EPOCH: Final = 77


class Known(NamedTuple):
    """An epoch that a broker knows: when a request arrives, and when it is answered."""

    before: int
    after: int

    def __str__(self) -> str:
        return str(self.before) if self.before == self.after else f"{self.before} to {self.after}"


def of_leader(asked: int, known: Known, error: int) -> str | None:
    """Return why a request with this leader epoch must not be answered so, or ``None``.

    asked: its epoch; -1 for none. error: the error code of the answer for the partition.
    """
    if asked < 0:
        return None
    if error == NONE and not known.before <= asked <= known.after:
        return f"a request in leader epoch {asked} was served in epoch {known}"
    is_older = error == FENCED_LEADER_EPOCH and asked >= known.after
    is_newer = error == UNKNOWN_LEADER_EPOCH and asked <= known.before
    if is_older or is_newer:
        how = "older" if is_older else "newer"
        return f"a request in leader epoch {asked} was refused as {how}, in epoch {known}"
    return None


def of_order(what: str, asked: int, known: Known, error: int, refusal: int) -> str | None:
    """Return why an order with this epoch must not be answered so, or ``None``.

    what: the name of the epoch. asked: -1 for none. refusal: the error code of older epochs.
    """
    if asked < 0:
        return None
    if error == NONE and asked < known.before:
        return f"an order with the {what} epoch {asked} was obeyed, and {known} was known"
    if error == refusal and asked >= known.after:
        return f"an order with the {what} epoch {asked} was refused as older than {known}"
    return None


def of_marker(producer: int, coordinator: int, known: tuple[int, int], error: int) -> str | None:
    """Return why a marker must not have been written, or ``None``.

    producer, coordinator: its epochs. known: the latest epochs of its producer, and of the
    coordinators that have sent markers for it, in the log of the partition when it arrived.
    """
    if error != NONE or (producer >= known[0] and coordinator >= known[1]):
        return None
    return (
        f"a marker with producer epoch {producer} and coordinator epoch {coordinator} was written,"
        f" and {known[0]} and {known[1]} were known"
    )
