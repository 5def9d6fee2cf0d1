"""The runtime of the transaction coordinator: its log, markers, timers and client requests.

The state machines decide (`broker_impl.coordinator.transactions`); this module carries out their
effects. An effect may complete at once; its outcome is then handled within the effect that caused
it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, assert_never

from broker_impl.api.cluster_view import ClusterView
from broker_impl.config import BrokerConfig
from broker_impl.coordinator import transaction_records
from broker_impl.coordinator.transactions.coordinator import (
    TransactionConfig,
    TransactionCoordinator,
)
from broker_impl.coordinator.transactions.events import (
    AddPartitions,
    Answered,
    Effect,
    End,
    Forgotten,
    InitAnswer,
    InitProducerId,
    Request,
    SendMarkers,
    Write,
)
from broker_impl.coordinator.transactions.metadata import Metadata, Unmarked
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.node.coordinators.internal_topics import InternalTopics
from broker_impl.node.coordinators.markers import Markers
from broker_impl.node.coordinators.producer_ids import ProducerIds
from broker_impl.node.peers import PeerError, Peers
from broker_impl.node.tasks import Tasks
from broker_impl.wire.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from broker_impl.wire.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from broker_impl.wire.types import Epoch, TopicPartition

LOG = logging.getLogger(__name__)

_VERIFY_VERSION = 4
_VERIFY_S = 5.0
"""The timeout of a request that asks another broker whether a transaction is open."""
_SETTLE_S = 0.1
"""How long a request waits for the previous transaction to complete.

