"""The packets between a leader and its learners: records in a stream, without lengths.

The layouts are those of ZooKeeper's quorum protocol (``QuorumPacket`` and the data of each type),
so that servers of both implementations form one ensemble.
"""

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import msgspec

from broker_impl.errors import WireError
from broker_impl.zookeeper import zxids
from broker_impl.zookeeper.jute import Int, Long, Reader, Record
from broker_impl.zookeeper.records import Id

PROTOCOL = 0x10000
"""The version of the protocol, ZAB 1.0 of ZooKeeper 3.4 and later."""

DATA_BYTES_MAX = 64 * 1024 * 1024
"""No packet is larger: a transaction holds a request of at most ``jute.maxbuffer`` bytes, and for
the end of a session the paths of its ephemeral nodes."""

SNAPSHOT_END = struct.pack(">i", 10) + b"BenWasHere"
"""What follows the state that a leader sends: a string with its length."""


class Type(IntEnum):
    """The types of packets."""

    REQUEST = 1
    PROPOSAL = 2
    ACK = 3
    COMMIT = 4
    PING = 5
    REVALIDATE = 6
    SYNC = 7
    INFORM = 8
    NEWLEADER = 10
    FOLLOWERINFO = 11
    UPTODATE = 12
    DIFF = 13
    TRUNC = 14
    SNAP = 15
    OBSERVERINFO = 16
    LEADERINFO = 17
    ACKEPOCH = 18


_TYPES: Mapping[int, Type] = {int(kind): kind for kind in Type}
_HEAD = struct.Struct(">iqi")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">iqii")
_SESSION = struct.Struct(">qi")
_VALID = struct.Struct(">q?")
_REQUEST = struct.Struct(">qii")


class Packet(msgspec.Struct, frozen=True, gc=False):
    """A packet; the meaning of ``zxid`` and ``data`` depends on the type."""

    type: Type
    zxid: int
    data: bytes = b""
    ids: tuple[Id, ...] = ()
    """The identities of the client whose request it holds."""


class LearnerInfo(Record, frozen=True):
    """The data of a learner's first packet."""

    server: Long
    protocol: Int
    configuration: Long
    """The version of its list of servers."""


class Request(NamedTuple):
    """A request that a learner forwards for one of its clients."""

    session_id: int
    xid: int
    op: int
    body: bytes
    """As the client sent it, without its header."""


def encode(packet: Packet) -> bytes:
    """Encode a packet."""
    if not packet.ids:
        if not packet.data:
            return short(packet.type, packet.zxid)
        return with_data(packet.type, packet.zxid, packet.data)
    out = bytearray(_HEAD.pack(packet.type, packet.zxid, len(packet.data)))
    out += packet.data
    out += _INT.pack(len(packet.ids))
    for identity in packet.ids:
        identity.write(out)
    return bytes(out)


def with_data(kind: Type, zxid: int, data: bytes) -> bytes:
    """Encode a packet with data and no identities."""
    return _HEAD.pack(kind, zxid, len(data)) + data + b"\xff\xff\xff\xff"


def short(kind: Type, zxid: int) -> bytes:
    """Encode a packet without data."""
    return _SHORT.pack(kind, zxid, -1, -1)


