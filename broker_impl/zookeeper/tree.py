"""The nodes and sessions of a server: committed transactions in, results and changes out.

``Database.apply`` never rejects anything: invalid requests were rejected when their transaction was
made (``proposer``). The database uses no clock, socket or disk, so all servers that apply the same
transactions hold the same state.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.paths import child_of, name_of, parent_of
from broker_impl.zookeeper.records import OPEN_ACL, Acl, EventType, Stat
from broker_impl.zookeeper.txn_records import (
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
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


@dataclass(slots=True)
class Node:
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
    children: dict[str, None] = field(default_factory=dict)
    """Names, in order of creation."""

    def stat(self) -> Stat:
        """The node's Stat, as clients get it."""
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime=self.ctime,
            mtime=self.mtime,
            version=self.version,
            cversion=int32(2 * self.creates - len(self.children)),
            aversion=self.aversion,
            ephemeral_owner=self.ephemeral_owner,
            data_length=len(self.data or b""),
            children_count=len(self.children),
            pzxid=self.pzxid,
        )


class Change(NamedTuple):
    """A change that may trigger watches."""

    type: EventType
    path: str


class Outcome(NamedTuple):
    """The result of one transaction; ``error`` is 0 unless it was rejected."""

    error: int = 0
    path: str = ""
    stat: Stat | None = None
    parts: tuple["Outcome", ...] = ()
    """The outcomes inside a multi."""


class Applied(NamedTuple):
    """The effect of a transaction: the result for its client, and the changes for watches."""

    outcome: Outcome
    changes: list[Change]


class Database:
    """The state that a server serves from; only ``apply`` changes it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", OPEN_ACL, 0, 0, 0, 0, 0)}
        self.sessions: dict[int, int] = {}
        """Live sessions and their timeouts in milliseconds."""
        self.ephemerals: dict[int, dict[str, None]] = {}
        """The ephemeral nodes of each session."""
        self.last_zxid = 0
        """The zxid of the last transaction applied."""

    def apply(self, proposal: Proposal) -> Applied:
        """Apply a committed transaction."""
        header, txn = proposal
        assert header.zxid > self.last_zxid, "each transaction is applied once, in order"
        changes: list[Change] = []
        outcome = self._apply(header, txn, changes)
        self.last_zxid = header.zxid
        return Applied(outcome, changes)

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
            case CreateTxn():
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
                changes.append(Change(EventType.CHANGED, txn.path))
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
                for path in txn.paths:
                    self._delete(header, path, changes)
                self.sessions.pop(header.session_id, None)
                left = self.ephemerals.pop(header.session_id, {})
                assert not left, "all ephemeral nodes of a session are deleted with it"
                return Outcome()
            case _:
                raise AssertionError(f"the transaction {type(txn).__name__} cannot be proposed")

    def _create(self, header: Header, txn: CreateTxn, changes: list[Change]) -> Outcome:
        parent_path = parent_of(txn.path)
        parent = self.nodes[parent_path]
        assert txn.path not in self.nodes, "a node is created only where none exists"
        assert not parent.ephemeral_owner, "an ephemeral node has no children"
        node = Node(
            data=txn.data,
            acl=txn.acl,
            czxid=header.zxid,
            mzxid=header.zxid,
            pzxid=header.zxid,
            ctime=header.time_ms,
            mtime=header.time_ms,
            ephemeral_owner=header.session_id if txn.ephemeral else 0,
        )
        self.nodes[txn.path] = node
        parent.children[name_of(txn.path)] = None
        parent.creates = txn.parent_creates
        parent.pzxid = header.zxid
        if txn.ephemeral:
            self.ephemerals.setdefault(header.session_id, {})[txn.path] = None
        changes.append(Change(EventType.CREATED, txn.path))
        changes.append(Change(EventType.CHILD, parent_path))
        return Outcome(path=txn.path, stat=node.stat())

    def _delete(self, header: Header, path: str, changes: list[Change]) -> None:
        parent_path = parent_of(path)
        parent = self.nodes[parent_path]
        node = self.nodes.pop(path)
        assert not node.children, "the children of a node are deleted before it"
        del parent.children[name_of(path)]
        parent.pzxid = header.zxid
        if node.ephemeral_owner:
            owned = self.ephemerals[node.ephemeral_owner]
            del owned[path]
            if not owned:
                del self.ephemerals[node.ephemeral_owner]
        changes.append(Change(EventType.DELETED, path))
        changes.append(Change(EventType.CHILD, parent_path))
