"""Consume, transform, produce: one transaction from the records of a poll to their consumption.

What is made of a value (``model.transform``) goes to the partition that :func:`key_of` gives, and
the positions behind what was read are committed in the same transaction. An operation that polls
nothing has nothing to commit.
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
"""Of one transaction."""


class Member(Subscriber, Protocol):
    """A member of a group, which polls for transactions."""

    async def producer_of(self, keys: list[str]) -> Producer:
        """Who may commit positions of these keys. Raises nothing: one that may not will be told."""
        ...

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        """Read on from these offsets where the keys are still owned; the error by which not."""
        ...


def key_of(topic: str, partitions: int, value: int) -> str:
    """Where the output goes that is made of this input."""
    return f"{topic}-{value % partitions}"


async def carry_out(op: Op, member: Member) -> tuple[Op, bool]:
    """The completion of a ``txn``, and whether its process can go on.

    ``op`` says ``["poll"]``, ``["transform", topic, partitions]``, and then what
    ``workloads.client.transaction`` understands. The completion has a ``send`` for each record in
    the place of ``transform``; rebalances of the group come first.
    """
    poll, (_, topic, partitions), *rest = op.value
    assert poll == ["poll"], "what was read is sent on"
    told, error = await member.poll()
    (_, records) = told[-1]
    if error is not None:  # no transaction has begun
        return msgspec.structs.replace(op, type="fail", value=told, error=error), False
    if not any(records.values()):
        return msgspec.structs.replace(op, type="ok", value=told), True
    values = [value for pairs in records.values() for _, value in pairs]
    if any(value < 0 for value in values):  # as payload.decode tells what nobody wrote
        return msgspec.structs.replace(op, type="fail", value=told, error="NotAnInput"), False
    sends = [
        ["send", key_of(topic, partitions, value), model.transform.output(value, op.index)]
        for value in values
    ]
    whole = msgspec.structs.replace(op, value=[poll, *sends, *rest])
    producer = await member.producer_of(list(records))
    answer, goes_on = await transaction.carry_out(whole, producer, _Polled(records, member))
    return msgspec.structs.replace(answer, value=[*told[:-1], *answer.value]), goes_on


class _Polled:
    """A consumer whose poll is over."""

    def __init__(self, records: Records, member: Member) -> None:
        self._records = records
        self._member = member

    async def poll(self) -> tuple[Records, str | None]:
        return self._records, None

    async def rewind(self, places: Mapping[str, int]) -> str | None:
        return await self._member.rewind(places)
