"""Consume, transform, produce by librdkafka: one producer for each member, which names itself.

Offsets are committed under the member id and generation in which the member was assigned the
partitions that it has read (KIP-447): the coordinator rejects them once the group has another
generation. Id and generation are those of the assignment, not of the moment of the commit: a member
that was removed from its group, and does not know it yet, would commit without a member id, which
the coordinator does not reject.

In the protocol of KIP-848 the member's epoch takes the generation's place. It also advances when
the member gives up partitions, and no callback reports that. So the epoch is requested before each
poll: what the poll returns belongs to partitions that the member owns in that epoch or a later one.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from confluent_kafka import KafkaException, TopicPartition

from model.op import MicroOp, Op
from workloads.client import transaction, transform
from workloads.client.common import POLL_TIMEOUT_S, Place, Records, completed, split
from workloads.client.confluent_group import GroupConfluentClient, Member, keys_of
from workloads.client.confluent_txn import TransactionalConfluentClient, TransactionalWriter
from workloads.client.transaction import Failure


class TransformingConfluentClient(TransactionalConfluentClient, GroupConfluentClient):
    """A process that uses librdkafka and whose group member supports ``txn``."""

    _transformer: "TransformingMember | None" = None

    async def invoke(self, op: Op) -> Op:
        if op.f != "txn":
            return await super().invoke(op)
        assert self._transformer is not None, "a process subscribes before its first transaction"
        answer, goes_on = await transform.carry_out(op, self._transformer)
        self._alive = self._alive and goes_on
        return answer

    async def _subscribe(self, op: Op) -> Op:
        ((_, group, topics, how),) = op.value
        assert self._transactor is not None, "a process runs init before it subscribes"
        if self._transformer is None:
            self._transformer = TransformingMember(
                self._consumer_config, group, how, self._transactor
            )
            self._member = self._transformer
        await self._transformer.subscribe(topics)
        return completed(op, "ok", op.value)


class SubscribedConfluentClient(TransformingConfluentClient):
    """A process that uses librdkafka and whose transactions poll as a member of a group."""

    async def invoke(self, op: Op) -> Op:
        if op.f != "txn":
            return await super().invoke(op)
        assert self._transformer is not None, "a process subscribes before its first transaction"
        polls = _Polls(self._transformer)
        producer = await self._transformer.producer_of([])
        answer, goes_on = await transaction.carry_out(op, producer, polls)
        self._alive = self._alive and goes_on
        return msgspec.structs.replace(answer, value=polls.among(answer.value))


class _Polls:
    """A member's polls in one transaction, all in the same generation of its group.

    A commit under the new generation of offsets that were read before a rebalance would not be
    rejected, even if another member owns the partitions by then.
    """

    def __init__(self, member: "TransformingMember") -> None:
        self._member = member
        self._rebalances: list[list[MicroOp]] = []
        """The rebalances before each poll."""
        self._has_read = False

    async def poll(self) -> tuple[Records, str | None]:
        micro_ops, error = await self._member.poll()
        *rebalances, (_, records) = micro_ops
        self._rebalances.append(rebalances)
        if rebalances and self._has_read:
            error = error or "RebalanceInProgress"
        self._has_read = self._has_read or bool(records)
        return records, error

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        return await self._member.rewind(places)

    def among(self, row: list[MicroOp]) -> list[MicroOp]:
        """Return a transaction's micro-operations, with the rebalances before their polls."""
        rebalances, whole = list(self._rebalances), list[MicroOp]()
        for micro_op in row:
            if micro_op[0] == "poll" and rebalances:
                whole += rebalances.pop(0)
            whole.append(micro_op)
        return whole


class TransformingMember(Member):
    """A member whose transactions commit; see :class:`~workloads.client.transform.Member`."""

    def __init__(
        self,
        config: Mapping[str, Any],
        group: str,
        how: Mapping[str, Any],
        producer: TransactionalWriter,
    ) -> None:
        super().__init__(config, group, how)
        self._producer = producer
        self._identity: Any = None
        """The member id and generation, opaque; ``None`` while nothing is assigned."""
        self._has_epochs = config.get("group.protocol") == "consumer"
        self._owned: set[str] = set()
        self._changes = 0
        """The number of rebalances so far."""

    async def subscribe(self, topics: list[str]) -> None:
        await self._worker.call(
            lambda: self._consumer.subscribe(
                topics,
                on_assign=lambda _, places: self._assigned(keys_of(places)),
                on_revoke=lambda _, places: self._gone("revoked", keys_of(places)),
                on_lost=lambda _, places: self._gone("lost", keys_of(places)),
            )
        )

    @property
    def identity(self) -> Any:
        """The member id, with the generation of its assignment or the epoch of its last poll."""
        return self._identity

    async def producer_of(self, keys: list[str]) -> "_Named":
        return _Named(self._producer, self)

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        return await self._worker.call(lambda: self._rewind(places))

    def _assigned(self, keys: list[str]) -> None:
        self._identity = self._consumer.consumer_group_metadata()
        self._owned.update(keys)
        self._changes += 1
        self._feed.assigned(None, keys)

    def _gone(self, change: Any, keys: list[str]) -> None:
        """Record that partitions are gone; member id and generation stay unchanged.

        They remain those of the last assignment. The coordinator decides by them whether it rejects
        the transaction with the records read so far.
        """
        self._owned.difference_update(keys)
        self._changes += 1
        self._feed.gone(change, None, keys)

    def _poll(self) -> tuple[list[MicroOp], str | None]:
        """Poll until a rebalance: records that are read after it belong to another transaction."""
        changes = self._changes
        if self._feed.has_records:
            return self._feed.take(), self._error
        if self._has_epochs and self._identity is not None:
            self._identity = self._consumer.consumer_group_metadata()
        if self._take(POLL_TIMEOUT_S):
            for _ in range(transform.RECORDS_MAX - 1):
                if self._changes != changes or not self._take(0):
                    break
        return self._feed.take(), self._error

    def _rewind(self, places: Mapping[str, int]) -> str | None:
        self._feed.forget(places)
        try:
            for key, offset in places.items():
                if key in self._owned:
                    self._consumer.seek(TopicPartition(*split(key), offset))
        except KafkaException as error:
            return str(error.args[0].name())
        return None


class _Named:
    """A producer that commits offsets under a member's id and generation."""

    def __init__(self, producer: TransactionalWriter, member: TransformingMember) -> None:
        self._producer = producer
        self._member = member
        self.begin, self.send = producer.begin, producer.send
        self.commit, self.abort = producer.commit, producer.abort

    @property
    def reusable(self) -> bool:
        return self._producer.reusable

    async def send_offsets(self, offsets: Mapping[str, Place], _: str) -> None:
        identity = self._member.identity
        if identity is None:
            raise Failure("NotAssigned")
        await self._producer.send_offsets(offsets, identity)
