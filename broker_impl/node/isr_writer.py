"""Carries a leader's ISR changes to ZooKeeper: conditional writes, and reads after a refusal.

The state object decides; here is only the asking. An outcome that is not known (a connection lost
under way) is told as a refusal, upon which the leader reads what is there (rule R14). The
controller is told of changed ISRs by a notification znode, gathered for a moment so that many
partitions make one notice (KAFKA-2406).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine

from broker_impl.node import zk_paths
from broker_impl.replica.events import RefreshIsr, WriteIsr
from broker_impl.replica.replicas import Replicas
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import BadVersion, NoNode, ZooKeeperError

LOG = logging.getLogger(__name__)

_NOTICE_DELAY_S = 0.2


class IsrWriter:
    """Runs the ISR effects of a broker's partitions."""

    def __init__(self, replicas: Replicas, zk: Callable[[], ZooKeeper]) -> None:
        self._replicas = replicas
        self._zk = zk
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._changed: dict[TopicPartition, None] = {}

    def write(self, effect: WriteIsr) -> None:
        """Try to write a new ISR."""
        self._start(self._write(effect))

    def refresh(self, effect: RefreshIsr) -> None:
        """Read what is there."""
        self._start(self._refresh(effect.tp))

    def announce(self, tp: TopicPartition) -> None:
        """Let the controller know, soon, that this partition's ISR is another."""
        if not self._changed:
            self._start(self._announce())
        self._changed[tp] = None

    def close(self) -> None:
        """End what is under way."""
        for task in tuple(self._tasks):
            task.cancel()

    def _start(self, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _write(self, effect: WriteIsr) -> None:
        path = zk_paths.state(effect.tp)
        znode = zk_paths.StateZnode(
            controller_epoch=effect.controller_epoch,
            leader=effect.leader,
            leader_epoch=effect.leader_epoch,
            isr=list(effect.isr),
        )
        try:
            stat = await self._zk().set(path, zk_paths.encode(znode), effect.zk_version)
        except (BadVersion, NoNode) as error:
            LOG.info("%s: the ISR could not be written as %s: %s", effect.tp, effect.isr, error)
            self._replicas.isr_write_refused(effect.tp)
        except ZooKeeperError as error:
            LOG.info("%s: not known whether the ISR is %s: %s", effect.tp, effect.isr, error)
            self._replicas.isr_write_refused(effect.tp)
        else:
            LOG.info("%s: ISR is %s", effect.tp, list(effect.isr))
            self._replicas.isr_written(effect.tp, stat.version)

    async def _refresh(self, tp: TopicPartition) -> None:
        path = zk_paths.state(tp)
        try:
            data, stat = await self._zk().get(path)
            znode = zk_paths.decode(path, data, zk_paths.StateZnode)
        except (ZooKeeperError, zk_paths.BadZnode) as error:
            LOG.info("%s: the ISR cannot be read now: %s", tp, error)
            return  # asked for again at the next tick
        self._replicas.isr_refreshed(
            tp,
            leader=znode.leader,
            leader_epoch=znode.leader_epoch,
            isr=tuple(znode.isr),
            zk_version=stat.version,
        )

    async def _announce(self) -> None:
        await asyncio.sleep(_NOTICE_DELAY_S)
        changed, self._changed = self._changed, {}
        names = [zk_paths.PartitionName(topic=tp.topic, partition=tp.partition) for tp in changed]
        notice = zk_paths.encode(zk_paths.IsrChangeZnode(partitions=names))
        try:
            await self._zk().create(zk_paths.ISR_CHANGE_PREFIX, notice, sequential=True)
        except ZooKeeperError as error:
            LOG.info("the controller was not told of %d changed ISRs: %s", len(names), error)
            for tp in changed:
                self.announce(tp)