class PacketReader:
    """Bytes in, whole packets out; the caller owns the socket."""

    def __init__(self) -> None:
        self._buffer = b""
        self._at = 0
        self._parts: list[bytes] = []
        """What was received after the buffer."""
        self._missing = 0
        """How many bytes the next packet needs at least, besides those that were received."""

    def receive(self, data: bytes) -> None:
        """Add bytes that were read from the socket."""
        self._parts.append(data)
        self._missing -= len(data)

    def next(self) -> Packet | None:
        """Return the next packet; None until all of its bytes have arrived.

        Raises:
            WireError: the bytes are not a packet.
        """
        if self._parts and not self._join():
            return None
        buffer, at = self._buffer, self._at
        if len(buffer) - at < _SHORT.size:
            self._missing = at + _SHORT.size - len(buffer)
            return None
        kind, zxid, size, count = _SHORT.unpack_from(buffer, at)
        if kind not in _TYPES:
            raise WireError(f"the type {kind} of a packet is unknown")
        if not -1 <= size <= DATA_BYTES_MAX:
            raise WireError(f"a packet announces {size} bytes of data")
        data, end = b"", at + _SHORT.size
        if size > 0:
            end += size
            if len(buffer) < end:
                self._missing = end - len(buffer)
                return None
            data = buffer[at + _HEAD.size : end - 4]
            (count,) = _INT.unpack_from(buffer, end - 4)
        if count <= 0:
            self._at = end
            return Packet(_TYPES[kind], zxid, data)
        ids: list[Id] = []
        for _ in range(count):
            found = self._identity(end)
            if found is None:
                self._missing = 1
                return None
            identity, end = found
            ids.append(identity)
        self._at = end
        return Packet(_TYPES[kind], zxid, data, tuple(ids))

    def rest(self) -> bytes:
        """Remove and return the bytes after the last packet, which are not packets."""
        rest = b"".join((self._buffer[self._at :], *self._parts))
        self._buffer = b""
        self._at = self._missing = 0
        self._parts.clear()
        return rest

    def last_of(self, packet: Packet) -> Packet:
        """Go past the packets that say all that this one says, and return the last of them.

        A learner acknowledges transactions in their order, each by a packet. NEWLEADER is
        acknowledged by itself.
        """
        zxid = packet.zxid
        if packet.type is not Type.ACK or not zxids.counter_of(zxid):
            return packet
        buffer, end = self._buffer, len(self._buffer) - _SHORT.size
        while self._at <= end:
            kind, following, size, count = _SHORT.unpack_from(buffer, self._at)
            if kind != Type.ACK or following < zxid or size not in (-1, 0) or count > 0:
                break
            zxid = following
            self._at += _SHORT.size
        return Packet(Type.ACK, zxid)

    def _join(self) -> bool:
        """Add what was received to the buffer; false if the next packet is not complete by that.

        A large packet that arrives in many parts is copied once.
        """
        if self._missing > 0:
            return False
        self._buffer = b"".join((self._buffer[self._at :], *self._parts))
        self._at = 0
        self._parts.clear()
        return True

    def _identity(self, at: int) -> tuple[Id, int] | None:
        """Read a scheme and an id; None if not all of their bytes have arrived."""
        texts: list[str] = []
        for _ in range(2):
            if len(self._buffer) - at < 4:
                return None
            (size,) = _INT.unpack_from(self._buffer, at)
            if not -1 <= size <= DATA_BYTES_MAX:
                raise WireError(f"an identity announces {size} bytes")
            at += 4
            end = at + max(0, size)
            if len(self._buffer) < end:
                return None
            try:
                texts.append(self._buffer[at:end].decode())
            except UnicodeDecodeError as error:
                raise WireError(f"an identity is not UTF-8: {error.reason}") from None
            at = end
        return Id(*texts), at


def encode_request(request: Request, ids: tuple[Id, ...]) -> bytes:
    """Encode the packet in which a learner forwards a request."""
    head = _REQUEST.pack(request.session_id, request.xid, request.op)
    return encode(Packet(Type.REQUEST, -1, head + request.body, ids))


def decode_request(data: bytes) -> Request:
    """Decode the data of a forwarded request; raises WireError."""
    if len(data) < _REQUEST.size:
        raise WireError("a forwarded request has no header")
    session_id, xid, op = _REQUEST.unpack_from(data)
    return Request(session_id, xid, op, data[_REQUEST.size :])


def encode_sessions(sessions: Mapping[int, int]) -> bytes:
    """Encode the answer to a ping: the sessions with signs of life, and their timeouts (ms)."""
    return b"".join(_SESSION.pack(*session) for session in sessions.items())


def decode_sessions(data: bytes) -> list[tuple[int, int]]:
    """Decode the answer to a ping; raises WireError."""
    if len(data) % _SESSION.size:
        raise WireError(f"{len(data)} bytes are no list of sessions")
    return list(_SESSION.iter_unpack(data))


def encode_session(session_id: int, timeout_ms: int) -> bytes:
    """Encode the data of a learner's REVALIDATE."""
    return _SESSION.pack(session_id, timeout_ms)


def decode_session(data: bytes) -> tuple[int, int]:
    """Decode the data of a learner's REVALIDATE; raises WireError."""
    session_id, timeout_ms = Reader(data).unpack(_SESSION)
    return session_id, timeout_ms


def encode_validity(session_id: int, is_valid: bool) -> bytes:
    """Encode the data of a leader's REVALIDATE."""
    return _VALID.pack(session_id, is_valid)


def decode_validity(data: bytes) -> tuple[int, bool]:
    """Decode the data of a leader's REVALIDATE; raises WireError."""
    session_id, is_valid = Reader(data).unpack(_VALID)
    return session_id, is_valid


def encode_number(number: int) -> bytes:
    """Encode the data of LEADERINFO (a version) and of ACKEPOCH (an epoch)."""
    return _INT.pack(number)


def decode_number(data: bytes) -> int:
    """Decode the data of LEADERINFO and of ACKEPOCH; raises WireError."""
    (number,) = Reader(data).unpack(_INT)
    return int(number)
