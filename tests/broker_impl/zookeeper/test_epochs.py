import pytest

from broker_impl.errors import StorageError
from broker_impl.zookeeper.epochs import Epochs
from broker_impl.zookeeper.zxids import first_of


class Disk(dict[str, bytes]):
    """The files of the epochs."""

    def read(self, path: str) -> bytes:
        return self[path]

    def write(self, path: str, data: bytes) -> None:
        self[path] = data

    def exists(self, path: str) -> bool:
        return path in self


def loaded(accepted: int, current: int, epoch_of_log: int) -> tuple[Epochs, Disk]:
    disk = Disk({"f/acceptedEpoch": b"%d" % accepted, "f/currentEpoch": b"%d" % current})
    epochs = Epochs(disk, "f")
    epochs.load(first_of(epoch_of_log) + 1)
    return epochs, disk


def test_epochs_are_read() -> None:
    """Both epochs are those of their files."""
    epochs, _ = loaded(accepted=5, current=3, epoch_of_log=2)
    assert (epochs.accepted, epochs.current) == (5, 3)


def test_a_server_that_ended_while_it_took_over_a_history_starts_again() -> None:
    """A log may be ahead of the current epoch: its transactions are made durable first
    (ZOOKEEPER-4643)."""
    epochs, disk = loaded(accepted=3, current=2, epoch_of_log=3)
    assert (epochs.accepted, epochs.current) == (3, 3)
    assert disk["f/currentEpoch"] == b"3"


def test_a_log_of_an_epoch_that_was_not_accepted_is_refused() -> None:
    """Transactions are logged only in an epoch that was accepted before."""
    with pytest.raises(StorageError, match="currentEpoch is 2, but the log has a transaction of"):
        loaded(accepted=2, current=2, epoch_of_log=3)
    with pytest.raises(StorageError, match="acceptedEpoch is 1, less than currentEpoch 2"):
        loaded(accepted=1, current=2, epoch_of_log=1)
