"""What a store does for a member of an ensemble: truncate, send, install, and fuzzy snapshots."""

import contextlib
import copy
import random

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper import snapshot, snapshot_file
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.records import OPEN_ACL, Op
from broker_impl.zookeeper.store import FOLDER, INSTALLING, Store
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import CreateTxn, Header, Proposal, SetDataTxn


def z(epoch: int, counter: int) -> int:
    return epoch << 32 | counter


def create(zxid: int, name: str = "") -> Proposal:
    txn = CreateTxn(f"/{name or format(zxid, 'x')}", b"", OPEN_ACL, False, zxid & 0xFFFF)
    return Proposal.of(Header(0, 0, zxid, 1, Op.CREATE), txn)


def filled(disk: MemoryDisk, *zxids: int, snap_count: int = 100_000) -> History:
    """A history with these transactions, logged one by one and committed."""
    history = History(Store(disk, snap_count=snap_count))
    for zxid in zxids:
        history.log([create(zxid)])
        history.commit(zxid)
        while history.rest():
            pass
    return history


def restarted(disk: MemoryDisk) -> History:
    disk.kill()
    return History(Store(disk))


def created(database: Database) -> set[int]:
    """The zxids of the transactions that have created a node."""
    return {node.czxid for node in database.nodes.values()} - {0}


@pytest.mark.parametrize("keep", [0, 1, 2, 3, 4])
def test_a_truncation_removes_every_later_transaction(keep: int) -> None:
    """A log of several files ends at the zxid afterwards, in memory and after a power loss."""
    disk = MemoryDisk()
    for zxid in range(1, 5):
        filled(disk, zxid)
        disk.kill()
    history = restarted(disk)
    history.truncate(keep)
    assert history.last_zxid == keep
    assert created(history.database) == set(range(1, keep + 1))
    disk.crash()
    again = restarted(disk)
    assert created(again.database) == set(range(1, keep + 1))
    again.log([create(keep + 1, "next")])


def test_a_truncation_inside_a_file() -> None:
    """Transactions of one file are cut off behind the zxid."""
    disk = MemoryDisk()
    history = filled(disk, 1, 2, 3, 4)
    history.truncate(2)
    assert created(restarted(disk).database) == {1, 2}


def test_a_truncation_below_a_snapshot_is_refused() -> None:
    """What a snapshot contains was committed, so it must not be removed (I10)."""
    disk = MemoryDisk()
    history = filled(disk, 1, 2, 3, snap_count=2)
    assert "snapshot.2" in disk.list(FOLDER)
    with pytest.raises(StorageError, match="newer"):
        history.truncate(1)
    assert created(restarted(disk).database) == {1, 2, 3}


@pytest.mark.parametrize("seed", range(20))
def test_a_truncation_that_a_power_loss_interrupts_leaves_no_gap(seed: int) -> None:
    """After any part of a truncation the log is a prefix of what it was, and not shorter."""
    disk = MemoryDisk()
    for zxid in range(1, 6):
        filled(disk, zxid)
        disk.kill()
    history = restarted(disk)
    chance = random.Random(seed)
    left = chance.randrange(8)

    def fails(operation: str, path: str) -> bool:
        nonlocal left
        left -= operation in ("remove", "fsync_dir", "truncate", "fsync")
        return left < 0

    disk.fails = fails
    with contextlib.suppress(StorageError):
        history.truncate(2)
    disk.fails = lambda operation, path: False
    disk.crash(chance)
    found = created(restarted(disk).database)
    assert found in [set(range(1, last + 1)) for last in range(2, 6)]


def test_the_transactions_after_a_zxid_are_read_from_the_log() -> None:
    """``since`` returns what follows a zxid that the log contains, over files and epochs."""
    disk = MemoryDisk()
    zxids = [z(1, 1), z(1, 2), z(2, 1), z(2, 2)]
    for zxid in zxids:
        filled(disk, zxid)
        disk.kill()
    store = Store(disk)
    for at, zxid in enumerate([0, *zxids]):
        found = store.since(zxid)
        assert found is not None
        assert [proposal.header.zxid for proposal in found] == zxids[at:]
    assert store.since(z(1, 3)) is None, "the log has no such transaction"


def test_a_log_that_does_not_reach_back_sends_nothing() -> None:
    """Without the file that contains a zxid, what follows it is not known."""
    disk = MemoryDisk()
    for zxid in range(1, 5):
        filled(disk, zxid)
        disk.kill()
    disk.remove(f"{FOLDER}/log.1")
    store = Store(disk)
    assert store.since(0) is None
    assert store.since(1) is None
    found = store.since(2)
    assert found is not None
    assert [proposal.header.zxid for proposal in found] == [3, 4]


def test_an_installed_state_replaces_log_and_snapshots() -> None:
    """No part of the former log is replayed over the state of a leader (ZOOKEEPER-2832)."""
    disk = MemoryDisk()
    history = filled(disk, 1, 2, 3, 4, 5, snap_count=2)
    state = filled(MemoryDisk(), 1, z(2, 1)).database
    history.install(copy.deepcopy(state))
    assert disk.list(FOLDER) == [snapshot.name(z(2, 1))]
    history.log([create(z(2, 2))])
    again = restarted(disk)
    assert created(again.database) == {1, z(2, 1), z(2, 2)}


