"""The two epochs that a member of an ensemble keeps on its disk, each in a file of its own.

The accepted epoch is a promise to follow no leader of an earlier one; the current epoch is that of
the leader whose history the server has. Neither ever decreases.
"""

from typing import Protocol

from broker_impl.errors import StorageError
from broker_impl.zookeeper.zxids import epoch_of

ACCEPTED = "acceptedEpoch"
CURRENT = "currentEpoch"


class EpochDisk(Protocol):
    """What the epochs ask of a disk; every failure is a StorageError."""

    def read(self, path: str) -> bytes:
        """Read a whole file."""

    def write(self, path: str, data: bytes) -> None:
        """Replace a file; after a crash it holds the old or the new bytes. Durable on return."""

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of this name exists."""


class Epochs:
    """The epochs of one server; ``folder`` holds their files."""

    def __init__(self, disk: EpochDisk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self.accepted = 0
        self.current = 0

    def load(self, last_zxid: int) -> None:
        """Read the files; without them, the epochs are that of the last transaction.

        A log may be one epoch ahead of the current epoch, because the transactions are made durable
        before the epoch (ZOOKEEPER-4643); if that epoch was accepted, it is the current one.

        Raises:
            StorageError: they contradict each other or the log, or cannot be read.
        """
        epoch = epoch_of(last_zxid)
        self.current = self._read(CURRENT, epoch)
        self.accepted = self._read(ACCEPTED, self.current)
        if self.current < epoch <= self.accepted:
            # It has ended while it took over the history of that epoch's leader, which begins with
            # all of the earlier epochs: what it has of the new one shows that it has those.
            self.enter(epoch)
        if self.current < epoch:
            raise StorageError(
                f"{CURRENT} is {self.current}, but the log has a transaction of epoch {epoch}"
            )
        if self.accepted < self.current:
            raise StorageError(f"{ACCEPTED} is {self.accepted}, less than {CURRENT} {self.current}")

    def accept(self, epoch: int) -> None:
        """Set the accepted epoch, durable on return."""
        assert epoch >= self.accepted, "the accepted epoch does not decrease"
        self._write(ACCEPTED, epoch)
        self.accepted = epoch

    def enter(self, epoch: int) -> None:
        """Set the current epoch, durable on return."""
        assert self.current <= epoch <= self.accepted, "an epoch is accepted first"
        self._write(CURRENT, epoch)
        self.current = epoch

    def _read(self, name: str, default: int) -> int:
        path = f"{self._folder}/{name}"
        if not self._disk.exists(path):
            return default
        text = self._disk.read(path)
        try:
            return int(text.decode())
        except ValueError:
            raise StorageError(f"{path}: {text!r} is no number") from None

    def _write(self, name: str, epoch: int) -> None:
        self._disk.write(f"{self._folder}/{name}", str(epoch).encode())
