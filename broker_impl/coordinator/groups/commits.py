"""OffsetCommit and TxnOffsetCommit: check a commit, write it, and apply it once it is stored."""

from broker_impl.coordinator import records
from broker_impl.coordinator.groups import removal, rules, storing
from broker_impl.coordinator.groups.events import Answered, Commit, Effect, Written
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.offsets import Writing
from broker_impl.coordinator.groups.states import GroupStatus
from broker_impl.errors import ErrorCode
from broker_impl.wire.types import Offset


def on_commit(group: GroupState, commit: Commit, now: float, effects: list[Effect]) -> None:
    """Write a valid commit to the log; it is answered, and counts, once it is stored."""
    error = _commit_error(group, commit)
    member = group.members.get(commit.member_id)
    if member is not None and error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        member.restart_session(now)
    if error is not ErrorCode.NONE or not commit.offsets:
        effects.append(Answered(commit.ticket, error))
        return

    def done(written: Written, now: float, effects: list[Effect]) -> None:
        group.offsets.end(writing)
        if rules.counts_as_stored(written.error):
            _keep(group, commit, writing, written.offset)
        elif written.is_appended:
            group.offsets.doubt(written.offset, writing.partitions)
        if written.is_appended:
            _keep_gone(group, commit, writing, written.offset)
        removal.write_owed(group, effects)
        effects.append(Answered(commit.ticket, rules.commit_error(written.error)))

    writing = group.offsets.begin(commit.producer_id, commit.offsets)
    rows = [
        (records.encode_offset_key(group.name, tp), records.encode_offset(committed))
        for tp, committed in commit.offsets.items()
    ]
    storing.write(group, rows, done, effects, commit)


def _commit_error(group: GroupState, commit: Commit) -> ErrorCode:
    """Why a commit is rejected: because of its member, its generation or the group's state."""
    if group.state is GroupStatus.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if commit.producer_id >= 0:
        return rules.transaction_error(
            commit.member_id in group.members,
            None if commit.instance_id is None else group.static.get(commit.instance_id),
            commit.member_id,
            commit.generation,
            group.generation,
        )
    if rules.names_nobody(commit.member_id, commit.instance_id, commit.generation):
        return rules.outsider_error(group.state) or rules.commit_state_error(group.state)
    if commit.generation < 0 and group.state is GroupStatus.EMPTY:
        return ErrorCode.NONE
    of_member = group.member_error(commit.member_id, commit.instance_id)
    error = rules.committer_error(of_member, commit.generation, group.generation)
    return error or rules.commit_state_error(group.state)


def _keep(group: GroupState, commit: Commit, writing: Writing, at: Offset) -> None:
    offsets = {tp: commit.offsets[tp] for tp in writing.partitions}
    if rules.counts_at_once(commit.producer_id):
        group.offsets.place(at, offsets)
    else:
        group.offsets.hold(commit.producer_id, at, offsets, writing.markers)


def _keep_gone(group: GroupState, commit: Commit, writing: Writing, at: Offset) -> None:
    """Keep the offsets of partitions that were deleted until their transaction ends."""
    if not rules.counts_at_once(commit.producer_id):
        offsets = {tp: commit.offsets[tp] for tp in writing.gone}
        group.offsets.hold(commit.producer_id, at, offsets, writing.markers, is_gone=True)