@pytest.mark.parametrize("seed", range(30))
def test_an_installation_that_is_interrupted_is_all_or_nothing(seed: int) -> None:
    """After a failure at any operation and a power loss, the old or the new state is there."""
    disk = MemoryDisk()
    filled(disk, 1, 2, 3, 4, 5, snap_count=2)
    disk.crash()
    old = History(Store(disk, snap_count=2))
    state = filled(MemoryDisk(), 1, 2, z(2, 1)).database
    chance = random.Random(seed)
    left = chance.randrange(12)

    def fails(operation: str, path: str) -> bool:
        nonlocal left
        left -= 1
        return left < 0

    disk.fails = fails
    with contextlib.suppress(StorageError):
        old.install(state)
    disk.fails = lambda operation, path: False
    disk.crash(chance)
    assert created(restarted(disk).database) in [{1, 2, z(2, 1)}, {1, 2, 3, 4, 5}]


def test_an_older_snapshot_of_the_same_zxid_is_not_taken_for_the_installed_state() -> None:
    """A fuzzy snapshot may have the zxid of the leader's state: it must not complete it.

    The log that would complete it is removed with the installation.
    """
    disk = MemoryDisk()
    history = filled(disk, 1, 2, 3)
    fuzzy = copy.deepcopy(history.database)
    fuzzy.last_zxid = 2
    disk.write(f"{FOLDER}/{snapshot.name(2)}", snapshot.encode(fuzzy))
    state = filled(MemoryDisk(), 1, 2).database
    disk.fails = lambda operation, path: operation != "write" or "snapshot" in path
    with pytest.raises(StorageError):
        history.install(state)
    disk.fails = lambda operation, path: False
    assert f"{INSTALLING}2" in disk.list(FOLDER)
    disk.crash()
    assert created(restarted(disk).database) == {1, 2}
    assert disk.list(FOLDER) == ["snapshot.2"]


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_file, "NODES_PER_SLICE", 2)


@pytest.mark.usefixtures("small_slices")
def test_a_snapshot_goes_on_while_transactions_are_applied() -> None:
    """The log of the snapshot's time completes it, after a kill and after a power loss."""
    disk = MemoryDisk()
    history = History(Store(disk, snap_count=20))
    zxid = 0
    while "snapshot.14" not in disk.list(FOLDER):
        zxid += 1
        history.log([create(zxid)])
        history.commit(zxid)
        history.rest()
    assert zxid > 30
    assert {node.czxid for node in snapshot.decode(
        disk.read(f"{FOLDER}/snapshot.14"), 20).nodes.values()} == set(range(21))  # fmt: skip
    disk.crash()
    again = restarted(disk)
    assert again.database.nodes == history.database.nodes
    assert again.last_zxid == zxid


@pytest.mark.usefixtures("small_slices")
def test_a_log_that_ends_before_a_snapshots_changes_is_refused() -> None:
    """A fuzzy snapshot without the log that completes it is no state (I11)."""
    disk = MemoryDisk()
    history = filled(disk, *range(1, 9))
    disk.kill()
    history = History(Store(disk, snap_count=1))
    history.log([create(9)])
    history.commit(9)
    history.rest()
    change = Proposal.of(Header(0, 0, 10, 1, Op.SET_DATA), SetDataTxn("/9", b"later", 1))
    history.log([change])
    history.commit(10)
    while history.rest():
        pass
    assert restarted(disk).database.nodes["/9"].data == b"later"
    disk.remove(f"{FOLDER}/log.a")
    disk.kill()
    with pytest.raises(StorageError, match=r"snapshot\.9 has changes of transaction 0xa"):
        History(Store(disk))


@pytest.mark.usefixtures("small_slices")
def test_a_snapshot_ends_with_the_role() -> None:
    """What is applied without a leader may be uncommitted, and gets into no snapshot (1549)."""
    disk = MemoryDisk()
    history = filled(disk, *range(1, 9))
    disk.kill()
    history = History(Store(disk, snap_count=1))
    history.log([create(9)])
    history.commit(9)
    assert history.rest()
    history.log([Proposal.of(Header(0, 0, 10, 1, Op.SET_DATA), SetDataTxn("/9", b"?", 1))])
    history.settle()
    assert not history.ledger.is_writing_snapshot
    assert history.database.last_zxid == 10
    history.truncate(9)
    assert history.database.nodes["/9"].data == b""


def test_epochs_survive_a_power_loss() -> None:
    """The accepted and the current epoch are durable when they are set."""
    disk = MemoryDisk()
    store = Store(disk)
    store.recover()
    store.accept_epoch(3)
    disk.crash()
    store = Store(disk)
    store.recover()
    assert (store.accepted_epoch, store.current_epoch) == (3, 0)
    store.enter_epoch(3)
    disk.crash()
    store = Store(disk)
    store.recover()
    assert (store.accepted_epoch, store.current_epoch) == (3, 3)
