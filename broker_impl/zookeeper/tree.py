"""The nodes and sessions of a server: committed transactions in, results and changes out.

``Database.apply`` never rejects anything: invalid requests were rejected when their transaction was
made (``proposer``). The database uses no clock, socket or disk, so all servers that apply the same
transactions hold the same state.
"""

import msgspec

from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.paths import child_of, name_of, parent_of
from broker_impl.zookeeper.records import OPEN_ACL, Acl, EventType, Id, Op, Perm, Stat
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


def int32(value: int) -> int:
    """A counter as on the wire: 32 bits, wrapping around to negative numbers."""
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


class Node(msgspec.Struct, gc=False):
    """One znode.

    ``creates`` counts all children ever created, for the names of sequential nodes.
    """

    data: bytes | None
    acl: tuple[Acl, ...]
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    ephemeral_owner: int = 0
    version: int = 0
    creates: int = 0
    aversion: int = 0
    children: dict[str, None] = {}
    """Names, in order of creation."""

    def stat(self) -> Stat:
        """The node's Stat, as clients get it."""
        owner, children = self.ephemeral_owner, len(self.children)
        return Stat(
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            changes_of_children(self.creates, children),
            self.aversion,
            owner if owner and is_session(owner) else 0,
            len(self.data or b""),
            children,
            self.pzxid,
        )


def changes_of_children(creates: int, children: int) -> int:
    """The ``cversion`` of a node: how often a child of it was created or deleted."""
    return int32(2 * creates - children)


def advance(parent: Node, creates: int, zxid: int) -> None:
    """Bring the counters of a parent to what they are after a change of its children.

    They never go back: the state that a log is replayed over may be later (ZOOKEEPER-3125).
    """
    if int32(creates - parent.creates) > 0:
        parent.creates = creates
    parent.pzxid = max(parent.pzxid, zxid)


def is_session(owner: int) -> bool:
    """Return whether an ``ephemeral_owner`` is a session.

    It is 0 for a persistent node, and a special value for containers and nodes with a time to live.
    """
    return owner not in (0, CONTAINER) and owner >> 56 & 0xFF != _TTL


CONTAINER = -(2**63)
"""The owner of a container."""
_TTL = 0xFF
"""The first byte of the owner of a node with a time to live; its other bytes are the time (ms)."""


TTL_MS_MAX = 2**40 - 1
"""The longest time to live, about 34 years; the 16 bits above it have other uses."""


def ttl_of(owner: int) -> int:
    """The time to live (ms) in an ``ephemeral_owner``; 0 if it has none."""
    return owner & TTL_MS_MAX if owner != CONTAINER and owner >> 56 & 0xFF == _TTL else 0


def with_ttl(ttl_ms: int) -> int:
    """The owner of a node with a time to live."""
    return (ttl_ms | _TTL << 56) - 2**64


class Change(msgspec.Struct, frozen=True, gc=False):
    """A change that may trigger watches."""

    type: EventType
    path: str
    acl: tuple[Acl, ...] = OPEN_ACL
    """The node's ACL: only clients that may read the node get to know of the change."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The result of one transaction; ``error`` is 0 unless it was rejected."""

    error: int = 0
    path: str = ""
    stat: Stat | None = None
    parts: tuple["Outcome", ...] = ()
    """The outcomes inside a multi."""


class Applied(msgspec.Struct, frozen=True, gc=False):
    """The effect of a transaction: the result for its client, and the changes for watches."""

    outcome: Outcome
    changes: list[Change]


CONFIG = "/zookeeper/config"
"""The node whose data lists the servers of the ensemble."""
RESERVED = ("/", "/zookeeper", CONFIG, "/zookeeper/quota")
"""The nodes that exist from the beginning and cannot be deleted."""
READ_ACL = (Acl(Perm.READ, Id("world", "anyone")),)


