"""A history on a disk in memory that records the order of durable steps."""

from collections.abc import Sequence

from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.records import OPEN_ACL, Op
from broker_impl.zookeeper.store import Store
from broker_impl.zookeeper.tree import Database
from broker_impl.zookeeper.txn_records import CreateSessionTxn, CreateTxn, Header, Proposal

SESSION = 0x200000000000001


def z(epoch: int, counter: int) -> int:
    """A zxid."""
    return epoch << 32 | counter


def session(zxid: int) -> Proposal:
    """A transaction that begins a session."""
    return Proposal.of(Header(SESSION, 0, zxid, 1, Op.CREATE_SESSION), CreateSessionTxn(4000))


def create(zxid: int, name: str = "") -> Proposal:
    """A transaction that creates a node, named after its zxid unless it has a name."""
    path = f"/{name or format(zxid, 'x')}"
    txn = CreateTxn(path, b"", OPEN_ACL, False, zxid & 0xFFFF)
    return Proposal.of(Header(SESSION, 1, zxid, 1, Op.CREATE), txn)


class RecordingStore(Store):
    """A store that records what became durable, in order."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.steps: list[tuple[str, int]] = []
        self.memory = disk or MemoryDisk()
        super().__init__(self.memory)

    def append(self, proposals: Sequence[Proposal]) -> None:
        super().append(proposals)
        self.steps.append(("append", proposals[-1].header.zxid))

    def truncate(self, zxid: int) -> None:
        super().truncate(zxid)
        self.steps.append(("truncate", zxid))

    def install(self, database: Database) -> None:
        super().install(database)
        self.steps.append(("install", database.last_zxid))

    def accept_epoch(self, epoch: int) -> None:
        super().accept_epoch(epoch)
        self.steps.append(("accept", epoch))

    def enter_epoch(self, epoch: int) -> None:
        super().enter_epoch(epoch)
        self.steps.append(("enter", epoch))

    def memory_of_a_killed_process(self) -> MemoryDisk:
        """Return the disk with everything that was written, unlocked."""
        self.memory.kill()
        return self.memory

    def taken(self) -> list[tuple[str, int]]:
        """Return and forget the steps."""
        steps, self.steps = self.steps, []
        return steps


class RecordingHistory(History):
    """A history over a ``RecordingStore``."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.store = RecordingStore(disk)
        super().__init__(self.store)

    def fill(self, *zxids: int, epoch: int | None = None) -> None:
        """Log and commit a transaction for each zxid, in the given epoch or that of the last."""
        if zxids:
            self.log([create(zxid) for zxid in zxids])
            self.commit_to(zxids[-1])
        current = zxids[-1] >> 32 if epoch is None and zxids else epoch or 0
        self.store.accept_epoch(max(current, self.store.accepted_epoch))
        self.store.enter_epoch(current)
        self.store.taken()
