"""Packets of the quorum protocol survive encoding, however their bytes are divided."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.errors import WireError
from broker_impl.zookeeper.quorum import packets
from broker_impl.zookeeper.quorum.packets import LearnerInfo, Packet, PacketReader, Request, Type
from broker_impl.zookeeper.records import Id

EPOCH = 1 << 32
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(max_size=8)
IDS = st.lists(st.builds(Id, TEXTS, TEXTS), max_size=3).map(tuple)
PACKETS = st.builds(Packet, st.sampled_from(Type), LONGS, st.binary(max_size=40), IDS)


def read_all(reader: PacketReader) -> list[Packet]:
    found = []
    while (packet := reader.next()) is not None:
        found.append(packet)
    return found


@given(st.lists(PACKETS, max_size=6), st.data())
def test_a_stream_of_packets_is_read_in_any_pieces(sent: list[Packet], data: st.DataObject) -> None:
    """The same packets are read wherever the stream is cut, and none before it is whole."""
    stream = b"".join(map(packets.encode, sent))
    ends = {0}
    for packet in sent:
        ends.add(max(ends) + len(packets.encode(packet)))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    reader, received = PacketReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.receive(stream[start:end])
        received += read_all(reader)
        assert len(received) == sum(0 < each <= end for each in ends)
    assert received == sent
    assert reader.rest() == b""


@given(st.sampled_from(Type), LONGS)
def test_a_short_packet_is_a_packet_without_data(kind: Type, zxid: int) -> None:
    """``short`` writes the same bytes as ``encode`` without data, with null for both lists."""
    assert packets.short(kind, zxid) == packets.encode(Packet(kind, zxid))
    assert packets.short(kind, zxid) == struct.pack(">iqii", kind, zxid, -1, -1)


def test_the_layout_is_that_of_the_protocol() -> None:
    """A packet is type, zxid, data and identities, each with a length of 32 bits."""
    packet = Packet(Type.PROPOSAL, 0x100000002, b"ab", (Id("ip", "::1"),))
    assert packets.encode(packet) == (
        b"\0\0\0\x02" b"\0\0\0\x01\0\0\0\x02" b"\0\0\0\x02ab" b"\0\0\0\x01"
        b"\0\0\0\x02ip" b"\0\0\0\x03::1"
    )  # fmt: skip


def test_null_data_and_null_identities_are_empty() -> None:
    """A Java server writes null where it has no data or identities."""
    reader = PacketReader()
    reader.receive(struct.pack(">iqii", Type.ACK, 5, -1, -1))
    reader.receive(struct.pack(">iqii", Type.ACK, 6, 0, 0))
    assert read_all(reader) == [Packet(Type.ACK, 5), Packet(Type.ACK, 6)]


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">iqii", 9, 0, -1, -1),
        struct.pack(">iqii", Type.ACK, 0, -2, -1),
        struct.pack(">iqii", Type.ACK, 0, packets.DATA_BYTES_MAX + 1, -1),
        struct.pack(">iqiii", Type.REQUEST, 0, -1, 1, -2),
        struct.pack(">iqiii", Type.REQUEST, 0, -1, 1, 2) + b"\xff\xff",
    ],
    ids=["unknown type", "negative size", "too large", "negative text", "not UTF-8"],
)
def test_bytes_that_are_no_packet_are_refused(data: bytes) -> None:
    """Bytes that no server sends raise WireError; they are not waited for."""
    reader = PacketReader()
    reader.receive(data)
    with pytest.raises(WireError):
        reader.next()


def test_the_rest_after_a_packet_is_handed_over_once() -> None:
    """The bytes after SNAP are the state, which the caller takes from the reader."""
    reader = PacketReader()
    reader.receive(packets.short(Type.SNAP, 7) + b"state")
    assert reader.next() == Packet(Type.SNAP, 7)
    assert reader.rest() == b"state"
    reader.receive(packets.short(Type.NEWLEADER, 8))
    assert reader.next() == Packet(Type.NEWLEADER, 8)


@given(LONGS, INTS, INTS, st.binary(max_size=30), IDS)
def test_a_forwarded_request_is_read_back(
    session_id: int, xid: int, op: int, body: bytes, ids: tuple[Id, ...]
) -> None:
    """A forwarded request keeps session, xid, operation, body and identities."""
    request = Request(session_id, xid, op, body)
    reader = PacketReader()
    reader.receive(packets.encode_request(request, ids))
    packet = reader.next()
    assert packet is not None
    assert (packet.type, packet.zxid, packet.ids) == (Type.REQUEST, -1, ids)
    assert packets.decode_request(packet.data) == request


@given(st.dictionaries(LONGS, INTS, max_size=5), LONGS, INTS, st.booleans())
def test_data_of_pings_and_validity_are_read_back(
    sessions: dict[int, int], session_id: int, number: int, is_valid: bool
) -> None:
    """The data of PING, REVALIDATE, LEADERINFO and ACKEPOCH are read back."""
    assert dict(packets.decode_sessions(packets.encode_sessions(sessions))) == sessions
    assert packets.decode_session(packets.encode_session(session_id, number)) == (
        session_id,
        number,
    )
    validity = packets.encode_validity(session_id, is_valid)
    assert packets.decode_validity(validity) == (session_id, is_valid)
    assert packets.decode_number(packets.encode_number(number)) == number


def test_data_that_are_too_short_are_refused() -> None:
    """Data that end early raise WireError for each kind."""
    for decode in (packets.decode_request, packets.decode_session, packets.decode_validity):
        with pytest.raises(WireError):
            decode(b"short")
    for data in (b"", b"abc"):
        with pytest.raises(WireError):
            packets.decode_number(data)
    with pytest.raises(WireError):
        packets.decode_sessions(bytes(13))


def test_learner_info_has_twenty_bytes() -> None:
    """The first packet of a learner has its id, the protocol and a version of configuration."""
    info = LearnerInfo(3, packets.PROTOCOL, 0).encode()
    assert info == struct.pack(">qiq", 3, 0x10000, 0)


@pytest.mark.parametrize(
    ("packets_sent", "handed_over"),
    [
        ("ack 5, ack 6, ack 7", "ack 7"),
        ("ack 5, ping 9, ack 6", "ack 5, ping 9, ack 6"),
        ("ack 0, ack 6", "ack 0, ack 6"),  # the first is of NEWLEADER
        ("ack 7, ack 6", "ack 7, ack 6"),
        ("ping 5, ping 6", "ping 5, ping 6"),
    ],
)
def test_acknowledgements_are_passed_that_the_last_one_includes(
    packets_sent: str, handed_over: str
) -> None:
    reader = PacketReader()
    for each in packets_sent.split(", "):
        kind, at = each.split()
        reader.receive(packets.short(Type[kind.upper()], EPOCH | int(at)))

    found = []
    while (packet := reader.next()) is not None:
        last = reader.last_of(packet)
        found.append(f"{last.type.name.lower()} {last.zxid - EPOCH}")

    assert ", ".join(found) == handed_over


def test_an_acknowledgement_with_data_is_not_passed() -> None:
    reader = PacketReader()
    with_data = Packet(Type.ACK, EPOCH | 6, b"data")
    reader.receive(packets.short(Type.ACK, EPOCH | 5) + packets.encode(with_data))

    first = reader.next()
    assert first is not None
    assert reader.last_of(first) == first
    assert reader.next() == with_data
