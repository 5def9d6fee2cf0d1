"""A consumer that checks its position: what a log has, for its reader, at every replica.

It asks for the ends of a log and for offsets by time, as readers of either isolation level, of the
leader and sometimes of another replica. It reads some records, from the leader or, in a rack, from
the replica that the leader prefers (KIP-392); of that it sometimes asks in a fetch session, too
(KIP-227). And it asks whether the log still has what it has read: where the leader epoch of the
last record ends (KIP-320).
"""

import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec
from aiokafka.errors import NoError, for_code

from workloads.client.asking import records
from workloads.client.asking.requests import (
    NEW_SESSION,
    UNKNOWN_EPOCH,
    EpochEndRequest,
    FetchSession,
    ListOffsetsRequest,
    Place,
    ReadRequest,
)

LATEST, EARLIEST, LARGEST = -1, -2, -3
"""Timestamps with a meaning: the end of the log, its start, its record with the largest time."""
BYTES: Final = (1, 400, 1 << 16)
"""How many bytes of a partition a read asks for; the first batch comes whole in any case."""
ELSEWHERE_P = 0.15
"""How often another broker than the leader is asked, which must refuse to answer."""
BEHIND_P = 0.15
"""How often a request names an earlier leader epoch than the one that is known."""
AHEAD_P = 0.1
"""How often a read begins beyond the position, where there may be no record yet."""
AGAIN_P = 0.2
"""How often a read begins before the position, at one of the last ``AGAIN_MAX`` records."""
AGAIN_MAX = 8
IN_SESSION_P = 0.5
"""How often a reader that is sent to another replica asks the same twice in a fetch session."""
OUT_OF_RANGE = 1

Send = Callable[[int, Any], Awaitable[Any]]
"""Sends a request to a broker; raises ``KafkaError``."""


class Known(msgspec.Struct):
    """What the process knows of a partition."""

    epoch: int = UNKNOWN_EPOCH
    """The leader epoch that the leader stated last."""
    position: int = -1
    """The offset after the last record that was read; -1 before the first."""
    read_epoch: int = UNKNOWN_EPOCH
    """The leader epoch of the last batch that was read."""
    times: list[int] = msgspec.field(default_factory=list)
    """The largest timestamps of some batches that were read, in milliseconds."""
    preferred: int | None = None
    """The replica that the leader prefers for this reader."""


