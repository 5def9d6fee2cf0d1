"""Turn requests into transactions: each write is rejected here, or decided here.

A transaction is made before those ahead of it are applied, so the proposer remembers the state that
each of them will leave (``Outlook``) until the database has caught up. All checks are made here. A
rejection is a transaction too, and takes a zxid.
"""

from collections import deque
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from broker_impl.zookeeper import acl as acls
from broker_impl.zookeeper import paths
from broker_impl.zookeeper.errors import (
    BadArguments,
    BadVersion,
    Code,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    ZooKeeperError,
)
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.records import (
    CONTAINER_FLAG,
    EPHEMERAL,
    SEQUENTIAL,
    TTL_FLAG,
    TTL_SEQUENTIAL_FLAG,
    Acl,
    CreateRequest,
    CreateTtlRequest,
    Id,
    MultiRequest,
    Op,
    PathVersion,
    Perm,
    SetAclRequest,
    SetDataRequest,
)
from broker_impl.zookeeper.tree import (
    CONTAINER,
    RESERVED,
    TTL_MS_MAX,
    Database,
    int32,
    is_session,
    with_ttl,
)
from broker_impl.zookeeper.txn_records import (
    CheckVersionTxn,
    CloseSessionTxn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    Header,
    MultiTxn,
    Proposal,
    SetAclTxn,
    SetDataTxn,
)

WRITES = frozenset(
    {Op.CREATE, Op.CREATE2, Op.DELETE, Op.SET_DATA, Op.SET_ACL, Op.MULTI}
    | {Op.CREATE_CONTAINER, Op.CREATE_TTL, Op.DELETE_CONTAINER}
    | {Op.CREATE_SESSION, Op.CLOSE_SESSION}
)
"""The operations that become transactions."""

_SERVERS = frozenset({Op.CREATE_SESSION, Op.DELETE_CONTAINER})
"""The writes that need no live session: no client can send them."""


class Outlook(msgspec.Struct, frozen=True, gc=False):
    """The state of a node after all transactions proposed so far."""

    acl: tuple[Acl, ...]
    version: int
    creates: int
    aversion: int
    children: int
    ephemeral_owner: int


class Draft:
    """The changes of one request, on top of the pending ones; kept only if none is rejected."""

    def __init__(self, proposer: "Proposer", session_id: int, ids: tuple[Id, ...]) -> None:
        self.session_id = session_id
        self.ids = ids
        self.outlooks: dict[str, Outlook | None] = {}
        self._proposer = proposer

    def find(self, path: str) -> Outlook | None:
        if path in self.outlooks:
            return self.outlooks[path]
        return self._proposer.find(path)

    def get(self, path: str) -> Outlook:
        if (node := self.find(path)) is None:
            raise NoNode(path)
        return node

    def check(self, node: Outlook, perm: Perm, path: str) -> None:
        acls.check(node.acl, perm, self.ids, path)

    def remove(self, path: str) -> None:
        parent_path = paths.parent_of(path)
        parent = self.get(parent_path)
        self.outlooks[path] = None
        self.outlooks[parent_path] = replace(parent, children=parent.children - 1)


