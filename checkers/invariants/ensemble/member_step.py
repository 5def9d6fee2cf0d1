"""Finds which servers of an ensemble have changed from one snapshot to the next."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from checkers.invariants.step import Step
from model.ensemble_snapshot import EnsembleState, Entry, MemberState
from model.violation import Violation


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A server that has changed since the last snapshot."""

    server: int
    now: MemberState
    before: MemberState | None
    """Its last known state, possibly of an earlier life; None if it has not been seen before."""


@dataclass(frozen=True, slots=True)
class MemberStep:
    """One snapshot of an ensemble, and the servers that are new in it."""

    step: Step
    now: EnsembleState
    changed: list[MemberChange]
    ended: list[MemberChange]
    """The servers that have ended since the last snapshot."""

    def found(
        self,
        name: str,
        why: str,
        *,
        servers: tuple[int, ...] = (),
        epochs: tuple[int, ...] = (),
    ) -> Violation:
        """Return a violation; the numbers of servers are in the field for brokers."""
        return self.step.violation(name, why, brokers=servers, epochs=epochs)


class MemberFold(Protocol):
    """One invariant of an ensemble, or a few that read the same state."""

    def step(self, step: MemberStep) -> Iterator[Violation]:
        """Process the next snapshot."""
        ...


def shown(zxid: int) -> str:
    """Return a zxid as its epoch and counter."""
    return f"{zxid >> 32}:{zxid & 0xFFFFFFFF}"


def epoch_of(zxid: int) -> int:
    """Return the epoch of a zxid."""
    return zxid >> 32


def follows(zxid: int, last: int) -> bool:
    """Return whether no transaction can be between these two (I2)."""
    return zxid == last + 1 or (epoch_of(zxid) > epoch_of(last) and zxid & 0xFFFFFFFF == 1)


def is_new(now: MemberState, before: MemberState | None) -> bool:
    """Return whether the log is another one than before, not the same with more entries."""
    return before is None or now.log.all is not before.log.all


def added(now: MemberState, before: MemberState | None) -> Iterator[Entry]:
    """Yield the entries of the log that were not there before; all of another log."""
    start = 0 if before is None or is_new(now, before) else before.log.count
    for at in range(start, now.log.count):
        yield now.log.all[at]


class Members:
    """Turns snapshots into steps of the ensemble."""

    def __init__(self) -> None:
        self._last: dict[int, MemberState] = {}

    def step(self, step: Step) -> MemberStep | None:
        """Return the next step; None if there is no ensemble, or if nothing has changed in it."""
        now = step.now.ensemble
        if now is None or (step.before is not None and step.before.ensemble is now):
            return None
        changed = [
            MemberChange(server, member, self._last.get(server))
            for server, member in now.members.items()
            if self._last.get(server) is not member
        ]
        ended = [
            MemberChange(server, left, self._last.get(server))
            for server, left in now.down.items()
            if self._last.get(server) is not left
        ]
        self._last |= {**now.members, **now.down}
        return MemberStep(step, now, changed, ended)


def running(members: Mapping[int, MemberState]) -> Iterator[tuple[int, MemberState]]:
    """Yield the servers that serve clients."""
    for server, member in members.items():
        if member.is_established:
            yield server, member
