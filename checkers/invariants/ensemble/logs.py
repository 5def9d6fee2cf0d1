"""What the epochs and the log of each server satisfy."""

from collections.abc import Iterator

from checkers.invariants.ensemble.member_step import (
    MemberChange,
    MemberStep,
    added,
    epoch_of,
    follows,
    shown,
)
from model.violation import Violation


class MemberEpochs:
    """``zab-epochs-monotone`` and ``zab-epoch-of-role``.

    A server keeps two epochs on its disk: the one that it has accepted, and that of the history
    which it has taken over. Both survive power losses, so neither ever goes back, not even over
    restarts. An epoch is accepted before its history is taken over, and no transaction of a later
    epoch is logged before that (I1). A server that serves clients has accepted the epoch of its
    leader, has no promise to a later one, and has taken over that epoch's history (I9).
    """

    def step(self, step: MemberStep) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            yield from self._epochs(step, change)

    def _epochs(self, step: MemberStep, change: MemberChange) -> Iterator[Violation]:
        server, now, before = change.server, change.now, change.before
        accepted, current = now.accepted_epoch, now.current_epoch
        last = epoch_of(now.log.last)
        if before is not None and (
            accepted < before.accepted_epoch or current < before.current_epoch
        ):
            yield step.found(
                "zab-epochs-monotone",
                f"server {server} had accepted epoch {before.accepted_epoch} and taken over epoch "
                f"{before.current_epoch}, and then {accepted} and {current}",
                servers=(server,),
                epochs=(before.accepted_epoch, accepted),
            )
        if not accepted >= current >= last:
            yield step.found(
                "zab-epochs-monotone",
                f"server {server} has accepted epoch {accepted}, taken over epoch {current}, and "
                f"logged a transaction of epoch {last}",
                servers=(server,),
                epochs=(accepted, current, last),
            )
        if now.is_established and not accepted == current == now.epoch:
            yield step.found(
                "zab-epoch-of-role",
                f"server {server} serves clients in epoch {now.epoch}, but has accepted epoch "
                f"{accepted} and taken over epoch {current}",
                servers=(server,),
                epochs=(now.epoch, accepted, current),
            )


class MemberLogs:
    """``zab-log-in-order`` and ``zab-one-transaction-per-zxid``.

    Each leader numbers its transactions without gaps from 1 on, and servers log them in that order,
    so in a log each transaction follows the one before it, or is the first of a later epoch (I2).
    An epoch has one leader, which gives each number to one transaction: the same number is the same
    content, on all servers and at all times (I3).
    """

    def __init__(self) -> None:
        self._crcs: dict[int, tuple[int, int]] = {}

    def step(self, step: MemberStep) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            now, before = change.now, change.before
            entries = list(added(now, before))
            if not entries:
                continue
            start = now.log.count - len(entries)
            last = now.log.all[start - 1].zxid if start else now.base
            for zxid, crc in entries:
                if not follows(zxid, last):
                    yield step.found(
                        "zab-log-in-order",
                        f"in the log of server {change.server}, transaction {shown(zxid)} comes "
                        f"after {shown(last)}",
                        servers=(change.server,),
                    )
                last = zxid
                known, owner = self._crcs.setdefault(zxid, (crc, change.server))
                if known != crc:
                    yield step.found(
                        "zab-one-transaction-per-zxid",
                        f"servers {owner} and {change.server} have logged different transactions "
                        f"as {shown(zxid)}",
                        servers=(owner, change.server),
                    )
