"""``zk-same-after-kill``: a ZooKeeper server that ends has the same history when it starts.

A server answers, and acknowledges a proposal, only when the transaction is synced, so neither a
kill nor a loss of power changes its log, its epochs or what its transactions have made. Servers
are judged after one snapshot out of 500, and at the end, whether they are alone or in an ensemble.
The first difference of a run is reported.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from checkers.invariants.step import Step
from model.violation import Violation

EVERY: Final = 500
"""One snapshot out of this many is followed by a judgement."""


class KnownHistory(NamedTuple):
    """The history of a server."""

    last_zxid: int
    """The zxid of the last transaction in its log."""
    accepted_epoch: int
    current_epoch: int
    digest: int | None
    """A checksum of all nodes and sessions; None while transactions are not applied."""


class HeldHistory(NamedTuple):
    """A history as a server has it in memory, and as it would load it, or why it would not."""

    held: KnownHistory
    killed: KnownHistory | str
    """After a kill."""
    unpowered: KnownHistory | str
    """After a loss of power that takes all that was not synced."""


ReloadHistories = Callable[[], Mapping[int, HeldHistory]]
"""Loads the histories of the servers that run from copies of their files, by server."""


class HistoriesAfterKill:
    """Compares histories with what would be loaded from the files of their servers."""

    def __init__(self, reload: ReloadHistories) -> None:
        self._reload = reload
        self._count = 0

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        self._count += 1
        if self._count % EVERY and not step.is_last:
            return
        for server, history in self._reload().items():
            why = difference(history)
            if why is not None:
                yield step.violation("zk-same-after-kill", f"server {server}: {why}")


def difference(history: HeldHistory) -> str | None:
    """Return what of a history would be another after the end of its server; None: nothing."""
    held = history.held
    for loaded, when in ((history.killed, "a kill"), (history.unpowered, "a loss of power")):
        if isinstance(loaded, str):
            return f"it would not load its history after {when}: {loaded}"
        if loaded[:3] != held[:3]:
            return (
                f"its log ends at {held.last_zxid:#x}, with the epochs {held.accepted_epoch} and "
                f"{held.current_epoch}, and would end at {loaded.last_zxid:#x}, with "
                f"{loaded.accepted_epoch} and {loaded.current_epoch}, after {when}"
            )
        if held.digest is not None and loaded.digest != held.digest:
            return f"after {held.last_zxid:#x} it would have other nodes or sessions after {when}"
    return None
