import pytest

from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.records import OPEN_ACL, Acl, EventType, Id, Op, Stat
from broker_impl.zookeeper.tree import RESERVED, Applied, Change, Database, int32
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

OWNER = 7
CREATED, DELETED, CHANGED, CHILD = (
    EventType.CREATED,
    EventType.DELETED,
    EventType.CHANGED,
    EventType.CHILD,
)


def apply(database: Database, txn: Record, time_ms: int = 0) -> Applied:
    header = Header(OWNER, 1, database.last_zxid + 1, time_ms, Op.CREATE)
    return database.apply(Proposal.of(header, txn))


def create(path: str, creates: int, *, ephemeral: bool = False) -> CreateTxn:
    return CreateTxn(path, b"x", OPEN_ACL, ephemeral, creates)


@pytest.fixture
def database() -> Database:
    """A database with /a and its child /a/b, and a session's ephemeral nodes /e and /f."""
    database = Database()
    apply(database, CreateSessionTxn(4000))
    apply(database, create("/a", 1), time_ms=10)
    apply(database, create("/a/b", 1))
    apply(database, create("/e", 2, ephemeral=True))
    apply(database, create("/f", 3, ephemeral=True))
    return database


@pytest.mark.parametrize(
    ("txn", "changes"),
    [
        (create("/a/c", 2), [Change(CREATED, "/a/c"), Change(CHILD, "/a")]),
        (create("/c", 4), [Change(CREATED, "/c"), Change(CHILD, "/")]),
        (DeleteTxn("/a/b"), [Change(DELETED, "/a/b"), Change(CHILD, "/a")]),
        (SetDataTxn("/a", b"y", 1), [Change(CHANGED, "/a")]),
        (SetAclTxn("/a", OPEN_ACL, 1), []),
        (CheckVersionTxn("/a", 0), []),
        (ErrorTxn(-110), []),
        (CreateSessionTxn(4000), []),
        (
            MultiTxn(((Op.SET_DATA, SetDataTxn("/a", b"y", 1)), (Op.DELETE, DeleteTxn("/a/b")))),
            [Change(CHANGED, "/a"), Change(DELETED, "/a/b"), Change(CHILD, "/a")],
        ),
        (
            CloseSessionTxn(("/e", "/f")),
            [
                Change(DELETED, "/e"),
                Change(CHILD, "/"),
                Change(DELETED, "/f"),
                Change(CHILD, "/"),
            ],
        ),
    ],
)
def test_what_others_may_notice(database: Database, txn: Record, changes: list[Change]) -> None:
    """Every transaction reports the nodes created, deleted or changed, and changes of children."""
    assert apply(database, txn).changes == changes


def test_the_life_of_a_stat(database: Database) -> None:
    """Data moves mzxid, mtime and version; children move cversion and pzxid; an ACL aversion."""
    stat = Stat(2, 2, 10, 10, 0, 1, 0, 0, 1, 1, 3)
    assert database.nodes["/a"].stat() == stat
    apply(database, SetDataTxn("/a", b"long", 1), time_ms=20)
    stat = Stat(2, 6, 10, 20, 1, 1, 0, 0, 4, 1, 3)
    assert database.nodes["/a"].stat() == stat
    apply(database, DeleteTxn("/a/b"), time_ms=30)
    stat = Stat(2, 6, 10, 20, 1, 2, 0, 0, 4, 0, 7)
    assert database.nodes["/a"].stat() == stat
    apply(database, SetAclTxn("/a", (Acl(1, Id("world", "anyone")),), 1), time_ms=40)
    assert database.nodes["/a"].stat() == Stat(2, 6, 10, 20, 1, 2, 1, 0, 4, 0, 7)
    assert database.nodes["/e"].stat().ephemeral_owner == OWNER


def test_data_may_be_null(database: Database) -> None:
    """Null data is stored as null, not as empty data, and has length 0."""
    apply(database, SetDataTxn("/a", None, 1))
    assert database.nodes["/a"].data is None
    assert database.nodes["/a"].stat().data_length == 0


def test_an_ephemeral_node_that_is_deleted_is_its_sessions_no_more(database: Database) -> None:
    """Deleting an ephemeral node removes it from its session, whose close does not look for it."""
    apply(database, DeleteTxn("/e"))
    assert database.ephemerals == {OWNER: {"/f": None}}
    apply(database, CloseSessionTxn(("/f",)))
    assert (database.ephemerals, database.sessions) == ({}, {})


def test_descendants_are_counted_at_every_depth(database: Database) -> None:
    """The descendants of a node are counted at every depth, without the node itself."""
    assert database.descendants("/") == 4 + len(RESERVED) - 1
    assert database.descendants("/a") == 1
    assert database.descendants("/a/b") == 0


def test_transactions_are_applied_in_order(database: Database) -> None:
    """Applying a transaction a second time is an assertion error."""
    with pytest.raises(AssertionError):
        database.apply(Proposal.of(Header(OWNER, 1, database.last_zxid, 0, Op.ERROR), ErrorTxn(0)))


@pytest.mark.parametrize(
    ("value", "wrapped"), [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (-1, -1)]
)
def test_counters_wrap_round(value: int, wrapped: int) -> None:
    """Counters wrap as signed 32-bit integers."""
    assert int32(value) == wrapped
