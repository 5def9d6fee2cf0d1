"""Sends transaction markers to the leaders of partitions until each marker is written.

Each leader gets one request at a time, with all markers that have collected for it. A marker is
given up only when another coordinator has taken over, which sends it again, or when its partition
was deleted. A partition counts as deleted once it has been unknown for a while: otherwise a view
that lags could leave a transaction open for ever. That time does not run while the view waits for
all topics, as after this broker has registered.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from broker_impl import failpoints
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


def is_gone(unknown_s: float) -> bool:
    """Return whether a partition that was unknown for this long counts as deleted.

    Its marker is not needed then: without this, a transaction in a deleted topic would never end.
    """
    return unknown_s >= _GONE_AFTER_S


class _Errand(msgspec.Struct, eq=False):
    """One marker for one partition."""

    sent: SendMarkers
    coordinator_epoch: Epoch
    partition: TopicPartition
    unknown_since: float | None = None


class Markers:
    """Sends the markers of transactions that this broker's coordinator has completed."""

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
        """``counts`` and ``done`` connect the markers to the coordinator.

        ``counts``: whether this broker is still the coordinator of this id in this epoch. ``done``
        is called for each marker that is written, or whose partition was deleted.
        """
        self._peers = peers
        self._view = view
        self._timeout_s = timeout_s
        self._counts = counts
        self._done = done
        self._tasks = Tasks(on_failure)
        self._queues: dict[BrokerId, list[_Errand]] = {}

    def send(self, sent: SendMarkers, coordinator_epoch: Epoch) -> None:
        """Start sending these markers."""
        for partition in sent.partitions:
            self._enqueue(_Errand(sent, coordinator_epoch, partition))

    async def close(self) -> None:
        """Stop sending; the next coordinator sends the rest."""
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
        """Send markers to one leader until its queue is empty."""
        while queue := self._queues[leader]:
            self._queues[leader] = []
            errands = [
                errand
                for errand in queue
                if self._counts(errand.sent.transactional_id, errand.coordinator_epoch)
            ]
            again = errands
            if leader >= 0 and errands:
                await failpoints.point(failpoints.MARKERS)
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
        if self._view.partition(errand.partition) is not None or not self._view.has_all_topics:
            errand.unknown_since = None
            return False
        now = asyncio.get_running_loop().time()
        if errand.unknown_since is None:
            errand.unknown_since = now
        return is_gone(now - errand.unknown_since)

    async def _ask(self, leader: BrokerId, errands: list[_Errand]) -> list[_Errand]:
        """Send markers to a leader; return those that must be sent again."""
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
            LOG.info("%d markers could not be sent: %s", len(errands), error)
            return errands
        await failpoints.point(failpoints.MARKED)
        again: list[_Errand] = []
        for rows, marker in zip(markers.values(), answer.markers, strict=False):
            for topic in marker.topics:
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
            LOG.warning(
                "%s: the marker of %s was not written: %s",
                errand.partition,
                errand.sent,
                error.name,
            )
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