class Database:
    """The state that a server serves from; only ``apply`` changes it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {
            path: Node(b"", READ_ACL if path == CONFIG else OPEN_ACL, 0, 0, 0, 0, 0)
            for path in RESERVED
        }
        for path in RESERVED[1:]:
            self.nodes[parent_of(path)].children[name_of(path)] = None
        self.sessions: dict[int, int] = {}
        """Live sessions and their timeouts in milliseconds."""
        self.ephemerals: dict[int, dict[str, None]] = {}
        """The ephemeral nodes of each session."""
        self.temporary: dict[str, None] = {}
        """The containers, and the nodes with a time to live."""
        self.last_zxid = 0
        """The zxid of the last transaction applied."""

    def apply(self, proposal: Proposal) -> Applied:
        """Apply a committed transaction."""
        header = proposal.header
        assert header.zxid > self.last_zxid, "each transaction is applied once, in order"
        changes: list[Change] = []
        outcome = self._apply(header, proposal.txn, changes)
        self.last_zxid = header.zxid
        return Applied(outcome, changes)

    def replay(self, proposal: Proposal) -> None:
        """Apply a transaction whose effects the state may contain already, in part or as a whole.

        A snapshot that was written while transactions were applied contains some that come after it
        in the log. What a transaction has found then may be gone, what it has created may exist,
        and a node of the same path may have been created later: it is left as it is. The counters
        of a parent never go back (ZOOKEEPER-3125, 3145, 3249).
        """
        self._replay(proposal.header, proposal.txn)
        self.last_zxid = max(self.last_zxid, proposal.header.zxid)

    def _replay(self, header: Header, txn: Record) -> None:
        match txn:
            case MultiTxn():
                for _, part in txn.transactions:
                    self._replay(header, part)
            case CreateTxn() | CreateContainerTxn() | CreateTtlTxn():
                parent = self._before(header.zxid, parent_of(txn.path))
                if parent is None:
                    return  # it was deleted later, and this node with it
                if txn.path not in self.nodes:
                    creates, pzxid = parent.creates, parent.pzxid
                    self._create(header, txn, [])
                    parent.creates, parent.pzxid = creates, pzxid
                advance(parent, txn.parent_creates, header.zxid)
            case DeleteTxn():
                self._replay_delete(header, txn.path)
            case SetDataTxn() | SetAclTxn():
                if self._before(header.zxid, txn.path) is not None:
                    self._apply(header, txn, [])
            case CloseSessionTxn():
                owned = self.ephemerals.get(header.session_id, {})
                for path in {**dict.fromkeys(txn.paths), **owned}:
                    self._replay_delete(header, path)
                self.sessions.pop(header.session_id, None)
            case _:
                self._apply(header, txn, [])

    def _before(self, zxid: int, path: str) -> Node | None:
        """Return a node that a transaction may have changed: none that was created after it."""
        node = self.nodes.get(path)
        return node if node is not None and node.czxid <= zxid else None

    def _replay_delete(self, header: Header, path: str) -> None:
        node = self._before(header.zxid, path)
        if node is not None and not node.children:
            pzxid = self.nodes[parent_of(path)].pzxid
            self._delete(header, path, [])
            self.nodes[parent_of(path)].pzxid = pzxid
        if (parent := self._before(header.zxid, parent_of(path))) is not None:
            advance(parent, parent.creates, header.zxid)

    def unused(self, now_ms: int) -> list[str]:
        """The containers that had children and have none, and the nodes that outlived their time.

        A node with children outlives its time to live.
        """
        found = []
        for path in self.temporary:
            node = self.nodes[path]
            ttl_ms = ttl_of(node.ephemeral_owner)
            is_due = now_ms - node.mtime > ttl_ms if ttl_ms else node.creates > 0
            if is_due and not node.children:
                found.append(path)
        return found

    def own(self, path: str, owner: int) -> None:
        """Note the owner of a new node: a session, or what decides when it is deleted."""
        if is_session(owner):
            self.ephemerals.setdefault(owner, {})[path] = None
        elif owner:
            self.temporary[path] = None

    def configure(self, text: str) -> None:
        """Set the list of the ensemble's servers, which each server knows by itself.

        The node is changed by no transaction; its version is the one that Apache ZooKeeper gives.
        """
        node = self.nodes.get(CONFIG)
        if node is not None:  # a state of an earlier release has no such node
            node.data = text.encode()
            node.version = -1

    def children(self, path: str) -> list[str]:
        """The names of a node's children."""
        return list(self.nodes[path].children)

    def descendants(self, path: str) -> int:
        """The number of nodes below a node."""
        below = 0
        waiting = [path]
        while waiting:
            path = waiting.pop()
            children = [child_of(path, name) for name in self.nodes[path].children]
            below += len(children)
            waiting += children
        return below

    def _apply(self, header: Header, txn: Record, changes: list[Change]) -> Outcome:
        match txn:
            case CreateTxn() | CreateContainerTxn() | CreateTtlTxn():
                return self._create(header, txn, changes)
            case DeleteTxn():
                self._delete(header, txn.path, changes)
                return Outcome()
            case SetDataTxn():
                node = self.nodes[txn.path]
                node.data = txn.data
                node.version = txn.version
                node.mzxid = header.zxid
                node.mtime = header.time_ms
                changes.append(Change(EventType.CHANGED, txn.path, node.acl))
                return Outcome(stat=node.stat())
            case SetAclTxn():
                node = self.nodes[txn.path]
                node.acl = txn.acl
                node.aversion = txn.version
                return Outcome(stat=node.stat())
            case CheckVersionTxn():
                return Outcome()
            case ErrorTxn():
                return Outcome(error=txn.error)
            case MultiTxn():
                parts = tuple(self._apply(header, part, changes) for _, part in txn.transactions)
                return Outcome(parts=parts)
            case CreateSessionTxn():
                self.sessions[header.session_id] = txn.timeout_ms
                return Outcome()
            case CloseSessionTxn():
                # Releases before 3.6 do not list the nodes.
                owned = self.ephemerals.get(header.session_id, {})
                for path in {**dict.fromkeys(txn.paths), **owned}:
                    self._delete(header, path, changes)
                self.sessions.pop(header.session_id, None)
                return Outcome()
            case _:
                raise AssertionError(f"the transaction {type(txn).__name__} cannot be proposed")

    def _create(
        self,
        header: Header,
        txn: CreateTxn | CreateContainerTxn | CreateTtlTxn,
        changes: list[Change],
    ) -> Outcome:
        parent_path = parent_of(txn.path)
        parent = self.nodes[parent_path]
        assert txn.path not in self.nodes, "a node is created only where none exists"
        assert not is_session(parent.ephemeral_owner), "an ephemeral node has no children"
        owner = _owner(header, txn)
        zxid, time_ms = header.zxid, header.time_ms
        node = Node(txn.data, txn.acl, zxid, zxid, zxid, time_ms, time_ms, owner)
        self.nodes[txn.path] = node
        parent.children[name_of(txn.path)] = None
        parent.creates = txn.parent_creates
        parent.pzxid = zxid
        self.own(txn.path, owner)
        changes.append(Change(EventType.CREATED, txn.path, node.acl))
        changes.append(Change(EventType.CHILD, parent_path, parent.acl))
        # The reply to the older operation has no Stat.
        stat = None if header.type == Op.CREATE else node.stat()
        return Outcome(path=txn.path, stat=stat)

    def _delete(self, header: Header, path: str, changes: list[Change]) -> None:
        parent_path = parent_of(path)
        parent = self.nodes[parent_path]
        node = self.nodes.pop(path)
        assert not node.children, "the children of a node are deleted before it"
        del parent.children[name_of(path)]
        parent.pzxid = header.zxid
        self.temporary.pop(path, None)
        if is_session(node.ephemeral_owner):
            owned = self.ephemerals.get(node.ephemeral_owner, {})
            owned.pop(path, None)
            if not owned:
                self.ephemerals.pop(node.ephemeral_owner, None)
        changes.append(Change(EventType.DELETED, path, node.acl))
        changes.append(Change(EventType.CHILD, parent_path, parent.acl))


def _owner(header: Header, txn: CreateTxn | CreateContainerTxn | CreateTtlTxn) -> int:
    match txn:
        case CreateTxn():
            return header.session_id if txn.ephemeral else 0
        case CreateTtlTxn():
            return with_ttl(txn.ttl_ms)
        case _:
            return CONTAINER
