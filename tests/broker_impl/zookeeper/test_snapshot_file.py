"""A snapshot is written in slices, and has its name only when it is complete and durable."""

import itertools
import random

import pytest

from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper import snapshot, snapshot_file
from broker_impl.zookeeper.records import OPEN_ACL, Op
from broker_impl.zookeeper.snapshot_file import SUFFIX, SnapshotWriter
from broker_impl.zookeeper.store import FOLDER, Store
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import CreateTxn, Header, Proposal


def create(zxid: int) -> Proposal:
    txn = CreateTxn(f"/n{zxid}", bytes(100), OPEN_ACL, False, zxid)
    return Proposal.of(Header(0, 0, zxid, 1, Op.CREATE), txn)


def database_of(count: int) -> Database:
    database = Database()
    for zxid in range(1, count + 1):
        database.apply(create(zxid))
    return database


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_file, "NODES_PER_SLICE", 10)


def folder() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir(FOLDER)
    disk.fsync_dir("")
    return disk


def test_no_part_of_a_snapshot_has_its_name() -> None:
    """A power loss after any step leaves the whole snapshot or none (ZOOKEEPER-2872)."""
    database = database_of(50)
    steps = 0
    for crash_after in range(100):
        disk = folder()
        writer = SnapshotWriter(disk, FOLDER, database)
        is_complete = False
        for _ in range(crash_after):
            steps += 1
            if is_complete := writer.step():
                break
        disk.crash(random.Random(crash_after))
        names = [name for name in disk.list(FOLDER) if not name.endswith(SUFFIX)]
        assert names == (["snapshot.32"] if is_complete else [])
        if is_complete:
            data = disk.read(f"{FOLDER}/snapshot.32")
            assert snapshot.decode(data, 50).nodes == database.nodes
            return
    pytest.fail("the snapshot is never complete")


def test_a_step_visits_few_nodes() -> None:
    """Each step appends at most the nodes of a slice, so that it takes a bounded time."""
    disk = folder()
    writer = SnapshotWriter(disk, FOLDER, database_of(200))
    sizes = [0]
    while not writer.step():
        sizes.append(len(disk.read(f"{FOLDER}/snapshot.c8{SUFFIX}")))
    steps = [after - before for before, after in itertools.pairwise(sizes)]
    assert len(steps) >= 2 * 204 // 10
    assert max(steps) <= 12 * 250


def test_an_abandoned_snapshot_is_removed_at_the_next_start() -> None:
    """What a former life has not completed is no snapshot, and does not stay."""
    disk = MemoryDisk()
    store = Store(disk, snap_count=1)
    database = store.recover()
    for zxid in range(1, 41):
        store.append([create(zxid)])
        database.apply(create(zxid))
    store.applied(database)
    assert store.is_writing_snapshot
    disk.kill()
    again = Store(disk)
    assert again.recover().nodes == database.nodes
    assert disk.list(FOLDER) == ["log.1"]


def test_a_snapshot_is_begun_again_over_an_incomplete_one() -> None:
    """A writer replaces what another has left under the temporary name."""
    disk = folder()
    database = database_of(50)
    first = SnapshotWriter(disk, FOLDER, database)
    for _ in range(8):
        first.step()
    first.abandon()
    second = SnapshotWriter(disk, FOLDER, database)
    while not second.step():
        pass
    assert snapshot.decode(disk.read(f"{FOLDER}/snapshot.32"), 50).nodes == database.nodes
