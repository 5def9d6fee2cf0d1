"""The whole state as a stream: in a snapshot's file, and from a leader to a learner.

It holds the sessions, then the ACLs in use (numbered), then every node, parents before children
(ZooKeeper's ``SerializeUtils.serializeSnapshot``). Its length is not announced.

A state is written in slices, and transactions may be applied in between. It is *fuzzy* then: it may
contain the effects of some transactions after its zxid, which are replayed over it
(``Database.replay``).
"""

from collections.abc import Generator, Iterator
from typing import TypeVar

from broker_impl.errors import WireError
from broker_impl.zookeeper.jute import Buffer, Int, Long, Reader, Record, UString
from broker_impl.zookeeper.paths import name_of, parent_of
from broker_impl.zookeeper.records import OPEN_ACL, Acl
from broker_impl.zookeeper.tree import READ_ACL, Database, Node

_OPEN = -1
"""The number of the open ACL, which is not written because all servers know it."""
_UNKNOWN_ACL: tuple[Acl, ...] = ()
"""Grants nothing. An ACL that a writer has no number for was set later, and is replayed."""
_ROOT = "/"
"""The root's path in the database; in the stream it is empty."""
_END = "/"
"""Marks the end of the nodes, in place of the next path."""


class _Count(Record, frozen=True):
    count: Int


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


_Any = TypeVar("_Any", bound=Record)


class StateWriter:
    """The state of a database in slices, which may change between two of them.

    A node that was created after the beginning is left out, because its transaction is replayed.
    All others are written as they are at that moment, parents before children: a node that exists
    since before the beginning has a parent that does, too.

    Args:
        database: the database; transactions may be applied to it between two slices.
    """

    def __init__(self, database: Database) -> None:
        self.zxid = database.last_zxid
        """The last transaction that the state contains as a whole."""
        self.is_complete = False
        self._database = database
        self._paths = list(database.nodes)
        self._numbers: dict[tuple[Acl, ...], int] = {OPEN_ACL: _OPEN}
        self._steps = self._write_all()
        self._nodes_left = 0
        self._out = bytearray()

    def slice(self, nodes_max: int) -> bytes:
        """Return the next bytes; it takes the time of so many nodes, each visited twice in all."""
        self._nodes_left = nodes_max
        next(self._steps)
        out, self._out = self._out, bytearray()
        return bytes(out)

    def _write_all(self) -> Generator[None, None, None]:
        """Append everything to the output; yield when a slice has no more nodes."""
        for _, node in self._old_nodes():
            self._numbers.setdefault(node.acl, len(self._numbers))
            if self._nodes_left <= 0:
                yield
        self._write_tables(self._out)
        for path, node in self._old_nodes():
            self._write_node(path, node, self._out)
            if self._nodes_left <= 0:
                yield
        _Path(_END).write(self._out)
        self.is_complete = True
        yield

    def _old_nodes(self) -> Iterator[tuple[str, Node]]:
        """Yield the nodes that exist since the beginning, as they are now."""
        nodes = self._database.nodes
        for path in self._paths:
            node = nodes.get(path)
            self._nodes_left -= 1
            if node is not None and node.czxid <= self.zxid:
                yield path, node

    def _write_tables(self, out: bytearray) -> None:
        _Tables(
            tuple(_Session(*session) for session in self._database.sessions.items()),
            tuple(
                _NumberedAcl(number, acl)
                for acl, number in self._numbers.items()
                if number != _OPEN
            ),
        ).write(out)

    def _write_node(self, path: str, node: Node, out: bytearray) -> None:
        # An ACL that is not in the table was set later, so it is set again by the replay.
        number = self._numbers.get(node.acl)
        _Path(path if path != _ROOT else "").write(out)
        _Node(
            data=node.data,
            acl=self._numbers.get(READ_ACL, _OPEN) if number is None else number,
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


def encode_state(database: Database) -> bytes:
    """Encode the whole state at once."""
    writer = StateWriter(database)
    out = bytearray()
    while not writer.is_complete:
        out += writer.slice(2 * len(database.nodes) + 1)
    return bytes(out)


def restore_owner(database: Database, owner: int, path: str) -> None:
    """Note the owner of a node: an ephemeral one is deleted with its session (ZOOKEEPER-1367)."""
    database.own(path, owner)


class StateReader:
    """Bytes in, a database out; the caller owns the file or socket.

    Args:
        zxid: the last transaction that the state contains.
    """

    def __init__(self, zxid: int) -> None:
        self.is_complete = False
        self.database = Database()
        """The state; whole once it is complete."""
        self.database.nodes.clear()
        self.database.last_zxid = zxid
        self._data = b""
        self._at = 0
        self._steps = self._read_all()
        self._acls: dict[int, tuple[Acl, ...]] = {_OPEN: OPEN_ACL}

    def receive(self, data: bytes) -> None:
        """Add bytes.

        Raises:
            WireError: they are no state.
        """
        self._data = self._data[self._at :] + data
        self._at = 0
        self.is_complete = next(self._steps, True)

    def rest(self) -> bytes:
        """Return the bytes after the state."""
        return self._data[self._at :]

    def _read_all(self) -> Generator[bool, None, None]:
        """Read everything; yield False when more bytes are needed."""
        for _ in range((yield from self._read(_Count)).count):
            session = yield from self._read(_Session)
            self.database.sessions[session.session_id] = session.timeout_ms
        for _ in range((yield from self._read(_Count)).count):
            numbered = yield from self._read(_NumberedAcl)
            self._acls[numbered.number] = numbered.acl
        while (path := (yield from self._read(_Path)).path) != _END:
            self._add(path, (yield from self._read(_Node)))

    def _read(self, record: type[_Any]) -> Generator[bool, None, _Any]:
        while True:
            reader = Reader(self._data, self._at)
            try:
                found = record.read(reader)
            except WireError:
                yield False  # incomplete
            else:
                self._at = len(self._data) - reader.remaining
                return found

    def _add(self, path: str, kept: _Node) -> None:
        parent = parent_of(path) if path else _ROOT
        if path and parent not in self.database.nodes:
            raise WireError(f"the node {path!r} has no parent")
        self.database.nodes[path or _ROOT] = Node(
            data=kept.data,
            acl=self._acls.get(kept.acl, _UNKNOWN_ACL),
            czxid=kept.czxid,
            mzxid=kept.mzxid,
            pzxid=kept.pzxid,
            ctime=kept.ctime,
            mtime=kept.mtime,
            ephemeral_owner=kept.ephemeral_owner,
            version=kept.version,
            creates=kept.creates,
            aversion=kept.aversion,
        )
        if path:
            self.database.nodes[parent].children[name_of(path)] = None
        restore_owner(self.database, kept.ephemeral_owner, path)
