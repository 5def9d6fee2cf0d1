"""Requests that Kafka's command line tools write to ZooKeeper with ``--zookeeper``.

Before KIP-455 and KIP-460, tools requested reassignments and preferred elections by the znodes
``/admin/reassign_partitions`` and ``/admin/preferred_replica_election``. The controller of Kafka
2.8 still obeys them. The first znode holds the moves that are not over yet, from which the tool's
``--verify`` sees the progress; each znode is removed once nothing is left to do.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from broker_impl.controller.context import Context
from broker_impl.errors import ErrorCode
from broker_impl.node import zk_paths
from broker_impl.node.controller.events import AdminRequestsChanged, Event
from broker_impl.node.controller.leaders import PREFERRED, Leaders
from broker_impl.node.controller.reassignments import Reassignments
from broker_impl.node.controller.znodes import ControllerZnodes, Watch
from broker_impl.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from broker_impl.wire.types import TopicPartition

LOG = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)


class AdminRequests:
    """The requests of tools during one term."""

    def __init__(
        self,
        context: Context,
        znodes: ControllerZnodes,
        leaders: Leaders,
        reassignments: Reassignments,
        *,
        watch: Callable[[Event], Watch],
    ) -> None:
        self._context = context
        self._znodes = znodes
        self._leaders = leaders
        self._reassignments = reassignments
        self._watch = watch
        self._moves: list[zk_paths.WantedReplicas] = []
        """What ``/admin/reassign_partitions`` contains."""

    async def read(self) -> None:
        """Carry out the requests that are there."""
        there = await self._znodes.admin_requests(self._watch(AdminRequestsChanged()))
        if zk_paths.PREFERRED_ELECTION in there:
            await self._elect()
        if zk_paths.REASSIGN_PARTITIONS in there and not self._moves:
            await self._reassign()

    async def go_on(self) -> None:
        """Remove the moves that are over from the request; remove a request without moves."""
        left = [row for row in self._moves if _partition(row) in self._context.moves]
        if left == self._moves:
            return
        self._moves = left
        znode = zk_paths.ReassignPartitionsZnode(partitions=left)
        await self._znodes.rewrite_admin_request(
            zk_paths.REASSIGN_PARTITIONS, zk_paths.encode(znode) if left else None
        )

    async def _elect(self) -> None:
        request = await self._request(
            zk_paths.PREFERRED_ELECTION, zk_paths.PreferredElectionZnode(partitions=[])
        )
        named = [TopicPartitions(row.topic, [row.partition]) for row in request.partitions]
        if named:
            await self._leaders.elect(ElectLeadersRequest(PREFERRED, named))
        await self._znodes.rewrite_admin_request(zk_paths.PREFERRED_ELECTION, None)

    async def _reassign(self) -> None:
        request = await self._request(
            zk_paths.REASSIGN_PARTITIONS, zk_paths.ReassignPartitionsZnode(partitions=[])
        )
        for row in request.partitions:
            tp = _partition(row)
            if self._reassignments.is_moving(tp, row.replicas):
                continue  # begun by a former controller
            error = await self._reassignments.begin(tp, row.replicas)
            if error.code is not ErrorCode.NONE:
                LOG.warning("%s is not reassigned: %s", tp, error.message)
        self._moves = request.partitions
        await self._reassignments.go_on()
        if not self._moves:
            await self._znodes.rewrite_admin_request(zk_paths.REASSIGN_PARTITIONS, None)

    async def _request(self, path: str, empty: T) -> T:
        """Read a request; one that is gone or invalid is ``empty``."""
        data = await self._znodes.admin_request(path)
        try:
            return empty if data is None else zk_paths.decode(path, data, type(empty))
        except zk_paths.BadZnode as error:
            LOG.error("a request of a tool is removed, since it cannot be read: %s", error)
            return empty


def _partition(row: zk_paths.WantedReplicas) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)
