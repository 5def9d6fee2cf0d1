"""Requests of KIP-447, which aiokafka lacks.

OffsetFetch v7 asks for stable offsets. TxnOffsetCommit v3 names the member that commits.
"""

from collections.abc import Sequence
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from workloads.client.asking.group_requests import Membership, epoch_of
from workloads.client.asking.requests import Place

_TAGS = ("tags", TaggedFields)


_TOPICS = (
    "topics",
    CompactArray(
        ("topic", CompactString("utf-8")),
        (
            "partitions",
            CompactArray(
                ("partition", Int32),
                ("offset", Int64),
                ("leader_epoch", Int32),
                ("metadata", CompactString("utf-8")),
                ("error_code", Int16),
                _TAGS,
            ),
        ),
        _TAGS,
    ),
)


class _OffsetsResponse(Response):  # type: ignore[misc]
    API_KEY = 9
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        _TOPICS,
        ("error_code", Int16),
        _TAGS,
    )


class _Offsets(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 9
    API_VERSION = 7
    RESPONSE_TYPE = _OffsetsResponse
    SCHEMA = Schema(
        ("group", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")), ("partitions", CompactArray(Int32)), _TAGS
            ),
        ),
        ("require_stable", Boolean),
        _TAGS,
    )


class OffsetsRequest(Request[_Offsets]):  # type: ignore[misc]
    """Asks for the committed offset of one partition."""

    API_KEY = 9

    def __init__(self, group: str, place: Place, *, stable: bool) -> None:
        self._group = group
        self._topics: list[Any] = [(place.topic, [place.partition], {})]
        self._stable = stable

    def build(self, request_struct_class: type[_Offsets]) -> _Offsets:
        return request_struct_class(self._group, self._topics, self._stable, {})


class _AllOffsetsResponse(Response):  # type: ignore[misc]
    API_KEY = 9
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            CompactArray(("group", CompactString("utf-8")), _TOPICS, ("error_code", Int16), _TAGS),
        ),
        _TAGS,
    )


class _AllOffsets(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 9
    API_VERSION = 8
    RESPONSE_TYPE = _AllOffsetsResponse
    SCHEMA = Schema(
        (
            "groups",
            CompactArray(
                ("group", CompactString("utf-8")),
                (
                    "topics",
                    CompactArray(
                        ("topic", CompactString("utf-8")),
                        ("partitions", CompactArray(Int32)),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        ("require_stable", Boolean),
        _TAGS,
    )


class AllOffsetsRequest(Request[_AllOffsets]):  # type: ignore[misc]
    """Asks for the committed offsets of all partitions of several groups (KIP-709)."""

    API_KEY = 9

    def __init__(self, groups: Sequence[str], *, stable: bool) -> None:
        self._groups: list[Any] = [(group, None, {}) for group in groups]
        self._stable = stable

    def build(self, request_struct_class: type[_AllOffsets]) -> _AllOffsets:
        return request_struct_class(self._groups, self._stable, {})


class _TxnCommitResponse(Response):  # type: ignore[misc]
    API_KEY = 28
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "errors",
            CompactArray(
                ("topic", CompactString("utf-8")),
                ("partitions", CompactArray(("partition", Int32), ("error_code", Int16), _TAGS)),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _TxnCommit(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 28
    API_VERSION = 3
    RESPONSE_TYPE = _TxnCommitResponse
    SCHEMA = Schema(
        ("transactional_id", CompactString("utf-8")),
        ("group", CompactString("utf-8")),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("generation_id", Int32),
        ("member_id", CompactString("utf-8")),
        ("group_instance_id", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", CompactString("utf-8")),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class TxnCommitRequest(Request[_TxnCommit]):  # type: ignore[misc]
    """Commits one offset in a transaction, for a member of the group."""

    API_KEY = 28

    def __init__(
        self, name: str, who: tuple[int, int], member: Membership, place: Place, offset: int
    ) -> None:
        """``name``: the transactional id; ``who``: its producer id and epoch."""
        self._producer = (name, member.group, *who)
        self._member = (member.generation, member.member, member.instance)
        row: Any = (place.partition, offset, epoch_of(offset), f"at {offset}", {})
        self._topics: list[Any] = [(place.topic, [row], {})]

    def build(self, request_struct_class: type[_TxnCommit]) -> _TxnCommit:
        return request_struct_class(*self._producer, *self._member, self._topics, {})
