"""A broker's logs in two data directories in memory, and helpers to move them."""

from broker_impl.log import moving
from broker_impl.log.config import LogConfig
from broker_impl.log.manager import LogManager
from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.log.partition_log import PartitionLog
from broker_impl.wire import batch
from broker_impl.wire.batch import Record
from broker_impl.wire.types import TopicPartition

TP = TopicPartition("t", 0)
CONFIG = LogConfig(segment_bytes=400, delete_delay_ms=10, retention_ms=-1)


class TwoDirectories:
    """The disks of the directories "a" and "b", and the manager of the logs on them."""

    def __init__(self, config: LogConfig = CONFIG) -> None:
        self.disks = {"a": MemoryDisk(), "b": MemoryDisk()}
        self.config = config
        self.start()

    def start(self) -> None:
        """Open the logs, as a new broker process does."""
        for disk in self.disks.values():
            disk.unlock()
        self.manager = LogManager(
            self.disks, lambda topic: self.config, broker_id=1, cluster_id="c"
        )
        self.manager.open(0)

    def crash(self) -> None:
        """Lose power, and open the logs again."""
        for disk in self.disks.values():
            disk.crash()
        self.start()

    def place(self, tp: TopicPartition = TP) -> str:
        """The directory of a partition's current log."""
        return self.manager.directory_of(self.manager.logs[tp]).path

    def begin(self, path: str, tp: TopicPartition = TP) -> None:
        """Begin to move a log."""
        target = self.manager.directory_at(path)
        assert target is not None
        self.manager.begin_move(tp, target)

    def copy(self, bytes_max: int = 1 << 20, tp: TopicPartition = TP) -> int:
        """Copy one piece, and return its size."""
        return moving.copy(self.manager.logs[tp], self.manager.futures[tp], bytes_max, 0)

    def move(self, path: str, tp: TopicPartition = TP) -> PartitionLog:
        """Move a log, and return the one that is current then."""
        self.begin(path, tp)
        while self.copy(tp=tp):
            pass
        return self.manager.finish_move(tp, self.manager.logs[tp].end_offset)

    def logs_on(self, path: str) -> list[str]:
        """The directories of logs in a data directory, deleted ones included."""
        disk = self.disks[path]
        return [name for name in disk.list("") if disk.is_dir(name)]


def append(log: PartitionLog, count: int = 1, *, epoch: int = 0, producer: int = 7) -> None:
    """Append batches of one record of an idempotent producer."""
    for _ in range(count):
        entry = log.producers.entries.get(producer)
        data = batch.encode_batch(
            [Record(value=b"x" * 40, timestamp_ms=5)],
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0 if entry is None else entry.last_sequence + 1,
        )
        log.append_as_leader(data, leader_epoch=epoch, now_ms=0)


def content(log: PartitionLog) -> list[bytes]:
    """All batches from the start of the log."""
    found, offset = [], log.start_offset
    while data := log.read(offset, bytes_max=1, limit=log.end_offset):
        found.append(bytes(data[0]))
        offset = batch.parse_header(data[0]).next_offset
    return found
