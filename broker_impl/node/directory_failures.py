"""What a broker does when one of several data directories fails (KIP-112).

The replicas in the directory go offline, and a notification has the controller ask this broker for
all of its replicas; the answers show which are offline. If no other directory works, the failure
ends the broker, as that of a single directory does.
"""

import asyncio
import logging
from collections.abc import Callable

from broker_impl.log.directory import LogDirectory
from broker_impl.log.manager import LogManager
from broker_impl.node import directory_notices
from broker_impl.node.session import persist
from broker_impl.node.tasks import Tasks
from broker_impl.replica import lost_directories
from broker_impl.replica.replicas import Replicas
from broker_impl.zookeeper.client import ZooKeeper

LOG = logging.getLogger(__name__)


class DirectoryFailures:
    """Reacts to the failures of the directories of ``logs``; ``zk`` returns the current session."""

    def __init__(
        self,
        logs: LogManager,
        replicas: Replicas,
        zk: Callable[[], ZooKeeper],
        tasks: Tasks,
        stopping: asyncio.Event,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._logs = logs
        self._replicas = replicas
        self._zk = zk
        self._tasks = tasks
        self._stopping = stopping
        self._on_failure = on_failure
        logs.on_failure = self._failed

    def _failed(self, directory: LogDirectory) -> None:
        """React in the next turn of the loop: this one is in the middle of a change of a log."""
        asyncio.get_running_loop().call_soon(self._give_up, directory)

    def _give_up(self, directory: LogDirectory) -> None:
        if not self._logs.goes_on:
            return
        LOG.error("%s cannot be used any more: %s", directory.path, directory.failure)
        try:
            lost_directories.lose(self._replicas, directory)
        except Exception as error:  # noqa: BLE001 - the edge of a callback
            self._on_failure(error)
        if not self._stopping.is_set():
            self._tasks.start(self._announce())

    async def _announce(self) -> None:
        async def announce() -> None:
            await directory_notices.announce(self._zk(), self._replicas.broker_id)

        await persist(announce, until=self._stopping)
