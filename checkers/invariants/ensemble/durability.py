"""Which transactions each server has ever had on its disk in a way that survives a power loss."""

from collections.abc import Collection, Iterator

from checkers.invariants.ensemble.member_step import (
    MemberChange,
    MemberStep,
    epoch_of,
    is_new,
    shown,
)
from model.ensemble_snapshot import MemberState
from model.violation import Violation


class Durable:
    """Remembers what was durable on each server; other folds share it."""

    def __init__(self) -> None:
        self._ends: dict[int, dict[int, int]] = {}
        self._bases: dict[int, int] = {}
        self._epochs: dict[int, int] = {}

    def see(self, change: MemberChange) -> None:
        """Take in the state of a server."""
        now, before = change.now, change.before
        ends = self._ends.setdefault(change.server, {})
        start = 0 if before is None or is_new(now, before) else before.log.durable
        for at in range(start, now.log.durable):
            zxid = now.log.all[at].zxid
            epoch = epoch_of(zxid)
            if zxid > ends.get(epoch, 0):
                ends[epoch] = zxid
        self._bases[change.server] = max(now.base, self._bases.get(change.server, 0))
        self._epochs[change.server] = max(now.current_epoch, self._epochs.get(change.server, 0))

    def had(self, server: int, zxid: int) -> bool:
        """Return whether a transaction was ever durable on a server."""
        end = self._ends.get(server, {}).get(epoch_of(zxid), 0)
        return zxid <= end or zxid <= self._bases.get(server, 0)

    def entered(self, server: int) -> int:
        """Return the highest epoch whose history a server has ever taken over."""
        return self._epochs.get(server, 0)

    def holders(self, servers: Collection[int], zxid: int) -> list[int]:
        """Return those of the servers on which a transaction was ever durable."""
        return [server for server in servers if self.had(server, zxid)]


class Acknowledgements:
    """``zab-durable-acknowledgement``: a server acknowledges what survives a power loss (I7).

    A leader counts an acknowledgement for its quorum. If the transaction, or the history that
    NEWLEADER ends, is not on that server's disk yet, a power loss takes back a promise that may
    have been counted already (ZOOKEEPER-3911, 4646).
    """

    def __init__(self, durable: Durable) -> None:
        self._durable = durable

    def step(self, step: MemberStep) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            if not change.now.has_quorum:
                continue
            for server, zxid in change.now.acknowledged.items():
                if zxid & 0xFFFFFFFF and not self._durable.had(server, zxid):
                    yield step.found(
                        "zab-durable-acknowledgement",
                        f"server {server} has acknowledged transaction {shown(zxid)}, which is not "
                        "durable on its disk",
                        servers=(server, change.server),
                    )
            yield from self._histories(step, change.server, change.now)

    def _histories(self, step: MemberStep, leader: int, now: MemberState) -> Iterator[Violation]:
        for server in now.have_history:
            entered = self._durable.entered(server)
            if entered < now.epoch:
                yield step.found(
                    "zab-durable-acknowledgement",
                    f"server {server} has acknowledged the history of epoch {now.epoch}, but the "
                    f"epoch on its disk is {entered}",
                    servers=(server, leader),
                    epochs=(now.epoch, entered),
                )