class Positions:
    """The positions of one process, by partition; its methods ask one question each.

    They return the answer as text for the history; a broker's error is an answer, too.
    """

    def __init__(self, send: Send, rng: random.Random, rack: str) -> None:
        self._send = send
        self._rng = rng
        self._rack = rack
        self._known: dict[Place, Known] = {}

    def _of(self, place: Place) -> Known:
        return self._known.setdefault(place, Known())

    def _node(self, leader: int, brokers: list[int]) -> int:
        return self._rng.choice(brokers) if self._rng.random() < ELSEWHERE_P else leader

    def _epoch(self, known: Known) -> int:
        if self._rng.random() < BEHIND_P:
            return max(0, known.epoch - 1)
        return self._rng.choice((UNKNOWN_EPOCH, known.epoch))

    def _time(self, known: Known) -> int:
        newest = max(known.times, default=0)
        times = [*known.times, newest + self._rng.randint(-5_000, 5_000)]
        return max(0, self._rng.choice(times) + self._rng.choice((-1, 0, 0, 1)))

    async def list_offsets(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Ask for one offset of the log."""
        known, rng = self._of(place), self._rng
        timestamp = rng.choice((LATEST, LATEST, EARLIEST, LARGEST, None, None))
        if timestamp is None:
            timestamp = self._time(known)
        isolation = rng.randint(0, 1)
        node, epoch = self._node(leader, brokers), self._epoch(known)
        answer = await self._send(node, ListOffsetsRequest(place, timestamp, isolation, epoch))
        (_, ((_, code, found, offset, leader_epoch, *_),), *_) = answer.topics[0]
        asked = f"broker {node}, time {timestamp}, isolation {isolation}, epoch {epoch}"
        if code:
            return f"{asked}: {for_code(code).__name__}"
        if timestamp == LATEST:
            known.epoch = leader_epoch
        if timestamp == EARLIEST and known.position < offset:
            known.position = offset
        return f"{asked}: offset {offset}, time {found}, epoch {leader_epoch}"

    async def epoch_end(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Ask where the epoch of the last record that was read ends, or another epoch."""
        known, rng = self._of(place), self._rng
        last = max(known.read_epoch, 0)
        wanted = rng.choice((last, last, last, known.epoch, max(0, last - 1), last + 1))
        node, epoch = self._node(leader, brokers), self._epoch(known)
        answer = await self._send(node, EpochEndRequest(place, wanted, epoch))
        (_, ((code, _, found, end),)) = answer.topics[0]
        asked = f"broker {node}, end of epoch {wanted}, in epoch {epoch}"
        if code:
            return f"{asked}: {for_code(code).__name__}"
        is_own = wanted == known.read_epoch
        is_truncated = is_own and (found < wanted or -1 < end < known.position)
        told = f"{asked}: epoch {found} ends at {end}"
        if not is_truncated:
            return told
        position, known.position = known.position, max(0, end)
        return f"{told}: truncated below {position}"

    def _shift(self) -> int:
        """Return how far from the position the next read begins: mostly at it.

        A consumer that seeks, or continues from a commit, begins before it, often within a batch.
        """
        chance = self._rng.random()
        if chance < AHEAD_P:
            return self._rng.choice((1, 5))
        return -self._rng.randint(1, AGAIN_MAX) if chance < AHEAD_P + AGAIN_P else 0

    async def read(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Read some records from the position on.

        A preferred replica that fails or does not answer is given up: the leader is asked again.
        """
        known, rng = self._of(place), self._rng
        chosen, known.preferred = known.preferred, None
        node = leader if chosen is None else chosen
        if node == leader or rng.random() < ELSEWHERE_P:
            node = self._node(leader, brokers)
        rack = self._rack if rng.random() < 0.8 else ""
        shift = self._shift()
        offset = max(0, known.position + shift)
        read = partial(
            ReadRequest,
            place,
            offset,
            isolation=rng.randint(0, 1),
            epoch=self._epoch(known),
            bytes_max=rng.choice(BYTES),
            rack=rack,
        )
        answer = await self._send(node, read())
        (_, (row,)) = answer.topics[0]
        (_, code, high, _, _, _, preferred, data) = row
        asked = f"broker {node}, offset {offset}, rack {rack or '-'}"
        if for_code(code) is not NoError:
            if code == OUT_OF_RANGE and not shift:
                known.position = -1
            return f"{asked}: {for_code(code).__name__}"
        if preferred >= 0:
            known.preferred = preferred
            told = f"{asked}: read from {preferred}"
            if rng.random() < IN_SESSION_P:
                told = f"{told}, in a session {await self._in_session(node, read)}"
            return told
        if node == chosen:
            known.preferred = chosen
        for batch in records.batches(bytes(data or b"")):
            known.position = max(known.position, batch.next_offset)
            known.read_epoch = max(known.read_epoch, batch.leader_epoch)
            known.times = [*known.times[-7:], batch.max_timestamp]
        return f"{asked}: position {known.position}, high watermark {high}"

    async def _in_session(self, node: int, read: Callable[..., ReadRequest]) -> str:
        """Ask the same twice in a fetch session; return what the incremental response shows."""
        first = await self._send(node, read(session=NEW_SESSION))
        if first.error_code or not first.session_id:
            return "not at all"
        again = await self._send(node, read(session=FetchSession(first.session_id, 1)))
        if again.error_code or not again.topics:
            return f"nothing ({for_code(again.error_code).__name__})"
        (_, ((_, code, *_, preferred, _),)) = again.topics[0]
        return for_code(code).__name__ if code else f"from {preferred}"
