"""The runtime of the group coordinator: loads its partitions, answers requests, runs its timers.

A partition is loaded when this broker becomes its leader, and counts as loaded once everything that
was read is committed (``InternalTopics.read``): a member receives no offset that the next leader
may lack.
"""

import asyncio
import itertools
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from broker_impl import failpoints
from broker_impl.config import BrokerConfig
from broker_impl.coordinator import records
from broker_impl.coordinator.groups.coordinator import Groups
from broker_impl.coordinator.groups.events import (
    Answered,
    Effect,
    Marked,
    Request,
    Tick,
    Write,
    Written,
)
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.loading import Loading
from broker_impl.coordinator.groups.members import GroupConfig, GroupSnapshot
from broker_impl.errors import ErrorCode
from broker_impl.node.coordinators.internal_topics import InternalTopics
from broker_impl.node.tasks import Tasks
from broker_impl.wire.batch import BatchHeader, Record
from broker_impl.wire.types import Epoch, Offset, TopicPartition

LOG = logging.getLogger(__name__)

_MARKER_COMMIT = 1


class GroupsRuntime:
    """The implementation of ``Services.groups``."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: InternalTopics,
        *,
        rng: random.Random,
        wall_ms: Callable[[], int],
        on_failure: Callable[[BaseException], None],
        on_loaded: Callable[[TopicPartition], None] = lambda tp: None,
    ) -> None:
        """``on_loaded`` is called with each partition as soon as its groups are loaded."""
        self._topics = topics
        self._on_loaded = on_loaded
        self._on_failure = on_failure
        self._tasks = Tasks(on_failure)
        self._rng = rng
        self._wall_ms = wall_ms
        self._loop = asyncio.get_running_loop()
        self._groups = Groups(group_config(config), config.offsets_topic_num_partitions)
        self._epochs: dict[int, Epoch] = {}
        self._loads: dict[int, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tickets = itertools.count(1)
        self._asked: dict[int, tuple[asyncio.Future[Any], Callable[[Any], Any]]] = {}
        self._tasks.every(config.offsets_retention_check_interval_ms, self._expire)

    # Requests.

    def ask(
        self, group: str, event: Callable[[int], Request], answer_as: Callable[[Any], Any]
    ) -> Any:
        """Return the response to a request about a group, or a future of it.

        ``event`` creates the request from its ticket; ``answer_as`` converts the answer to a
        response.
        """
        ticket = next(self._tickets)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._asked[ticket] = (future, answer_as)
        future.add_done_callback(lambda _: self._asked.pop(ticket, None))
        request = event(ticket)
        self._carry_out(self._groups.handle(group, request, self._loop.time(), self._wall_ms()))
        self._arm(group)
        return future.result() if future.done() and not future.exception() else future

    def find(self, group: str) -> Group | ErrorCode | None:
        """Return the group; an error if it cannot be looked up here; None if it does not exist."""
        error = self._groups.office_error(group)
        return error if error is not ErrorCode.NONE else self._groups.find(group)

    def partition_of(self, group: str) -> TopicPartition:
        """The partition whose leader coordinates this group."""
        return TopicPartition(records.TOPIC, self._groups.partition_of(group))

    def all(self) -> list[Group]:
        """All groups that this broker coordinates."""
        return self._groups.all()

    def snapshots(self) -> list[GroupSnapshot]:
        """Snapshots of all groups that this broker coordinates."""
        return self._groups.snapshots()

    @property
    def is_loading(self) -> bool:
        """Whether some groups may not be loaded yet."""
        return self._groups.is_loading

    def fresh_id(self, prefix: str) -> str:
        """A unique id for a new member, with the given prefix."""
        number = f"{self._rng.getrandbits(128):032x}"
        parts = (number[:8], number[8:12], number[12:16], number[16:20], number[20:])
        return f"{prefix}-{'-'.join(parts)}"

    def now_ms(self) -> int:
        """The wall clock in milliseconds."""
        return self._wall_ms()

    def marked(self, partition: int, producer_id: int, at: Offset, *, is_commit: bool) -> None:
        """Apply a committed marker at offset ``at`` of this ``__consumer_offsets`` partition."""
        event = Marked(producer_id=producer_id, at=at, is_commit=is_commit)
        self._carry_out(self._groups.marked(partition, event, self._loop.time(), self._wall_ms()))

    def topics_gone(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the offsets that were committed for deleted partitions."""
        gone = tuple(partitions)
        if gone:
            self._carry_out(self._groups.topics_gone(gone, self._loop.time(), self._wall_ms()))

    # Leadership.

    def taken(self, tp: TopicPartition, leader_epoch: Epoch) -> None:
        """Start coordinating a partition of ``__consumer_offsets`` that this broker now leads."""
        is_new = tp.partition not in self._epochs
        self._epochs[tp.partition] = leader_epoch
        if is_new:
            self._groups.begin_loading(tp.partition)
            self._loads[tp.partition] = self._tasks.start(self._load(tp))

    def lost(self, tp: TopicPartition) -> None:
        """Stop coordinating a partition that this broker no longer leads."""
        if self._epochs.pop(tp.partition, None) is None:
            return
        load = self._loads.pop(tp.partition, None)
        if load is not None:
            load.cancel()
        self._carry_out(self._groups.unload(tp.partition, self._loop.time(), self._wall_ms()))

    async def _load(self, tp: TopicPartition) -> None:
        loading = await self._read(tp)
        await failpoints.point(failpoints.GROUPS_READ)
        del self._loads[tp.partition]
        self._groups.loaded(tp.partition, self._loop.time(), self._wall_ms())
        self._on_loaded(tp)
        for name in loading.names():
            self._arm(name)
        LOG.info("%s is read: %d groups", tp, len(loading.names()))

    async def _read(self, tp: TopicPartition) -> Loading:
        """Read the whole log; start again if the leader epoch changes meanwhile."""
        while True:
            epoch = self._epochs[tp.partition]
            loading = self._groups.begin_loading(tp.partition)
            async for header, rows in self._topics.read(tp, epoch):
                add_batch(loading, header, rows)
            if self._epochs[tp.partition] == epoch:
                return loading

    # Effects.

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Answered(ticket, answer):
                    future, answer_as = self._asked.pop(ticket, (None, None))
                    if future is not None and answer_as is not None and not future.done():
                        future.set_result(answer_as(answer))
                case Write():
                    self._write(effect)

    def _write(self, write: Write) -> None:
        tp = self.partition_of(write.group)

        def done(error: ErrorCode, offset: Offset) -> None:
            written = Written(number=write.number, error=error, offset=offset)
            now, now_ms = self._loop.time(), self._wall_ms()
            self._carry_out(self._groups.written(written, now, now_ms))
            self._arm(write.group)

        self._topics.append(
            tp,
            self._epochs.get(tp.partition, -1),
            write.records,
            done,
            producer=(None if write.producer_id < 0 else (write.producer_id, write.producer_epoch)),
            guard=write.guard,
        )

    def _arm(self, name: str) -> None:
        """Set a timer for the group's deadline; a timer that fires too early sets the next one."""
        group, timer = self._groups.find(name), self._timers.get(name)
        deadline = float("inf") if group is None else group.deadline
        if timer is not None and timer.when() <= deadline:
            return
        if timer is not None:
            timer.cancel()
            del self._timers[name]
        if deadline < float("inf"):
            self._timers[name] = self._loop.call_at(deadline, self._ring, name)

    def _ring(self, name: str) -> None:
        del self._timers[name]
        try:
            self._carry_out(
                self._groups.pass_event(name, Tick(), self._loop.time(), self._wall_ms())
            )
        except Exception as error:  # noqa: BLE001 - the edge of a callback
            self._on_failure(error)
        self._arm(name)

    def _expire(self) -> None:
        self._carry_out(self._groups.expire(self._loop.time(), self._wall_ms()))

    async def close(self) -> None:
        """Stop loading and cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._tasks.cancel()
        await self._tasks.ended()


def add_batch(loading: Loading, header: BatchHeader, rows: Sequence[Record]) -> None:
    """Add a batch of the log to what is loaded."""
    if not header.is_control:
        producer_id = header.producer_id if header.is_transactional else -1
        loading.rows(((row.offset, row.key, row.value) for row in rows), producer_id)
    elif rows:  # compaction may leave the batch without its marker (KAFKA-7467)
        is_commit = _marker_type(rows[0].key) == _MARKER_COMMIT
        loading.marker(header.producer_id, header.base_offset, is_commit=is_commit)


def group_config(config: BrokerConfig) -> GroupConfig:
    """The broker's settings that apply to groups."""
    return GroupConfig(
        session_timeout_min_ms=config.group_min_session_timeout_ms,
        session_timeout_max_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        size_max=config.group_max_size,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
    )


def _marker_type(key: bytes | None) -> int:
    """The type of a control record, whose key is a version and a type."""
    return -1 if key is None or len(key) < 4 else int.from_bytes(key[2:4], "big", signed=True)
