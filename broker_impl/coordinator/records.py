"""Records of ``__consumer_offsets``: keys and values in the layouts of Kafka's schemas.

A key begins with a version that says what the record is about: 0 and 1 an offset that a group
committed, 2 the group itself. All versions of the values up to 3 can be read, and 3 is written; an
offset with an explicit expiry time is written as version 1, the last version that has one
(KIP-211). A record without a value is a tombstone: it removes what earlier records of its key said.
"""

import struct
from typing import Final

import msgspec

from broker_impl.errors import WireError
from broker_impl.wire.reading import (
    read_array,
    read_bytes,
    read_int16,
    read_int32,
    read_int64,
    read_nullable_string,
    read_string,
)
from broker_impl.wire.types import Buffer, Epoch, Offset, TopicPartition
from broker_impl.wire.writing import (
    Parts,
    write_array,
    write_bytes,
    write_int16,
    write_int32,
    write_int64,
    write_nullable_string,
    write_string,
)

TOPIC: Final = "__consumer_offsets"

_OFFSET_KEY, _GROUP_KEY = 1, 2
_VALUE_LAST: Final = 3
_VALUE_WITH_EXPIRY: Final = 1
_MEMBER_BYTES_MIN: Final = 16


class OffsetKey(msgspec.Struct, frozen=True):
    """The key of a committed offset: one group and one partition."""

    group: str
    tp: TopicPartition


class GroupKey(msgspec.Struct, frozen=True):
    """The key of a group's own record."""

    group: str


class Committed(msgspec.Struct, frozen=True):
    """The offset that a group committed for one partition; times are wall-clock milliseconds."""

    offset: Offset
    leader_epoch: Epoch = -1
    """The epoch of the last record that was read; -1 if the client did not send it."""
    metadata: str = ""
    committed_ms: int = -1
    expires_ms: int = -1
    """When the offset expires; -1: by the broker's own retention."""


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a group, as stored in the group's record."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = 0
    session_timeout_ms: int = 0
    subscription: bytes = b""
    """The member's metadata for the protocol that was chosen."""
    assignment: bytes = b""


class GroupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A group and its members, as stored in the log."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_since_ms: int = -1
    members: tuple[MemberRecord, ...] = ()


def encode_offset_key(group: str, tp: TopicPartition) -> bytes:
    """Encode an OffsetCommitKey, version 1."""
    parts: Parts = []
    write_int16(parts, _OFFSET_KEY)
    write_string(parts, group)
    write_string(parts, tp.topic)
    write_int32(parts, tp.partition)
    return b"".join(parts)


def encode_group_key(group: str) -> bytes:
    """Encode a GroupMetadataKey, version 2."""
    parts: Parts = []
    write_int16(parts, _GROUP_KEY)
    write_string(parts, group)
    return b"".join(parts)


def encode_offset(committed: Committed) -> bytes:
    """Encode an OffsetCommitValue: version 1 if the offset has an explicit expiry time, else 3."""
    parts: Parts = []
    has_expiry = committed.expires_ms >= 0
    write_int16(parts, _VALUE_WITH_EXPIRY if has_expiry else _VALUE_LAST)
    write_int64(parts, committed.offset)
    if not has_expiry:
        write_int32(parts, committed.leader_epoch)
    write_string(parts, committed.metadata)
    write_int64(parts, committed.committed_ms)
    if has_expiry:
        write_int64(parts, committed.expires_ms)
    return b"".join(parts)


def encode_group(group: GroupRecord) -> bytes:
    """Encode a GroupMetadataValue, version 3."""
    parts: Parts = []
    write_int16(parts, _VALUE_LAST)
    write_string(parts, group.protocol_type)
    write_int32(parts, group.generation)
    write_nullable_string(parts, group.protocol)
    write_nullable_string(parts, group.leader)
    write_int64(parts, group.state_since_ms)
    write_array(parts, group.members, _write_member)
    return b"".join(parts)


