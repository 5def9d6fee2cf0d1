"""Clients of consumer groups: their operations, and the order in which they report group events.

Rebalances can happen at any time, before or after records were read. An operation reports
rebalances first and then records, so an event that does not fit waits for the next operation.
"""

import abc
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from model.op import MicroOp, Op
from workloads.client.base_client import PlainClient
from workloads.client.common import Place, Records, completed

Change = Literal["assigned", "revoked", "lost"]
_LOSSES: tuple[Change, ...] = ("revoked", "lost")


class Outsider(Protocol):
    """A consumer that need not be a member of its group."""

    async def committed(self, keys: list[str]) -> dict[str, Place | None]:
        """Return the committed offset of each partition; ``None`` for none."""
        ...


class Subscriber(Protocol):
    """A consumer that is a member of its group."""

    async def poll(self) -> tuple[list[MicroOp], str | None]:
        """Return the member's events, records last, and any error that ended the poll."""
        ...


class GroupClient(PlainClient):
    """A client that also supports the operations of consumer groups.

    They are ``subscribe``, ``commit``, ``committed``, ``leave`` and ``freeze``. A process is a
    member of at most one group, for its whole life, and commits to other groups without being a
    member.
    """

    async def invoke(self, op: Op) -> Op:
        match op.f:
            case "subscribe":
                return await self._subscribe(op)
            case "poll" if (member := self._joined()) is not None:
                micro_ops, error = await member.poll()
                return completed(op, "ok" if error is None else "info", micro_ops, error)
            case "commit":
                return await self._commit(op)
            case "committed":
                ((_, group, wanted),) = op.value
                try:
                    found = await self._of(group).committed(list(wanted))
                except self.FAILURES as error:
                    return completed(op, "fail", op.value, self._name_of(error))
                return completed(op, "ok", [["committed", group, found]])
            case "freeze":
                ((_, _, ms),) = op.value
                async with self._frozen(ms):
                    return completed(op, "ok", op.value)
            case "leave":
                return await self._leave(op)
            case _:
                return await super().invoke(op)

    @abc.abstractmethod
    async def _subscribe(self, op: Op) -> Op:
        """Become a member, or subscribe to other topics as the member."""

    @abc.abstractmethod
    async def _commit(self, op: Op) -> Op:
        """Commit as the member or an outsider, after a freeze if the operation has one."""

    @abc.abstractmethod
    async def _leave(self, op: Op) -> Op:
        """Leave the group cleanly."""

    @abc.abstractmethod
    def _joined(self) -> Subscriber | None:
        """Return the member, if the process is one."""

    @abc.abstractmethod
    def _of(self, group: str) -> Outsider:
        """Return the member, if it is of this group, or else an outsider of the group."""

    @abc.abstractmethod
    def _frozen(self, ms: int) -> AbstractAsyncContextManager[None]:
        """Send nothing to the coordinator for this time; then the body's requests go first."""


class Feed:
    """Collects what a client library reports, and returns it as micro-operations."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._events: deque[MicroOp | Records] = deque()
        self.positions: dict[str, int] = {}
        """The next offset, by owned partition from which records were read."""

    def assigned(self, generation: int | None, keys: Iterable[str]) -> None:
        """Record an assignment; the start positions are not known yet (see :meth:`unplaced`)."""
        begins: dict[str, int | None] = dict.fromkeys(sorted(keys))
        self._events.append(["assigned", self._group, generation, begins])

    def gone(self, change: Change, generation: int | None, keys: Iterable[str]) -> None:
        """Record that partitions were revoked, or are owned by another member (``lost``)."""
        keys = sorted(keys)
        for key in keys:
            self.positions.pop(key, None)
        self._events.append([change, self._group, generation, keys])

    def committed(self, offsets: Mapping[str, int]) -> None:
        """Record a commit of the listener, which is acknowledged or in doubt like its operation."""
        self._events.append(["commit", self._group, dict(offsets), "listener"])

    def read(self, key: str, pairs: list[list[int]]) -> None:
        """Record what was read from a partition that the member owns."""
        if not pairs:
            return
        if not self._events or not isinstance(self._events[-1], dict):
            self._events.append({})
        last = self._events[-1]
        assert isinstance(last, dict), "the line above appends a dict"
        last.setdefault(key, []).extend(pairs)
        self.positions[key] = pairs[-1][0] + 1

    def forget(self, keys: Iterable[str]) -> None:
        """Drop the records of these partitions that no operation has reported yet.

        They are read again after a seek to an earlier position.
        """
        wanted = set(keys)
        kept: deque[MicroOp | Records] = deque()
        for event in self._events:
            if not isinstance(event, dict):
                kept.append(event)
            elif records := {key: pairs for key, pairs in event.items() if key not in wanted}:
                kept.append(records)
        self._events = kept

    @property
    def has_records(self) -> bool:
        """Will the next operation report records?"""
        return any(isinstance(event, dict) for event in self._events)

    def has_lost(self, keys: Iterable[str]) -> bool:
        """Was one of these partitions taken away by an event that no operation has reported yet?"""
        lost = [
            event[3] for event in self._events if isinstance(event, list) and event[0] in _LOSSES
        ]
        return any(key in each for key in keys for each in lost)

    def unplaced(self) -> list[dict[str, int | None]]:
        """Return the start positions of assignments that are not reported yet.

        They must be filled in before the member reads.
        """
        return [
            event[3] for event in self._events if isinstance(event, list) and event[0] == "assigned"
        ]

    def take(self) -> list[MicroOp]:
        """Return the events before the next records, and these records."""
        micro_ops: list[MicroOp] = []
        records: Records = {}
        while self._events:
            event = self._events.popleft()
            if isinstance(event, dict):
                records = event
                break
            micro_ops.append(event)
        return [*micro_ops, ["poll", records]]
