"""The group coordinator of one broker: the groups of all partitions that it leads and has loaded.

The hash of a group's name determines its partition of ``__consumer_offsets``. The coordinator
answers requests for a group only after it has read the whole partition, and only while this broker
leads it. An answer from a part of the log could have no committed offset, and the consumer would
start again at the beginning.
"""

import itertools

from broker_impl.coordinator import partitioner
from broker_impl.coordinator.groups import rules
from broker_impl.coordinator.groups.events import (
    Answered,
    Commit,
    Delete,
    Effect,
    Event,
    Expire,
    Heartbeat,
    Join,
    Leave,
    LeaveAnswer,
    Marked,
    Request,
    Sync,
    TopicsGone,
    Unload,
    Write,
    Written,
)
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.loading import Loading
from broker_impl.coordinator.groups.members import GroupConfig, GroupSnapshot
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.coordinator.records import GroupRecord
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import TopicPartition


class Groups:
    """The groups of one broker, by partition."""

    def __init__(self, config: GroupConfig, partitions: int) -> None:
        """``partitions`` is the number of partitions of ``__consumer_offsets``."""
        self._config = config
        self._partitions = partitions
        self._numbers = itertools.count(1)
        self._loading: dict[int, Loading] = {}
        self._led: dict[int, dict[str, Group]] = {}
        self._writers: dict[int, Group] = {}

    # Leadership.

    def begin_loading(self, partition: int) -> Loading:
        """Start to load a partition that this broker leads, and return an empty `Loading`.

        The caller adds the records of the log to it. A load in progress is discarded.
        """
        assert partition not in self._led, (
            "a partition must be unloaded before it is loaded again (KAFKA-10614)"
        )
        loading = self._loading[partition] = Loading()
        return loading

    def loaded(self, partition: int, now: float, now_ms: int) -> None:
        """Create the groups of a partition, after its log was read completely.

        All records of the log up to its end have been replicated then.
        """
        loading = self._loading.pop(partition)
        for marked in loading.marked_meanwhile:
            loading.marker(marked.producer_id, marked.at, is_commit=marked.is_commit)
        groups = self._led[partition] = {}
        for name in loading.names():
            group = groups[name] = self._new(name, now_ms)
            restore(group, loading.groups.get(name), now)
        for (name, tp), placed in loading.offsets.items():
            groups[name].offsets.place(placed.at, {tp: placed.committed})
        for producer_id, pending in loading.pending.items():
            for (name, tp), placed in pending.items():
                groups[name].offsets.hold(producer_id, placed.at, {tp: placed.committed})

    def unload(self, partition: int, now: float, now_ms: int) -> list[Effect]:
        """Remove the groups of a partition that this broker no longer leads.

        Waiting requests are answered with an error that makes clients look for the new coordinator.
        """
        self._loading.pop(partition, None)
        effects: list[Effect] = []
        for group in taken_out(self._led, partition):
            effects += self._pass_to(group, Unload(), now, now_ms)
        return effects

    # Requests.

    def partition_of(self, group: str) -> int:
        """The partition of ``__consumer_offsets`` that this group belongs to."""
        return partitioner.partition_of(group, self._partitions)

    def office_error(self, group: str) -> ErrorCode:
        """Return the error for a group that this broker does not coordinate or has not loaded."""
        partition = self.partition_of(group)
        return office_error(partition in self._led, partition in self._loading)

    def handle(self, name: str, event: Request, now: float, now_ms: int) -> list[Effect]:
        """Handle a request for a group.

        The group is created if it does not exist and the request is the first JoinGroup of a
        member, or an OffsetCommit without a generation.
        """
        error = _name_error(name, event)
        if error is ErrorCode.NONE:
            error = self.office_error(name)
        if isinstance(event, Heartbeat) and error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # A heartbeat only says that the member is alive; sessions begin after loading.
            return [Answered(event.ticket, ErrorCode.NONE)]
        if isinstance(event, Sync) and error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance is lost. Java's consumer takes COORDINATOR_LOAD_IN_PROGRESS as fatal
            # here; after REBALANCE_IN_PROGRESS it joins again.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not ErrorCode.NONE:
            return [Answered(event.ticket, event.refused(error))]
        groups = self._led[self.partition_of(name)]
        group = groups.get(name)
        if group is None:
            if not _founds(event):
                return [Answered(event.ticket, _unknown(event))]
            group = groups[name] = self._new(name, now_ms)
        return self._pass_to(group, event, now, now_ms)

    def written(self, event: Written, now: float, now_ms: int) -> list[Effect]:
        """Handle the result of a write to the log that an effect has requested."""
        return self._pass_to(self._writers.pop(event.number), event, now, now_ms)

    def pass_event(self, name: str, event: Event, now: float, now_ms: int) -> list[Effect]:
        """Pass an event that is not a request, such as a tick, to a group."""
        group = self.find(name)
        return [] if group is None else self._pass_to(group, event, now, now_ms)

    def marked(self, partition: int, event: Marked, now: float, now_ms: int) -> list[Effect]:
        """Handle the end of a transaction in this partition, after its marker is replicated.

        While the partition is loading, the end is applied after loading.
        """
        if partition in self._loading:
            self._loading[partition].marked_meanwhile.append(event)
        effects: list[Effect] = []
        for group in self._led.get(partition, {}).values():
            if group.offsets.may_concern(event.producer_id):
                effects += self._pass_to(group, event, now, now_ms)
        return effects

    def expire(self, now: float, now_ms: int) -> list[Effect]:
        """Remove offsets and groups that have not been used for their retention time."""
        return self._pass_to_all(Expire(), now, now_ms)

    def topics_gone(
        self, partitions: tuple[TopicPartition, ...], now: float, now_ms: int
    ) -> list[Effect]:
        """Remove the offsets of partitions that were deleted."""
        return self._pass_to_all(TopicsGone(partitions), now, now_ms)

    # Queries.

    def find(self, name: str) -> Group | None:
        """Return the group; None if this broker does not coordinate it or it does not exist."""
        return self._led.get(self.partition_of(name), {}).get(name)

    def all(self) -> list[Group]:
        """All groups of the partitions that are loaded."""
        return [group for groups in self._led.values() for group in groups.values()]

    def snapshots(self) -> list[GroupSnapshot]:
        """Return snapshots of all groups that this broker coordinates."""
        return [group.snapshot() for group in self.all()]

    @property
    def is_loading(self) -> bool:
        """Whether any partition that this broker leads has not been read completely."""
        return bool(self._loading)

    def _new(self, name: str, now_ms: int) -> Group:
        return Group(name, self._config, lambda: next(self._numbers), now_ms)

    def _pass_to_all(self, event: Event, now: float, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for groups in list(self._led.values()):
            for group in list(groups.values()):
                effects += self._pass_to(group, event, now, now_ms)
        return effects

    def _pass_to(self, group: Group, event: Event, now: float, now_ms: int) -> list[Effect]:
        effects = group.handle(event, now, now_ms)
        for effect in effects:
            if isinstance(effect, Write):
                self._writers[effect.number] = group
        if group.state is GroupStatus.DEAD:
            groups = self._led.get(self.partition_of(group.name), {})
            if groups.get(group.name) is group:
                del groups[group.name]
        return effects


def restore(group: Group, record: GroupRecord | None, now: float) -> None:
    """Restore a group in the generation of its last group metadata record.

    A group without such a record has offsets only, and has no members.
    """
    if record is not None:
        group.restore(record, now)


def taken_out(led: dict[int, dict[str, Group]], partition: int) -> list[Group]:
    """Remove and return the groups of a partition that this broker no longer leads.

    No request is answered from these groups afterwards.
    """
    return list(led.pop(partition, {}).values())


def office_error(is_led: bool, is_loading: bool) -> ErrorCode:
    """Return the error for a request to a group of this partition, or NONE.

    While the log is being read, the client gets a retriable error, and not a response without a
    committed offset (KAFKA-5600).
    """
    if is_led:
        return ErrorCode.NONE
    if is_loading:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ErrorCode.NOT_COORDINATOR


def _name_error(name: str, event: Request) -> ErrorCode:
    is_commit = isinstance(event, Commit) and event.producer_id < 0
    if name or is_commit or isinstance(event, Delete):
        return ErrorCode.NONE
    return ErrorCode.INVALID_GROUP_ID


def _founds(event: Request) -> bool:
    """Return whether this request creates the group if it does not exist."""
    if isinstance(event, Join):
        return event.member_id == rules.NO_MEMBER
    return isinstance(event, Commit) and event.generation < 0


def _unknown(event: Request) -> object:
    if isinstance(event, Leave):
        error = ErrorCode.UNKNOWN_MEMBER_ID
        return LeaveAnswer(rows=tuple((*member, error) for member in event.members))
    if isinstance(event, Commit):
        of_member = event.producer_id >= 0 and event.member_id != rules.NO_MEMBER
        error = ErrorCode.UNKNOWN_MEMBER_ID if of_member else ErrorCode.ILLEGAL_GENERATION
        return event.refused(error)
    if isinstance(event, Join | Sync | Heartbeat):
        return event.refused(ErrorCode.UNKNOWN_MEMBER_ID)
    return event.refused(ErrorCode.GROUP_ID_NOT_FOUND)