class Proposer:
    """Turns requests into transactions, in the order in which they take effect."""

    def __init__(self, database: Database, zxid: int | None = None) -> None:
        """``zxid``: the transactions follow this one in place of the last that is applied."""
        self._database = database
        self._zxid = database.last_zxid if zxid is None else zxid
        self._outlooks: dict[str, tuple[int, Outlook | None]] = {}
        self._sessions: dict[int, tuple[int, bool]] = {}
        self._changed: deque[tuple[int, str]] = deque()

    @property
    def last_zxid(self) -> int:
        """The zxid of the last transaction that was proposed."""
        return self._zxid

    @property
    def remembers(self) -> int:
        """The number of outlooks held for transactions that are not applied yet."""
        return len(self._outlooks) + len(self._sessions)

    def propose(
        self,
        op: int,
        request: Record | None,
        *,
        session_id: int,
        cxid: int,
        ids: tuple[Id, ...],
        now_ms: int,
        refusal: Code = Code.OK,
    ) -> Proposal:
        """Turn a write request into a transaction.

        With a ``refusal`` the transaction is that error; a request that cannot be read is None.
        """
        self._zxid += 1
        if refusal or request is None:
            error = refusal or Code.MARSHALLING_ERROR
            return Proposal.of(
                Header(session_id, cxid, self._zxid, now_ms, Op.ERROR), ErrorTxn(error)
            )
        draft = Draft(self, session_id, ids)
        try:
            if op not in _SERVERS and not self._is_live(session_id):
                raise SessionExpired(f"{session_id:#x}")
            txn = self._txn(op, request, draft)
        except ZooKeeperError as error:
            op, txn = Op.ERROR, ErrorTxn(error.code)
        else:
            for path, outlook in draft.outlooks.items():
                self._outlooks[path] = (self._zxid, outlook)
                self._changed.append((self._zxid, path))
            if op in (Op.CREATE_SESSION, Op.CLOSE_SESSION):
                self._sessions[session_id] = (self._zxid, op == Op.CREATE_SESSION)
        return Proposal.of(Header(session_id, cxid, self._zxid, now_ms, op), txn)

    def applied(self, proposal: Proposal) -> None:
        """Drop what was remembered for a transaction that the database has applied."""
        zxid = proposal.header.zxid
        while self._changed and self._changed[0][0] <= zxid:
            _, path = self._changed.popleft()
            if path in self._outlooks and self._outlooks[path][0] <= zxid:
                del self._outlooks[path]
        session_id = proposal.header.session_id
        if session_id in self._sessions and self._sessions[session_id][0] <= zxid:
            del self._sessions[session_id]

    def find(self, path: str) -> Outlook | None:
        """The future state of a node; None if there will be none."""
        if path in self._outlooks:
            return self._outlooks[path][1]
        node = self._database.nodes.get(path)
        if node is None:
            return None
        return Outlook(
            node.acl,
            node.version,
            node.creates,
            node.aversion,
            len(node.children),
            node.ephemeral_owner,
        )

    def _is_live(self, session_id: int) -> bool:
        if session_id in self._sessions:
            return self._sessions[session_id][1]
        return session_id in self._database.sessions

    def _txn(self, op: int, request: Record, draft: Draft) -> Record:
        match request:
            case CreateRequest() if op == Op.CREATE_CONTAINER:
                return _create_container(request, draft)
            case CreateRequest():
                return _create(request, draft)
            case CreateTtlRequest():
                return _create_with_ttl(request, draft)
            case PathVersion() if op == Op.DELETE_CONTAINER:
                return _delete_unused(request, draft)
            case PathVersion() if op == Op.DELETE:
                return _delete(request, draft)
            case PathVersion() if op == Op.CHECK:
                return _check(request, draft)
            case SetDataRequest():
                return _set_data(request, draft)
            case SetAclRequest():
                return _set_acl(request, draft)
            case MultiRequest():
                return self._multi(request, draft)
            case CreateSessionTxn():
                return request
            case _:
                assert op == Op.CLOSE_SESSION, f"operation {op} is not a write"
                return self._close_session(draft)

    def _multi(self, request: MultiRequest, draft: Draft) -> MultiTxn:
        """Propose all or nothing: the first rejection turns every part into an error."""
        parts: list[tuple[int, Record]] = []
        for op, part in request.operations:
            try:
                parts.append((op, self._txn(op, part, draft)))
            except ZooKeeperError as error:
                draft.outlooks.clear()
                return rejected(parts, error.code, len(request.operations))
        return MultiTxn(tuple(parts))

    def _close_session(self, draft: Draft) -> CloseSessionTxn:
        owned = {
            path
            for path in self._database.ephemerals.get(draft.session_id, {})
            if path not in self._outlooks
        }
        for path, (_, outlook) in self._outlooks.items():
            if outlook is not None and outlook.ephemeral_owner == draft.session_id:
                owned.add(path)
        ordered = tuple(sorted(owned))
        for path in ordered:
            draft.remove(path)
        return CloseSessionTxn(ordered)


def rejected(parts: Sequence[tuple[int, Record]], code: Code, operations: int) -> MultiTxn:
    """Return the transaction of a multi whose operation after these parts was rejected.

    No operation takes effect: every part is an error.
    """
    before = len(parts)
    codes = [Code.OK] * before + [code] + [Code.RUNTIME_INCONSISTENCY] * (operations - before - 1)
    return MultiTxn(tuple((Op.ERROR, ErrorTxn(code)) for code in codes))


def _create(request: CreateRequest, draft: Draft) -> CreateTxn:
    path, flags = request.path, request.flags
    if not 0 <= flags <= EPHEMERAL | SEQUENTIAL:
        raise BadArguments(f"{path}: flags {flags} are not supported")
    owner = draft.session_id if flags & EPHEMERAL else 0
    path, acl, creates = _add(request, bool(flags & SEQUENTIAL), owner, draft)
    return CreateTxn(path, request.data, acl, bool(owner), creates)


