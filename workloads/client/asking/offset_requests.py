"""OffsetFetch that asks for stable offsets (v7, KIP-447), which aiokafka lacks."""

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

from workloads.client.asking.requests import Place

_TAGS = ("tags", TaggedFields)


class _OffsetsResponse(Response):  # type: ignore[misc]
    API_KEY = 9
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
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
                        ("error_code", Int16),
                        _TAGS,
                    ),
                ),
                _TAGS,
            ),
        ),
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
