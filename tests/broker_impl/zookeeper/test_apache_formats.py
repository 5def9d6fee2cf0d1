"""Apache ZooKeeper's tools and server read our files, and our server reads Apache's.

Skipped where the jars of Apache ZooKeeper are not available.
"""

import re
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from broker_impl.platform.os_disk import OsDisk
from broker_impl.zookeeper import acl as acls
from broker_impl.zookeeper import snapshot_file
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.jute import Record
from broker_impl.zookeeper.proposer import Proposer
from broker_impl.zookeeper.records import (
    CONTAINER_FLAG,
    EPHEMERAL,
    OPEN_ACL,
    SEQUENTIAL,
    TTL_FLAG,
    Acl,
    CreateRequest,
    CreateTtlRequest,
    MultiRequest,
    Op,
    PathVersion,
    SetAclRequest,
    SetDataRequest,
)
from broker_impl.zookeeper.store import FOLDER, Store
from broker_impl.zookeeper.tree import RESERVED, Database
from broker_impl.zookeeper.txn_records import CreateSessionTxn
from tests.broker_impl.zookeeper import apache_zookeeper

pytestmark = [pytest.mark.slow]

SESSION = 0x100000000000007
SECRET = (Acl(31, acls.identify("digest", b"u:p", ())),)


@pytest.fixture(autouse=True, scope="module")
def jars() -> None:
    try:
        apache_zookeeper.folder()
    except apache_zookeeper.Absent as error:
        pytest.skip(str(error))


def create(path: str, flags: int = 0, data: bytes | None = b"x") -> tuple[int, Record]:
    return Op.CREATE, CreateRequest(path, data, OPEN_ACL, flags)


WRITES: list[tuple[int, Record]] = [
    (Op.CREATE_SESSION, CreateSessionTxn(40_000)),
    create("/a"),
    create("/a/empty", data=None),
    create("/a/e", EPHEMERAL),
    *[create("/a/s-", SEQUENTIAL) for _ in range(30)],
    (Op.SET_DATA, SetDataRequest("/a", "grüße".encode(), -1)),
    (Op.SET_ACL, SetAclRequest("/a/empty", SECRET, -1)),
    (Op.CREATE_CONTAINER, CreateRequest("/c", b"", OPEN_ACL, CONTAINER_FLAG)),
    (Op.CREATE_TTL, CreateTtlRequest("/t", b"", OPEN_ACL, TTL_FLAG, 10**7)),
    (Op.DELETE, PathVersion("/a/s-0000000003", -1)),
    (Op.DELETE, PathVersion("/missing", -1)),
    (Op.MULTI, MultiRequest((create("/m"), (Op.SET_DATA, SetDataRequest("/m", b"2", 0))))),
    (Op.MULTI, MultiRequest((create("/n"), (Op.CHECK, PathVersion("/m", 7))))),
]


def write(data: Path, *, snap_count: int) -> Database:
    """Write everything, one transaction after the other, with slices of snapshots in between."""
    data.mkdir()
    store = Store(OsDisk(data), snap_count=snap_count)
    history = History(store)
    proposer = Proposer(history.database)
    for now_ms, (op, request) in enumerate(WRITES, 1_700_000_000_000):
        proposal = proposer.propose(
            op, request, session_id=SESSION, cxid=1, ids=(), now_ms=now_ms
        )  # fmt: skip
        history.log([proposal])
        history.commit(proposal.header.zxid)
        proposer.applied(proposal)
        history.rest()
    store.close()
    return history.database


def test_apaches_tool_reads_our_log(tmp_path: Path) -> None:
    """TxnLogToolkit prints each transaction with its zxid and its type, and finds no damage."""
    database = write(tmp_path / "data", snap_count=100_000)
    log = tmp_path / "data" / FOLDER / "log.1"
    text = apache_zookeeper.run("persistence.TxnLogToolkit", "-d", log)
    lines = [line for line in text.splitlines() if "zxid 0x" in line]
    zxids = [int(re.findall(r"zxid 0x([0-9a-f]+)", line)[0], 16) for line in lines]
    assert zxids == list(range(1, database.last_zxid + 1))
    assert "CRC ERROR" not in text
    for found in ("createSession", "createContainer", "createTTL", "setACL", "multi", "error"):
        assert found in text


