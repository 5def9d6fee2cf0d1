"""Gives aiokafka pauses of ``retry_backoff_ms`` between requests that it repeats.

aiokafka 0.14 repeats two requests as fast as brokers answer them:

- A producer that knows no leader for a batch updates its metadata, and updates it again if there is
  still no leader.
- A consumer in a rack that is directed to a replica (KIP-392) whose broker is missing from its
  metadata fetches from the leader again, which directs it to the same replica, and does not update
  its metadata.

In a simulation, whose links may have a latency below a millisecond, that is thousands of requests a
second, and most of the CPU time of such a run.
"""

import asyncio
from contextlib import suppress
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer import consumer
from aiokafka.consumer.fetcher import Fetcher

_update = AIOKafkaClient._metadata_update
_LAST = "_last_update"


class PausingFetcher(Fetcher):  # type: ignore[misc]
    """A fetcher that updates the metadata and pauses if it does not know a preferred replica."""

    def __init__(self, *args: Any, **arguments: Any) -> None:
        super().__init__(*args, **arguments)
        self._is_directed_in_vain = False

    def _update_preferred_read_replica(self, tp: Any, preferred_read_replica: int) -> None:
        is_known = self._client.cluster.broker_metadata(preferred_read_replica) is not None
        if preferred_read_replica >= 0 and not is_known:
            self._is_directed_in_vain = True
        super()._update_preferred_read_replica(tp, preferred_read_replica)

    async def _proc_fetch_request(self, assignment: Any, node_id: int, request: Any) -> bool:
        needs_wakeup: bool = await super()._proc_fetch_request(assignment, node_id, request)
        if self._is_directed_in_vain:
            self._is_directed_in_vain = False
            self._client.force_metadata_update()
            with suppress(asyncio.CancelledError):  # as where aiokafka's own fetch is cancelled
                await asyncio.sleep(self._retry_backoff)
        return needs_wakeup


def use_pauses() -> None:
    """Make the clients of this interpreter pause. May be called again."""
    module: Any = consumer
    module.Fetcher = PausingFetcher
    client: Any = AIOKafkaClient
    client._metadata_update = _update_after_pause


async def _update_after_pause(client: Any, metadata: Any, topics: Any) -> bool:
    """Update the metadata, but not that of the same topics again within ``retry_backoff_ms``."""
    if metadata is client.cluster:
        loop = asyncio.get_running_loop()
        updated, of_topics = getattr(client, _LAST, (0.0, None))
        pause_s = updated + client._retry_backoff - loop.time()
        if of_topics == topics and pause_s > 0:
            await asyncio.sleep(pause_s)
        setattr(client, _LAST, (loop.time(), set(topics)))
    result: bool = await _update(client, metadata, topics)
    return result
