"""The state of a ZooKeeper ensemble at one moment, as values that the invariant checks read.

Snapshots share values: an object that is identical to that of an earlier snapshot has not changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

MemberRole = Literal["looking", "leading", "following", "observing"]

NO_SERVERS: Mapping[int, int] = {}


class Entry(NamedTuple):
    """A transaction in the log of a server."""

    zxid: int
    crc: int
    """The CRC-32 of its header and content; two with the same CRC are taken to be the same."""


class Entries(msgspec.Struct, frozen=True):
    """The first ``count`` entries of ``all``, a list that only grows and that snapshots share."""

    all: Sequence[Entry]
    count: int
    durable: int
    """How many of them, from the first one on, survive a power loss."""

    @classmethod
    def of(cls, *entries: Entry, durable: int | None = None) -> "Entries":
        """Create a value with exactly these entries, all of them durable unless given."""
        return cls(entries, len(entries), len(entries) if durable is None else durable)

    @property
    def last(self) -> int:
        """The zxid of the last entry; 0 if there is none."""
        return self.all[self.count - 1].zxid if self.count else 0


class MemberState(msgspec.Struct, frozen=True, kw_only=True):
    """A server of an ensemble that runs and has recovered its data; it may be paused."""

    life: int
    """The number of starts of this server."""
    role: MemberRole = "looking"
    epoch: int = 0
    """The epoch that it leads, or in which it follows; 0 if that is not known yet."""
    has_quorum: bool = False
    """Does it lead, and has a quorum promised to follow no leader of an earlier epoch?"""
    is_established: bool = False
    """Does it serve clients? Everything that it has applied is committed then."""
    accepted_epoch: int = 0
    current_epoch: int = 0
    base: int = 0
    """The zxid of the state on its disk that precedes the entries of its log; 0 for none."""
    log: Entries
    applied: int = 0
    """The zxid of the last transaction that its nodes and sessions contain."""
    acknowledged: Mapping[int, int] = NO_SERVERS
    """As the leader: the zxid up to which each server has acknowledged its transactions."""
    have_history: tuple[int, ...] = ()
    """As the leader: the servers that have acknowledged its history (NEWLEADER)."""
    digest: int | None = None
    """A checksum of its nodes and sessions; ``None`` if this snapshot does not include it."""


class EnsembleState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all servers of an ensemble at one moment."""

    voters: tuple[int, ...]
    """The servers that vote and whose acknowledgements count, running or not."""
    servers: tuple[int, ...]
    """All servers, running or not."""
    members: Mapping[int, MemberState]
    """The servers that run, by their ids."""
    down: Mapping[int, MemberState] = {}
    """The servers that have ended: with their logs, and without a role."""

    def epochs_led(self) -> Iterator[int]:
        """Yield the epochs in which a server serves clients as the leader."""
        for member in self.members.values():
            if member.role == "leading" and member.is_established:
                yield member.epoch
