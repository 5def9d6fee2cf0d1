"""Records of ``__transaction_state``: keys and values in the layouts of Kafka's schemas.

There is one kind of record: a transactional id and all that its coordinator stores about it
(version 0 of TransactionLogKey and TransactionLogValue). A record without a value means that the id
has expired.
"""

import struct
from typing import Final

from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.coordinator.transactions.states import TransactionState
from broker_impl.errors import WireError
from broker_impl.wire.reading import (
    read_array,
    read_int16,
    read_int32,
    read_int64,
    read_string,
)
from broker_impl.wire.types import Buffer, TopicPartition
from broker_impl.wire.writing import (
    Parts,
    write_array,
    write_int16,
    write_int32,
    write_int64,
    write_string,
)

TOPIC: Final = "__transaction_state"

_VERSION: Final = 0
_STATE: Final = struct.Struct(">b")
_TOPIC_BYTES_MIN: Final = 6
_PARTITION_BYTES: Final = 4
_NO_PARTITIONS: Final = -1

_Topic = tuple[str, list[int]]


def encode_key(transactional_id: str) -> bytes:
    """Encode a TransactionLogKey, version 0."""
    parts: Parts = []
    write_int16(parts, _VERSION)
    write_string(parts, transactional_id)
    return b"".join(parts)


def encode_value(metadata: Metadata) -> bytes:
    """Encode a TransactionLogValue, version 0."""
    topics: dict[str, list[int]] = {}
    for tp in sorted(metadata.partitions):
        topics.setdefault(tp.topic, []).append(tp.partition)
    parts: Parts = []
    write_int16(parts, _VERSION)
    write_int64(parts, metadata.producer_id)
    write_int16(parts, metadata.producer_epoch)
    write_int32(parts, metadata.timeout_ms)
    parts.append(_STATE.pack(metadata.state))
    if metadata.state is TransactionState.EMPTY:
        write_int32(parts, _NO_PARTITIONS)
    else:
        write_array(parts, list(topics.items()), _write_topic)
    write_int64(parts, metadata.updated_ms)
    write_int64(parts, metadata.started_ms)
    return b"".join(parts)


def _write_topic(parts: Parts, topic: _Topic) -> None:
    name, partitions = topic
    write_string(parts, name)
    write_array(parts, partitions, write_int32)


def decode_key(key: Buffer) -> str | None:
    """Decode a key to its transactional id; None for a version that only later releases may know.

    Raises WireError for a malformed key.
    """
    buffer = memoryview(key)
    try:
        version, at = read_int16(buffer, 0)
        if version != _VERSION:
            return None
        transactional_id, _ = read_string(buffer, at)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise WireError(f"invalid key in {TOPIC}: {error}") from error
    return transactional_id


def decode_value(value: Buffer) -> Metadata:
    """Decode a TransactionLogValue; WireError: it is malformed, or of a later version."""
    buffer = memoryview(value)
    try:
        version, at = read_int16(buffer, 0)
        if version != _VERSION:
            raise WireError(f"value of version {version} in {TOPIC}; only {_VERSION} is known")
        producer_id, at = read_int64(buffer, at)
        producer_epoch, at = read_int16(buffer, at)
        timeout_ms, at = read_int32(buffer, at)
        (state,) = _STATE.unpack_from(buffer, at)
        at += _STATE.size
        topics: list[_Topic] = []
        if read_int32(buffer, at)[0] == _NO_PARTITIONS:
            at += _PARTITION_BYTES
        else:
            topics, at = read_array(buffer, at, _read_topic, _TOPIC_BYTES_MIN)
        updated_ms, at = read_int64(buffer, at)
        started_ms, at = read_int64(buffer, at)
        return Metadata(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            timeout_ms=timeout_ms,
            state=TransactionState(state),
            partitions=tuple(
                TopicPartition(name, number) for name, numbers in topics for number in numbers
            ),
            started_ms=started_ms,
            updated_ms=updated_ms,
        )
    except (IndexError, struct.error, UnicodeDecodeError, ValueError) as error:
        raise WireError(f"invalid value in {TOPIC}: {error}") from error


def _read_topic(buffer: memoryview, at: int) -> tuple[_Topic, int]:
    name, at = read_string(buffer, at)
    partitions, at = read_array(buffer, at, read_int32, _PARTITION_BYTES)
    return (name, partitions), at
