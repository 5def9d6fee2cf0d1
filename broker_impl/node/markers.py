"""Transaction markers on their way to the leaders of partitions, until each of them is there.

One request at a time goes to each leader, with all the markers that have gathered for it meanwhile.
A marker is given up only when its coordinator has been followed by another, which sends it anew; or
when its partition is gone. That a partition is gone is believed once it has been unknown for a
while: a view that lags would else leave a transaction open for ever.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from broker_impl import points
from broker_impl.api.cluster_view import ClusterView
from broker_impl.coordinator.transactions.events import SendMarkers
from broker_impl.errors import ErrorCode
from broker_impl.node.peers import PeerError, Peers
from broker_impl.node.tasks import Tasks
from broker_impl.wire.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from broker_impl.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse
from broker_impl.wire.types import BrokerId, Epoch, TopicPartition

LOG = logging.getLogger(__name__)

_VERSION = 1
_AGAIN_S = 0.1
_GONE_AFTER_S = 5.0
_NO_LEADER = -1
_GIVEN_UP = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class _Errand(msgspec.Struct, eq=False):
    """One marker for one partition."""

    sent: SendMarkers
    coordinator_epoch: Epoch
    partition: TopicPartition
    unknown_since: float | None = None


class Markers:
    """Sends the markers that a broker's coordinator has decided."""

    def __init__(
        self,
        peers: Peers,
        view: ClusterView,
        *,
        timeout_s: float,
        counts: Callable[[str, Epoch], bool],
        done: Callable[[SendMarkers, TopicPartition], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``counts``: is this broker still the coordinator of this id, in this epoch?
        ``done``: told of each marker that is there, or whose partition is not."""
        self._peers = peers
        self._view = view
        self._timeout_s = timeout_s
        self._counts = counts
        self._done = done
        self._tasks = Tasks(on_failure)
        self._queues: dict[BrokerId, list[_Errand]] = {}

    def send(self, sent: SendMarkers, coordinator_epoch: Epoch) -> None:
        """Begin to send them."""
        for partition in sent.partitions:
            self._enqueue(_Errand(sent, coordinator_epoch, partition))

    async def close(self) -> None:
        """Leave the rest to the next coordinator."""
        self._tasks.cancel()
        await self._tasks.ended()

    def _enqueue(self, errand: _Errand) -> None:
        known = self._view.partition(errand.partition)
        leader = _NO_LEADER if known is None else known.leader
        queue = self._queues.get(leader)
        if queue is None:
            queue = self._queues[leader] = []
            self._tasks.start(self._work(leader))
        queue.append(errand)

    async def _work(self, leader: BrokerId) -> None:
        """Send to one leader until there is nothing to send."""
        while queue := self._queues[leader]:
            self._queues[leader] = []
            errands = [
                errand
                for errand in queue
                if self._counts(errand.sent.transactional_id, errand.coordinator_epoch)
            ]
            again = errands
            if leader >= 0 and errands:
                await points.point(points.MARKERS)
                again = await self._ask(leader, errands)
            if again:
                await asyncio.sleep(_AGAIN_S)
                for errand in again:
                    if not self._is_gone(errand):
                        self._enqueue(errand)
                    else:
                        self._done(errand.sent, errand.partition)
        del self._queues[leader]

    def _is_gone(self, errand: _Errand) -> bool:
        if self._view.partition(errand.partition) is not None:
            errand.unknown_since = None
            return False
        now = asyncio.get_running_loop().time()
        if errand.unknown_since is None:
            errand.unknown_since = now
        return now - errand.unknown_since >= _GONE_AFTER_S

    async def _ask(self, leader: BrokerId, errands: list[_Errand]) -> list[_Errand]:
        """Those that have to be sent again."""
        markers: dict[SendMarkers, dict[TopicPartition, _Errand]] = {}
        for errand in errands:
            markers.setdefault(errand.sent, {})[errand.partition] = errand
        request = WriteTxnMarkersRequest(
            markers=[
                _marker(sent, next(iter(rows.values())).coordinator_epoch, list(rows))
                for sent, rows in markers.items()
            ]
        )
        try:
            answer: WriteTxnMarkersResponse = await self._peers.request(
                leader, request, _VERSION, timeout_s=self._timeout_s
            )
        except PeerError as error:
            LOG.info("%d markers were not sent: %s", len(errands), error)
            return errands
        again: list[_Errand] = []
        for rows, told in zip(markers.values(), answer.markers, strict=False):
            for topic in told.topics:
                for row in topic.partitions:
                    found = rows.pop(TopicPartition(topic.name, row.partition_index), None)
                    if found is not None and not self._settled(found, ErrorCode(row.error_code)):
                        again.append(found)
        return [*again, *(errand for rows in markers.values() for errand in rows.values())]

    def _settled(self, errand: _Errand, error: ErrorCode) -> bool:
        if error is ErrorCode.NONE:
            if self._counts(errand.sent.transactional_id, errand.coordinator_epoch):
                self._done(errand.sent, errand.partition)
            return True
        if error in _GIVEN_UP:
            LOG.warning("%s: the marker of %s: %s", errand.partition, errand.sent, error.name)
            return True
        return False


def _marker(
    sent: SendMarkers, coordinator_epoch: Epoch, partitions: list[TopicPartition]
) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return WritableTxnMarker(
        producer_id=sent.producer_id,
        producer_epoch=sent.producer_epoch,
        transaction_result=sent.is_commit,
        topics=[WritableTxnMarkerTopic(name, numbers) for name, numbers in topics.items()],
        coordinator_epoch=coordinator_epoch,
    )
