"""InitProducerId that names a producer id and its epoch (v3, KIP-360), which aiokafka lacks."""

from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import CompactString, Int16, Int32, Int64, Schema, TaggedFields
from aiokafka.record.default_records import DefaultRecordBatchBuilder

_TAGS = ("tags", TaggedFields)


class _InitResponse(Response):  # type: ignore[misc]
    API_KEY = 22
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        _TAGS,
    )


class _Init(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 22
    API_VERSION = 3
    RESPONSE_TYPE = _InitResponse
    SCHEMA = Schema(
        ("transactional_id", CompactString("utf-8")),
        ("transaction_timeout_ms", Int32),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        _TAGS,
    )


class InitRequest(Request[_Init]):  # type: ignore[misc]
    """Asks for the next epoch of a transactional id."""

    API_KEY = 22

    def __init__(self, name: str, timeout_ms: int, producer_id: int = -1, epoch: int = -1) -> None:
        self._asked = (name, timeout_ms, producer_id, epoch)

    def build(self, request_struct_class: type[_Init]) -> _Init:
        return request_struct_class(*self._asked, {})


def batch(producer_id: int, epoch: int, sequence: int, count: int, *, transactional: bool) -> bytes:
    """Return a batch of so many records, with consecutive sequence numbers."""
    builder: Any = DefaultRecordBatchBuilder(
        2, 0, int(transactional), producer_id, epoch, sequence, 2**20
    )
    for at in range(count):
        builder.append(at, None, None, b"asked", [])
    return bytes(builder.build())