@pytest.mark.parametrize("nodes_per_slice", [5, 1000], ids=["fuzzy", "whole"])
def test_apaches_tool_reads_our_snapshot(
    nodes_per_slice: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SnapshotFormatter lists the nodes of a snapshot with their Stat, and the sessions."""
    monkeypatch.setattr(snapshot_file, "NODES_PER_SLICE", nodes_per_slice)
    write(tmp_path / "data", snap_count=20)
    newest = tmp_path / "data" / FOLDER / "snapshot.14"
    text = apache_zookeeper.run("SnapshotFormatter", newest)
    paths = re.findall(r"^(/.*)$", text, re.M)
    assert {*RESERVED, "/a", "/a/e", "/a/empty", "/a/s-0000000005"} - {"/"} <= {*paths}
    assert f"{SESSION:#x}, 40000" in text
    assert re.search(r"^/a\n\s*cZxid = 0x0*2$", text, re.M)


def seen(port: int) -> dict[str, tuple[bytes, tuple[int, ...]]]:
    """The data and the Stat of every node, as a client sees them."""
    client = KazooClient(f"127.0.0.1:{port}", auth_data=[("digest", "u:p")])
    client.start()
    found: dict[str, tuple[bytes, tuple[int, ...]]] = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop()
        data, stat = client.get(path)
        found[path] = (data, tuple(stat))
        waiting += [f"{path.rstrip('/')}/{name}" for name in client.get_children(path)]
    client.stop()
    client.close()
    return found


def ours(database: Database, paths: set[str]) -> dict[str, tuple[object, ...]]:
    """The Stat of our nodes, as values in kazoo's order."""
    found = {}
    for path in paths:
        stat = database.nodes[path].stat()
        found[path] = tuple(getattr(stat, name) for name in stat.__struct_fields__)
    return found


def test_apaches_server_starts_on_our_directory(tmp_path: Path) -> None:
    """Apache's server serves the state that ours has left, from a fuzzy snapshot and its log."""
    database = write(tmp_path / "data", snap_count=20)
    with apache_zookeeper.server(tmp_path / "data") as port:
        found = seen(port)
    compared = set(found) - {*RESERVED}
    assert compared == set(database.nodes) - {*RESERVED}
    assert {path: found[path][1] for path in compared} == ours(database, compared)
    assert found["/a"][0] == "grüße".encode()


@pytest.mark.parametrize("snap_count", [20, 100_000], ids=["snapshot and log", "log"])
def test_our_server_starts_on_apaches_directory(snap_count: int, tmp_path: Path) -> None:
    """Our server has the state that Apache's has left when it was killed."""
    data = tmp_path / "data"
    data.mkdir()
    with apache_zookeeper.server(data, snap_count=snap_count) as port:
        client = KazooClient(f"127.0.0.1:{port}", auth_data=[("digest", "u:p")])
        client.start()
        client.create("/a", b"1")
        client.create("/a/e", ephemeral=True)
        secret = make_digest_acl("u", "p", all=True)
        client.create("/a/secret", acl=[secret])
        for number in range(60):
            client.create("/a/s-", str(number).encode(), sequence=True)
            client.set("/a", str(number).encode())
        client.delete("/a/s-0000000007")
        transaction = client.transaction()
        transaction.create("/m", b"")
        transaction.set_data("/m", b"2")
        transaction.commit()
        session_id = client.client_id[0]
        found = seen(port)
    client.stop()  # only now, so that the server had a live session when it was killed
    client.close()
    database = History(Store(OsDisk(data))).database
    compared = set(found) - {*RESERVED}
    assert compared == set(database.nodes) - {*RESERVED}
    assert {path: found[path][1] for path in compared} == ours(database, compared)
    assert database.sessions.keys() >= {session_id}
    assert database.ephemerals == {session_id: {"/a/e": None}}
    assert database.nodes["/a/secret"].acl[0].id.scheme == "digest"
    if snap_count == 20:
        assert list((data / FOLDER).glob("snapshot.[1-9a-f]*"))
