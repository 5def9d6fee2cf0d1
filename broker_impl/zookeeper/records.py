"""The packets of ZooKeeper's client protocol: requests, responses, and their headers.

Field order is the wire's (``zookeeper.jute`` of ZooKeeper 3.8).
"""

from enum import IntEnum
from typing import Annotated, Self

from broker_impl.errors import WireError
from broker_impl.zookeeper.jute import (
    Bool,
    Buffer,
    Int,
    Long,
    Reader,
    Record,
    TrailingBool,
    UString,
    frequent,
)


class Op(IntEnum):
    """Operation codes of a request header."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CREATE_SESSION = -10
    CLOSE_SESSION = -11
    ERROR = -1


XID_EVENT = -1
NO_ZXID = -1
"""The zxid of an event whose transaction the server does not know."""
XID_PING = -2
XID_AUTH = -4
XID_SET_WATCHES = -8

EPHEMERAL = 1
SEQUENTIAL = 2
CONTAINER_FLAG = 4
TTL_FLAG = 5
TTL_SEQUENTIAL_FLAG = 6
PASSWORD_BYTES = 16


class Perm(IntEnum):
    """The permissions that an ACL entry can grant, as bits."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


class EventType(IntEnum):
    """The change that triggered a watch."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILD = 4


class WatchMode(IntEnum):
    """The two kinds of persistent watch (ZooKeeper 3.6)."""

    PERSISTENT = 0
    PERSISTENT_RECURSIVE = 1


class WatcherType(IntEnum):
    """The watches that a removal concerns."""

    CHILDREN = 1
    DATA = 2
    ANY = 3


class Id(Record, frozen=True):
    """An identity under a scheme, such as ``world:anyone``."""

    scheme: UString
    id: UString


class Acl(Record, frozen=True):
    """Permissions granted to one identity."""

    perms: Int
    id: Id


OPEN_ACL = (Acl(Perm.ALL, Id("world", "anyone")),)
"""Every client has every permission: the ACL of most nodes."""

Acls = Annotated[tuple[Acl, ...], frequent(Acl, OPEN_ACL)]
"""An ACL as a field of a record."""


class Stat(Record, frozen=True):
    """A node's metadata; times in milliseconds of the wall clock."""

    czxid: Long
    """The transaction that created it."""
    mzxid: Long
    """The transaction that last set its data."""
    ctime: Long
    mtime: Long
    version: Int
    """The number of times its data was set."""
    cversion: Int
    """The number of creations and deletions of its children."""
    aversion: Int
    """The number of times its ACL was set."""
    ephemeral_owner: Long
    """The session that owns an ephemeral node; 0 for any other node."""
    data_length: Int
    children_count: Int
    pzxid: Long
    """The last transaction that created or deleted a child."""


class ConnectRequest(Record, frozen=True):
    """The first packet of a connection, without a header; session 0 requests a new session."""

    protocol_version: Int
    last_zxid_seen: Long
    timeout_ms: Int
    session_id: Long
    password: Buffer
    read_only: TrailingBool


class ConnectResponse(Record, frozen=True):
    """The answer to a ConnectRequest; a timeout of 0 means that the session has expired."""

    protocol_version: Int
    timeout_ms: Int
    session_id: Long
    password: Buffer
    read_only: TrailingBool
    """Sent only to a client that sent the flag itself."""


class RequestHeader(Record, frozen=True):
    """The header of every request except the first."""

    xid: Int
    op: Int


class ReplyHeader(Record, frozen=True):
    """The header of every reply; no body follows if ``error`` is not 0."""

    xid: Int
    zxid: Long
    error: Int


class WatcherEvent(Record, frozen=True):
    """A notification, sent with xid -1."""

    type: Int
    state: Int
    path: UString


SYNC_CONNECTED = 3
"""The only session state that a server sends."""


class Nothing(Record, frozen=True):
    """A body without fields: a ping, a close, the result of a delete."""


class PathRequest(Record, frozen=True):
    """The request of getACL, sync, getEphemerals and getAllChildrenNumber."""

    path: UString


class PathWatch(Record, frozen=True):
    """The request of exists, getData, getChildren and getChildren2."""

    path: UString
    watch: Bool


class CreateRequest(Record, frozen=True):
    """The request of create and create2; ``flags``: EPHEMERAL | SEQUENTIAL."""

    path: UString
    data: Buffer
    acl: Acls
    flags: Int


class CreateTtlRequest(Record, frozen=True):
    """The request of createTTL; ``flags``: TTL_FLAG or TTL_SEQUENTIAL_FLAG."""

    path: UString
    data: Buffer
    acl: Acls
    flags: Int
    ttl_ms: Long


class PathVersion(Record, frozen=True):
    """The request of delete and check; version -1 matches any."""

    path: UString
    version: Int


class SetDataRequest(Record, frozen=True):
    """The request of setData; version -1 matches any."""

    path: UString
    data: Buffer
    version: Int


class SetAclRequest(Record, frozen=True):
    """The request of setACL; ``version`` is the ACL's own, -1 matches any."""

    path: UString
    acl: Acls
    version: Int


class AuthRequest(Record, frozen=True):
    """Add an identity to the connection."""

    type: Int
    scheme: UString
    auth: Buffer


class SaslToken(Record, frozen=True):
    """A token of a SASL exchange, in a request and in its response."""

    token: Buffer


class SetWatches(Record, frozen=True):
    """Set the watches of a lost connection again; changes since ``relative_zxid`` trigger them."""

    relative_zxid: Long
    data: tuple[UString, ...]
    exist: tuple[UString, ...]
    child: tuple[UString, ...]


