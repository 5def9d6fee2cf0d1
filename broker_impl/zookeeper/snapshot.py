"""Encode and decode a snapshot of the database: a file in ZooKeeper's own format with a checksum.

It holds a header, the state (``state_stream``) and a trailer. Releases from 3.6 on add sections
with checksums of their own, which are not needed here.
"""

import zlib

from broker_impl.errors import StorageError, WireError
from broker_impl.zookeeper.jute import Int, Long, Reader, Record, UString
from broker_impl.zookeeper.state_stream import StateReader, StateWriter
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


class Encoder:
    """The bytes of a snapshot in slices; transactions may be applied between two of them.

    The file is named after ``zxid``: the transactions after it are replayed (``StateWriter``).
    """

    def __init__(self, database: Database) -> None:
        self._state = StateWriter(database)
        self._checksum = 1
        self._is_begun = False

    @property
    def zxid(self) -> int:
        """The last transaction that the snapshot contains as a whole."""
        return self._state.zxid

    @property
    def is_complete(self) -> bool:
        """Has the last slice been returned?"""
        return self._state.is_complete

    def slice(self, nodes_max: int) -> bytes:
        """Return the next bytes; it takes the time of so many nodes, each visited twice in all."""
        out = bytearray() if self._is_begun else bytearray(_HEADER.encode())
        self._is_begun = True
        out += self._state.slice(nodes_max)
        self._checksum = zlib.adler32(out, self._checksum)
        if self.is_complete:
            _Trailer(self._checksum, _END).write(out)
        return bytes(out)


def encode(database: Database) -> bytes:
    """Encode the whole state at once."""
    encoder = Encoder(database)
    out = bytearray()
    while not encoder.is_complete:
        out += encoder.slice(2 * len(database.nodes) + 1)
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