def _write_member(parts: Parts, member: MemberRecord) -> None:
    write_string(parts, member.member_id)
    write_nullable_string(parts, member.instance_id)
    write_string(parts, member.client_id)
    write_string(parts, member.client_host)
    write_int32(parts, member.rebalance_timeout_ms)
    write_int32(parts, member.session_timeout_ms)
    write_bytes(parts, member.subscription)
    write_bytes(parts, member.assignment)


def decode_key(key: Buffer) -> OffsetKey | GroupKey | None:
    """Decode a record's key; None for a key version that only later releases may know.

    Raises WireError for a malformed key.
    """
    buffer = memoryview(key)
    try:
        version, at = read_int16(buffer, 0)
        if version > _GROUP_KEY:
            return None
        group, at = read_string(buffer, at)
        if version == _GROUP_KEY:
            return GroupKey(group)
        topic, at = read_string(buffer, at)
        partition, at = read_int32(buffer, at)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise WireError(f"invalid key in {TOPIC}: {error}") from error
    return OffsetKey(group, TopicPartition(topic, partition))


def decode_offset(value: Buffer) -> Committed:
    """Decode an OffsetCommitValue; WireError: it is malformed, or of a later version."""
    buffer = memoryview(value)
    try:
        version = _value_version(buffer)
        offset, at = read_int64(buffer, 2)
        leader_epoch, expires_ms = -1, -1
        if version >= 3:
            leader_epoch, at = read_int32(buffer, at)
        metadata, at = read_string(buffer, at)
        committed_ms, at = read_int64(buffer, at)
        if version == _VALUE_WITH_EXPIRY:
            expires_ms, at = read_int64(buffer, at)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise WireError(f"invalid offset in {TOPIC}: {error}") from error
    return Committed(offset, leader_epoch, metadata, committed_ms, expires_ms)


def decode_group(value: Buffer) -> GroupRecord:
    """Decode a GroupMetadataValue; WireError: it is malformed, or of a later version."""
    buffer = memoryview(value)
    try:
        version = _value_version(buffer)
        protocol_type, at = read_string(buffer, 2)
        generation, at = read_int32(buffer, at)
        protocol, at = read_nullable_string(buffer, at)
        leader, at = read_nullable_string(buffer, at)
        since = -1
        if version >= 2:
            since, at = read_int64(buffer, at)
        members, at = read_array(
            buffer, at, lambda view, start: _read_member(view, start, version), _MEMBER_BYTES_MIN
        )
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise WireError(f"invalid group in {TOPIC}: {error}") from error
    return GroupRecord(
        protocol_type=protocol_type,
        generation=generation,
        protocol=protocol,
        leader=leader,
        state_since_ms=since,
        members=tuple(members),
    )


def _value_version(buffer: memoryview) -> int:
    version, _ = read_int16(buffer, 0)
    if not 0 <= version <= _VALUE_LAST:
        raise WireError(
            f"value of version {version} in {TOPIC}; {_VALUE_LAST} is the highest known version"
        )
    return version


def _read_member(buffer: memoryview, at: int, version: int) -> tuple[MemberRecord, int]:
    member_id, at = read_string(buffer, at)
    instance_id = None
    if version >= 3:
        instance_id, at = read_nullable_string(buffer, at)
    client_id, at = read_string(buffer, at)
    client_host, at = read_string(buffer, at)
    rebalance_timeout_ms = None
    if version >= 1:
        rebalance_timeout_ms, at = read_int32(buffer, at)
    session_timeout_ms, at = read_int32(buffer, at)
    subscription, at = read_bytes(buffer, at)
    assignment, at = read_bytes(buffer, at)
    member = MemberRecord(
        member_id=member_id,
        instance_id=instance_id,
        client_id=client_id,
        client_host=client_host,
        # Before KIP-62 the session timeout was also the rebalance timeout.
        rebalance_timeout_ms=(
            session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms
        ),
        session_timeout_ms=session_timeout_ms,
        subscription=bytes(subscription),
        assignment=bytes(assignment),
    )
    return member, at
