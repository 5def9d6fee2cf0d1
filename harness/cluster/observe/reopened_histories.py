"""Loads the history of a running ZooKeeper server from a copy of its files, as after its end."""

from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.store import Store
from checkers.invariants.ensemble.after_kill import HeldHistory, KnownHistory
from harness.cluster.observe.disk_copies import Loss, copied, silence
from harness.cluster.observe.ensemble_snapshots import digest
from harness.simulation.disk import SimDisk


class ReopenedHistory:
    """The history of one life of a server, loaded again from copies of its files."""

    def __init__(self, history: History, disk: SimDisk) -> None:
        self._history = history
        self._disk = disk

    def held(self) -> HeldHistory:
        """Return the history as the server has it, and as it would load it."""
        return HeldHistory(_known(self._history), self._loaded(Loss.KILL), self._loaded(Loss.POWER))

    def _loaded(self, loss: Loss) -> KnownHistory | str:
        copy = copied(self._disk.names.root, loss)
        try:
            with silence():
                return _known(self._history.as_loaded(Store(copy)))
        except Exception as error:  # noqa: BLE001 - with whatever the server would fail
            return f"{type(error).__name__}: {error}"


def _known(history: History) -> KnownHistory:
    return KnownHistory(
        history.last_zxid,
        history.ledger.accepted_epoch,
        history.ledger.current_epoch,
        None if history.uncommitted else digest(history.database),
    )
