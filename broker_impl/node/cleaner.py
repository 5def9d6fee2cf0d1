"""The log cleaner: compacts each compacted log that has enough new records, in a loop.

It stays below offsets that may still be truncated or aborted (``log.compaction.limit``), on leaders
and followers alike, and lets other tasks run after each chunk. A log that moves to another data
directory is not compacted until it is there (KIP-113).
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from broker_impl import failpoints
from broker_impl.config import BrokerConfig
from broker_impl.errors import BrokerError, DirectoryFailed, StorageError, WireError
from broker_impl.log import cleaner, compaction
from broker_impl.log.manager import LogManager
from broker_impl.log.partition_log import PartitionLog
from broker_impl.replica.replicas import Replicas
from broker_impl.wire.types import Offset, TopicPartition

LOG = logging.getLogger(__name__)

_KEY_BYTES: Final = 24  # Kafka's size of a map entry per key: a hash and an offset


class Cleaner:
    """The log cleaner of one broker; ``config`` returns the configuration that applies now."""

    def __init__(
        self,
        logs: LogManager,
        replicas: Replicas,
        config: Callable[[], BrokerConfig],
        wall_ms: Callable[[], int],
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._config = config
        self._wall_ms = wall_ms
        self._damaged: dict[TopicPartition, PartitionLog] = {}

    async def run(self) -> None:
        """Compact due logs in a loop; raises StorageError if the last data directory fails."""
        while True:
            await asyncio.sleep(self._config().log_cleaner_backoff_ms / 1000)
            for tp in self.due():
                try:
                    await self._clean(tp)
                except DirectoryFailed:
                    if not self._logs.goes_on:
                        raise
                except (StorageError, WireError) as error:
                    self._leave_out(tp, error)

    def due(self) -> list[TopicPartition]:
        """The logs to compact, the dirtiest first."""
        now_ms = self._wall_ms()
        found = []
        for tp, log in self._logs.logs.items():
            if log.config.is_compacted and log.future is None and self._damaged.get(tp) is not log:
                try:
                    dirtiness = cleaner.dirtiness(log, self._limit(tp), now_ms)
                except DirectoryFailed:
                    if not self._logs.goes_on:
                        raise
                    continue
                except (StorageError, WireError) as error:
                    self._leave_out(tp, error)
                    continue
                if dirtiness > 0:
                    found.append((-dirtiness, tp))
        return [tp for _, tp in sorted(found)]

    def _leave_out(self, tp: TopicPartition, error: BrokerError) -> None:
        """Compact a log no more that cannot be read; the others are compacted (KAFKA-8725).

        A log that was taken offline, because its content is unknown, ends the broker.
        """
        log = self._logs.logs.get(tp)
        if log is not None and log.offline is not None:
            raise error
        LOG.warning("the log of %s cannot be compacted: %s", tp, error)
        if log is not None:
            self._damaged[tp] = log

    async def _clean(self, tp: TopicPartition) -> None:
        log = self._logs.logs.get(tp)
        if log is None or log.future is not None:
            return
        before = log.size_bytes
        keys_max = self._config().log_cleaner_dedupe_buffer_size // _KEY_BYTES
        running = cleaner.clean(log, self._limit(tp), self._wall_ms(), keys_max)
        try:
            for _ in running:
                await asyncio.sleep(0)
                await failpoints.point(failpoints.CLEANER)
                if self._logs.logs.get(tp) is not log or log.future is not None:
                    return
        finally:
            running.close()
        LOG.info("%s was compacted: %d of %d bytes are left", tp, log.size_bytes, before)
        self._logs.write_cleaned()

    def _limit(self, tp: TopicPartition) -> Offset:
        partition = self._replicas.partitions.get(tp)
        if partition is None:
            return 0
        return compaction.limit(partition.high_watermark, partition.last_stable_offset)
