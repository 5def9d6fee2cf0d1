"""Committed offsets of consumer groups: commit, fetch, delete.

Served: OffsetCommit (API 8) v1-v8, OffsetFetch (9) v1-v8, TxnOffsetCommit (28) v0-v3, OffsetDelete
(47) v0. A commit is answered once every in-sync replica has it. Metadata and leader epoch are
returned as they were committed. The first offsets of a transaction in a partition are accepted once
the transaction's coordinator has confirmed that it is open (KIP-890, part 1). As in Kafka 2.8, a
group without members is removed when OffsetDelete leaves it without offsets, and TxnOffsetCommit
ignores an instance id that no member has.

Refuses: commits of unknown members and of other generations, unknown topics, metadata longer than
offset.metadata.max.bytes; with require_stable, offsets whose transaction is open (KIP-447).

Left out: offsets in ZooKeeper (OffsetCommit and OffsetFetch v0).
"""

from collections.abc import Sequence
from typing import Any

from broker_impl.api.registry import RequestContext, api
from broker_impl.config import BrokerConfig
from broker_impl.config.setting import INT64_MAX
from broker_impl.coordinator.groups.events import Commit, DeleteOffsets, DeleteOffsetsAnswer
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.records import Committed
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
)
from broker_impl.wire.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from broker_impl.wire.messages.offset_delete_request import OffsetDeleteRequest
from broker_impl.wire.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from broker_impl.wire.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from broker_impl.wire.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from broker_impl.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from broker_impl.wire.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from broker_impl.wire.types import TopicPartition

_NOTHING = Committed(-1)
_OF_VERIFICATION = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
}
"""Replacements for errors of the transaction coordinator.

The client would take the first ones for errors of the group coordinator (KAFKA-16386). The last one
is what a log answers to a producer with an old epoch, and so what clients of this request know.
"""


