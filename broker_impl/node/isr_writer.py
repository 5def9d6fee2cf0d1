"""Carries out a leader's ISR changes in ZooKeeper: conditional writes, and reads after a refusal.

The replica's state machine decides; this module only performs the requests. A write whose result is
unknown (the connection was lost) is reported as refused, and the leader then reads the znode (rule
R14). A notification znode informs the controller of changed ISRs; changes are collected for a
moment, so that many partitions share one notification (KAFKA-2406).
"""

import asyncio
import logging
from collections.abc import Callable

from broker_impl import failpoints
from broker_impl.node import zk_paths
from broker_impl.node.tasks import Tasks
from broker_impl.replica import isr
from broker_impl.replica.events import RefreshIsr, WriteIsr
from broker_impl.replica.replicas import Replicas
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import BadVersion, NoNode, SessionExpired, ZooKeeperError

LOG = logging.getLogger(__name__)

_NOTICE_DELAY_S = 0.2
_NOTICE_RETRY_S = 1.0


class IsrWriter:
    """Carries out the ISR effects of a broker's partitions."""

    def __init__(
        self,
        replicas: Replicas,
        zk: Callable[[], ZooKeeper],
        on_failure: Callable[[BaseException], None],
        on_end: Callable[[TopicPartition], None],
    ) -> None:
        """``on_end``: called when no write of a partition's ISR is under way any more."""
        self._on_end = on_end
        self._replicas = replicas
        self._zk = zk
        self._tasks = Tasks(on_failure)
        self._changed: dict[TopicPartition, None] = {}
        self._is_announcing = False

    def write(self, effect: WriteIsr) -> None:
        """Start a conditional write of a new ISR."""
        self._replicas.isr_writes[effect.tp] += 1
        self._tasks.start(self._write(effect)).add_done_callback(lambda _: self._ended(effect.tp))

    def refresh(self, effect: RefreshIsr) -> None:
        """Start a read of the state znode."""
        self._tasks.start(self._refresh(effect.tp))

    def announce(self, tp: TopicPartition) -> None:
        """Notify the controller of this partition's new ISR, after a short delay."""
        self._changed[tp] = None
        if not self._is_announcing:
            self._is_announcing = True
            self._tasks.start(self._announce())

    async def close(self) -> None:
        """Cancel all reads and writes in progress."""
        self._tasks.cancel()
        await self._tasks.ended()

    def _ended(self, tp: TopicPartition) -> None:
        writes = self._replicas.isr_writes
        writes[tp] -= 1
        if not writes[tp]:
            del writes[tp]
            self._on_end(tp)

    async def _write(self, effect: WriteIsr) -> None:
        path = zk_paths.state(effect.tp)
        znode = zk_paths.StateZnode(
            controller_epoch=effect.controller_epoch,
            leader=effect.leader,
            leader_epoch=effect.leader_epoch,
            isr=list(effect.isr),
        )
        await failpoints.point(failpoints.ISR_WRITE)
        version = isr.written_at(effect.zk_version)
        zk = self._zk()
        try:
            stat = await zk.set(path, zk_paths.encode(znode), version)
        except (BadVersion, NoNode) as error:
            LOG.info("%s: the ISR could not be written as %s: %s", effect.tp, effect.isr, error)
            self._replicas.isr_write_refused(effect.tp)
        except ZooKeeperError as error:
            LOG.info(
                "%s: it is not known whether the ISR was written as %s: %s",
                effect.tp,
                effect.isr,
                error,
            )
            self._replicas.isr_write_refused(effect.tp)
            await _until_answered(zk, path)
        else:
            LOG.info("%s: the ISR is %s", effect.tp, list(effect.isr))
            self._replicas.isr_written(effect.tp, stat.version)

    async def _refresh(self, tp: TopicPartition) -> None:
        path = zk_paths.state(tp)
        try:
            data, stat = await self._zk().get(path)
            znode = zk_paths.decode(path, data, zk_paths.StateZnode)
        except (ZooKeeperError, zk_paths.BadZnode) as error:
            LOG.info("%s: the ISR cannot be read now: %s", tp, error)
            return  # the leader asks again at the next tick
        self._replicas.isr_refreshed(
            tp,
            leader=znode.leader,
            leader_epoch=znode.leader_epoch,
            isr=tuple(znode.isr),
            zk_version=stat.version,
        )

    async def _announce(self) -> None:
        """Write notifications until no change is left; changes collect during each write."""
        delay_s = _NOTICE_DELAY_S
        while self._changed:
            await asyncio.sleep(delay_s)
            announced, self._changed = self._changed, {}
            names = [
                zk_paths.PartitionName(topic=tp.topic, partition=tp.partition) for tp in announced
            ]
            notice = zk_paths.encode(zk_paths.IsrChangeZnode(partitions=names))
            try:
                await self._zk().create(zk_paths.ISR_CHANGE_PREFIX, notice, sequential=True)
            except ZooKeeperError as error:
                LOG.info(
                    "the controller could not be notified of %d changed ISRs: %s",
                    len(announced),
                    error,
                )
                self._changed = announced | self._changed
                delay_s = _NOTICE_RETRY_S
            else:
                delay_s = _NOTICE_DELAY_S
        self._is_announcing = False


async def _until_answered(zk: ZooKeeper, path: str) -> None:
    """Wait until no earlier request of this session can take effect any more.

    A request whose connection was lost may still arrive, until the server has answered a request
    on the session's next connection, or the session is over.
    """
    while True:
        try:
            await zk.exists(path)
        except SessionExpired:
            return
        except ZooKeeperError:
            await asyncio.sleep(_NOTICE_RETRY_S)
        else:
            return
