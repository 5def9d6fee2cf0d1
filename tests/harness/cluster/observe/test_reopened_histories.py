import random
from collections.abc import Iterator

import pytest

from broker_impl import mutants
from broker_impl.errors import StorageError
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.records import OPEN_ACL, Op
from broker_impl.zookeeper.store import Store
from broker_impl.zookeeper.txn_records import CreateSessionTxn, CreateTxn, Header, Proposal
from checkers.invariants.ensemble.after_kill import KnownHistory, difference
from harness.cluster.observe.reopened_histories import ReopenedHistory
from harness.simulation.disk import SimDisk

SESSION = 5


@pytest.fixture(autouse=True)
def _removed() -> Iterator[None]:
    yield
    mutants.removed()


class Server:
    """A server's history on a simulated disk, with a snapshot after each few transactions."""

    def __init__(self, configuration: str | None = None) -> None:
        self.disk = SimDisk(random.Random(1), StorageError)
        store = Store(self.disk.attach(), snap_count=4)
        self.history = History(store, configuration)
        self.reopened = ReopenedHistory(self.history, self.disk)

    def log(self, kind: int, txn: object) -> None:
        """Log a transaction of the session."""
        zxid = self.history.last_zxid + 1
        self.history.log([Proposal.of(Header(SESSION, 0, zxid, 1, kind), txn)])  # type: ignore[arg-type]

    def commit(self) -> None:
        """Apply all that is logged, and write the snapshots that are due."""
        self.history.commit_to(self.history.last_zxid)
        while self.history.rest():
            pass

    def fill(self) -> "Server":
        """Create a session, and nodes of which the first is ephemeral."""
        self.log(Op.CREATE_SESSION, CreateSessionTxn(10_000))
        for number in range(1, 7):
            name = f"/node{number}"
            self.log(Op.CREATE, CreateTxn(name, b"x", OPEN_ACL, number == 1, number))
            self.commit()
        return self

    def judged(self) -> str | None:
        """Return what would differ after the server's end."""
        return difference(self.reopened.held())


@pytest.mark.parametrize("configuration", [None, "server.1=one"])
def test_the_same_history_is_loaded(configuration: str | None) -> None:
    """The log and a snapshot have all nodes and sessions; the disk is not changed."""
    server = Server(configuration).fill()
    files = {path: bytes(file.data) for path, file in server.disk.names.files()}
    held = server.reopened.held()
    assert held.killed == held.unpowered == held.held
    assert held.held.last_zxid == 7
    assert server.judged() is None
    assert {path: bytes(file.data) for path, file in server.disk.names.files()} == files


def test_what_is_logged_and_not_applied_is_in_the_log_only() -> None:
    """The state is compared once all of the log is applied."""
    server = Server().fill()
    server.log(Op.CREATE, CreateTxn("/late", b"", OPEN_ACL, False, 7))
    held = server.reopened.held()
    assert held.held.digest is None
    assert isinstance(held.killed, KnownHistory)
    assert held.killed.last_zxid == held.held.last_zxid == 8
    assert server.judged() is None


def test_a_log_that_is_not_synced_is_lost_with_the_power() -> None:
    """A kill loses no byte of it."""
    mutants.plant(["zk-log-not-synced"])
    why = Server().fill().judged()
    assert why is not None
    assert why.startswith("its log ends at 0x7")
    assert why.endswith("after a loss of power")


def test_an_ephemeral_node_without_its_session_is_found() -> None:
    """The snapshot has the owner of each node, and this bug does not restore it."""
    mutants.plant(["zk-ephemerals-not-restored"])
    why = Server().fill().judged()
    assert why == "after 0x7 it would have other nodes or sessions after a kill"


def test_a_history_that_cannot_be_loaded_is_reported() -> None:
    """Without an intact snapshot, and without the log before it, the server would not start."""
    server = Server().fill()
    for path, file in server.disk.names.files():
        name = path.rpartition("/")[2]
        if name.startswith("snapshot."):
            file.data[:] = b"damaged"
        elif name.startswith("log."):
            del file.data[:]
    why = server.judged()
    assert why is not None
    assert why.startswith("it would not load its history after a kill: StorageError")
