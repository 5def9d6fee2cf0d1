"""Write a group's records to the log, so that they survive this broker."""

from collections.abc import Iterable, Mapping, Sequence

from broker_impl.coordinator import records
from broker_impl.coordinator.groups.events import Commit, Effect, Write, Written
from broker_impl.coordinator.groups.group_state import Done, GroupState
from broker_impl.coordinator.records import GroupRecord, MemberRecord
from broker_impl.wire.types import TopicPartition


def write(
    group: GroupState,
    rows: Sequence[tuple[bytes, bytes | None]],
    done: Done,
    effects: list[Effect],
    commit: Commit | None = None,
) -> None:
    """Request a write; ``done`` is called with its outcome. A commit's producer goes with it."""
    number = group.numbers()
    group.writes[number] = done
    effects.append(
        Write(
            group=group.name,
            number=number,
            records=tuple(rows),
            producer_id=-1 if commit is None else commit.producer_id,
            producer_epoch=-1 if commit is None else commit.producer_epoch,
            guard=None if commit is None else commit.guard,
        )
    )


def group_record(group: GroupState, assignments: Mapping[str, bytes]) -> tuple[bytes, bytes | None]:
    """The key and value that describe the group with these assignments."""
    record = GroupRecord(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        state_since_ms=group.state_since_ms,
        members=tuple(
            MemberRecord(
                member_id=member.id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                subscription=member.protocols[group.protocol or ""],
                assignment=assignments[member.id],
            )
            for member in group.members.values()
        ),
    )
    return records.encode_group_key(group.name), records.encode_group(record)


def tombstones(
    group: GroupState, partitions: Iterable[TopicPartition]
) -> list[tuple[bytes, bytes | None]]:
    """The records that delete these committed offsets."""
    return [(records.encode_offset_key(group.name, tp), None) for tp in partitions]


def store_empty(group: GroupState, effects: list[Effect]) -> None:
    """Write a group that has lost its last member, so that no coordinator restores the member."""
    write(group, [group_record(group, {})], _ignore, effects)


def _ignore(written: Written, now: float, effects: list[Effect]) -> None:
    """Do nothing: the record of an empty group is only for the next coordinator."""