class SetWatches2(Record, frozen=True):
    """SetWatches with persistent watches (ZooKeeper 3.6)."""

    relative_zxid: Long
    data: tuple[UString, ...]
    exist: tuple[UString, ...]
    child: tuple[UString, ...]
    persistent: tuple[UString, ...]
    persistent_recursive: tuple[UString, ...]


class AddWatch(Record, frozen=True):
    """Set a persistent watch."""

    path: UString
    mode: Int


class PathWatcherType(Record, frozen=True):
    """The request of checkWatches and removeWatches."""

    path: UString
    type: Int


class ReconfigRequest(Record, frozen=True):
    """The request of reconfig: change the set of servers."""

    joining: UString
    leaving: UString
    new_members: UString
    config_id: Long


class PathResponse(Record, frozen=True):
    """The response of create and sync."""

    path: UString


class Create2Response(Record, frozen=True):
    """The response of create2, createContainer and createTTL."""

    path: UString
    stat: Stat


class StatResponse(Record, frozen=True):
    """The response of exists, setData and setACL."""

    stat: Stat


class GetDataResponse(Record, frozen=True):
    """The response of getData."""

    data: Buffer
    stat: Stat


class GetAclResponse(Record, frozen=True):
    """The response of getACL."""

    acl: Acls
    stat: Stat


class GetChildrenResponse(Record, frozen=True):
    """The response of getChildren and getEphemerals."""

    children: tuple[UString, ...]


class GetChildren2Response(Record, frozen=True):
    """The response of getChildren2."""

    children: tuple[UString, ...]
    stat: Stat


class ClientInfo(Record, frozen=True):
    """An identity of a client, without its secret part."""

    scheme: UString
    user: UString


class WhoAmIResponse(Record, frozen=True):
    """The response of whoAmI."""

    identities: tuple[ClientInfo, ...]


class Number(Record, frozen=True):
    """A single int: the answer of getAllChildrenNumber, and of addWatch (an error code)."""

    value: Int


class MultiHeader(Record, frozen=True):
    """The header of each operation of a multi; at the end, one with ``done`` set."""

    type: Int
    done: Bool
    error: Int


MULTI_END = MultiHeader(-1, True, -1)


class MultiRequest(Record, frozen=True):
    """Several writes that are executed all together or not at all."""

    operations: tuple[tuple[int, Record], ...]
    """Operation code and request of each; written with a header before each, so not as a vector."""

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read the operations from a frame, up to the end mark."""
        operations = []
        while not (header := MultiHeader.read(reader)).done:
            request = cls.known().get(header.type)
            if request is None:
                raise WireError(f"operation {header.type} is not supported inside a multi")
            operations.append((header.type, request.read(reader)))
        return cls(tuple(operations))

    @classmethod
    def known(cls) -> "dict[int, type[Record]]":
        """The operations that it may contain."""
        return MULTI_REQUESTS

    def write(self, out: bytearray) -> None:
        """Append the operations and the end mark to the output."""
        for op, request in self.operations:
            MultiHeader(op, False, -1).write(out)
            request.write(out)
        MULTI_END.write(out)


class MultiReadRequest(MultiRequest, frozen=True):
    """Several reads, each with a result or an error of its own."""

    @classmethod
    def known(cls) -> "dict[int, type[Record]]":
        """The operations that it may contain."""
        return MULTI_READS


MULTI_READS: dict[int, type[Record]] = {Op.GET_DATA: PathWatch, Op.GET_CHILDREN: PathWatch}

MULTI_REQUESTS: dict[int, type[Record]] = {
    Op.CREATE: CreateRequest,
    Op.CREATE2: CreateRequest,
    Op.CREATE_CONTAINER: CreateRequest,
    Op.CREATE_TTL: CreateTtlRequest,
    Op.DELETE: PathVersion,
    Op.SET_DATA: SetDataRequest,
    Op.CHECK: PathVersion,
}

REQUESTS: dict[int, type[Record]] = {
    Op.CREATE: CreateRequest,
    Op.CREATE2: CreateRequest,
    Op.CREATE_CONTAINER: CreateRequest,
    Op.CREATE_TTL: CreateTtlRequest,
    Op.DELETE: PathVersion,
    Op.EXISTS: PathWatch,
    Op.GET_DATA: PathWatch,
    Op.SET_DATA: SetDataRequest,
    Op.GET_ACL: PathRequest,
    Op.SET_ACL: SetAclRequest,
    Op.GET_CHILDREN: PathWatch,
    Op.GET_CHILDREN2: PathWatch,
    Op.SYNC: PathRequest,
    Op.PING: Nothing,
    Op.MULTI: MultiRequest,
    Op.MULTI_READ: MultiReadRequest,
    Op.CHECK_WATCHES: PathWatcherType,
    Op.REMOVE_WATCHES: PathWatcherType,
    Op.RECONFIG: ReconfigRequest,
    Op.AUTH: AuthRequest,
    Op.SASL: SaslToken,
    Op.SET_WATCHES: SetWatches,
    Op.SET_WATCHES2: SetWatches2,
    Op.GET_EPHEMERALS: PathRequest,
    Op.GET_ALL_CHILDREN_NUMBER: PathRequest,
    Op.ADD_WATCH: AddWatch,
    Op.WHO_AM_I: Nothing,
    Op.CLOSE_SESSION: Nothing,
}
"""The operations that a server answers; any other gets UNIMPLEMENTED."""
