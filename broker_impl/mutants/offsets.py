"""Bugs in committed offsets: what a coordinator stores, which commit counts, what it answers."""

import asyncio
from collections.abc import Container, Sequence

import msgspec

from broker_impl.api import services
from broker_impl.coordinator import records
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.group_state import GroupState
from broker_impl.coordinator.groups.offsets import Placed
from broker_impl.coordinator.records import TOPIC, Committed
from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.wire.messages.write_txn_markers_request import WritableTxnMarker
from broker_impl.wire.types import Offset, TopicPartition

_LATER_S = 0.2
"""Seconds by which a marker is applied late to the committed offsets."""
_SOMEWHERE = 1 << 62
"""The offset of a marker whose offset is no longer known: after all others."""
_encode_offset = records.encode_offset


@mutant(
    "offset-cache-stale-on-load",
    of="broker_impl.coordinator.groups.loading:keep_later",
    source="F13, KAFKA-5600, KAFKA-4704",
    kind="historic",
    symptom="commit-regression",
    schedule="A coordinator dies after a group has committed more than once.",
)
def keep_later(
    into: dict[tuple[str, TopicPartition], Placed],
    key: tuple[str, TopicPartition],
    placed: Placed,
) -> None:
    """A coordinator that reads its log keeps each partition's first commit and ignores later ones.

    Members of the group are answered with old positions.
    """
    into.setdefault(key, placed)


@mutant(
    "commit-acks-1",
    of="broker_impl.node.coordinators.internal_topics:stored",
    source="F15, KAFKA-16735",
    kind="mutation",
    symptom="commit-regression",
    schedule="A group commits offsets, and its coordinator dies before its followers have fetched "
    "again.",
)
def stored(topic: str, key: bytes, acknowledged: ErrorCode | None) -> ErrorCode | None:
    """A commit is acknowledged once the coordinator alone has it.

    This is ``offsets.commit.required.acks = 1``. The next coordinator may lack the commit, and
    sends the group back to where it was before.
    """
    return ErrorCode.NONE if topic == TOPIC and acknowledged is None else acknowledged


@mutant(
    "serve-offsets-while-loading",
    of="broker_impl.api.group_offsets:offset_fetch_error",
    source="F14, KAFKA-5600",
    kind="mutation",
    symptom="lost-commit",
    schedule="A coordinator dies, and a client fetches committed offsets while the next "
    "coordinator waits for its followers.",
)
def offset_fetch_error(office: ErrorCode) -> ErrorCode:
    """A coordinator answers while it still reads its log: it knows of no commits yet.

    A consumer that gets this answer starts from the beginning or the end of the log.
    """
    is_loading = office is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ErrorCode.NONE if is_loading else office


@mutant(
    "txn-offsets-visible-early",
    of="broker_impl.coordinator.groups.rules:counts_at_once",
    source="T-31, KIP-98",
    kind="mutation",
    symptom="eos-mismatch",
    schedule="A transaction with committed offsets is aborted, and the member leaves the group.",
)
def counts_at_once(producer_id: int) -> bool:
    """The offsets that a transaction commits count at once, whether or not it is committed later.

    An aborted transaction has no output, but the next reader starts after its inputs all the same.
    """
    return True


@mutant(
    "marker-ack-before-offsets",
    of="broker_impl.api.markers:offsets_count",
    source="T-34, KAFKA-17507",
    kind="historic",
    symptom="eos-mismatch",
    schedule="A partition is assigned to another member of the group right after a transaction "
    "has ended, or the next transaction is aborted.",
)
def offsets_count(
    groups: services.Groups, partition: int, marker: WritableTxnMarker, at: Offset
) -> None:
    """A marker is acknowledged before the committed offsets of its transaction count.

    A member that asks in between starts where the transaction started. And what the next
    transaction of the same producer commits meanwhile counts with it, although it may be aborted.
    """
    asyncio.get_running_loop().call_later(
        _LATER_S,
        lambda: groups.marked(
            partition, marker.producer_id, _SOMEWHERE, is_commit=marker.transaction_result
        ),
    )


@mutant(
    "marker-told-first",
    of="broker_impl.coordinator.groups.rules:fate",
    source="T-44, finding 21",
    kind="historic",
    symptom="commit-ahead",
    schedule="A follower hangs while offsets are committed in a transaction, until the "
    "transaction is aborted because it timed out.",
    tier=2,
)
def fate(markers: Sequence[tuple[Offset, bool]], at: Offset) -> tuple[Offset, bool] | None:
    """Offsets that the log reports after the marker of their transaction wait for the next marker.

    They then count with that transaction, although their own was aborted.
    """
    return None


@mutant(
    "tombstone-ignored-on-load",
    of="broker_impl.coordinator.groups.loading:takes_back",
    source="F18, KAFKA-4704, KAFKA-12520",
    kind="mutation",
    symptom="commit-regression",
    schedule="Offsets are deleted, and the group's coordinator dies.",
)
def takes_back(at: Offset, placed: Placed | None) -> bool:
    """A coordinator that reads its log ignores tombstones of committed offsets.

    Deleted offsets are back until compaction removes both the commit and its tombstone.
    """
    return False


@mutant(
    "offsets-outlive-group",
    of="broker_impl.coordinator.groups.removal:group_tombstones",
    source="KIP-229",
    kind="mutation",
    symptom="invariant:deleted-offset-returned",
    schedule="A group with committed offsets is deleted, and its coordinator dies.",
)
def group_tombstones(group: GroupState) -> list[tuple[bytes, bytes | None]]:
    """The deletion of a group is written for the group itself, but not for its offsets.

    The next coordinator reads the commits and finds no tombstone. A new group with the same name
    starts where the deleted one ended.
    """
    return [(records.encode_group_key(group.name), None)]


