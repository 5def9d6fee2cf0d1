"""The logs that brokers keep for themselves: made when first wanted, read as a whole, appended to.

Both coordinators stand on such a log. What is appended counts once all in-sync replicas have it,
and only in the epoch of the leadership that it was decided in.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from broker_impl.api.waiting import Waiting
from broker_impl.config import SETTINGS, BrokerConfig, Source
from broker_impl.coordinator import records, transaction_records
from broker_impl.errors import ErrorCode
from broker_impl.replica.replicas import Replicas
from broker_impl.wire import batch
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateableTopicConfig
from broker_impl.wire.types import Epoch, Offset, TopicPartition

_CHUNK_BYTES = 1 << 20

Done = Callable[[ErrorCode, Offset], None]
"""Told what became of an append, and where its first record is."""


def creatable(topic: str, config: BrokerConfig, brokers: int) -> CreatableTopic | None:
    """How an internal topic is made, of so many live brokers; None: it is none.

    A number of replicas that was set by hand is insisted on, as in Kafka. The default takes fewer,
    so that one broker is enough to try things with.
    """
    if topic == transaction_records.TOPIC:
        setting = SETTINGS["transaction.state.log.replication.factor"]
        copies = config.transaction_state_log_replication_factor
        if config.sourced(setting)[0].source is Source.DEFAULT:
            copies = min(copies, brokers)
        in_sync = min(config.transaction_state_log_min_isr, copies)
        settings = {
            "cleanup.policy": "compact",
            "min.insync.replicas": str(in_sync),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
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
    """What became of an append to this topic, by what its in-sync replicas have; None: not yet.

    ``key``: of its first record.
    """
    return acknowledged


def goes_on(offset: Offset, first: Offset | None) -> bool:
    """Is there more to read, if a read from ``offset`` on has brought a batch at ``first``, or
    none?

    Between the two compaction may have left something out. Whoever was brought nothing would ask
    for ever (KAFKA-9065).
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
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``timeout_s``: how long an append may take until its outcome counts as not known.

        ``on_failure`` is told of what goes wrong while somebody is told of an outcome: nobody else
        would hear of it.
        """
        self._replicas = replicas
        self._waiting = waiting
        self._wall_ms = wall_ms
        self._timeout_s = timeout_s
        self._on_failure = on_failure

    async def read(
        self, tp: TopicPartition, leader_epoch: Epoch
    ) -> AsyncIterator[tuple[BatchHeader, list[Record]]]:
        """All batches of the log, in pieces between which others have their turn.

        Ends once all of them are committed: a decision that only this broker has must not be
        carried out, for the next leader may never have heard of it. Ends early when this broker
        leads no longer in that epoch.
        """
        log = self._replicas.led(tp, leader_epoch)
        offset = 0 if log is None else log.start_offset
        end = 0 if log is None else log.end_offset
        while log is not None and offset < end:
            piece = log.read(offset, bytes_max=_CHUNK_BYTES, limit=end)
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
        """Append keys and values; ``done`` is told once that is certain, or cannot be.

        producer: whose transaction they are part of; then under ``guard``, as it was verified.
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

        def told(future: "asyncio.Future[ErrorCode]") -> None:
            if future.cancelled():
                return
            try:
                done(future.result(), result.base_offset)
            except Exception as error:  # noqa: BLE001 - the edge of a callback
                self._on_failure(error)

        self._waiting.park([tp], attempt, self._timeout_s).add_done_callback(told)
