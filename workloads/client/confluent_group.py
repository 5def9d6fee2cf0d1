"""Consumer groups by librdkafka: members that come and go, and outsiders that only commit.

**Certainty of a commit.** If its connection breaks or there is no response, librdkafka sends a
commit again after a pause, and it reports only the last attempt. So a rejection is believed only if
it comes before a second attempt can have been made.

**Crashes.** librdkafka cannot end a member without notifying the coordinator: a member that crashes
leaves its group, but commits nothing more. A freeze that is longer than ``max.poll.interval.ms``
stands in for a crash; heartbeats continue during it, because librdkafka has a thread for them.

**Order.** Messages are taken one by one, because it would be unknown whether a batch was read
before or after a rebalance that came with it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from model.op import MicroOp, Op
from workloads.client import confluent_settings, outcome, payload
from workloads.client.common import (
    POLL_RECORDS_MAX,
    POLL_TIMEOUT_S,
    QUERY_TIMEOUT_S,
    Place,
    Settings,
    as_committed,
    completed,
    split,
    to_commit,
)
from workloads.client.confluent import ConfluentClient
from workloads.client.confluent_threads import Worker
from workloads.client.membership import Feed, GroupClient, Subscriber
from workloads.client.outcome import Outcome

ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
"""The assignors by their names in the protocol."""

COMMIT_TIMEOUT_S = 10.0
"""How long to wait for the result of an asynchronous commit."""
REVOKED_S = 3.0
"""How long a member that leaves may take to give up its partitions."""
FIRST_ATTEMPT_S = 0.05
"""No second attempt begins before this time (``retry.backoff.ms`` is 100)."""


class GroupConfluentClient(GroupClient, ConfluentClient):
    """A process that uses librdkafka with groups."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._member: Member | None = None
        self._outsiders: dict[str, Grouped] = {}

    async def close(self) -> None:
        used = [*self._outsiders.values(), *([self._member] if self._member else [])]
        self._outsiders, self._member = {}, None
        for each in used:
            each.leave_some_time()
        await super().close()

    async def _subscribe(self, op: Op) -> Op:
        ((_, group, topics, how),) = op.value
        if self._member is None:
            self._member = Member(self._consumer_config, group, how)
        assert self._member.group == group, "a process is a member of only one group"
        await self._member.subscribe(topics)
        return completed(op, "ok", op.value)

    async def _commit(self, op: Op) -> Op:
        *freeze, (_, group, offsets, mode) = op.value
        async with self._frozen(freeze[0][2] if freeze else 0):
            kind, error = await self._of(group).commit(offsets, mode)
        return completed(op, kind, op.value, error)

    async def _leave(self, op: Op) -> Op:
        assert self._member is not None, "only a member can leave"
        self._alive = False
        member, self._member = self._member, None
        await member.leave()
        return completed(op, "ok", op.value)

    def _joined(self) -> Subscriber | None:
        return self._member

    def _of(self, group: str) -> "Grouped":
        if self._member is not None and self._member.group == group:
            return self._member
        if group not in self._outsiders:
            config = confluent_settings.of_outsider(self._consumer_config)
            self._outsiders[group] = Grouped(config, group)
        return self._outsiders[group]

    @asynccontextmanager
    async def _frozen(self, ms: int) -> AsyncIterator[None]:
        await asyncio.sleep(ms / 1000)
        yield