@mutant(
    "offsets-outlive-topic",
    of="broker_impl.coordinator.groups.removal:of_deleted_topics",
    source="KAFKA-2000",
    kind="historic",
    symptom="invariant:deleted-offset-returned",
    schedule="Offsets of a topic are committed, and the topic is deleted.",
)
def of_deleted_topics(
    group: GroupState, gone: Container[TopicPartition]
) -> tuple[TopicPartition, ...]:
    """The committed offsets of a topic are kept when it is deleted.

    If a topic is created under the same name, its consumers start at offsets of the former one and
    skip the records before them.
    """
    return ()


@mutant(
    "commit-metadata-dropped",
    of="broker_impl.coordinator.records:encode_offset",
    source="F24",
    kind="historic",
    symptom="commit-mismatch",
    schedule="Offsets are committed with metadata, and the group's coordinator dies.",
    tier=2,
)
def encode_offset(committed: Committed) -> bytes:
    """The metadata and leader epoch of a commit are kept in memory but not written.

    The next coordinator has the offset alone. A consumer that stores its own state in the metadata
    starts without it; and without the leader epoch, no consumer checks whether its log was
    truncated.
    """
    return _encode_offset(msgspec.structs.replace(committed, metadata="", leader_epoch=-1))


@mutant(
    "txn-offsets-in-marker-order",
    of="broker_impl.coordinator.groups.rules:supersedes",
    source="T-33, KAFKA-5247",
    kind="historic",
    symptom="commit-regression",
    schedule="A group commits offsets in a transaction, and also outside of it before the "
    "transaction has ended.",
    tier=2,
)
def supersedes(new: Offset, old: Offset | None) -> bool:
    """Offsets of a transaction count from its marker on and replace commits made before the marker.

    A consumer that committed between the transactional commit and the marker is sent back. The log
    disagrees: once compaction has removed the older record, the group is at another position.
    """
    return True


@mutant(
    "load-stops-at-gap",
    of="broker_impl.node.coordinators.internal_topics:goes_on",
    source="T-18, KAFKA-9065",
    kind="historic",
    symptom="lost-commit",
    schedule="The coordinator's log is compacted, and the coordinator dies.",
    tier=2,
)
def goes_on(offset: Offset, first: Offset | None) -> bool:
    """A coordinator that reads its log takes the first gap that compaction left for the log's end.

    The records after it are ignored, and the coordinator answers requests without them.
    """
    return first == offset


@mutant(
    "group-deleted-with-pending-txn",
    of="broker_impl.coordinator.groups.rules:is_settled",
    source="T-37, KAFKA-19163, KAFKA-19164",
    kind="historic",
    symptom="lost-commit",
    schedule="A group without other offsets commits in a transaction, and the coordinator checks "
    "for expired offsets before the transaction has ended.",
    tier=2,
)
def is_settled(*, is_writing: bool, is_pending: bool) -> bool:
    """A group without offsets is removed even if some of its offsets wait for their transaction.

    The pending offsets are removed with it. The transaction is committed, but none of its offsets
    count.
    """
    return not is_writing


@mutant(
    "unstable-offsets-unflagged",
    of="broker_impl.api.group_offsets:is_withheld",
    source="T-32, KIP-447, KAFKA-9346",
    kind="mutation",
    symptom="invariant:stable-offset-settled",
    schedule="A consumer asks for stable offsets while a transaction with offsets is open.",
)
def is_withheld(*, require_stable: bool, is_unstable: bool) -> bool:
    """A consumer that asks for stable offsets gets the last committed one at once.

    It begins there, and reads again what the open transaction has consumed: if that commits, its
    results are there twice.
    """
    return False


@mutant(
    "txn-offset-unverified",
    of="broker_impl.api.group_offsets:verification_error",
    source="T-35, KAFKA-15449, KAFKA-15784, KIP-890",
    kind="historic",
    symptom="invariant:accepted-outside-transaction",
    schedule="A producer commits offsets in a transaction that has ended.",
)
def verification_error(answer: ErrorCode) -> ErrorCode:
    """Offsets are stored for a transaction whatever its coordinator says about it.

    No marker follows if the transaction has ended. The offsets wait for it for ever, and consumers
    that ask for stable offsets do not begin to read.
    """
    return ErrorCode.NONE


@mutant(
    "one-partition-of-all",
    of="broker_impl.api.group_offsets:_all_topics",
    source="KIP-709",
    kind="mutation",
    symptom="invariant:fetched-as-committed",
    schedule="A client asks for the offsets of all partitions of a group.",
)
def _all_topics(group: Group | None) -> list[tuple[str, list[int]]]:
    """Of each topic, only one partition is in the answer that should have all.

    A tool that copies or resets the offsets of a group leaves out the others.
    """
    known = {} if group is None else {tp.topic: [tp.partition] for tp in group.offsets}
    return list(known.items())


@mutant(
    "commit-epoch-dropped",
    of="broker_impl.coordinator.records:encode_offset",
    source="KIP-320",
    kind="mutation",
    symptom="invariant:fetched-as-committed",
    schedule="A consumer commits an offset with its leader epoch, and the coordinator dies.",
)
def encode_offset_alone(committed: Committed) -> bytes:
    """The leader epoch of a commit is kept in memory but not written.

    A consumer that continues from the offset does not notice that the log was truncated below it
    meanwhile, and misses the records that were written in their place.
    """
    return _encode_offset(msgspec.structs.replace(committed, leader_epoch=-1))
