import copy
import random
import struct
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_impl.errors import StorageError
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper import snapshot, txn_log
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.proposer import Proposer
from broker_impl.zookeeper.records import (
    EPHEMERAL,
    OPEN_ACL,
    SEQUENTIAL,
    Acl,
    CreateRequest,
    Id,
    Nothing,
    Op,
    PathVersion,
    SetDataRequest,
)
from broker_impl.zookeeper.store import FOLDER, SECRET_BYTES, SNAPSHOTS_KEPT, Store, zxid_of
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import CreateSessionTxn, ErrorTxn, Header, Proposal


class Server:
    """A store with its database and a proposer, as in a server."""

    def __init__(self, disk: MemoryDisk, *, snap_count: int = 100_000) -> None:
        self.store = Store(disk, snap_count=snap_count)
        self.database = self.store.recover()
        self.proposer = Proposer(self.database)

    def do(self, *writes: tuple[int, Record]) -> None:
        """Propose the writes, append them together, and apply them."""
        proposals = [
            self.proposer.propose(op, request, session_id=7, cxid=1, ids=(), now_ms=3)
            for op, request in writes
        ]
        self.store.append(proposals)
        for proposal in proposals:
            self.database.apply(proposal)
            self.proposer.applied(proposal)
        self.store.applied(self.database)


SECRET_ACL = (Acl(31, Id("digest", "a:b")),)
SESSION = (Op.CREATE_SESSION, CreateSessionTxn(4000))
WRITES: list[tuple[int, Record]] = [
    SESSION,
    (Op.CREATE, CreateRequest("/a", b"1", OPEN_ACL, 0)),
    (Op.CREATE, CreateRequest("/a/e", None, SECRET_ACL, EPHEMERAL)),
    (Op.CREATE, CreateRequest("/a/s", b"", OPEN_ACL, SEQUENTIAL)),
    (Op.CREATE, CreateRequest("/a", b"1", OPEN_ACL, 0)),
    (Op.SET_DATA, SetDataRequest("/a", b"2", 0)),
    (Op.DELETE, PathVersion("/a/s0000000001", -1)),
]


def same(one: Database, other: Database) -> bool:
    return (
        one.nodes == other.nodes
        and list(one.nodes) == list(other.nodes)
        and one.sessions == other.sessions
        and one.ephemerals == other.ephemerals
        and one.last_zxid == other.last_zxid
    )


def logs(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.list(FOLDER) if name.startswith("log.")]


def snapshots(disk: MemoryDisk) -> list[str]:
    return [name for name in disk.list(FOLDER) if name.startswith("snapshot.")]


def test_a_clean_restart_finds_everything() -> None:
    """A clean restart restores all kinds of nodes, sessions, and the zxid of refused writes too."""
    disk = MemoryDisk()
    server = Server(disk)
    server.do(*WRITES)
    server.store.close()
    again = Server(disk)
    assert same(again.database, server.database)
    assert again.database.last_zxid == len(WRITES)
    assert again.database.ephemerals == {7: {"/a/e": None}}


@settings(max_examples=60)
@given(
    batches=st.lists(st.lists(st.sampled_from(WRITES[1:]), min_size=1, max_size=3), max_size=8),
    snap_count=st.integers(1, 6),
    crashes=st.sets(st.integers(0, 8)),
    seed=st.integers(0, 2**32),
    last=st.lists(st.sampled_from(WRITES[1:]), max_size=3),
)
def test_whatever_was_appended_survives_a_loss_of_power(
    batches: list[list[tuple[int, Record]]],
    snap_count: int,
    crashes: set[int],
    seed: int,
    last: list[tuple[int, Record]],
) -> None:
    """After a power loss at any batch, with torn unsynced writes, acknowledged data is there."""
    disk = MemoryDisk()
    chance = random.Random(seed)
    server = Server(disk, snap_count=snap_count)
    server.do(SESSION)
    for index, batch in enumerate(batches):
        if index in crashes:
            possible = list(unacknowledged(server, disk, last))
            disk.crash(chance)
            server = Server(disk, snap_count=snap_count)
            assert any(same(server.database, database) for database in possible)
        server.do(*batch)
    before = server.database
    disk.crash()
    assert same(Server(disk, snap_count=snap_count).database, before)


