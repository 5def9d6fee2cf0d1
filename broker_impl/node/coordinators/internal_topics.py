"""Reads and appends of this broker in the internal topics: created on first use, read completely.

Both coordinators keep their state in such a log. An append is successful once all in-sync replicas
have it, and only in the leader epoch in which it was decided.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from broker_impl import failpoints
from broker_impl.api.purgatory import Waiting
from broker_impl.config import SETTINGS, BrokerConfig, Source
from broker_impl.coordinator import records, transaction_records
from broker_impl.errors import ErrorCode
from broker_impl.replica.replicas import Replicas
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateableTopicConfig
from broker_impl.wire.types import Epoch, Offset, TopicPartition

_CHUNK_BYTES = 1 << 20
"""The largest chunk: no other task of the broker runs while a chunk is decoded."""

Done = Callable[[ErrorCode, Offset], None]
"""Called with the outcome of an append and the offset of its first record."""


def creatable(topic: str, config: BrokerConfig, brokers: int) -> CreatableTopic | None:
    """The request that creates this internal topic, for this many live brokers; None: not internal.

    An explicitly configured replication factor is required, as in Kafka. The default one is reduced
    to the number of brokers, so that a single broker is enough to try things out.
    """
    if topic == transaction_records.TOPIC:
        setting = SETTINGS["transaction.state.log.replication.factor"]
        copies = config.transaction_state_log_replication_factor
        if config.sourced(setting)[0].source is Source.DEFAULT:
            copies = min(copies, brokers)
        in_sync = min(config.transaction_state_log_min_isr, copies)
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(in_sync),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
        return CreatableTopic(
            name=topic,
            num_partitions=config.transaction_state_log_num_partitions,
            replication_factor=copies,
            configs=[CreateableTopicConfig(name, value) for name, value in settings.items()],
        )
    if topic == records.TOPIC:
        setting = SETTINGS["offsets.topic.replication.factor"]
        copies = config.offsets_topic_replication_factor
        if config.sourced(setting)[0].source is Source.DEFAULT:
            copies = min(copies, brokers)
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        }
        return CreatableTopic(
            name=topic,
            num_partitions=config.offsets_topic_num_partitions,
            replication_factor=copies,
            configs=[CreateableTopicConfig(name, value) for name, value in settings.items()],
        )
    return None


def stored(topic: str, key: bytes, acknowledged: ErrorCode | None) -> ErrorCode | None:
    """The outcome of an append to this topic, from its acknowledgement; None: still pending.

    ``key``: the key of its first record.
    """
    return acknowledged


def goes_on(offset: Offset, first: Offset | None) -> bool:
    """Return whether to read on after a read from ``offset`` whose first batch starts at ``first``.

    ``first`` is None if the read returned no batch, because compaction has removed the rest; the
    reader would otherwise repeat the same read for ever (KAFKA-9065). Compaction may also have
    removed records between ``offset`` and ``first``.
    """
    return first is not None


class InternalTopics:
    """Reads and appends of this broker as the leader of partitions of internal topics."""

    def __init__(
        self,
        replicas: Replicas,
        waiting: Waiting,
        *,
        wall_ms: Callable[[], int],
        timeout_s: float,
        load_bytes: int,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``timeout_s``: how long an append may take until its outcome counts as unknown.

        ``load_bytes``: how much of a log is read at once; at least one batch, at most 1 MiB.
        ``on_failure`` receives an error of a ``done`` callback, which no caller would notice.
        """
        self._replicas = replicas
        self._waiting = waiting
        self._wall_ms = wall_ms
        self._timeout_s = timeout_s
        self._chunk_bytes = min(load_bytes, _CHUNK_BYTES)
        self._on_failure = on_failure

    async def read(
        self, tp: TopicPartition, leader_epoch: Epoch
    ) -> AsyncIterator[tuple[BatchHeader, list[Record]]]:
        """Yield all batches of the log; other tasks run between chunks.

        The iteration ends once all of them are committed: a decision that only this broker has must
        not take effect, because the next leader may not know it. It ends early when this broker no
        longer leads the partition in that epoch.
        """
        log = self._replicas.led(tp, leader_epoch)
        offset = 0 if log is None else log.start_offset
        end = 0 if log is None else log.end_offset
        while log is not None and offset < end:
            piece = log.read(offset, bytes_max=self._chunk_bytes, limit=end)
            first = next(
                (each.base_offset for data in piece for _, each in batch.batches(data)), None
            )
            if not goes_on(offset, first):
                break
            for data in piece:
                for at, header in batch.batches(data):
                    yield header, batch.records(data[at : at + header.size])
                    offset = header.next_offset
            await asyncio.sleep(0)
            await failpoints.point(failpoints.LOAD)
            log = self._replicas.led(tp, leader_epoch)
        await self._committed(tp, leader_epoch, end)

    async def _committed(self, tp: TopicPartition, leader_epoch: Epoch, end: Offset) -> None:
        def attempt(expired: bool) -> bool | None:
            committed = self._replicas.committed(tp, leader_epoch)
            is_over = committed is None or committed >= end
            return is_over if is_over or expired else None

        while not attempt(True):
            await self._waiting.park([tp], attempt, self._timeout_s)

    def append(
        self,
        tp: TopicPartition,
        leader_epoch: Epoch,
        pairs: Sequence[tuple[bytes, bytes | None]],
        done: Done,
        *,
        producer: tuple[int, Epoch] | None = None,
        guard: int | None = None,
    ) -> None:
        """Append keys and values; ``done`` receives the outcome, at the latest after the timeout.

        producer: the transactional producer on whose behalf the records are appended; guard: the
        value under which its transaction was verified.
        """
        if self._replicas.led(tp, leader_epoch) is None:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        now_ms = self._wall_ms()
        rows = [Record(key, value, now_ms) for key, value in pairs]
        producer_id, producer_epoch = (-1, -1) if producer is None else producer
        data = batch.encode_batch(
            rows,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=producer is not None,
        )
        result = self._replicas.append(tp, data, acks=-1, guard=guard, by_coordinator=True)
        if result.error is not ErrorCode.NONE:
            done(result.error, -1)
            return

        def attempt(expired: bool) -> ErrorCode | None:
            outcome = stored(tp.topic, pairs[0][0], self._replicas.acknowledged(tp, result))
            return ErrorCode.REQUEST_TIMED_OUT if expired and outcome is None else outcome

        outcome = attempt(False)
        if outcome is not None:
            done(outcome, result.base_offset)
            return

        def on_outcome(future: "asyncio.Future[ErrorCode]") -> None:
            if future.cancelled():
                return
            try:
                done(future.result(), result.base_offset)
            except Exception as error:  # noqa: BLE001 - the edge of a callback
                self._on_failure(error)

        self._waiting.park([tp], attempt, self._timeout_s).add_done_callback(on_outcome)
