"""The base of all clients: translates operations to calls of a library, and results to completions.

Subclasses define how a library is called, and how its errors are named.
"""

import abc
from collections.abc import Mapping
from typing import ClassVar, Protocol

import msgspec

from model import topic_incarnation
from model.op import Op
from workloads.client import outcome, payload
from workloads.client.common import Records, completed


class Report(msgspec.Struct, frozen=True):
    """The result of one record."""

    outcome: outcome.Outcome
    offset: int | None = None
    """The record's offset, if it is known.

    It is unknown without acknowledgements, and for a record that the broker reports as the
    duplicate of one that it no longer remembers.
    """
    error: str | None = None


class Writes(Protocol):
    """A producer."""

    async def send(self, records: list[tuple[str, int]]) -> list[Report]: ...


class Reads(Protocol):
    """A consumer."""

    async def poll(self) -> tuple[Records, str | None]: ...
    async def progress(self, key: str) -> tuple[int, int]: ...


class PlainClient(abc.ABC):
    """A client that supports the operations that all workloads use.

    They are ``send``, ``create-topic``, ``assign``, ``poll``, ``catch-up``, ``watermarks``,
    ``delete-records``, ``delete-topic``, ``alter-topic`` and ``crash``.
    """

    FAILURES: ClassVar[tuple[type[Exception], ...]]
    """The exceptions of the library for a request without a response."""

    def __init__(self, topic: Mapping[str, str]) -> None:
        """``topic``: the settings of topics that this process creates.

        They include ``replication.factor`` or, instead of it, ``replicas``: the ids of the brokers
        that hold each partition, the preferred leader first.
        """
        self._topic_config = dict(topic)
        self._replicas = int(self._topic_config.pop("replication.factor"))
        self._placed = [int(broker) for broker in self._topic_config.pop("replicas", "").split()]
        self._form = payload.form_of(topic)
        self._alive = True

    @property
    def alive(self) -> bool:
        """False after a failed send: a producer that has failed once is not reliable.

        Its sequence numbers are lost (see also librdkafka #4953).
        """
        return self._alive

    async def open(self) -> None:  # noqa: B027 - few have something to do
        """Do nothing: producer and consumer are created when they are first needed."""

    async def invoke(self, op: Op) -> Op:
        match op.f:
            case "send":
                return await self._send(op)
            case "poll":
                records, error = await self._reads().poll()
                return completed(op, "ok" if error is None else "info", [["poll", records]], error)
            case "assign":
                error = await self._assign(op.value)
                return completed(op, "ok" if error is None else "fail", op.value, error)
            case "catch-up":
                return await self._catch_up(op)
            case "watermarks":
                return await self._watermarks(op)
            case "create-topic":
                ((_, life, partitions),) = op.value
                kind, error = await self._create_topic(topic_incarnation.topic_of(life), partitions)
                return completed(op, kind, op.value, error)
            case "delete-topic":
                ((_, life),) = op.value
                kind, error = await self._delete_topic(topic_incarnation.topic_of(life))
                return completed(op, kind, op.value, error)
            case "delete-records":
                ((_, key, offset, *_),) = op.value
                kind, low, error = await self._delete_records(key, offset)
                value = [["delete-records", key, offset, *([] if low is None else [low])]]
                return completed(op, kind, value, error)
            case "alter-topic":
                ((what, topic),) = op.value
                policy = "compact" if what == "compacted" else "delete"
                settings = {**self._topic_config, "cleanup.policy": policy}
                error = await self._alter_topic(topic, settings)
                return completed(op, "ok" if error is None else "info", op.value, error)
            case "crash":
                return completed(op, "info", op.value, "crash")
            case _:
                raise ValueError(f"no operation is called {op.f}")

    @abc.abstractmethod
    async def close(self) -> None:
        """Discard what is queued and in flight, and close."""

    async def _send(self, op: Op) -> Op:
        reports = await self._writes().send([(key, value) for _, key, value in op.value])
        micro_ops = [
            ["send", key, [report.offset, value] if report.outcome == "ok" else value]
            for (_, key, value), report in zip(op.value, reports, strict=True)
        ]
        errors = [report.error for report in reports if report.error is not None]
        combined = outcome.of_several([report.outcome for report in reports])
        self._alive = self._alive and combined == "ok"
        return completed(op, combined, micro_ops, errors[0] if errors else None)

    async def _catch_up(self, op: Op) -> Op:
        ((_, key),) = op.value
        try:
            position, end = await self._reads().progress(key)
        except self.FAILURES as error:
            return completed(op, "fail", op.value, self._name_of(error))
        value = [["catch-up", key, position, end]]
        # A position above the high watermark shows that the leader does not know the end yet.
        return completed(op, "ok" if position == end else "fail", value)

    async def _watermarks(self, op: Op) -> Op:
        ((_, key, *_),) = op.value
        try:
            places = await self._places(key)
        except self.FAILURES as error:
            return completed(op, "fail", op.value, self._name_of(error))
        return completed(op, "ok", [["watermarks", key, places]])

    # Methods that a library's client defines.

    @abc.abstractmethod
    def _name_of(self, error: Exception) -> str:
        """Return the name of one of ``FAILURES``."""

    @abc.abstractmethod
    def _writes(self) -> Writes:
        """Return the producer; create it if there is none."""

    @abc.abstractmethod
    def _reads(self) -> Reads:
        """Return the consumer."""

    @abc.abstractmethod
    async def _assign(self, keys: list[str]) -> str | None:
        """Read these partitions from now on; return the error if nothing was assigned."""

    @abc.abstractmethod
    async def _places(self, key: str) -> dict[str, int]:
        """Return log start, last stable offset and high watermark."""

    @abc.abstractmethod
    async def _create_topic(
        self, topic: str, partitions: int
    ) -> tuple[outcome.Outcome, str | None]:
        """Create a topic; return the outcome and the name of the error."""

    @abc.abstractmethod
    async def _delete_topic(self, topic: str) -> tuple[outcome.Outcome, str | None]:
        """Delete a topic; return the outcome, ``ok`` once it is gone, and the name of the error."""

    @abc.abstractmethod
    async def _delete_records(
        self, key: str, offset: int
    ) -> tuple[outcome.Outcome, int | None, str | None]:
        """Delete all records before an offset.

        Returns the outcome, the start of the log on all replicas after it, and the name of the
        error.
        """

    @abc.abstractmethod
    async def _alter_topic(self, topic: str, settings: Mapping[str, str]) -> str | None:
        """Give a topic these settings and no others.

        Returns the name of the error if the topic may have kept its former settings.
        """