def unacknowledged(
    server: Server, disk: MemoryDisk, writes: list[tuple[int, Record]]
) -> Iterator[Database]:
    """Crash in the sync of these writes, and yield the states that may be found afterwards.

    No client was answered.
    """
    yield copy.deepcopy(server.database)
    if not writes:
        return
    proposals = [
        server.proposer.propose(op, request, session_id=7, cxid=1, ids=(), now_ms=3)
        for op, request in writes
    ]
    disk.fails = lambda operation, path: operation == "fsync"
    with pytest.raises(StorageError):
        server.store.append(proposals)
    disk.fails = lambda operation, path: False
    for proposal in proposals:
        server.database.apply(proposal)
        yield copy.deepcopy(server.database)


def test_a_torn_tail_is_cut_off_at_every_length() -> None:
    """A torn entry at the end of the log, of any length, is cut off, and the log continues."""
    disk = MemoryDisk()
    server = Server(disk)
    server.do(*WRITES[:2])
    whole = disk.read(f"{FOLDER}/log.1")
    server.do(WRITES[2])
    longer = disk.read(f"{FOLDER}/log.1")
    for size in range(len(whole), len(longer)):
        torn = MemoryDisk()
        torn.make_dir(FOLDER)
        torn.write(f"{FOLDER}/log.1", longer[:size])
        again = Server(torn)
        assert again.database.last_zxid == 2
        assert torn.read(f"{FOLDER}/log.1") == whole
        again.do(WRITES[2])
        torn.crash()
        assert Server(torn).database.last_zxid == 3


@pytest.mark.parametrize("seed", range(10))
def test_what_a_start_has_found_is_durable(seed: int) -> None:
    """Unsynced writes that a restart found are durable before it serves them."""
    disk = MemoryDisk()
    server = Server(disk)
    list(unacknowledged(server, disk, [SESSION, WRITES[1]]))
    disk.kill()
    found = Server(disk).database
    assert found.last_zxid == 2
    disk.crash(random.Random(seed))
    assert same(Server(disk).database, found)


@pytest.mark.parametrize("size", [0, 5, 16, 20])
def test_a_log_torn_at_its_very_beginning_is_removed(size: int) -> None:
    """A log file without one whole transaction is removed, and its name can be used again."""
    disk = MemoryDisk()
    Server(disk).do(SESSION)
    data = disk.read(f"{FOLDER}/log.1")
    disk.write(f"{FOLDER}/log.1", data[:size])
    disk.kill()
    server = Server(disk)
    assert server.database.last_zxid == 0
    assert logs(disk) == []
    server.do(SESSION)
    assert logs(disk) == ["log.1"]


def test_a_flipped_bit_ends_the_log_there() -> None:
    """A log ends at an entry whose checksum is wrong."""
    disk = MemoryDisk()
    server = Server(disk)
    server.do(*WRITES[:3])
    data = bytearray(disk.read(f"{FOLDER}/log.1"))
    data[-5] ^= 1
    disk.write(f"{FOLDER}/log.1", bytes(data))
    disk.kill()
    assert Server(disk).database.last_zxid == 2


def damaged(disk: MemoryDisk) -> Iterator[str]:
    """Damage a directory in ways that a crash cannot cause."""
    first, second = logs(disk)[:2]
    data = disk.read(f"{FOLDER}/{first}")
    disk.write(f"{FOLDER}/{first}", data[:-3])
    yield "a file torn in the middle of the log"
    disk.write(f"{FOLDER}/{first}", b"not a log at all" + data[16:])
    yield "a file that is no log"
    disk.write(f"{FOLDER}/{first}", data)
    disk.remove(f"{FOLDER}/{second}")
    yield "a file that is missing"


