"""What a client in consumer groups is asked, and what a member is told, in the order of that.

Rebalances happen whenever they happen, records have been read before or after them: an operation
tells of rebalances first and then of records, so what does not fit waits for the next one.
"""

import abc
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from model.op import MicroOp, Op
from workloads.client.common import Place, Records, completed
from workloads.client.plain import PlainClient

Change = Literal["assigned", "revoked", "lost"]


class Outsider(Protocol):
    """A consumer that need not be a member of its group."""

    async def committed(self, keys: list[str]) -> dict[str, Place | None]:
        """By key: the offset that is committed; ``None`` for none."""
        ...


class Subscriber(Protocol):
    """A consumer that is a member of its group."""

    async def poll(self) -> tuple[list[MicroOp], str | None]:
        """What it was told, records last; and the error that ended the poll, if any."""
        ...


class GroupClient(PlainClient):
    """Understands ``subscribe``, ``commit``, ``committed``, ``leave`` and ``freeze``, too; a
    process is a member of one group at most, for life, and commits to others from outside."""

    async def invoke(self, op: Op) -> Op:
        match op.f:
            case "subscribe":
                return await self._subscribe(op)
            case "poll" if (member := self._joined()) is not None:
                told, error = await member.poll()
                return completed(op, "ok" if error is None else "info", told, error)
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
        """Become a member, or read other topics as one."""

    @abc.abstractmethod
    async def _commit(self, op: Op) -> Op:
        """As the member or from outside, with a freeze before it if one is asked for."""

    @abc.abstractmethod
    async def _leave(self, op: Op) -> Op:
        """Be a member no longer, in good order."""

    @abc.abstractmethod
    def _joined(self) -> Subscriber | None:
        """The member, if the process is one."""

    @abc.abstractmethod
    def _of(self, group: str) -> Outsider:
        """The member, if it is of this group; else who is outside of it."""

    @abc.abstractmethod
    def _frozen(self, ms: int) -> AbstractAsyncContextManager[None]:
        """Nothing is asked of this process for so long; then what is done within goes first."""


class Feed:
    """Takes what a client library tells, and gives it away as micro-operations."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._told: deque[MicroOp | Records] = deque()
        self.positions: dict[str, int] = {}
        """By key that is owned and of which something was read: the next offset."""

    def assigned(self, generation: int | None, keys: Iterable[str]) -> None:
        """Where the member begins is not known yet; see :meth:`unplaced`."""
        begins: dict[str, int | None] = dict.fromkeys(sorted(keys))
        self._told.append(["assigned", self._group, generation, begins])

    def gone(self, change: Change, generation: int | None, keys: Iterable[str]) -> None:
        """Keys were asked back (``revoked``), or are somebody else's already (``lost``)."""
        keys = sorted(keys)
        for key in keys:
            self.positions.pop(key, None)
        self._told.append([change, self._group, generation, keys])

    def committed(self, offsets: Mapping[str, int]) -> None:
        """By the member's listener: acknowledged, or in doubt as the whole operation is."""
        self._told.append(["commit", self._group, dict(offsets), "listener"])

    def read(self, key: str, pairs: list[list[int]]) -> None:
        """Records of a key, which the member owns."""
        if not pairs:
            return
        if not self._told or not isinstance(self._told[-1], dict):
            self._told.append({})
        last = self._told[-1]
        assert isinstance(last, dict), "made above"
        last.setdefault(key, []).extend(pairs)
        self.positions[key] = pairs[-1][0] + 1

    @property
    def has_records(self) -> bool:
        """Will the next operation tell of records?"""
        return any(isinstance(told, dict) for told in self._told)

    def unplaced(self) -> list[dict[str, int | None]]:
        """What the member was assigned and nobody was told yet: where it begins is to be filled in
        before it reads."""
        return [told[3] for told in self._told if isinstance(told, list) and told[0] == "assigned"]

    def take(self) -> list[MicroOp]:
        """What happened up to the next records, and these."""
        micro_ops: list[MicroOp] = []
        records: Records = {}
        while self._told:
            told = self._told.popleft()
            if isinstance(told, dict):
                records = told
                break
            micro_ops.append(told)
        return [*micro_ops, ["poll", records]]