def _create_container(request: CreateRequest, draft: Draft) -> CreateContainerTxn:
    if request.flags != CONTAINER_FLAG:
        raise BadArguments(f"{request.path}: flags {request.flags} are not those of a container")
    path, acl, creates = _add(request, False, CONTAINER, draft)
    return CreateContainerTxn(path, request.data, acl, creates)


def _create_with_ttl(request: CreateTtlRequest, draft: Draft) -> CreateTtlTxn:
    path, flags, ttl_ms = request.path, request.flags, request.ttl_ms
    if flags not in (TTL_FLAG, TTL_SEQUENTIAL_FLAG) or not 0 < ttl_ms <= TTL_MS_MAX:
        raise BadArguments(f"{path}: flags {flags} and a time to live of {ttl_ms} ms")
    path, acl, creates = _add(request, flags == TTL_SEQUENTIAL_FLAG, with_ttl(ttl_ms), draft)
    return CreateTtlTxn(path, request.data, acl, creates, ttl_ms)


def _add(
    request: CreateRequest | CreateTtlRequest, is_sequential: bool, owner: int, draft: Draft
) -> tuple[str, tuple[Acl, ...], int]:
    """Add a node to the draft; return its path, its ACL, and its parent's counter."""
    path = request.path
    paths.check_form(path)
    acl = acls.resolve(request.acl, draft.ids, path)
    parent_path = paths.parent_of(path)
    parent = draft.get(parent_path)
    draft.check(parent, Perm.CREATE, path)
    if is_sequential:
        path += f"{parent.creates:010d}"
    paths.check(path)
    if draft.find(path) is not None:
        raise NodeExists(path)
    if is_session(parent.ephemeral_owner):
        raise NoChildrenForEphemerals(path)
    creates = int32(parent.creates + 1)
    draft.outlooks[parent_path] = Outlook(
        parent.acl,
        parent.version,
        creates,
        parent.aversion,
        parent.children + 1,
        parent.ephemeral_owner,
    )
    draft.outlooks[path] = Outlook(acl, 0, 0, 0, 0, owner)
    return path, acl, creates


def _delete(request: PathVersion, draft: Draft) -> DeleteTxn:
    path = request.path
    paths.check_form(path)
    if path in RESERVED:
        raise BadArguments(f"{path} cannot be deleted")
    parent = draft.get(paths.parent_of(path))
    draft.check(parent, Perm.DELETE, path)
    node = draft.get(path)
    _expect(request.version, node.version, path)
    if node.children:
        raise NotEmpty(path)
    draft.remove(path)
    return DeleteTxn(path)


def _delete_unused(request: PathVersion, draft: Draft) -> DeleteTxn:
    """Delete a container without children, or a node whose time to live has passed."""
    node = draft.get(request.path)
    if not node.ephemeral_owner or is_session(node.ephemeral_owner):
        raise BadVersion(f"{request.path} is another node by now")
    if node.children:
        raise NotEmpty(request.path)
    draft.remove(request.path)
    return DeleteTxn(request.path)


def _set_data(request: SetDataRequest, draft: Draft) -> SetDataTxn:
    path = request.path
    paths.check(path)
    node = draft.get(path)
    draft.check(node, Perm.WRITE, path)
    _expect(request.version, node.version, path)
    version = int32(node.version + 1)
    draft.outlooks[path] = replace(node, version=version)
    return SetDataTxn(path, request.data, version)


def _set_acl(request: SetAclRequest, draft: Draft) -> SetAclTxn:
    path = request.path
    paths.check(path)
    acl = acls.resolve(request.acl, draft.ids, path)
    node = draft.get(path)
    draft.check(node, Perm.ADMIN, path)
    _expect(request.version, node.aversion, path)
    version = int32(node.aversion + 1)
    draft.outlooks[path] = replace(node, acl=acl, aversion=version)
    return SetAclTxn(path, acl, version)


def _check(request: PathVersion, draft: Draft) -> CheckVersionTxn:
    path = request.path
    paths.check(path)
    node = draft.get(path)
    draft.check(node, Perm.READ, path)
    _expect(request.version, node.version, path)
    return CheckVersionTxn(path, request.version)


def _expect(wanted: int, version: int, path: str) -> None:
    if wanted not in (-1, version):
        raise BadVersion(f"{path}: the version is {version}, not {wanted}")