class Grouped:
    """A consumer that commits to a group without being a member, and the thread it calls in."""

    def __init__(self, config: Mapping[str, Any], group: str, **mine: Any) -> None:
        self.group = group
        self._loop = asyncio.get_running_loop()
        self._answers: list[tuple[KafkaError | None, list[TopicPartition]]] = []
        """The results of asynchronous commits."""
        self._consumer = Consumer(
            {**config, "group.id": group, "on_commit": self._on_commit, **mine}
        )
        self._worker = Worker("member")

    async def commit(self, offsets: Mapping[str, Place], mode: str) -> tuple[Outcome, str | None]:
        """Commit offsets; return the outcome and the name of the error."""
        return await self._worker.call(lambda: self._commit(offsets, mode == "async"))

    async def committed(self, keys: list[str]) -> dict[str, Place | None]:
        """Return the committed offset of each partition, or ``None``; raises ``KafkaException``."""
        return await self._worker.call(lambda: self._committed(keys))

    async def leave(self) -> None:
        await self._worker.call(self._close)
        self._worker.stop()

    def leave_some_time(self) -> None:
        """Leave later, without waiting: closing the consumer may take for ever."""
        self._worker.last(self._close)

    def _commit(self, offsets: Mapping[str, Place], is_async: bool) -> tuple[Outcome, str | None]:
        places = [TopicPartition(*split(key), *to_commit(place)) for key, place in offsets.items()]
        began_s = self._loop.time()
        try:
            error, done = self._commit_async(places) if is_async else self._commit_sync(places)
        except KafkaException as failed:
            error, done = failed.args[0], []
        errors = [each for each in (error, *(place.error for place in done)) if each is not None]
        if not errors:
            return "ok", None
        quick = self._loop.time() - began_s < FIRST_ATTEMPT_S
        return outcome.of_commit(errors[0].name(), is_first=quick), errors[0].name()

    def _commit_sync(
        self, places: list[TopicPartition]
    ) -> tuple[KafkaError | None, list[TopicPartition]]:
        return None, self._consumer.commit(offsets=places, asynchronous=False) or []

    def _commit_async(
        self, places: list[TopicPartition]
    ) -> tuple[KafkaError | None, list[TopicPartition]]:
        """Commit asynchronously; polls deliver the result."""
        self._answers.clear()
        self._consumer.commit(offsets=places, asynchronous=True)
        until_s = self._loop.time() + COMMIT_TIMEOUT_S
        while not self._answers and self._loop.time() < until_s:
            self._take(POLL_TIMEOUT_S)
        return self._answers[-1] if self._answers else (KafkaError(KafkaError._TIMED_OUT), [])

    def _on_commit(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        self._answers.append((error, places))

    def _committed(self, keys: list[str]) -> dict[str, Place | None]:
        places = [TopicPartition(*split(key)) for key in keys]
        found = self._consumer.committed(places, timeout=QUERY_TIMEOUT_S)
        for place in found:
            if place.error is not None:
                raise KafkaException(place.error)
        return {
            key: as_committed(place.offset, place.metadata) if place.offset >= 0 else None
            for key, place in zip(keys, found, strict=True)
        }

    def _take(self, timeout_s: float) -> None:
        """Let librdkafka call its callbacks."""
        self._consumer.poll(timeout_s)

    def _close(self) -> None:
        self._consumer.close()


class Member(Grouped):
    """A consumer that subscribes."""

    def __init__(self, config: Mapping[str, Any], group: str, how: Mapping[str, Any]) -> None:
        mine = {
            "auto.offset.reset": "earliest",
            "enable.auto.commit": how["commit"] == "auto",
        }
        if how["instance"] is not None:
            mine["group.instance.id"] = how["instance"]
        super().__init__(confluent_settings.of_member(config, how["assignor"]), group, **mine)
        self._commits_when_revoked = how["commit"] == "listener"
        self._feed = Feed(group)
        self._error: str | None = None
        """The error that ends the current poll, and with it the process."""

    async def subscribe(self, topics: list[str]) -> None:
        """Subscribe; the consumer joins the group in the background."""
        await self._worker.call(
            lambda: self._consumer.subscribe(
                topics,
                on_assign=lambda _, places: self._feed.assigned(None, keys_of(places)),
                on_revoke=lambda _, places: self._revoked(places),
                on_lost=lambda _, places: self._feed.gone("lost", None, keys_of(places)),
            )
        )

    async def poll(self) -> tuple[list[MicroOp], str | None]:
        """Return the member's events, records last, and any error that ended the poll."""
        return await self._worker.call(self._poll)

    def _poll(self) -> tuple[list[MicroOp], str | None]:
        if not self._feed.has_records:
            self._take(POLL_TIMEOUT_S)
            for _ in range(POLL_RECORDS_MAX):
                if not self._take(0):
                    break
        return self._feed.take(), self._error

    def _take(self, timeout_s: float) -> bool:  # type: ignore[override]
        """Take one message; was there one?"""
        message = self._consumer.poll(timeout_s)
        if message is None:
            return False
        error = message.error()
        if error is not None:
            if error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:  # too new for some brokers to know
                self._error = self._error or error.name()
            return False
        key, offset = f"{message.topic()}-{message.partition()}", message.offset()
        assert offset is not None, "a record that was read has an offset"
        self._feed.read(key, [[offset, payload.decode(key, message.key(), message.value())]])
        return True

    def _commit(self, offsets: Mapping[str, Place], is_async: bool) -> tuple[Outcome, str | None]:
        """Commit, unless a partition was revoked meanwhile: librdkafka would commit it anyway.

        It sends the member's present generation, which the coordinator accepts for every partition.
        Polls during the commit before may have brought the revocation, which the next operation
        reports. An application, whose listener was called, would not commit these offsets, either.
        """
        if self._feed.has_lost(offsets):
            return "fail", "revoked"
        return super()._commit(offsets, is_async)

    def _revoked(self, places: list[TopicPartition]) -> None:
        """Commit if a listener does, unless this poll has brought records already.

        An operation reports records last, so this commit would be left to the next operation, which
        may never report anything.
        """
        keys = keys_of(places)
        offsets = {k: self._feed.positions[k] for k in keys if k in self._feed.positions}
        if offsets and self._commits_when_revoked and not self._feed.has_records:
            kind, error = self._commit(offsets, is_async=False)
            if kind != "fail":
                self._feed.committed(offsets)
            if kind == "info":
                self._error = self._error or error  # the operation is in doubt, too
        self._feed.gone("revoked", None, keys)

    def _close(self) -> None:
        """Give up the partitions and leave the group, then close.

        A rebalance that librdkafka reports only while it closes may wait without limit, and holds
        the lock of Python's interpreter meanwhile, so that every thread waits (librdkafka #4884). A
        member that does not get rid of its partitions in time is dropped: its session expires.
        """
        self._commits_when_revoked = False
        self._consumer.pause(self._consumer.assignment())  # read nothing more, commit nothing more
        self._consumer.unsubscribe()
        until_s = self._loop.time() + REVOKED_S
        while self._consumer.poll(POLL_TIMEOUT_S) is not None or self._consumer.assignment():
            if self._loop.time() > until_s:
                del self._consumer
                return
        super()._close()


def keys_of(places: list[TopicPartition]) -> list[str]:
    return sorted(f"{place.topic}-{place.partition}" for place in places)
