"""Encode and decode a snapshot of the database, in ZooKeeper's own format with a checksum.

It holds the sessions, then the ACLs in use (numbered), then every node, parents before children.
"""

import zlib

from broker_impl.errors import StorageError, WireError
from broker_impl.zookeeper.jute import Buffer, Int, Long, Reader, Record, UString
from broker_impl.zookeeper.paths import name_of, parent_of
from broker_impl.zookeeper.records import OPEN_ACL, Acl
from broker_impl.zookeeper.tree import Database, Node

_OPEN = -1
"""The number of the open ACL, which is not written because all servers know it."""


class _Header(Record, frozen=True):
    magic: Int
    version: Int
    database_id: Long


class _Session(Record, frozen=True):
    session_id: Long
    timeout_ms: Int


class _NumberedAcl(Record, frozen=True):
    number: Long
    acl: tuple[Acl, ...]


class _Tables(Record, frozen=True):
    sessions: tuple[_Session, ...]
    acls: tuple[_NumberedAcl, ...]


class _Node(Record, frozen=True):
    data: Buffer
    acl: Long
    czxid: Long
    mzxid: Long
    ctime: Long
    mtime: Long
    version: Int
    creates: Int
    aversion: Int
    ephemeral_owner: Long
    pzxid: Long


class _Path(Record, frozen=True):
    path: UString


class _Trailer(Record, frozen=True):
    checksum: Long
    end: UString


_HEADER = _Header(int.from_bytes(b"ZKSN", "big"), 2, -1)
_ROOT = "/"
"""The root's path in the database; in the file it is empty."""
_END = "/"
"""Marks the end of the nodes, in place of the next path."""
_TRAILER_BYTES = len(_Trailer(0, _END).encode())


def name(zxid: int) -> str:
    """The name of the file that holds the state after this transaction."""
    return f"snapshot.{zxid:x}"


def encode(database: Database) -> bytes:
    """Encode the whole state."""
    out = bytearray()
    numbers: dict[tuple[Acl, ...], int] = {OPEN_ACL: _OPEN}
    for node in database.nodes.values():
        numbers.setdefault(node.acl, len(numbers))
    _HEADER.write(out)
    _Tables(
        tuple(_Session(*session) for session in database.sessions.items()),
        tuple(_NumberedAcl(number, acl) for acl, number in numbers.items() if number != _OPEN),
    ).write(out)
    for path, node in database.nodes.items():
        _Path(path if path != _ROOT else "").write(out)
        _Node(
            data=node.data,
            acl=numbers[node.acl],
            czxid=node.czxid,
            mzxid=node.mzxid,
            ctime=node.ctime,
            mtime=node.mtime,
            version=node.version,
            creates=node.creates,
            aversion=node.aversion,
            ephemeral_owner=node.ephemeral_owner,
            pzxid=node.pzxid,
        ).write(out)
    _Path(_END).write(out)
    _Trailer(zlib.adler32(out), _END).write(out)
    return bytes(out)


def decode(data: bytes, zxid: int) -> Database:
    """Decode a snapshot.

    Raises:
        StorageError: it is damaged, or not a snapshot.
    """
    trailer = _Trailer(zlib.adler32(data[:-_TRAILER_BYTES]), _END).encode()
    if data[-_TRAILER_BYTES:] != trailer:
        raise StorageError(f"{name(zxid)}: the checksum is wrong")
    try:
        return _decode(data, zxid)
    except (WireError, KeyError) as error:
        raise StorageError(f"{name(zxid)}: {error!r}") from error


def _decode(data: bytes, zxid: int) -> Database:
    reader = Reader(data)
    if _Header.read(reader) != _HEADER:
        raise WireError("the file is not a snapshot")
    tables = _Tables.read(reader)
    acls = {numbered.number: numbered.acl for numbered in tables.acls} | {_OPEN: OPEN_ACL}
    database = Database()
    database.nodes.clear()
    database.last_zxid = zxid
    database.sessions = {session.session_id: session.timeout_ms for session in tables.sessions}
    while (path := _Path.read(reader).path) != _END:
        kept = _Node.read(reader)
        node = Node(
            data=kept.data,
            acl=acls[kept.acl],
            czxid=kept.czxid,
            mzxid=kept.mzxid,
            ctime=kept.ctime,
            mtime=kept.mtime,
            version=kept.version,
            creates=kept.creates,
            aversion=kept.aversion,
            ephemeral_owner=kept.ephemeral_owner,
            pzxid=kept.pzxid,
        )
        database.nodes[path or _ROOT] = node
        if path:
            database.nodes[parent_of(path)].children[name_of(path)] = None
        if node.ephemeral_owner:
            database.ephemerals.setdefault(node.ephemeral_owner, {})[path] = None
    return database
