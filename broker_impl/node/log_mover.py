"""Moves replicas between the data directories of a broker, one after the other (KIP-113).

A move copies the current log to the future log in pieces, and lets other tasks run after each. Once
both end at the same offset, the future log replaces the current one before anything else happens.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from broker_impl.api.quotas.rate import Rate
from broker_impl.config import BrokerConfig
from broker_impl.errors import ApiError, DirectoryFailed
from broker_impl.log import move_rules, moving
from broker_impl.log.manager import LogManager
from broker_impl.log.partition_log import PartitionLog
from broker_impl.replica import log_directories
from broker_impl.replica.replicas import Replicas
from broker_impl.wire.types import TopicPartition

LOG = logging.getLogger(__name__)

_PAUSE_S: Final = 0.1
"""How long the mover waits when the limit is used up, or nothing can be copied."""


class LogMover:
    """The moves of one broker; ``config`` returns the configuration that applies now."""

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
        self._begun = asyncio.Event()
        settings = config()
        self._copied = Rate(
            settings.alter_log_dirs_replication_quota_window_num,
            settings.alter_log_dirs_replication_quota_window_size_seconds * 1000,
        )
        logs.on_move = self._begun.set

    async def run(self) -> None:
        """Move replicas in a loop; raises StorageError if the last data directory fails."""
        while True:
            tp = self.next()
            try:
                if tp is None:
                    self._begun.clear()
                    await self._begun.wait()
                elif self.is_throttled() or not self.advance(tp):
                    await asyncio.sleep(_PAUSE_S)
                else:
                    await asyncio.sleep(0)
            except DirectoryFailed:
                if not self._logs.goes_on:
                    raise
                await asyncio.sleep(0)  # the move ends together with the directory

    def next(self) -> TopicPartition | None:
        """The partition whose move began first; None: no partition moves."""
        for tp, future in self._logs.futures.items():
            if self._damaged.get(tp) is not future:
                return tp
        return None

    def is_throttled(self) -> bool:
        """Return whether ``replica.alter.log.dirs.io.max.bytes.per.second`` is used up."""
        rate, _ = self._copied.measure(self._now_ms())
        return rate > self._config().replica_alter_log_dirs_io_max_bytes_per_second

    def advance(self, tp: TopicPartition) -> bool:
        """Copy the next batches of a log, and replace it if it is complete.

        Returns whether anything was done. A log with a damaged batch stays where it is.
        """
        current, future = self._logs.logs[tp], self._logs.futures[tp]
        try:
            copied = moving.copy(
                current, future, self._config().replica_fetch_max_bytes, self._wall_ms()
            )
        except ApiError as error:
            LOG.warning("%s cannot move to %s: %s", tp, future.data_directory, error)
            self._damaged[tp] = future
            return True
        self._copied.record(copied, self._now_ms())
        if move_rules.may_replace(future.end_offset, current.end_offset):
            log_directories.replace(self._replicas, tp)
            return True
        return copied > 0

    @staticmethod
    def _now_ms() -> float:
        return asyncio.get_running_loop().time() * 1000
