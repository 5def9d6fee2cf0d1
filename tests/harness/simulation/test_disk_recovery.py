"""The logs of the broker and of ZooKeeper on the simulated disk never lose what was synced.

Power losses and kills occur between any two operations on the disk: during an append, a roll, a
truncation, a checkpoint, or the recovery itself.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.partition_log import PartitionLog
from broker_impl.log.producers import ProducerStates
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.proposer import Proposer
from broker_impl.zookeeper.records import OPEN_ACL, CreateRequest, Op
from broker_impl.zookeeper.store import Store
from broker_impl.zookeeper.txn_records import CreateSessionTxn
from harness.simulation.disk import SimDisk

TP = TopicPartition("t", 0)
CONFIG = LogConfig(
    segment_bytes=20_000, index_interval_bytes=150, delete_delay_ms=0, retention_ms=-1
)


def sent(rng: random.Random, sequence: int) -> bytes:
    """Encode a batch of producer 7; some batches are larger than a page."""
    size = rng.choice((3, 60, 300, 5000))
    records = [Record(value=rng.randbytes(size), timestamp_ms=5) for _ in range(rng.randint(1, 3))]
    return batch.encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=sequence)


def stored(log: PartitionLog) -> list[bytes]:
    """Read every batch of a log as a consumer does."""
    found = []
    offset = log.start_offset
    while data := log.read(offset, bytes_max=1, limit=log.end_offset):
        found.append(bytes(data[0]))
        offset = batch.parse_header(data[0]).next_offset
    assert offset == log.end_offset
    return found


class Life:
    """A broker's data directory through many starts and ends, and what it must hold."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimDisk(self.rng, StorageError)
        self.batches: list[bytes] = []
        """The batches in the log; after an interrupted change, those that it may hold."""
        self.synced = 0
        """The log must reach at least this offset."""
        self.epoch = 0
        self.start()

    def start(self) -> None:
        dead = [False]
        self.end_process: Callable[[], None] = lambda: dead.__setitem__(0, True)
        access = self.disk.attach(is_ended=lambda: dead[0])
        self.manager = LogManager(
            {"": access}, lambda topic: CONFIG, broker_id=1, cluster_id="c", retention_check_ms=0
        )
        self.manager.open(0)
        self.log = self.manager.logs[TP] if TP in self.manager.logs else self.manager.create(TP)

    # Operations of a broker.

    def append(self) -> None:
        entry = self.log.producers.entries.get(7)
        data = bytearray(sent(self.rng, 0 if entry is None else entry.last_sequence + 1))
        placed = bytearray(data)
        batch.patch(placed, batch.parse_header(placed), self.log.end_offset, self.epoch)
        self.batches.append(bytes(placed))
        self.log.append_as_leader(bytes(data), leader_epoch=self.epoch, now_ms=0)

    def flush(self) -> None:
        self.log.flush()
        self.synced = self.log.end_offset

    def roll(self) -> None:
        self.log.roll_if_due(CONFIG.segment_ms + 1)

    def checkpoint(self) -> None:
        self.manager.checkpoint({TP: self.log.end_offset})

    def elect(self) -> None:
        self.epoch += 1
        self.log.assign_epoch(self.epoch, self.log.end_offset)

    def settle(self) -> None:
        self.log.flush_settled(40_000)
        self.synced = max(self.synced, self.log.recovery_point)

    def truncate(self) -> None:
        cut_to = max(0, self.log.end_offset - self.rng.randint(0, 5))
        self.synced = min(self.synced, cut_to)
        for data in self.batches:
            header = batch.parse_header(data)
            if header.base_offset <= cut_to < header.next_offset:
                self.synced = min(self.synced, header.base_offset)
        self.log.truncate_to(cut_to)
        self.batches = [b for b in self.batches if batch.parse_header(b).last_offset < cut_to]

    def close(self) -> None:
        self.manager.close({TP: self.log.end_offset})
        self.synced = self.log.end_offset
        self.start()

    # Kills and power losses.

    def interrupted(self, doing: Callable[[], None], action: Callable[[], None]) -> None:
        """Start an operation and end the process during it, or at the latest after it."""
        self.disk.interrupt(self.rng.randint(0, 12), action)
        with suppress(StorageError):  # the process has ended
            doing()
        self.disk.cancel_interrupt()
        action()  # if the operation ended before the interruption

    def kill(self) -> None:
        self.end_process()

    def lose_power(self) -> None:
        self.disk.power_loss()

    def verify(self) -> None:
        """Check that the log holds a prefix of what was written, and everything that was synced."""
        found = stored(self.log)
        assert found == self.batches[: len(found)]
        assert self.log.end_offset >= self.synced
        fold = ProducerStates()
        for data in found:
            fold.fold(batch.parse_header(data), now_ms=0)
        assert self.log.producers.entries == fold.entries
        for data in found:
            header = batch.parse_header(data)
            epoch, end = self.log.epochs.end_offset_for(
                header.partition_leader_epoch, self.log.end_offset
            )
            assert epoch == header.partition_leader_epoch
            assert end >= header.next_offset
        self.batches = found
        self.epoch = max(self.epoch, self.log.epochs.latest)

    def live(self, steps: int) -> None:
        everyday = [self.append] * 6 + [
            *(self.flush, self.flush, self.roll, self.checkpoint, self.checkpoint),
            *(self.elect, self.settle, self.truncate, self.close),
        ]
        for _ in range(steps):
            doing = self.rng.choice(everyday)
            if self.rng.random() < 0.7:
                doing()
                continue
            self.interrupted(doing, self.rng.choice((self.kill, self.lose_power)))
            while self.rng.random() < 0.3:  # a start may be interrupted, too
                self.interrupted(self.start, self.rng.choice((self.kill, self.lose_power)))
            self.start()
            self.verify()


