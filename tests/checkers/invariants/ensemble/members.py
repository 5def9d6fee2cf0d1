"""Snapshot streams of an ensemble written by hand, in few words."""

from collections.abc import Mapping
from typing import Any

from checkers.invariants.step import Rules
from checkers.invariants.watch import Watch
from model.ensemble_snapshot import EnsembleState, Entries, Entry, MemberState
from model.snapshot import ClusterState

VOTERS = (1, 2, 3)


def zxid(epoch: int, counter: int) -> int:
    return epoch << 32 | counter


def entries(*zxids: tuple[int, int], crc: int = 0, durable: int | None = None) -> Entries:
    """A log with these transactions, as pairs of epoch and counter."""
    made = [Entry(zxid(*each), 100 + zxid(*each) % 1000 + crc) for each in zxids]
    return Entries.of(*made, durable=durable)


def member(log: Entries | None = None, **other: Any) -> MemberState:
    """A server that looks for a leader, in the epoch of its log, with all of it applied."""
    log = log or entries()
    epoch = log.last >> 32
    said: dict[str, Any] = {
        "life": 1,
        "log": log,
        "accepted_epoch": epoch,
        "current_epoch": epoch,
        "applied": log.last,
    }
    return MemberState(**said | other)


def serving(log: Entries | None = None, epoch: int = 1, **other: Any) -> MemberState:
    """A follower that serves clients in an epoch."""
    said: dict[str, Any] = {
        "role": "following",
        "epoch": epoch,
        "is_established": True,
        "accepted_epoch": epoch,
        "current_epoch": epoch,
    }
    return member(log, **said | other)


def leading(log: Entries | None = None, epoch: int = 1, **other: Any) -> MemberState:
    """The established leader of an epoch."""
    return serving(log, epoch, **{"role": "leading", "has_quorum": True} | other)


def ensemble(
    members: Mapping[int, MemberState],
    time_ns: int = 0,
    calm_since_ns: int | None = None,
    down: Mapping[int, MemberState] | None = None,
) -> ClusterState:
    """One snapshot."""
    state = EnsembleState(voters=VOTERS, servers=VOTERS, members=members, down=down or {})
    return ClusterState(
        time_ns=time_ns, brokers={}, zookeeper=None, ensemble=state, calm_since_ns=calm_since_ns
    )


def violated(*stream: Mapping[int, MemberState] | ClusterState, **rules: Any) -> list[str]:
    """The names of the invariants that a stream violates, without their common prefix."""
    watch = Watch(Rules(**rules))
    return [
        violation.invariant.removeprefix("zab-")
        for now in stream
        for violation in watch.step(now if isinstance(now, ClusterState) else ensemble(now))
    ]
