"""What was decided: transactions, as they are logged, agreed upon and applied.

A request says what a client wishes; a transaction says what happens, with everything that had to
be looked up or drawn already in it, so that whoever applies it comes to the same state. Layouts
are those of ZooKeeper's own log.
"""

from typing import NamedTuple, Self

from broker_impl.errors import WireError
from broker_impl.zookeeper.jute import Bool, Buffer, Int, Long, Reader, Record, UString
from broker_impl.zookeeper.records import Acl, Op


class Header(Record, frozen=True):
    """Who asked (session, xid), when (wall milliseconds), and the place in the one order."""

    session_id: Long
    cxid: Int
    zxid: Long
    time_ms: Long
    type: Int


class CreateTxn(Record, frozen=True):
    """A node comes to be. ``parent_creates``: the parent's creates-ever counter from now on."""

    path: UString
    data: Buffer
    acl: tuple[Acl, ...]
    ephemeral: Bool
    parent_creates: Int


class DeleteTxn(Record, frozen=True):
    """A node goes."""

    path: UString


class SetDataTxn(Record, frozen=True):
    """A node gets data; ``version`` is the new one."""

    path: UString
    data: Buffer
    version: Int


class SetAclTxn(Record, frozen=True):
    """A node gets an ACL; ``version`` is the ACL's new one."""

    path: UString
    acl: tuple[Acl, ...]
    version: Int


class CheckVersionTxn(Record, frozen=True):
    """A node had the version that a multi asked for: nothing to do."""

    path: UString
    version: Int


class CreateSessionTxn(Record, frozen=True):
    """A session begins; its id is the header's."""

    timeout_ms: Int


class CloseSessionTxn(Record, frozen=True):
    """A session ends, and these ephemeral nodes with it."""

    paths: tuple[UString, ...]


class ErrorTxn(Record, frozen=True):
    """A request that was refused: it has its place in the order and changes nothing."""

    error: Int


class MultiTxn(Record, frozen=True):
    """Several at once: (operation code, transaction) each."""

    transactions: tuple[tuple[int, Record], ...]

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Take one off a log entry."""
        transactions = []
        for envelope in _Envelopes.read(reader).transactions:
            inner = Reader(envelope.body or b"")
            transactions.append((envelope.type, read_txn(envelope.type, inner)))
            inner.end()
        return cls(tuple(transactions))

    def write(self, out: bytearray) -> None:
        """Append this one."""
        _Envelopes(tuple(_Envelope(op, txn.encode()) for op, txn in self.transactions)).write(out)


class _Envelope(Record, frozen=True):
    type: Int
    body: Buffer


class _Envelopes(Record, frozen=True):
    transactions: tuple[_Envelope, ...]


class Proposal(NamedTuple):
    """A transaction on its way: logged first, applied once it is committed."""

    header: Header
    txn: Record

    def encode(self) -> bytes:
        """Header and transaction, as a log entry holds them."""
        out = bytearray()
        self.header.write(out)
        self.txn.write(out)
        return bytes(out)

    @classmethod
    def decode(cls, entry: bytes) -> Self:
        """The proposal of a log entry.

        Raises:
            WireError: the entry is not one.
        """
        reader = Reader(entry)
        header = Header.read(reader)
        txn = read_txn(header.type, reader)
        reader.end()
        return cls(header, txn)


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
}


def read_txn(op: int, reader: Reader) -> Record:
    """The transaction of a type.

    Raises:
        WireError: no transaction has that type, or the bytes are not one.
    """
    txn = _TXNS.get(op)
    if txn is None:
        raise WireError(f"no transaction has type {op}")
    return txn.read(reader)