FOUND = [452, 9565, 13477]
"""Seeds that once lost data: docs/findings/0004 and 0006."""


@pytest.mark.parametrize("seeds", [range(n, n + 50) for n in range(0, 500, 50)] + [FOUND], ids=str)
def test_a_log_survives_every_end(seeds: Sequence[int]) -> None:
    """Synced data survives any sequence of changes and ends; of the rest a prefix survives."""
    for seed in seeds:
        try:
            Life(seed).live(20)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


class Ensemble:
    """A ZooKeeper server's data directory; every transaction after the first creates a znode."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimDisk(self.rng, StorageError)
        self.durable = 0
        """The number of transactions that were acknowledged, or seen by a later start."""
        self.written = 0
        """The number of transactions that a start may find."""
        self.start()

    def start(self) -> None:
        dead = [False]
        self.end_process: Callable[[], None] = lambda: dead.__setitem__(0, True)
        self.store = Store(self.disk.attach(is_ended=lambda: dead[0]), snap_count=9)
        self.database = self.store.recover()
        count = self.database.last_zxid
        assert self.durable <= count <= self.written
        nodes = [path for path in self.database.nodes if path.startswith("/n")]
        assert nodes == [f"/n{zxid}" for zxid in range(2, count + 1)]
        self.durable = self.written = count

    def kill(self) -> None:
        self.end_process()

    def request(self, zxid: int) -> tuple[int, CreateSessionTxn | CreateRequest]:
        if zxid == 1:
            return Op.CREATE_SESSION, CreateSessionTxn(4000)
        data = self.rng.randbytes(self.rng.choice((9, 3000)))
        return Op.CREATE, CreateRequest(f"/n{zxid}", data, OPEN_ACL, 0)

    def transact(self) -> None:
        proposer = Proposer(self.database)
        count = self.rng.randint(1, 4)
        self.written = self.durable + count
        proposals = [
            proposer.propose(*self.request(zxid), session_id=7, cxid=1, ids=(), now_ms=3)
            for zxid in range(self.durable + 1, self.written + 1)
        ]
        self.store.append(proposals)
        self.durable = self.written
        for proposal in proposals:
            self.database.apply(proposal)
        self.store.applied(self.database)

    def live(self, steps: int) -> None:
        for _ in range(steps):
            doing = self.transact
            while self.rng.random() < 0.4:
                end = self.rng.choice((self.kill, self.disk.power_loss))
                self.disk.interrupt(self.rng.randint(0, 12), end)
                with suppress(StorageError):  # the process has ended
                    doing()
                self.disk.cancel_interrupt()
                end()
                doing = self.start
            doing()


@pytest.mark.parametrize("seeds", [range(n, n + 50) for n in range(0, 200, 50)], ids=str)
def test_zookeepers_log_survives_every_end(seeds: range) -> None:
    """Acknowledged transactions survive every end; of the others a prefix survives, for good."""
    for seed in seeds:
        try:
            Ensemble(seed).live(16)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
