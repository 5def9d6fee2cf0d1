"""Encode and decode a snapshot of the database: a file in ZooKeeper's own format with a checksum.

It holds a header, the state (``state_stream``) and a trailer. Releases from 3.6 on add sections
with checksums of their own, which are not needed here.
"""

import zlib

from broker_impl.errors import StorageError, WireError
from broker_impl.zookeeper.jute import Int, Long, Reader, Record, UString
from broker_impl.zookeeper.state_stream import StateReader, encode_state
from broker_impl.zookeeper.tree import Database


class _Header(Record, frozen=True):
    magic: Int
    version: Int
    database_id: Long


class _Trailer(Record, frozen=True):
    checksum: Long
    end: UString


_MAGIC = int.from_bytes(b"ZKSN", "big")
_VERSION = 2
_HEADER = _Header(_MAGIC, _VERSION, -1)
_HEADER_BYTES = len(_HEADER.encode())
_END = "/"


def name(zxid: int) -> str:
    """The name of the file that holds the state after this transaction."""
    return f"snapshot.{zxid:x}"


def encode(database: Database) -> bytes:
    """Encode the whole state."""
    out = bytearray(_HEADER.encode())
    out += encode_state(database)
    _Trailer(zlib.adler32(out), _END).write(out)
    return bytes(out)


def decode(data: bytes, zxid: int) -> Database:
    """Decode a snapshot.

    Raises:
        StorageError: it is damaged, or not a snapshot.
    """
    try:
        return _decode(data, zxid)
    except (WireError, KeyError) as error:
        raise StorageError(f"{name(zxid)}: {error!r}") from error


def _decode(data: bytes, zxid: int) -> Database:
    header = _Header.read(Reader(data))
    if (header.magic, header.version) != (_MAGIC, _VERSION):
        raise WireError("the file is not a snapshot")
    state = StateReader(zxid)
    state.receive(data[_HEADER_BYTES:])
    if not state.is_complete:
        raise WireError("the file ends before its state does")
    rest = state.rest()
    size = len(data) - len(rest)
    if _Trailer.read(Reader(rest)) != _Trailer(zlib.adler32(data[:size]), _END):
        raise WireError("the checksum is wrong")
    return state.database
