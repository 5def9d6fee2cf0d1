"""Requests that change no node: they are answered from the tree, and may set watches."""

from typing import TypeVar

from broker_impl.zookeeper import acl as acls
from broker_impl.zookeeper.errors import (
    BadArguments,
    NoNode,
    NoWatcher,
    ReconfigDisabled,
    Unimplemented,
    ZooKeeperError,
)
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.records import (
    MULTI_END,
    AddWatch,
    ClientInfo,
    EventType,
    GetAclResponse,
    GetChildren2Response,
    GetChildrenResponse,
    GetDataResponse,
    Id,
    MultiHeader,
    MultiReadRequest,
    Nothing,
    Number,
    Op,
    PathRequest,
    PathResponse,
    PathWatch,
    PathWatcherType,
    Perm,
    ReconfigRequest,
    SetWatches,
    SetWatches2,
    StatResponse,
    WatchMode,
    WhoAmIResponse,
)
from broker_impl.zookeeper.tree import Change, Database, Node
from broker_impl.zookeeper.watches import Kind, WatchTable

Watcher = TypeVar("Watcher")


def answer(
    database: Database,
    watches: WatchTable[Watcher],
    watcher: Watcher,
    ids: tuple[Id, ...],
    op: int,
    request: Record | None,
) -> Record:
    """The body of the reply to a read.

    Raises:
        ZooKeeperError: the request is rejected; the reply carries the error's code.
    """
    match request:
        case PathWatch(path, watch):
            if op == Op.EXISTS and watch:
                watches.add(Kind.DATA, path or "/", watcher)
            node = _get(database, path)
            acls.check(node.acl, Perm.READ, ids, path)
            if watch:
                kind = Kind.DATA if op in (Op.EXISTS, Op.GET_DATA) else Kind.CHILD
                watches.add(kind, path or "/", watcher)
            return _look(op, node)
        case MultiReadRequest(operations):
            parts = [
                (op, _part(database, watches, watcher, ids, op, part)) for op, part in operations
            ]
            return MultiReadResponse(tuple(parts))
        case PathRequest(path) if op == Op.SYNC:
            return PathResponse(path)
        case PathRequest(path) if op == Op.GET_ACL:
            node = _get(database, path)
            if acls.may(node.acl, Perm.ADMIN, ids):
                return GetAclResponse(node.acl, node.stat())
            acls.check(node.acl, Perm.READ, ids, path)
            return GetAclResponse(acls.masked(node.acl), node.stat())
        case PathRequest(path) if op == Op.GET_ALL_CHILDREN_NUMBER:
            acls.check(_get(database, path).acl, Perm.READ, ids, path)
            return Number(database.descendants(path or "/"))
        case AddWatch(path, mode):
            if mode == WatchMode.PERSISTENT:
                watches.add(Kind.PERSISTENT, path, watcher)
            elif mode == WatchMode.PERSISTENT_RECURSIVE:
                watches.add(Kind.RECURSIVE, path, watcher)
            else:
                raise BadArguments(f"watch mode {mode} is not supported")
            return Number(0)
        case PathWatcherType(path, type_):
            kinds = watches.find(path, type_, watcher)
            if not kinds:
                raise NoWatcher(path)
            if op == Op.REMOVE_WATCHES:
                watches.remove(kinds, path, watcher)
            return Nothing()
        case ReconfigRequest():
            raise ReconfigDisabled("the set of servers cannot be changed")
        case _:
            raise Unimplemented(f"operation {op} is not supported")


class MultiReadResponse(Record, frozen=True):
    """A result or an error per operation."""

    parts: tuple[tuple[int, Record], ...]
    """Operation and result; an error is a number."""

    def write(self, out: bytearray) -> None:
        """Append the results and the end mark to the output."""
        for op, result in self.parts:
            if isinstance(result, Number):
                MultiHeader(Op.ERROR, False, result.value).write(out)
            else:
                MultiHeader(op, False, 0).write(out)
            result.write(out)
        MULTI_END.write(out)


def _part(
    database: Database,
    watches: WatchTable[Watcher],
    watcher: Watcher,
    ids: tuple[Id, ...],
    op: int,
    request: Record,
) -> Record:
    try:
        return answer(database, watches, watcher, ids, op, request)
    except ZooKeeperError as error:
        return Number(error.code)


def who_am_i(ids: tuple[Id, ...]) -> WhoAmIResponse:
    """The identities of a client; of a digest only the user."""
    return WhoAmIResponse(
        tuple(
            ClientInfo(id_.scheme, id_.id.partition(":")[0] if id_.scheme == "digest" else id_.id)
            for id_ in ids
        )
    )


def ephemerals(database: Database, session_id: int, prefix: str) -> GetChildrenResponse:
    """The paths of a session's ephemeral nodes that begin with a prefix."""
    owned = database.ephemerals.get(session_id, {})
    return GetChildrenResponse(tuple(sorted(path for path in owned if path.startswith(prefix))))


def set_again(
    database: Database,
    watches: WatchTable[Watcher],
    watcher: Watcher,
    request: SetWatches | SetWatches2,
) -> list[Change]:
    """Restore the watches of a lost connection; return the changes it missed, to send first."""
    since = request.relative_zxid
    missed: list[Change] = []
    for path in request.data:
        node = database.nodes.get(path)
        if node is None:
            missed.append(Change(EventType.DELETED, path))
        elif node.mzxid > since:
            missed.append(Change(EventType.CHANGED, path))
        else:
            watches.add(Kind.DATA, path, watcher)
    for path in request.exist:
        if path in database.nodes:
            missed.append(Change(EventType.CREATED, path))
        else:
            watches.add(Kind.DATA, path, watcher)
    for path in request.child:
        node = database.nodes.get(path)
        if node is None:
            missed.append(Change(EventType.DELETED, path))
        elif node.pzxid > since:
            missed.append(Change(EventType.CHILD, path))
        else:
            watches.add(Kind.CHILD, path, watcher)
    if isinstance(request, SetWatches2):
        for path in request.persistent:
            watches.add(Kind.PERSISTENT, path, watcher)
        for path in request.persistent_recursive:
            watches.add(Kind.RECURSIVE, path, watcher)
    return missed


def _get(database: Database, path: str) -> Node:
    node = database.nodes.get(path or "/")
    if node is None:
        raise NoNode(path)
    return node


def _look(op: int, node: Node) -> Record:
    match op:
        case Op.EXISTS:
            return StatResponse(node.stat())
        case Op.GET_DATA:
            return GetDataResponse(node.data, node.stat())
        case Op.GET_CHILDREN:
            return GetChildrenResponse(tuple(node.children))
        case _:
            assert op == Op.GET_CHILDREN2, f"operation {op} does not read a node"
            return GetChildren2Response(tuple(node.children), node.stat())