def test_damage_that_no_crash_explains_is_refused() -> None:
    """Damage that no crash can cause is refused, so that no data is lost silently."""
    disk = MemoryDisk()
    for write in WRITES[:4]:  # every start begins a new file
        server = Server(disk)
        server.do(write)
        server.store.close()
    for kind in damaged(disk):
        with pytest.raises(StorageError):
            pytest.fail(f"{kind}: {Server(disk).database.last_zxid:#x}")
        disk.kill()


def test_snapshots_shorten_the_log() -> None:
    """Three snapshots are kept, and the log from the oldest of them on."""
    disk = MemoryDisk()
    server = Server(disk, snap_count=2)
    server.do(SESSION)
    for _ in range(20):
        server.do((Op.CREATE, CreateRequest("/s", b"", OPEN_ACL, SEQUENTIAL)))
    assert len(snapshots(disk)) == SNAPSHOTS_KEPT
    oldest = min(int(name.removeprefix("snapshot."), 16) for name in snapshots(disk))
    assert min(int(name.removeprefix("log."), 16) for name in logs(disk)) == oldest + 1
    disk.crash()
    assert same(Server(disk).database, server.database)


def test_the_log_since_the_last_snapshot_counts_after_a_restart() -> None:
    """Transactions since the last snapshot count across restarts, so that snapshots are taken."""
    disk = MemoryDisk()
    for write in WRITES[:3]:
        server = Server(disk, snap_count=3)
        server.do(write)
        disk.kill()
    assert snapshots(disk) == ["snapshot.3"]


@settings(max_examples=40)
@given(st.integers(1, 4), st.lists(st.booleans(), max_size=30), st.integers(0, SNAPSHOTS_KEPT))
def test_a_damaged_snapshot_is_passed_over(
    snap_count: int, restarts: list[bool], damaged_count: int
) -> None:
    """A damaged snapshot is skipped; any older one, with the log after it, gives the same state."""
    disk = MemoryDisk()
    server = Server(disk, snap_count=snap_count)
    server.do(SESSION)
    for restart in restarts:
        if restart:
            disk.kill()
            server = Server(disk, snap_count=snap_count)
        server.do((Op.CREATE, CreateRequest("/s", b"", OPEN_ACL, SEQUENTIAL)))
    kept = sorted(snapshots(disk), key=lambda name: int(name.removeprefix("snapshot."), 16))
    for name in kept[1:][-damaged_count:]:
        data = bytearray(disk.read(f"{FOLDER}/{name}"))
        data[30] ^= 1
        disk.write(f"{FOLDER}/{name}", bytes(data))
    disk.kill()
    assert same(Server(disk, snap_count=snap_count).database, server.database)


def test_strange_files_are_left_alone() -> None:
    """Files whose names the store would not give are left alone."""
    disk = MemoryDisk()
    disk.make_dir(FOLDER)
    for name in ("log.", "log.xyz", "log.01", "notes.txt", "snapshot.1.tmp", "log.1.bak"):
        disk.write(f"{FOLDER}/{name}", b"?")
    server = Server(disk, snap_count=1)
    server.do(*WRITES)
    disk.crash()
    assert same(Server(disk).database, server.database)
    assert disk.read(f"{FOLDER}/log.xyz") == b"?"


def test_a_directory_has_one_server() -> None:
    """A second store on a directory is refused until the first one is closed."""
    disk = MemoryDisk()
    first = Store(disk)
    with pytest.raises(StorageError):
        Store(disk)
    first.close()
    Store(disk)


def test_the_secret_is_drawn_once() -> None:
    """The secret is drawn once, so that passwords stay valid after a restart."""
    disk = MemoryDisk()
    store = Store(disk)
    secret = store.secret(random.Random(1).randbytes)
    assert len(secret) == SECRET_BYTES
    disk.crash()
    assert Store(disk).secret(random.Random(2).randbytes) == secret


