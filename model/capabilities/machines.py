"""Capabilities that concern the machines of nodes: power, disks and clocks."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from model.roles import NodeId


@runtime_checkable
class CanLosePower(Protocol):
    """A target that can cut a node's power: unsynced writes are lost, peers are not notified."""

    async def power_off(self, node: NodeId, after: int = 0, renaming: str = "") -> None:
        """Cut the power of the node's machine, at once unless ``after`` or ``renaming`` is given.

        If the node is up and ``after`` is given, the power fails right before the disk operation
        that follows ``after`` others. With ``renaming`` it fails right before the next rename of a
        file whose name ends in that suffix, or ``after`` operations later. If no such operation
        comes soon, the power fails anyway.
        """
        ...

    async def power_on(self, node: NodeId) -> None:
        """Restore the power. This starts no node, and has no effect on a machine that has power."""
        ...

    async def lost_bytes(self, node: NodeId) -> int | None:
        """Measure how many bytes were written but not synced when the power failed.

        Returns ``None`` while the machine has power or answers.
        """
        ...


@runtime_checkable
class CanFillDisk(Protocol):
    """A target on which each node has a file system of its own that is small enough to fill."""

    async def fill_disk(self, node: NodeId) -> None:
        """Fill the node's disk so that no more data can be written.

        A broker may exit, as Kafka does when its last log directory fails. The target expects such
        an exit until shortly after :meth:`free_disk`, because a write that failed just before may
        still reach the broker.
        """
        ...

    async def free_disk(self, node: NodeId) -> None:
        """Remove what filled the disk, also while the node is down.

        This does not start the node, and has no effect on a disk that was not filled.
        """
        ...

    async def disk_free_bytes(self, node: NodeId) -> int:
        """Measure the free bytes of the node's own file system, also while the node is down."""
        ...


@runtime_checkable
class CanFailDirectory(Protocol):
    """A target on which one of a broker's data directories can fail, as if its disk were broken.

    The data directories of a broker have the numbers 1, 2 and so on, in the order of ``log.dirs``.
    """

    def directory_count(self, node: NodeId) -> int:
        """Return how many data directories the node has."""
        ...

    async def fail_directory(self, node: NodeId, number: int) -> None:
        """Let every operation in the directory fail, also on open files and after a restart.

        What the directory contains stays there. A broker may exit, as Kafka does when its last log
        directory fails. The target expects such an exit until shortly after
        :meth:`repair_directory`.
        """
        ...

    async def repair_directory(self, node: NodeId, number: int) -> None:
        """Let operations in the directory succeed again, also while the node is down.

        This restarts no node, and has no effect on a directory that did not fail.
        """
        ...

    async def failed_operations(self, node: NodeId, number: int) -> int | None:
        """Measure how many operations have failed since :meth:`fail_directory`.

        Returns ``None`` while the directory works.
        """
        ...

    async def probe_directory(self, node: NodeId, number: int) -> bool:
        """Let another process of the machine use the directory; return whether it could."""
        ...


@runtime_checkable
class CanSlowDisk(Protocol):
    """A target that can slow a node's disk; the node waits for each slow operation."""

    async def slow_disk(self, node: NodeId, seconds: float) -> None: ...
    async def quicken_disk(self, node: NodeId) -> None:
        """Restore the disk's usual speed; has no effect on a disk that was not slowed."""
        ...

    async def disk_takes_s(self, node: NodeId) -> float:
        """Measure how long a small disk operation takes, in seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Flip:
    """A bit that was flipped on a node's disk."""

    path: str
    at: int
    """The position of the byte in the file."""
    bit: int
    batch_at: int
    """The position in the file at which the record batch that holds the byte begins."""


@runtime_checkable
class CanFlipBits(Protocol):
    """A target that can flip a bit of a node's stored data."""

    async def flip_bit(self, node: NodeId, key: str) -> Flip | None:
        """Flip one bit that a batch's CRC covers, in the node's log of the partition ``key``.

        ``key`` is ``topic-partition``. Returns ``None`` when the node stores no batch of that
        partition.
        """
        ...

    async def is_damaged(self, node: NodeId, flip: Flip) -> bool:
        """Measure whether the batch at that position does not match its CRC."""
        ...

    async def flip_back(self, node: NodeId, flip: Flip) -> None:
        """Flip the bit back; has no effect where no batch is damaged."""
        ...


@runtime_checkable
class CanSetClock(Protocol):
    """A target that can step a node's wall clock, and change the rate of all its clocks."""

    async def jump_clock(self, node: NodeId, seconds: float) -> None:
        """Step the wall clock by this many seconds; a negative number sets it back."""
        ...

    async def drift_clock(self, node: NodeId, rate: float) -> None:
        """Run every clock and timer of the node at ``rate`` times real time."""
        ...

    async def correct_clock(self, node: NodeId) -> None:
        """Restore the right time and the right rate; has no effect on a clock that has both."""
        ...

    async def clock_ahead_s(self, node: NodeId) -> float:
        """Measure how far the node's wall clock is ahead of the harness's; negative if behind."""
        ...
