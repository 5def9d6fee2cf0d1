import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.coordinator import records
from broker_impl.coordinator.records import (
    Committed,
    GroupKey,
    GroupRecord,
    MemberRecord,
    OffsetKey,
)
from broker_impl.errors import WireError
from broker_impl.wire.types import TopicPartition

names = st.text(max_size=20)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
MEMBERS = st.builds(
    MemberRecord,
    member_id=names,
    instance_id=st.none() | names,
    client_id=names,
    client_host=names,
    rebalance_timeout_ms=int32,
    session_timeout_ms=int32,
    subscription=st.binary(max_size=20),
    assignment=st.binary(max_size=20),
)


@given(names, names, int32)
def test_keys_round_trip(group: str, topic: str, partition: int) -> None:
    """Both kinds of keys name their group."""
    tp = TopicPartition(topic, partition)
    assert records.decode_key(records.encode_offset_key(group, tp)) == OffsetKey(group, tp)
    assert records.decode_key(records.encode_group_key(group)) == GroupKey(group)


@given(int64, int32, names, int64)
def test_offsets_round_trip(offset: int, epoch: int, metadata: str, at: int) -> None:
    """Metadata and leader epoch are decoded as they were committed."""
    committed = Committed(offset, epoch, metadata, at)
    assert records.decode_offset(records.encode_offset(committed)) == committed


def test_an_offset_with_an_expiry_of_its_own_has_no_leader_epoch() -> None:
    """An offset with its own expiry is encoded in version 1, which has no leader epoch (KIP-211).

    Version 3 has the leader epoch and no expiry. Kafka chooses between the two in the same way.
    """
    value = records.encode_offset(Committed(5, 3, "m", 10, 20))
    assert value[:2] == b"\0\1"
    assert records.decode_offset(value) == Committed(5, -1, "m", 10, 20)


@given(names, int32, st.none() | names, st.none() | names, int64, st.lists(MEMBERS, max_size=3))
def test_groups_round_trip(
    kind: str,
    generation: int,
    protocol: str | None,
    leader: str | None,
    since: int,
    members: list[MemberRecord],
) -> None:
    """A group is decoded with all its members."""
    group = GroupRecord(
        protocol_type=kind,
        generation=generation,
        protocol=protocol,
        leader=leader,
        state_since_ms=since,
        members=tuple(members),
    )
    assert records.decode_group(records.encode_group(group)) == group


def test_the_layouts_are_kafkas() -> None:
    """Keys and values have the bytes that Kafka's public schemas define."""
    key = records.encode_offset_key("g", TopicPartition("t", 7))
    assert key == b"\0\1\0\1g\0\1t\0\0\0\7"
    assert records.encode_group_key("g") == b"\0\2\0\1g"
    value = records.encode_offset(Committed(1, 2, "m", 3))
    assert value == b"\0\3" + (1).to_bytes(8) + (2).to_bytes(4) + b"\0\1m" + (3).to_bytes(8)


def test_older_values_are_read() -> None:
    """Versions 0 and 2 of an offset and version 0 of a group can be decoded.

    Version 0 of a group has no instance id and a single timeout.
    """
    for version in (b"\0\0", b"\0\2"):
        value = version + (5).to_bytes(8) + b"\0\1m" + (9).to_bytes(8)
        assert records.decode_offset(value) == Committed(5, -1, "m", 9)
    member = b"\0\1m\0\1c\0\1h" + (6).to_bytes(4) + (1).to_bytes(4) + b"s" + (1).to_bytes(4) + b"a"
    value = b"\0\0\0\1p" + (4).to_bytes(4) + b"\0\1r\0\1m" + (1).to_bytes(4) + member
    group = records.decode_group(value)
    assert (group.generation, group.protocol, group.leader) == (4, "r", "m")
    assert group.members == (
        MemberRecord(
            member_id="m",
            client_id="c",
            client_host="h",
            rebalance_timeout_ms=6,
            session_timeout_ms=6,
            subscription=b"s",
            assignment=b"a",
        ),
    )


def test_a_key_of_a_later_release_is_nobodys() -> None:
    """A key of an unknown kind, from a later release, is skipped."""
    assert records.decode_key(b"\0\3whatever") is None


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\3\0", b"\0\x09" + bytes(40)])
def test_garbage_is_refused(value: bytes) -> None:
    """Values that are cut short or of an unknown version are refused."""
    with pytest.raises(WireError):
        records.decode_offset(value)
    with pytest.raises(WireError):
        records.decode_group(value)


def test_a_key_cut_short_is_refused() -> None:
    """A key that is cut short is refused."""
    with pytest.raises(WireError):
        records.decode_key(b"\0\1\0\5g")
