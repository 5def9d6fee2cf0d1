"""A log that moves between two data directories of a simulated disk survives every end (KIP-113).

The lives of `test_disk_recovery`, in which the log also moves: kills and power losses occur between
any two operations of a copy, and of the replacement of the current log.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from broker_impl import mutants
from broker_impl.errors import BrokerError, StorageError
from broker_impl.log import move_rules, moving
from broker_impl.log.manager import LogManager
from broker_impl.log.producers import ProducerStates
from broker_impl.wire import batch
from harness.simulation.disk_directory import DiskDirectory
from tests.harness.simulation.test_disk_recovery import CONFIG, TP, Life, stored


class MovingLife(Life):
    """A broker with two data directories through many starts and ends."""

    shown_start = 0
    """The log must not start before this offset."""
    start_max = 0
    """The log must not start after this offset, where no checkpoint has ever had its start."""

    def start(self) -> None:
        dead = [False]
        self.end_process: Callable[[], None] = lambda: dead.__setitem__(0, True)
        access = self.disk.attach(is_ended=lambda: dead[0])
        disks = {name: DiskDirectory(access, name) for name in ("a", "b")}
        self.manager = LogManager(
            disks, lambda topic: CONFIG, broker_id=1, cluster_id="c", retention_check_ms=0
        )
        self.manager.open(0)
        self.log = self.manager.logs[TP] if TP in self.manager.logs else self.manager.create(TP)

    def move(self) -> None:
        """Begin to move the log to the other directory, or cancel the move."""
        if TP not in self.manager.futures:
            here = self.manager.directory_of(self.log)
            there = next(each for each in self.manager.directories if each is not here)
            self.manager.begin_move(TP, there)
        elif self.rng.random() < 0.2:
            self.manager.begin_move(TP, self.manager.directory_of(self.log))

    def copy(self) -> None:
        """Copy a piece, and replace the log when it is complete."""
        future = self.manager.futures.get(TP)
        if future is None:
            return
        moving.copy(self.log, future, self.rng.choice((1, 500, 20_000)), 0)
        if move_rules.may_replace(future.end_offset, self.log.end_offset):
            end = self.log.end_offset
            self.log = self.manager.finish_move(TP, end)
            self.synced = end

    def copy_all(self) -> None:
        """Copy the rest of the log, and replace it."""
        while (future := self.manager.futures.get(TP)) is not None:
            assert future.end_offset <= self.log.end_offset
            self.copy()

    def advance(self) -> None:
        """Delete records, as DeleteRecords does; a checkpoint follows before any response."""
        to = self.rng.randint(self.log.start_offset, self.log.end_offset)
        self.start_max = max(self.start_max, to)
        self.log.advance_start(to)
        self.manager.write_starts(TP)
        self.shown_start = self.log.start_offset

    def truncate(self) -> None:
        if self.log.start_offset > self.log.end_offset - 5:
            # It may end before its start, with a deleted batch, or start over.
            self.synced = self.shown_start = 0
        super().truncate()
        self.shown_start = min(self.shown_start, self.log.end_offset)

    def start_over(self) -> None:
        """Lose all records to a leader whose log starts later."""
        at = self.log.end_offset + self.rng.randint(1, 3)
        self.synced = self.shown_start = 0
        self.start_max = max(self.start_max, at)
        self.log.truncate_fully_and_start_at(at)
        self.batches = []

    def tick(self) -> None:
        self.manager.tick(40_000, {TP: self.log.end_offset})
        self.synced = max(self.synced, self.log.recovery_point)

    def interrupted(self, doing: Callable[[], None], action: Callable[[], None]) -> None:
        """End the process during an operation; to replace a log takes more steps than others."""
        self.disk.interrupt(
            self.rng.choice((self.rng.randint(0, 12), self.rng.randint(0, 80))), action
        )
        with suppress(StorageError):  # the process has ended
            doing()
        self.disk.cancel_interrupt()
        action()

    def verify(self) -> None:
        """Check that one log is left, with a prefix of what was written, and all that was synced.

        The producer is known as all batches define it, though some of them are deleted.
        """
        log = self.log
        headers = [(data, batch.parse_header(data)) for data in self.batches]
        kept = [(data, header) for data, header in headers if header.next_offset <= log.end_offset]
        self.batches = [data for data, _ in kept]
        assert stored(log) == [
            data for data, header in kept if header.last_offset >= log.start_offset
        ]
        assert log.end_offset >= self.synced
        assert self.shown_start <= log.start_offset <= self.start_max
        fold = ProducerStates()
        for _, header in kept:
            fold.fold(header, now_ms=0)
            epoch, end = log.epochs.end_offset_for(header.partition_leader_epoch, log.end_offset)
            if header.last_offset >= log.start_offset:
                assert epoch == header.partition_leader_epoch
                assert end >= header.next_offset
        if log.start_offset < log.end_offset:
            assert log.producers.entries[7].last_sequence == fold.entries[7].last_sequence
        else:
            self.batches = []
        self.epoch = max(self.epoch, log.epochs.latest)
        names = [
            name
            for directory in self.manager.directories
            for name in directory.disk.list("")
            if directory.disk.is_dir(name) and not name.endswith("-delete")
        ]
        futures = [name for name in names if name.endswith("-future")]
        assert names.count(str(TP)) == 1
        assert len(futures) == len(self.manager.futures) == len(names) - 1
        assert len(self.manager.futures) <= 1

    def everyday(self) -> list[Callable[[], None]]:
        return [self.append] * 6 + [
            *(self.flush, self.roll, self.checkpoint, self.checkpoint, self.elect, self.settle),
            *(self.truncate, self.truncate, self.start_over, self.close, self.tick, self.advance),
            *[self.move] * 2,
            *[self.copy] * 6,
            *[self.copy_all] * 2,
        ]

    def live(self, steps: int) -> None:
        everyday = self.everyday()
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


def survive(seeds: Sequence[int]) -> None:
    """Live with each seed; an error has a note with its seed."""
    for seed in seeds:
        try:
            MovingLife(seed).live(40)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("seeds", [range(n, n + 50) for n in range(0, 400, 50)], ids=str)
def test_a_moving_log_survives_every_end(seeds: Sequence[int]) -> None:
    """Whatever ends the broker, one log is left, with all synced data and a prefix of the rest."""
    survive(seeds)


@pytest.mark.parametrize("name", ["move-replaces-early", "move-keeps-truncated"])
def test_bugs_of_moves_are_seen(name: str) -> None:
    """With a planted bug of moves, one of the lives loses records, or has others."""
    mutants.plant([name])
    try:
        with pytest.raises((AssertionError, BrokerError)):
            survive(range(400))
    finally:
        mutants.removed()
