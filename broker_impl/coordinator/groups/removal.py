"""Removal of committed offsets and of whole groups, by request or because they expired."""

from collections.abc import Callable, Container

from broker_impl.coordinator import records
from broker_impl.coordinator.groups import rules, storing, subscription
from broker_impl.coordinator.groups.events import (
    Answered,
    Delete,
    DeleteOffsets,
    DeleteOffsetsAnswer,
    Effect,
    Written,
)
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import TopicPartition


def delete_offsets(group: GroupState, asked: DeleteOffsets, effects: list[Effect]) -> None:
    """Delete offsets, except of topics to which the group is subscribed.

    A group without members ends with its last offset.
    """
    refusal = _delete_offsets_error(group)
    if refusal is not ErrorCode.NONE:
        effects.append(Answered(asked.ticket, asked.refused(refusal)))
        return
    gone = tuple(tp for tp in asked.partitions if not group.is_subscribed(tp.topic))

    def done(error: ErrorCode) -> list[Effect]:
        rows = {
            tp: error if tp in gone else ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            for tp in asked.partitions
        }
        effects: list[Effect] = [Answered(asked.ticket, DeleteOffsetsAnswer(rows=rows))]
        if error is ErrorCode.NONE and gone and group.is_unused and not group.offsets:
            _remove_group(group, effects)
        return effects

    in_log = group.offsets.in_log
    known = tuple(tp for tp in gone if tp in in_log)
    if known:
        forget(group, known, effects, done)
    else:
        effects += done(ErrorCode.NONE)


def _delete_offsets_error(group: GroupState) -> ErrorCode:
    if group.state is GroupStatus.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is GroupStatus.EMPTY or group.protocol_type == subscription.CONSUMER:
        return ErrorCode.NONE
    return ErrorCode.NON_EMPTY_GROUP


def forget(
    group: GroupState,
    partitions: tuple[TopicPartition, ...],
    effects: list[Effect],
    answer_with: Callable[[ErrorCode], list[Effect]] = lambda error: [],
) -> None:
    """Write tombstones for these offsets and then remove them; `answer_with` gets the error."""
    if not partitions:
        return

    def done(written: Written, now: float, effects: list[Effect]) -> None:
        if rules.counts_as_stored(written.error):
            group.offsets.forget(written.offset, partitions)
        group.offsets.end_deletion()
        effects += answer_with(rules.commit_error(written.error))

    group.offsets.begin_deletion()
    storing.write(group, storing.tombstones(group, partitions), done, effects)


def expire(group: GroupState, effects: list[Effect]) -> None:
    """Remove offsets whose retention has passed, unless members still read them (KIP-211)."""
    write_owed(group, effects)
    unused_since, keep = -1, frozenset[str]()
    if group.state is GroupStatus.EMPTY:
        if group.protocol_type is not None:
            unused_since = group.state_since_ms
    elif group.state is GroupStatus.STABLE and group.subscribed is not None:
        keep = group.subscribed
    else:
        return
    gone = group.offsets.expired(
        group.now_ms, group.config.offsets_retention_ms, unused_since, keep
    )
    if group.is_unused and len(gone) == len(group.offsets):
        _remove_group(group, effects)
    else:
        forget(group, gone, effects)


def delete_group(group: GroupState, asked: Delete, effects: list[Effect]) -> None:
    """Delete a group that has no members and no unfinished commits."""
    if rules.may_be_deleted(group.state, group.offsets.is_settled):
        _remove_group(group, effects, asked)
        return
    is_dead = group.state is GroupStatus.DEAD
    error = ErrorCode.GROUP_ID_NOT_FOUND if is_dead else ErrorCode.NON_EMPTY_GROUP
    effects.append(Answered(asked.ticket, error))


def _remove_group(group: GroupState, effects: list[Effect], asked: Delete | None = None) -> None:
    """Remove the group and all of its offsets, and write their tombstones."""

    def done(written: Written, now: float, effects: list[Effect]) -> None:
        if asked is not None:
            effects.append(Answered(asked.ticket, rules.commit_error(written.error)))

    group.die()
    storing.write(group, group_tombstones(group), done, effects)


def group_tombstones(group: GroupState) -> list[tuple[bytes, bytes | None]]:
    """The records that delete a group: its committed offsets, and the group itself (KIP-229).

    Offsets of which it is not known whether they were stored are deleted, too.
    """
    rows = storing.tombstones(group, group.offsets.in_log)
    return [*rows, (records.encode_group_key(group.name), None)]


def of_deleted_topics(
    group: GroupState, gone: Container[TopicPartition]
) -> tuple[TopicPartition, ...]:
    """The partitions whose committed offsets are removed because they were deleted (KAFKA-2000).

    A later topic of the same name has other records at these offsets.
    """
    return tuple(tp for tp in group.offsets.known if tp in gone)


def write_owed(group: GroupState, effects: list[Effect]) -> None:
    """Write tombstones for deleted partitions; those that fail are written again by `expire`."""
    if group.state is GroupStatus.DEAD:
        return
    owed = group.offsets.take_owed()

    def done(error: ErrorCode) -> list[Effect]:
        if error is not ErrorCode.NONE:
            group.offsets.owe(owed)
        return []

    forget(group, owed, effects, done)
