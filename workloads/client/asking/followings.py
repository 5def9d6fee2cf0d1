"""A consumer that polls the ends of several logs in one fetch session (KIP-227).

It waits at the ends of all partitions of a topic that one broker leads, as a consumer without a lag
does, and receives what becomes readable meanwhile. Like clients that have sessions, and unlike
aiokafka, it names a partition again only after its position has changed. A partition with an error
is removed from the session, and may be added again by a later question.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from aiokafka.errors import for_code
from aiokafka.protocol.api import Request
from aiokafka.protocol.fetch import FetchRequest_v11

from workloads.client.asking import records
from workloads.client.asking.offsets import LATEST, Send
from workloads.client.asking.requests import (
    CONSUMER,
    NEW_SESSION,
    UNKNOWN_EPOCH,
    FetchSession,
    ListOffsetsRequest,
    Place,
)

WAIT_MS: Final = 50
"""How long a broker may wait for records before it answers."""
POLLS: Final = 8
"""How many incremental fetches a session has."""
PAUSES_S: Final = (0.0, 0.05, 0.1)
"""How long the consumer processes what it has received, before it polls again."""
PARTITIONS_MAX: Final = 6
BYTES: Final = 1 << 16
"""How many bytes of a partition a poll asks for."""

Led = Callable[[str, int], list[Place]]
"""Returns the partitions of a topic that a broker leads, as far as is known."""


class PollRequest(Request[FetchRequest_v11]):  # type: ignore[misc]
    """Fetches partitions from these offsets, and removes others from the session."""

    API_KEY = 1

    def __init__(
        self,
        offsets: Mapping[Place, int],
        removed: list[Place],
        session: FetchSession,
        isolation: int,
    ) -> None:
        self._offsets = offsets
        self._removed = removed
        self._session = session
        self._isolation = isolation

    def build(self, request_struct_class: type[FetchRequest_v11]) -> FetchRequest_v11:
        topics: dict[str, list[tuple[int, int, int, int, int]]] = {}
        for (topic, partition), offset in self._offsets.items():
            topics.setdefault(topic, []).append((partition, UNKNOWN_EPOCH, offset, -1, BYTES))
        removed: dict[str, list[int]] = {}
        for topic, partition in self._removed:
            removed.setdefault(topic, []).append(partition)
        return request_struct_class(
            CONSUMER,
            WAIT_MS,
            1,
            1 << 20,
            self._isolation,
            *self._session,
            list(topics.items()),
            list(removed.items()),
            "",
        )


class Followings:
    """The sessions of one process; each question is one of them.

    Args:
        send: sends a request to a broker.
        rng: decides how partitions are read.
        led: returns which other partitions the leader has.
    """

    def __init__(self, send: Send, rng: random.Random, led: Led) -> None:
        self._send = send
        self._rng = rng
        self._led = led

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Poll the partition and others of its topic for a while; return what was received."""
        isolation = self._rng.randint(0, 1)
        others = [other for other in self._led(place.topic, leader) if other != place]
        taken = [place, *others[: PARTITIONS_MAX - 1]]
        positions = {}
        for each in taken:
            end = await self._end(each, leader, isolation)
            if end >= 0:
                positions[each] = end
        asked = f"broker {leader}, isolation {isolation}, {len(positions)} partitions"
        if not positions:
            return f"{asked}: no ends"
        began = sum(positions.values())
        session, changed, removed = NEW_SESSION, dict(positions), list[Place]()
        for _ in range(POLLS + 1):
            request = PollRequest(changed, removed, session, isolation)
            answer = await self._send(leader, request)
            if answer.error_code:
                return f"{asked}: {for_code(answer.error_code).__name__}"
            if not session.id:
                session = FetchSession(answer.session_id, 0)
                if not answer.session_id:
                    return f"{asked}: no session"
            session = session._replace(epoch=session.epoch + 1)
            changed, removed = _received(answer, positions)
            await asyncio.sleep(self._rng.choice(PAUSES_S))
            if not positions:
                return f"{asked}: no partition is left"
        return f"{asked}: {sum(positions.values()) - began} offsets further"

    async def _end(self, place: Place, leader: int, isolation: int) -> int:
        request = ListOffsetsRequest(place, LATEST, isolation, UNKNOWN_EPOCH)
        answer = await self._send(leader, request)
        (_, ((_, code, _, offset, *_),), *_) = answer.topics[0]
        return -1 if code else int(offset)


def _received(answer: Any, positions: dict[Place, int]) -> tuple[dict[Place, int], list[Place]]:
    """Move on behind the received records.

    Returns the partitions with new positions, and those with errors, which have no position now.
    """
    changed, removed = {}, []
    for topic, rows in answer.topics:
        for partition, code, *_, data in rows:
            place = Place(topic, partition)
            if code:
                positions.pop(place, None)
                removed.append(place)
                continue
            for batch in records.batches(bytes(data or b"")):
                positions[place] = changed[place] = batch.next_offset
    return changed, removed
