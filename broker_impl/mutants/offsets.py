"""Bugs in committed offsets: what is kept of them, what counts, what a coordinator says of it."""

import asyncio
from collections.abc import Sequence

import msgspec

from broker_impl.api import services
from broker_impl.coordinator import records
from broker_impl.coordinator.groups.offsets import Placed
from broker_impl.coordinator.records import TOPIC, Committed
from broker_impl.errors import ErrorCode
from broker_impl.mutants import mutant
from broker_impl.wire.messages.write_txn_markers_request import WritableTxnMarker
from broker_impl.wire.types import Offset, TopicPartition

_LATER_S = 0.2
_SOMEWHERE = 1 << 62
"""Of a marker whose place nobody knows any more: behind everything."""
"""How late a queue may be worked off."""
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
    """A coordinator that reads its log keeps what it has, and passes over what comes later.

    What it tells a group's members is where they once were.
    """
    into.setdefault(key, placed)


@mutant(
    "commit-acks-1",
    of="broker_impl.node.internal_topics:stored",
    source="F15, KAFKA-16735",
    kind="mutation",
    symptom="commit-regression",
    schedule="A group commits, and its coordinator dies before its followers have asked for more.",
)
def stored(topic: str, key: bytes, acknowledged: ErrorCode | None) -> ErrorCode | None:
    """A commit is acknowledged when the coordinator has it, as with
    ``offsets.commit.required.acks = 1``.

    The next coordinator may lack it, and sends the group back to where it was before.
    """
    return ErrorCode.NONE if topic == TOPIC and acknowledged is None else acknowledged


@mutant(
    "serve-offsets-while-loading",
    of="broker_impl.api.group_offsets:untold",
    source="F14, KAFKA-5600",
    kind="mutation",
    symptom="lost-commit",
    schedule="A coordinator dies, and somebody asks what is committed while the next one waits for "
    "its followers.",
)
def untold(office: ErrorCode) -> ErrorCode:
    """A coordinator that still reads its log answers from what it knows: nothing.

    A consumer that is told so begins anew, at the one end of the log or at the other.
    """
    is_loading = office is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ErrorCode.NONE if is_loading else office


@mutant(
    "txn-offsets-visible-early",
    of="broker_impl.coordinator.groups.rules:counts_at_once",
    source="T-31, KIP-98",
    kind="mutation",
    symptom="eos-mismatch",
    schedule="A transaction that commits offsets is aborted, and its member leaves.",
)
def counts_at_once(producer_id: int) -> bool:
    """Offsets that a transaction commits count at once, whatever becomes of it.

    Of one that is aborted no output is left. Whoever reads on begins behind its inputs all the
    same.
    """
    return True


@mutant(
    "marker-ack-before-offsets",
    of="broker_impl.api.markers:offsets_count",
    source="T-34, KAFKA-17507",
    kind="historic",
    symptom="eos-mismatch",
    schedule="A group's partition is given to another member right after a transaction has ended, "
    "or its next transaction is aborted.",
)
def offsets_count(
    groups: services.Groups, partition: int, marker: WritableTxnMarker, at: Offset
) -> None:
    """A marker is answered for before the offsets of its transaction count.

    Whoever asks in between begins where the transaction had begun. And what the next transaction of
    the same producer commits meanwhile counts with it, though it may be aborted.
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
    schedule="A follower hangs while offsets are committed in a transaction, until that has been "
    "aborted for its age.",
    tier=2,
)
def fate(markers: Sequence[tuple[Offset, bool]], at: Offset) -> tuple[Offset, bool] | None:
    """Offsets that are told of after the marker of their transaction wait for the next one.

    They count with it, though their own was aborted.
    """
    return None


@mutant(
    "tombstone-ignored-on-load",
    of="broker_impl.coordinator.groups.loading:takes_back",
    source="F18, KAFKA-4704, KAFKA-12520",
    kind="mutation",
    symptom="commit-regression",
    schedule="Offsets are deleted, and their coordinator dies.",
)
def takes_back(at: Offset, placed: Placed | None) -> bool:
    """A coordinator that reads its log passes over records that take an offset back.

    What was deleted is there again, until compaction forgets the one and the other.
    """
    return False


@mutant(
    "commit-metadata-dropped",
    of="broker_impl.coordinator.records:encode_offset",
    source="F24",
    kind="historic",
    symptom="commit-mismatch",
    schedule="Offsets are committed with metadata, and their coordinator dies.",
    tier=2,
)
def encode_offset(committed: Committed) -> bytes:
    """What is committed beside an offset is remembered, and not written.

    The next coordinator has the offset alone. A consumer that keeps there how far its own state
    goes begins with none; and without the leader epoch none asks whether its log was cut.
    """
    return _encode_offset(msgspec.structs.replace(committed, metadata="", leader_epoch=-1))


@mutant(
    "txn-offsets-in-marker-order",
    of="broker_impl.coordinator.groups.rules:supersedes",
    source="T-33, KAFKA-5247",
    kind="historic",
    symptom="commit-regression",
    schedule="A group commits in a transaction, and plainly before that has ended.",
    tier=2,
)
def supersedes(new: Offset, old: Offset | None) -> bool:
    """Offsets of a transaction count from its marker on, and so replace whatever was committed
    between the two.

    Whoever has committed since then is sent back to before it. And the log says otherwise: once the
    older record is gone by compaction, the group is elsewhere.
    """
    return True


@mutant(
    "load-stops-at-gap",
    of="broker_impl.node.internal_topics:goes_on",
    source="T-18, KAFKA-9065",
    kind="historic",
    symptom="lost-commit",
    schedule="The coordinator's log is compacted, and the coordinator dies.",
    tier=2,
)
def goes_on(offset: Offset, first: Offset | None) -> bool:
    """A coordinator that reads its log takes offsets that compaction has left out for its end.

    What lies behind them is as if it had never been, and is told so as soon as somebody asks.
    """
    return first == offset


@mutant(
    "group-deleted-with-pending-txn",
    of="broker_impl.coordinator.groups.rules:is_settled",
    source="T-37, KAFKA-19163, KAFKA-19164",
    kind="historic",
    symptom="lost-commit",
    schedule="A group that has nothing else commits in a transaction, and is looked at for offsets "
    "to expire before that has ended.",
    tier=2,
)
def is_settled(*, is_writing: bool, is_pending: bool) -> bool:
    """A group is over that has no offsets, though some wait for their transaction.

    It is forgotten, and they with it. The transaction is committed, and nothing is there that could
    count.
    """
    return not is_writing
