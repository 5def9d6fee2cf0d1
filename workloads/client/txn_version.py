"""Version 2 of the transaction protocol (KIP-890, part 2), of which aiokafka has no requests.

Each end of a transaction gives the producer another epoch, so an EndTxn names the transaction that
it ends; and leaders add partitions to a transaction when they receive its first batch. A client
uses it if the cluster has finalized the feature ``transaction.version`` at 2 or higher.
"""

from io import BytesIO
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactBytes,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

FEATURE, SECOND = "transaction.version", 2
_FINALIZED_FEATURES = 2
"""The tag of the finalized features in a response to ApiVersions (KIP-584)."""
_NULLABLE_STRING = CompactString("utf-8")
_FEATURES = CompactArray(
    ("name", CompactString("utf-8")),
    ("max_version_level", Int16),
    ("min_version_level", Int16),
    ("tags", TaggedFields),
)


class _ApiVersionsResponse(Response):  # type: ignore[misc]
    API_KEY = 18
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "api_keys",
            CompactArray(
                ("api_key", Int16),
                ("min_version", Int16),
                ("max_version", Int16),
                ("tags", TaggedFields),
            ),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _ApiVersionsRequestStruct(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 18
    API_VERSION = 3
    RESPONSE_TYPE = _ApiVersionsResponse
    SCHEMA = Schema(
        ("client_software_name", CompactString("utf-8")),
        ("client_software_version", CompactString("utf-8")),
        ("tags", TaggedFields),
    )

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> ResponseHeader_v0:
        """Read the header without tags, which this response has in every version (KIP-511)."""
        return ResponseHeader_v0.decode(read_buffer)


class FeaturesRequest(Request[_ApiVersionsRequestStruct]):  # type: ignore[misc]
    """Asks for the features of a cluster (KIP-584)."""

    API_KEY = 18

    def prepare(self, versions: dict[int, tuple[int, int]]) -> _ApiVersionsRequestStruct:
        """Return the request; ``NotImplementedError`` if the broker does not have version 2."""
        _, newest = versions.get(_EndTxnRequestStruct.API_KEY, (0, 0))
        if newest < _EndTxnRequestStruct.API_VERSION:
            raise NotImplementedError("the broker has no EndTxn with another epoch")
        return self.build(_ApiVersionsRequestStruct)

    def build(
        self, request_struct_class: type[_ApiVersionsRequestStruct]
    ) -> _ApiVersionsRequestStruct:
        return request_struct_class("faultline", "1", {})


class _EndTxnResponse(Response):  # type: ignore[misc]
    API_KEY = 26
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("tags", TaggedFields),
    )


class _EndTxnRequestStruct(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 26
    API_VERSION = 5
    RESPONSE_TYPE = _EndTxnResponse
    SCHEMA = Schema(
        ("transactional_id", CompactString("utf-8")),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("committed", Boolean),
        ("tags", TaggedFields),
    )


class EndTxnRequest(Request[_EndTxnRequestStruct]):  # type: ignore[misc]
    """Ends a transaction; the response has the producer id and epoch of the next one."""

    API_KEY = 26

    def __init__(
        self, transactional_id: str, producer_id: int, epoch: int, is_commit: bool
    ) -> None:
        self._values: tuple[Any, ...] = (transactional_id, producer_id, epoch, is_commit, {})

    def build(self, request_struct_class: type[_EndTxnRequestStruct]) -> _EndTxnRequestStruct:
        return request_struct_class(*self._values)


class _ProduceResponse(Response):  # type: ignore[misc]
    API_KEY = 0
    API_VERSION = 12
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("offset", Int64),
                        ("timestamp", Int64),
                        ("log_start_offset", Int64),
                        (
                            "record_errors",
                            CompactArray(
                                ("batch_index", Int32),
                                ("message", _NULLABLE_STRING),
                                ("tags", TaggedFields),
                            ),
                        ),
                        ("error_message", _NULLABLE_STRING),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _ProduceRequestStruct(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 0
    API_VERSION = 12
    RESPONSE_TYPE = _ProduceResponse
    SCHEMA = Schema(
        ("transactional_id", _NULLABLE_STRING),
        ("acks", Int16),
        ("timeout_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32), ("records", CompactBytes), ("tags", TaggedFields)
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class ProduceRequest(Request[_ProduceRequestStruct]):  # type: ignore[misc]
    """Writes one batch with acks=all; its leader adds the partition to the transaction."""

    API_KEY = 0

    def __init__(
        self, transactional_id: str, timeout_ms: int, topic: str, partition: int, batch: bytes
    ) -> None:
        self._values: tuple[Any, ...] = (
            *(transactional_id, -1, timeout_ms),
            *([(topic, [(partition, batch, {})], {})], {}),
        )

    def build(self, request_struct_class: type[_ProduceRequestStruct]) -> _ProduceRequestStruct:
        return request_struct_class(*self._values)


def has_second(answer: Any) -> bool:
    """Return whether the answer to a :class:`FeaturesRequest` has finalized version 2."""
    tags: dict[int, bytes] = answer.tags
    finalized: list[Any] = _FEATURES.decode(BytesIO(tags.get(_FINALIZED_FEATURES, b"\1"))) or []
    return any(name == FEATURE and level >= SECOND for name, level, *_ in finalized)