@api(8, range(1, 9))
def offset_commit(context: RequestContext, request: OffsetCommitRequest) -> Any:
    """Store the offsets of the valid partitions, all of them or none."""
    services = context.services
    now_ms = services.groups.now_ms()
    refused: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, Committed] = {}
    too_long: dict[TopicPartition, None] = {}
    for topic in request.topics:
        for row in topic.partitions:
            tp = TopicPartition(topic.name, row.partition_index)
            if services.view.partition(tp) is None:
                refused[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif is_too_long(row.committed_metadata or "", services.config):
                too_long[tp] = None
            else:
                offsets[tp] = _committed(row, request.retention_time_ms, now_ms)

    def event(ticket: int) -> Commit:
        return Commit(
            ticket=ticket,
            member_id=request.member_id,
            generation=request.generation_id,
            instance_id=request.group_instance_id,
            offsets=offsets,
        )

    def answer_as(error: ErrorCode) -> OffsetCommitResponse:
        errors = refused | dict.fromkeys(offsets, error)
        errors |= dict.fromkeys(too_long, error or ErrorCode.OFFSET_METADATA_TOO_LARGE)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=row.partition_index,
                            error_code=errors[TopicPartition(topic.name, row.partition_index)],
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return services.groups.ask(request.group_id, event, answer_as)


def is_too_long(metadata: str, config: BrokerConfig) -> bool:
    """Is an offset's metadata longer than it may be? Kafka counts UTF-16 units, and not bytes."""
    limit = config.offset_metadata_max_bytes
    return len(metadata) > limit or len(metadata.encode("utf-16-le")) // 2 > limit


def _committed(row: OffsetCommitRequestPartition, retention_ms: int, now_ms: int) -> Committed:
    return Committed(
        row.committed_offset,
        row.committed_leader_epoch,
        row.committed_metadata or "",
        now_ms if row.commit_timestamp < 0 else row.commit_timestamp,
        -1 if retention_ms < 0 else expires_at_ms(now_ms, retention_ms),
    )


def expires_at_ms(now_ms: int, retention_ms: int) -> int:
    """Return when an offset expires that a client keeps for a time of its own (v2 to v4).

    At the latest it is the largest time that its record can hold.
    """
    return min(now_ms + retention_ms, INT64_MAX)


Asked = list[tuple[str, list[int]]]
"""Topics with partition numbers."""
Row = tuple[int, Committed, ErrorCode]
Found = list[tuple[str, list[Row]]]


@api(9, range(1, 9))
def offset_fetch(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return the committed offsets; -1 means that there is none, not that it is unknown here."""
    if context.version >= 8:
        return OffsetFetchResponse(
            groups=[_group_row(context, group, request.require_stable) for group in request.groups]
        )
    asked = _asked(request.topics)
    error, found = _fetch(context, request.group_id, asked, request.require_stable)
    if error and context.version < 2:  # v1 has no other field for it
        found = [
            (name, [(number, _NOTHING, error) for number in numbers])
            for name, numbers in asked or ()
        ]
        error = ErrorCode.NONE
    return OffsetFetchResponse(
        error_code=error,
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=[OffsetFetchResponsePartition(**_fields(row)) for row in rows],
            )
            for name, rows in found
        ],
    )


def _group_row(
    context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    error, found = _fetch(context, group.group_id, _asked(group.topics), require_stable)
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        error_code=error,
        topics=[
            OffsetFetchResponseTopics(
                name=name,
                partitions=[OffsetFetchResponsePartitions(**_fields(row)) for row in rows],
            )
            for name, rows in found
        ],
    )


def _asked(
    topics: Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
) -> Asked | None:
    if topics is None:
        return None
    return [(topic.name, topic.partition_indexes) for topic in topics]


def _fields(row: Row) -> dict[str, Any]:
    """The fields of one partition, which have the same names in all versions."""
    number, kept, error = row
    return {
        "partition_index": number,
        "committed_offset": kept.offset,
        "committed_leader_epoch": kept.leader_epoch,
        "metadata": kept.metadata,
        "error_code": error,
    }


def _fetch(
    context: RequestContext, name: str, topics: Asked | None, require_stable: bool
) -> tuple[ErrorCode, Found]:
    """Return the offsets by topic; ``topics`` None means all."""
    found = context.services.groups.find(name)
    error = offset_fetch_error(found) if isinstance(found, ErrorCode) else ErrorCode.NONE
    if error is not ErrorCode.NONE:
        return error, []
    group = None if isinstance(found, ErrorCode) else found
    if topics is None:
        topics = _all_topics(group)
    return ErrorCode.NONE, [
        (topic, [_kept(group, TopicPartition(topic, at), require_stable) for at in numbers])
        for topic, numbers in topics
    ]


def _all_topics(group: Group | None) -> Asked:
    """The partitions for which the group has committed offsets."""
    known: dict[str, list[int]] = {}
    for tp in () if group is None else group.offsets:
        known.setdefault(tp.topic, []).append(tp.partition)
    return list(known.items())


def offset_fetch_error(office: ErrorCode) -> ErrorCode:
    """The error when a coordinator cannot look up a group: not the coordinator, or still loading.

    A group that is not found in such a state may still have committed offsets.
    """
    return office


def is_withheld(*, require_stable: bool, is_unstable: bool) -> bool:
    """Return whether an offset is withheld, because it may change without a new commit (KIP-447).

    A consumer that began at it would read again what an open transaction has consumed.
    """
    return require_stable and is_unstable


def _kept(group: Group | None, tp: TopicPartition, require_stable: bool) -> Row:
    if group is None:
        return tp.partition, _NOTHING, ErrorCode.NONE
    if is_withheld(require_stable=require_stable, is_unstable=group.offsets.is_unstable(tp)):
        return tp.partition, _NOTHING, ErrorCode.UNSTABLE_OFFSET_COMMIT
    return tp.partition, group.offsets.get(tp) or _NOTHING, ErrorCode.NONE


@api(47, range(1))
def offset_delete(context: RequestContext, request: OffsetDeleteRequest) -> Any:
    """Delete offsets, except of topics to which the group is subscribed."""
    view = context.services.view
    asked = [
        TopicPartition(topic.name, row.partition_index)
        for topic in request.topics
        for row in topic.partitions
    ]
    known = tuple(tp for tp in dict.fromkeys(asked) if view.partition(tp) is not None)

    def answer_as(answer: DeleteOffsetsAnswer) -> OffsetDeleteResponse:
        if answer.error:
            return OffsetDeleteResponse(error_code=answer.error)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=row.partition_index,
                            error_code=answer.rows.get(
                                TopicPartition(topic.name, row.partition_index), unknown
                            ),
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return context.services.groups.ask(
        request.group_id, lambda ticket: DeleteOffsets(ticket=ticket, partitions=known), answer_as
    )


def verification_error(answer: ErrorCode) -> ErrorCode:
    """The error for offsets of a transaction about which its coordinator has given this answer.

    Offsets of a transaction that is not open would wait for its marker for ever (KIP-890).
    """
    return _OF_VERIFICATION.get(answer, answer)


def known_error(error: ErrorCode, version: int) -> ErrorCode:
    """The error in a TxnOffsetCommit response; clients before 2.0 do not know one of them."""
    if version < 2 and error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


@api(28, range(4))
async def txn_offset_commit(context: RequestContext, request: TxnOffsetCommitRequest) -> Any:
    """Store offsets that take effect if the producer's transaction commits (KIP-98, KIP-447)."""
    services = context.services
    now_ms = services.groups.now_ms()
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, Committed] = {}
    for topic in request.topics:
        for row in topic.partitions:
            tp = TopicPartition(topic.name, row.partition_index)
            metadata = row.committed_metadata or ""
            if services.view.partition(tp) is None:
                errors[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif is_too_long(metadata, services.config):
                errors[tp] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                offsets[tp] = Committed(
                    row.committed_offset, row.committed_leader_epoch, metadata, now_ms
                )
    home = services.groups.partition_of(request.group_id)
    guard = services.replicas.guard(home, request.producer_id)
    refusal = ErrorCode.NONE
    if guard is not None:
        verified = await services.transactions.verify(
            request.transactional_id, request.producer_id, request.producer_epoch, (home,)
        )
        refusal = verification_error(verified[home])

    def event(ticket: int) -> Commit:
        return Commit(
            ticket=ticket,
            member_id=request.member_id,
            generation=request.generation_id,
            instance_id=request.group_instance_id,
            offsets=offsets,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            guard=guard,
        )

    def answer_as(error: ErrorCode) -> TxnOffsetCommitResponse:
        all_errors = errors | dict.fromkeys(offsets, known_error(error, context.version))
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=row.partition_index,
                            error_code=all_errors[TopicPartition(topic.name, row.partition_index)],
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    if refusal is not ErrorCode.NONE:
        return answer_as(refusal)
    if request.producer_id < 0:
        return answer_as(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return services.groups.ask(request.group_id, event, answer_as)
