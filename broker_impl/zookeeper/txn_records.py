"""Transactions: the decided changes, as they are logged, agreed upon and applied.

A request says what a client wants; a transaction says what happens. It contains everything that had
to be looked up or drawn, so that every server that applies it reaches the same state. Layouts are
those of ZooKeeper's own log.
"""

from typing import Self

import msgspec

from broker_impl.errors import WireError
from broker_impl.zookeeper.jute import Bool, Buffer, Int, Long, Reader, Record, UString
from broker_impl.zookeeper.records import Acls, Op


class Header(Record, frozen=True):
    """The requester (session, xid), the wall-clock time in milliseconds, and the zxid."""

    session_id: Long
    cxid: Int
    zxid: Long
    time_ms: Long
    type: Int


class CreateTxn(Record, frozen=True):
    """A node is created.

    ``parent_creates``: the parent's new counter of children ever created.
    """

    path: UString
    data: Buffer
    acl: Acls
    ephemeral: Bool
    parent_creates: Int


class CreateContainerTxn(Record, frozen=True):
    """A container is created: the leader deletes it after its last child."""

    path: UString
    data: Buffer
    acl: Acls
    parent_creates: Int


class CreateTtlTxn(Record, frozen=True):
    """A node with a time to live is created."""

    path: UString
    data: Buffer
    acl: Acls
    parent_creates: Int
    ttl_ms: Long


class DeleteTxn(Record, frozen=True):
    """A node is deleted."""

    path: UString


class SetDataTxn(Record, frozen=True):
    """A node's data is set; ``version`` is the new one."""

    path: UString
    data: Buffer
    version: Int


class SetAclTxn(Record, frozen=True):
    """A node's ACL is set; ``version`` is the ACL's new one."""

    path: UString
    acl: Acls
    version: Int


class CheckVersionTxn(Record, frozen=True):
    """A node had the version that a multi requires; nothing changes."""

    path: UString
    version: Int


class CreateSessionTxn(Record, frozen=True):
    """A session begins; the header has its id."""

    timeout_ms: Int


class CloseSessionTxn(Record, frozen=True):
    """A session ends, and these ephemeral nodes are deleted.

    Releases before 3.6 do not list the nodes: all of the session are deleted.
    """

    paths: tuple[UString, ...]

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read one from a log entry."""
        return super().read(reader) if reader.remaining else cls(())


class ErrorTxn(Record, frozen=True):
    """A request was rejected: it takes a zxid and changes nothing."""

    error: Int


class MultiTxn(Record, frozen=True):
    """Several transactions at once, each as (operation code, transaction)."""

    transactions: tuple[tuple[int, Record], ...]

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read one from a log entry."""
        transactions = []
        for envelope in _Envelopes.read(reader).transactions:
            inner = Reader(envelope.body or b"")
            transactions.append((envelope.type, read_txn(envelope.type, inner)))
            inner.end()
        return cls(tuple(transactions))

    def write(self, out: bytearray) -> None:
        """Append it to the output."""
        _Envelopes(tuple(_Envelope(op, txn.encode()) for op, txn in self.transactions)).write(out)


class _Envelope(Record, frozen=True):
    type: Int
    body: Buffer


class _Envelopes(Record, frozen=True):
    transactions: tuple[_Envelope, ...]


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """A transaction with its header, to be logged first and applied once it is committed."""

    header: Header
    txn: Record
    entry: bytes
    """Both of them encoded, as they are logged and sent."""

    @classmethod
    def of(cls, header: Header, txn: Record) -> Self:
        """Return the proposal of a transaction."""
        out = bytearray()
        header.write(out)
        txn.write(out)
        return cls(header, txn, bytes(out))

    @classmethod
    def decode(cls, entry: bytes) -> Self:
        """Decode the proposal of a log entry.

        Raises:
            WireError: the entry is malformed.
        """
        reader = Reader(entry)
        header = Header.read(reader)
        txn = read_txn(header.type, reader)
        if reader.remaining == _DIGEST_BYTES:
            entry = entry[:-_DIGEST_BYTES]
        else:
            reader.end()
        return cls(header, txn, entry)


_DIGEST_BYTES = 12
"""The size of the digest that releases from 3.6 on append to a transaction; it is not used here."""

_TXNS: dict[int, type[Record]] = {
    Op.CREATE: CreateTxn,
    Op.CREATE2: CreateTxn,
    Op.DELETE: DeleteTxn,
    Op.SET_DATA: SetDataTxn,
    Op.SET_ACL: SetAclTxn,
    Op.CHECK: CheckVersionTxn,
    Op.MULTI: MultiTxn,
    Op.CREATE_SESSION: CreateSessionTxn,
    Op.CLOSE_SESSION: CloseSessionTxn,
    Op.ERROR: ErrorTxn,
    Op.RECONFIG: SetDataTxn,
    Op.CREATE_CONTAINER: CreateContainerTxn,
    Op.DELETE_CONTAINER: DeleteTxn,
    Op.CREATE_TTL: CreateTtlTxn,
}


def read_txn(op: int, reader: Reader) -> Record:
    """Read the transaction of this type.

    Raises:
        WireError: no transaction has that type, or the bytes are malformed.
    """
    txn = _TXNS.get(op)
    if txn is None:
        raise WireError(f"transaction type {op} is unknown")
    return txn.read(reader)
