"""Consume-transform-produce: one transaction with a poll, the sends and the commit of offsets.

The output for a value (``model.transform``) is sent to the partition that :func:`key_of` returns,
and the positions after the polled records are committed in the same transaction. If the poll
returns no records, the operation begins no transaction.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

import model.transform
from model.op import Op
from workloads.client import transaction
from workloads.client.common import Records
from workloads.client.membership import Subscriber
from workloads.client.transaction import Producer

RECORDS_MAX = 50
"""The largest number of records in one transaction."""


class Member(Subscriber, Protocol):
    """A group member that polls the input records of consume-transform-produce transactions."""

    async def producer_of(self, keys: list[str]) -> Producer:
        """Return a producer for a transaction that commits offsets of these partitions.

        This method raises nothing. If the member no longer owns a partition, the commit fails.
        """
        ...

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        """Continue reading owned partitions at these offsets; return the error, if any."""
        ...


def key_of(topic: str, partitions: int, value: int) -> str:
    """Return the partition for the output of this input value."""
    return f"{topic}-{value % partitions}"


async def carry_out(op: Op, member: Member) -> tuple[Op, bool]:
    """Run a ``txn``; return its completion, and whether its process can continue.

    ``op`` has ``["poll"]``, ``["transform", topic, partitions]``, and then micro-operations that
    ``workloads.client.transaction`` supports. The completion has a ``send`` for each record instead
    of ``transform``; rebalances of the group come first.
    """
    poll, (_, topic, partitions), *rest = op.value
    assert poll == ["poll"], "an operation that transforms records polls first"
    micro_ops, error = await member.poll()
    (_, records) = micro_ops[-1]
    if error is not None:  # no transaction has begun
        return msgspec.structs.replace(op, type="fail", value=micro_ops, error=error), False
    if not any(records.values()):
        return msgspec.structs.replace(op, type="ok", value=micro_ops), True
    values = [value for pairs in records.values() for _, value in pairs]
    if any(value < 0 for value in values):  # records that no client wrote
        return msgspec.structs.replace(op, type="fail", value=micro_ops, error="NotAnInput"), False
    sends = [
        ["send", key_of(topic, partitions, value), model.transform.output(value, op.index)]
        for value in values
    ]
    whole = msgspec.structs.replace(op, value=[poll, *sends, *rest])
    producer = await member.producer_of(list(records))
    answer, goes_on = await transaction.carry_out(whole, producer, _Polled(records, member))
    return msgspec.structs.replace(answer, value=[*micro_ops[:-1], *answer.value]), goes_on


class _Polled:
    """A consumer whose ``poll`` returns records that have already been polled."""

    def __init__(self, records: Records, member: Member) -> None:
        self._records = records
        self._member = member

    async def poll(self) -> tuple[Records, str | None]:
        return self._records, None

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        return await self._member.rewind(places)