def test_the_log_is_written_in_zookeepers_format() -> None:
    """The log starts with ZKLG, version 2; an entry has its Adler-32, its length, and B behind."""
    proposal = Proposal.of(Header(1, 2, 3, 4, Op.ERROR), ErrorTxn(-110))
    body = proposal.entry
    assert b"ZKLG\0\0\0\2" + bytes(8) == txn_log.HEADER
    entry = txn_log.entries([proposal])
    assert entry[12:] == body + b"B"
    assert entry[8:12] == len(body).to_bytes(4, "big")
    assert list(txn_log.read(txn_log.HEADER + entry + bytes(64), "log.3")) == [
        (proposal, len(txn_log.HEADER) + len(entry))
    ]


def test_a_snapshot_that_is_cut_short_is_refused() -> None:
    """A snapshot that is cut short or empty is refused."""
    data = snapshot.encode(Database())
    assert same(snapshot.decode(data, 0), Database())
    with pytest.raises(StorageError, match=r"snapshot\.0"):
        snapshot.decode(data[:-1], 0)
    with pytest.raises(StorageError, match="checksum is wrong"):
        snapshot.decode(data[:-6] + b"x" + data[-5:], 0)
    with pytest.raises(StorageError):
        snapshot.decode(b"", 0)


def test_a_snapshot_with_the_wrong_magic_is_refused() -> None:
    """A file with another magic is no snapshot, even if its checksum is right."""
    data = snapshot.encode(Database())

    def with_magic(magic: bytes) -> bytes:
        body = magic + data[4:-13]
        return body + struct.pack(">qi", zlib.adler32(body), 1) + b"/"

    assert with_magic(b"ZKSN") == data
    with pytest.raises(StorageError, match="not a snapshot"):
        snapshot.decode(with_magic(b"ZKLG"), 0)


def test_closing_a_session_is_durable_too() -> None:
    """After a restart, closed sessions and their nodes stay deleted."""
    disk = MemoryDisk()
    server = Server(disk)
    server.do(*WRITES, (Op.CLOSE_SESSION, Nothing()))
    disk.crash()
    database = Server(disk).database
    assert (database.sessions, database.ephemerals) == ({}, {})
    assert "/a/e" not in database.nodes


def test_a_new_log_whose_first_page_was_not_written_is_torn() -> None:
    """A new log file whose header page is all zeros counts as torn (docs/findings/0005).

    Pages reach a disk in any order, so such a page was never synced. A header that is damaged
    otherwise, or in a file before others, cannot come from a crash, and is refused.
    """
    disk = MemoryDisk()
    Server(disk).do(*WRITES[:2])
    disk.kill()
    old = logs(disk)
    disk.write(f"{FOLDER}/{txn_log.name(3)}", bytes(4096) + b"an entry's end")
    again = Server(disk)
    assert again.database.last_zxid == 2
    assert logs(disk) == old
    again.store.close()
    disk.write(f"{FOLDER}/{old[0]}", bytes(4096))
    disk.write(f"{FOLDER}/{txn_log.name(3)}", txn_log.HEADER)
    with pytest.raises(StorageError, match="damaged at 0"):
        Server(disk)
    disk.kill()
    disk.write(f"{FOLDER}/{txn_log.name(3)}", b"X" + txn_log.HEADER[1:])
    disk.remove(f"{FOLDER}/{old[0]}")
    with pytest.raises(StorageError, match="not a transaction log"):
        Server(disk)


@pytest.mark.parametrize(
    ("file", "zxid"),
    [
        ("snapshot.0", 0),
        ("snapshot.30000002d", 0x30000002D),
        ("snapshot.30000002d.partial", None),
        ("snapshot.030", None),
        ("snapshot.", None),
        ("log.10", None),
        ("currentEpoch", None),
    ],
)
def test_a_file_is_of_a_kind_by_its_whole_name(file: str, zxid: int | None) -> None:
    """A file of another kind, or one that is being written, has no zxid."""
    assert zxid_of(file, snapshot.name) == zxid