Kafka rejects such a request at once, and clients then wait for longer than the completion takes.
"""


class Transactions:
    """The transactions of this broker, as its other components use them."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: InternalTopics,
        peers: Peers,
        view: ClusterView,
        producer_ids: ProducerIds,
        *,
        wall_ms: Callable[[], int],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._config = config
        self._topics = topics
        self._peers = peers
        self._view = view
        self._producer_ids = producer_ids
        self._wall_ms = wall_ms
        self._tasks = Tasks(on_failure)
        self._led: dict[int, Epoch] = {}
        self._tickets = count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._settling: dict[str, asyncio.Future[None]] = {}
        self._coordinator = TransactionCoordinator(
            TransactionConfig(
                timeout_ms_max=config.transaction_max_timeout_ms,
                expiration_ms=config.transactional_id_expiration_ms,
                partitions=config.transaction_state_log_num_partitions,
            )
        )
        self._markers = Markers(
            peers,
            view,
            timeout_s=config.request_timeout_ms / 1000,
            counts=lambda name, epoch: self._coordinator.epoch_of(name) == epoch,
            done=self._marked,
            on_failure=on_failure,
        )
        self._tasks.every(
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self._tick
        )

    async def close(self) -> None:
        """Cancel all work in progress; the futures of waiting requests are cancelled."""
        self._tasks.cancel()
        await self._markers.close()
        await self._tasks.ended()
        for future in self._asked.values():
            future.cancel()

    # Leadership.

    def led(self, tp: TopicPartition, leader_epoch: Epoch) -> None:
        """Start coordinating a partition of ``__transaction_state`` that this broker now leads."""
        self._led[tp.partition] = leader_epoch
        self._carry_out(self._coordinator.begin(tp.partition, leader_epoch))
        self._tasks.start(self._load(tp, leader_epoch))

    def lost(self, tp: TopicPartition) -> None:
        """Stop coordinating a partition that this broker no longer leads."""
        epoch = self._led.pop(tp.partition, None)
        if epoch is not None:
            self._carry_out(self._coordinator.end(tp.partition, epoch))

    async def _load(self, tp: TopicPartition, leader_epoch: Epoch) -> None:
        pairs = [
            (record.key, record.value)
            async for header, records in self._topics.read(tp, leader_epoch)
            if not header.is_control
            for record in records
            if record.key is not None
        ]
        self._carry_out(
            self._coordinator.loaded(tp.partition, leader_epoch, pairs, self._wall_ms())
        )

    # Effects.

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Answered(ticket, answer):
                    future = self._asked.pop(ticket)
                    if not future.done():
                        future.set_result(answer)
                case Write():
                    self._write(effect)
                case SendMarkers():
                    epoch = self._coordinator.epoch_of(effect.transactional_id)
                    assert epoch is not None, (
                        "only the coordinator of a transactional id decides its transactions"
                    )
                    self._markers.send(effect, epoch)
                case Forgotten():
                    LOG.info("transactional id %s has expired", effect.transactional_id)
                case _:
                    assert_never(effect)

    def _write(self, write: Write) -> None:
        name = write.transactional_id
        tp = self.partition_of(name)
        epoch = self._coordinator.epoch_of(name)
        assert epoch is not None, "only the coordinator of a transactional id writes its state"

        def done(error: ErrorCode, offset: int) -> None:
            self._carry_out(self._coordinator.written(name, write.number, error, self._wall_ms()))
            settling = self._settling.pop(name, None)
            if settling is not None and not settling.done():
                settling.set_result(None)

        self._topics.append(tp, epoch, [(write.key, write.value)], done)

    def _marked(self, sent: SendMarkers, partition: TopicPartition) -> None:
        self._carry_out(self._coordinator.marked(sent, partition, self._wall_ms()))

    def _tick(self) -> None:
        self._carry_out(self._coordinator.tick(self._wall_ms()))

    # Requests.

    async def _ask(self, transactional_id: str, request: Request) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[request.ticket] = future
        self._carry_out(self._coordinator.request(transactional_id, request, self._wall_ms()))
        return await future

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, producer_id: int, producer_epoch: Epoch
    ) -> InitAnswer:
        """Return the producer id and epoch for this transactional id."""
        fresh_id = None
        if self._coordinator.needs_id(transactional_id, producer_epoch):
            try:
                fresh_id = await self._producer_ids.next()
            except ApiError as refusal:
                return InitAnswer(error=refusal.code)
        request = InitProducerId(
            ticket=next(self._tickets),
            timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            fresh_id=fresh_id,
        )
        answer: InitAnswer = await self._ask(transactional_id, request)
        return answer

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: Epoch,
        partitions: tuple[TopicPartition, ...],
    ) -> ErrorCode:
        """Add these partitions to the producer's transaction."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SETTLE_S
        while True:
            request = AddPartitions(
                ticket=next(self._tickets),
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                partitions=partitions,
            )
            error: ErrorCode = await self._ask(transactional_id, request)
            left = deadline - loop.time()
            if error is not ErrorCode.CONCURRENT_TRANSACTIONS or left <= 0:
                return error
            await self._changed(transactional_id, left)

    async def _changed(self, transactional_id: str, within_s: float) -> None:
        """Wait until a record of this id is written, but no longer than ``within_s``."""
        settling = self._settling.get(transactional_id)
        if settling is None:
            settling = asyncio.get_running_loop().create_future()
            self._settling[transactional_id] = settling
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asyncio.shield(settling)

    async def end(
        self, transactional_id: str, producer_id: int, producer_epoch: Epoch, *, is_commit: bool
    ) -> ErrorCode:
        """Commit or abort; returns once the decision is stored."""
        request = End(
            ticket=next(self._tickets),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_commit=is_commit,
        )
        error: ErrorCode = await self._ask(transactional_id, request)
        return error

    # Verification (KIP-890).

    def verify_here(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: Epoch,
        partitions: tuple[TopicPartition, ...],
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Ask this broker's coordinator whether the open transaction has these partitions."""
        return self._coordinator.verify(transactional_id, producer_id, producer_epoch, partitions)

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: Epoch,
        partitions: tuple[TopicPartition, ...],
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Ask the coordinator, on any broker, whether the open transaction has these partitions."""
        known = self._view.partition(self.partition_of(transactional_id))
        if known is None or known.leader < 0:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if known.leader == self._config.broker_id:
            return self.verify_here(transactional_id, producer_id, producer_epoch, partitions)
        topics: dict[str, list[int]] = {}
        for tp in partitions:
            topics.setdefault(tp.topic, []).append(tp.partition)
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    verify_only=True,
                    topics=[AddPartitionsToTxnTopic(*topic) for topic in topics.items()],
                )
            ]
        )
        try:
            answer: AddPartitionsToTxnResponse = await self._peers.request(
                known.leader, request, _VERIFY_VERSION, timeout_s=_VERIFY_S
            )
        except PeerError as error:
            LOG.info("a transaction of %s could not be verified: %s", transactional_id, error)
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        refused = ErrorCode(answer.error_code) or ErrorCode.COORDINATOR_NOT_AVAILABLE
        errors = dict.fromkeys(partitions, refused)
        for row in answer.results_by_transaction:
            for topic in row.topic_results:
                for partition in topic.results_by_partition:
                    tp = TopicPartition(topic.name, partition.partition_index)
                    errors[tp] = ErrorCode(partition.partition_error_code)
        return errors

    # Queries.

    def partition_of(self, transactional_id: str) -> TopicPartition:
        """The partition whose leader coordinates this transactional id."""
        number = self._coordinator.partition_of(transactional_id)
        return TopicPartition(transaction_records.TOPIC, number)

    def describe(self, transactional_id: str) -> Metadata | ErrorCode:
        """The stored state of a transactional id, or the error why this broker cannot return it."""
        return self._coordinator.describe(transactional_id)

    def all(self) -> Iterator[tuple[str, Metadata]]:
        """All transactional ids that this broker coordinates."""
        return self._coordinator.all()

    def unmarked(self) -> dict[str, Unmarked]:
        """The transactions that wait for markers, by transactional id."""
        return self._coordinator.unmarked()

    @property
    def is_loading(self) -> bool:
        """Whether some transactional ids may not be loaded yet."""
        return self._coordinator.is_loading
