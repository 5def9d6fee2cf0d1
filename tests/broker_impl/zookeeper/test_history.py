"""A history logs first, commits in order, and knows what learners lack."""

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper.history import WINDOW, History, OutOfOrder
from broker_impl.zookeeper.records import OPEN_ACL, Op
from broker_impl.zookeeper.store import Store
from broker_impl.zookeeper.tree import CONFIG, Applied, Database
from broker_impl.zookeeper.txn_records import CreateTxn, Header, Proposal


def create(zxid: int) -> Proposal:
    txn = CreateTxn(f"/{zxid:x}", b"", OPEN_ACL, False, zxid & 0xFFFF)
    return Proposal.of(Header(0, 0, zxid, 1, Op.CREATE), txn)


def made(disk: MemoryDisk | None = None, configuration: str | None = None) -> History:
    return History(Store(disk or MemoryDisk()), configuration)


def test_what_is_logged_is_not_applied() -> None:
    """A transaction is in the state only once it is committed."""
    history = made()
    history.log([create(1), create(2)])
    assert (history.last_zxid, history.database.last_zxid) == (2, 0)
    assert [proposal.header.zxid for proposal in history.uncommitted] == [1, 2]
    history.commit(1)
    assert history.database.last_zxid == 1
    assert [proposal.header.zxid for proposal in history.uncommitted] == [2]


@pytest.mark.parametrize("zxids", [[2], [1, 3], [1, 1], [0x100000002]])
def test_a_gap_is_refused_before_anything_is_written(zxids: list[int]) -> None:
    """Transactions that do not follow each other are refused as a whole (ZOOKEEPER-4925)."""
    history = made()
    with pytest.raises(OutOfOrder):
        history.log([create(zxid) for zxid in zxids])
    assert history.last_zxid == 0
    history.log([create(1)])


def test_a_commit_must_be_the_next() -> None:
    """Transactions are committed in their order, each once."""
    history = made()
    with pytest.raises(OutOfOrder, match="none"):
        history.commit(1)
    history.log([create(1), create(2)])
    with pytest.raises(OutOfOrder, match="0x1"):
        history.commit(2)
    history.commit(1)
    with pytest.raises(OutOfOrder):
        history.commit(1)


def test_a_failed_log_changes_nothing() -> None:
    """What could not be stored is not counted as logged."""
    disk = MemoryDisk()
    history = made(disk)
    disk.fails = lambda operation, path: operation == "fsync"
    with pytest.raises(StorageError):
        history.log([create(1)])
    assert history.last_zxid == 0
    assert not history.uncommitted


def test_a_listener_hears_what_is_applied_until_the_role_ends() -> None:
    """Without a role everything in the log is applied, and no client is answered for it."""
    history = made()
    heard: list[int] = []

    def listener(proposal: Proposal, applied: Applied) -> None:
        assert history.database.last_zxid == proposal.header.zxid
        assert applied.outcome.path
        heard.append(proposal.header.zxid)

    history.listener = listener
    history.log([create(1), create(2), create(3)])
    history.commit_to(1)
    history.settle()
    assert heard == [1]
    assert history.database.last_zxid == history.last_zxid == 3
    assert history.listener is None


def test_what_a_learner_lacks_is_in_the_window_or_in_the_log() -> None:
    """The latest transactions come from memory, earlier ones from the log; uncommitted ones not."""
    history = made()
    for zxid in range(1, WINDOW + 101):
        history.log([create(zxid)])
        history.commit(zxid)
    history.log([create(WINDOW + 101)])
    assert history.window[0].header.zxid == 101
    for last in (0, 1, 50, 100, 101, 400, WINDOW + 100):
        found = history.committed_since(last)
        assert found is not None
        assert [p.header.zxid for p in found] == list(range(last + 1, WINDOW + 101))


def test_an_unknown_past_is_unknown() -> None:
    """Without the log of a zxid, the transactions after it are not known."""
    history = made()
    state = Database()
    state.last_zxid = 5
    history.install(state)
    assert history.committed_since(5) == []
    assert history.committed_since(3) is None
    history.log([create(6)])
    history.commit(6)
    found = history.committed_since(5)
    assert found is not None
    assert [p.header.zxid for p in found] == [6]


def test_a_truncation_forgets_what_was_committed_in_memory() -> None:
    """After a truncation window and state are those of the log."""
    history = made()
    history.log([create(1), create(2), create(3)])
    history.settle()
    history.truncate(1)
    assert (history.last_zxid, history.database.last_zxid) == (1, 1)
    assert not history.window
    assert not history.uncommitted
    history.log([create(2)])


def test_the_configuration_is_in_every_state() -> None:
    """``/zookeeper/config`` has the members after a start, a truncation and an installation."""
    disk = MemoryDisk()
    history = made(disk, "server.1=a:1:2:participant\nversion=0")
    history.log([create(1), create(2)])
    history.settle()
    for _ in range(2):
        node = history.database.nodes[CONFIG]
        assert node.data == b"server.1=a:1:2:participant\nversion=0"
        assert node.stat().version == -1
        history.truncate(1)
    history.install(Database())
    assert history.database.nodes[CONFIG].data
    assert made().database.nodes[CONFIG].data == b""
