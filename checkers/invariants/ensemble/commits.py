"""What is committed: one order for all servers, which nothing is ever taken from again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checkers.invariants.ensemble.durability import Durable
from checkers.invariants.ensemble.member_step import (
    MemberChange,
    MemberStep,
    epoch_of,
    follows,
    is_new,
    shown,
)
from model.ensemble_snapshot import Entries, Entry, MemberState
from model.violation import Violation


class CommittedOrder:
    """The transactions that any server is known to have committed, in their order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._places: dict[int, int] = {}
        self._after_gaps: set[int] = set()

    @property
    def last(self) -> int:
        """The zxid of the last one; 0 if there is none."""
        return self.entries[-1].zxid if self.entries else 0

    def place(self, zxid: int) -> int | None:
        """Return the place of a transaction in the order; None if it is not committed."""
        return self._places.get(zxid)

    def is_in_a_gap(self, zxid: int, place: int | None) -> bool:
        """Return whether a transaction after this place may be one that no look has seen."""
        later = None if place is None else place + 1
        return later in self._after_gaps and zxid < self.entries[later].zxid

    def append(self, entry: Entry, *, after_a_gap: bool = False) -> None:
        """Add the next one; others may be missing before it."""
        if after_a_gap:
            self._after_gaps.add(len(self.entries))
        self._places[entry.zxid] = len(self.entries)
        self.entries.append(entry)


@dataclass(slots=True)
class _Cursor:
    """How far the deliveries of a server are compared with the order."""

    log: Sequence[Entry]
    count: int = 0
    """How many entries of its log are compared."""
    place: int | None = None
    """The place of the last of them in the order; None before the first."""


class Deliveries:
    """``zab-agreement`` and ``zab-commit-quorum``.

    A server that serves clients applies only what is committed, and all servers apply the same
    transactions in the same order: what one has applied is a prefix of what another has (I2, I4). A
    transaction is committed once a majority of the voters has it on disk (I8): with an earlier
    epoch's history, a new leader commits it by the acknowledgements of NEWLEADER.
    """

    def __init__(self, order: CommittedOrder, durable: Durable) -> None:
        self._order = order
        self._durable = durable
        self._cursors: dict[int, _Cursor] = {}

    def step(self, step: MemberStep) -> Iterator[Violation]:
        """Process the next snapshot."""
        for change in step.changed:
            now, server = change.now, change.server
            cursor = self._cursors.get(server)
            if not now.is_established:
                self._cursors.pop(server, None)
            elif cursor is None or cursor.log is not now.log.all:
                self._cursors[server] = _Cursor(now.log.all)
        for change in sorted(step.changed, key=self._turn):
            now, server = change.now, change.server
            if not now.is_established:
                continue
            cursor = self._cursors[server]
            if not cursor.count:
                cursor.place = self._order.place(now.base)
            yield from self._deliver(step, server, now, cursor)

    def _turn(self, change: MemberChange) -> tuple[bool, int]:
        """Servers whose last transaction is known come first, and of them the most advanced.

        A server that has got its leader's state knows only what came after it; what came before is
        in the logs of the others, perhaps only since the last look.
        """
        cursor = self._cursors.get(change.server)
        return cursor is None or not cursor.count, -change.now.applied

    def _deliver(
        self, step: MemberStep, server: int, now: MemberState, cursor: _Cursor
    ) -> Iterator[Violation]:
        log = now.log
        while cursor.count < log.count and log.all[cursor.count].zxid <= now.applied:
            entry = log.all[cursor.count]
            cursor.count += 1
            found = self._order.place(entry.zxid)
            if found is None and self._order.is_in_a_gap(entry.zxid, cursor.place):
                continue
            if found is None:
                why = self._new(entry, cursor.place)
                is_after_a_gap = cursor.place is None and bool(self._order.entries)
                self._order.append(entry, after_a_gap=is_after_a_gap)
                found = len(self._order.entries) - 1
                yield from self._quorum(step, server, entry.zxid)
            else:
                why = self._known(entry, found, cursor.place)
            if why is not None:
                yield step.found(
                    "zab-agreement",
                    f"server {server} has applied transaction {shown(entry.zxid)}, {why}",
                    servers=(server,),
                )
            cursor.place = found
        last = max(log.all[cursor.count - 1].zxid if cursor.count else 0, now.base)
        if now.applied > last:
            yield step.found(
                "zab-agreement",
                f"server {server} has applied transaction {shown(now.applied)}, but its log ends "
                f"at {shown(last)}",
                servers=(server,),
            )

    def _new(self, entry: Entry, place: int | None) -> str | None:
        """Return what is wrong with a transaction that no other server is known to have applied."""
        entries, last = self._order.entries, self._order.last
        if not entries:
            return None
        if place is None and entry.zxid > last:
            return None  # what is before its log is not known
        if place != len(entries) - 1:
            return f"but servers have applied others up to {shown(last)}"
        if not follows(entry.zxid, last):
            return f"which does not follow {shown(last)}"
        return None

    def _known(self, entry: Entry, found: int, place: int | None) -> str | None:
        known = self._order.entries[found]
        if known.crc != entry.crc:
            return "of which other servers have applied another one"
        if place is not None and found != place + 1:
            before = shown(self._order.entries[place].zxid)
            return f"right after {before}, which is not the one before it"
        return None

    def _quorum(self, step: MemberStep, server: int, zxid: int) -> Iterator[Violation]:
        voters = step.now.voters
        holders = self._durable.holders(voters, zxid)
        if 2 * len(holders) <= len(voters):
            yield step.found(
                "zab-commit-quorum",
                f"server {server} has applied transaction {shown(zxid)}, which is durable on the "
                f"voters {holders} only, of {list(voters)}",
                servers=(server, *holders),
            )


class Completeness:
    """``zab-leader-completeness`` and ``zab-committed-truncated``.

    A server leads once a quorum has promised to follow no earlier leader, and none of that quorum
    has a longer history than its own. A committed transaction is on a quorum, and two quorums have
    a server in common, so a leader has all that was ever committed in earlier epochs (I6). What is
    durable on a server and committed is never removed from it: a leader only truncates what it does
    not have itself (I10).
    """

    def __init__(self, order: CommittedOrder) -> None:
        self._order = order
        self._leaders: dict[int, tuple[int, int]] = {}
        """By server: the epoch that it leads, and how much of the order it was compared with."""
        self._held: dict[int, MemberState] = {}

    def step(self, step: MemberStep) -> Iterator[Violation]:
        """Process the next snapshot."""
        for server in [one for one in self._leaders if one not in step.now.members]:
            del self._leaders[server]
        for change in step.changed:
            yield from self._removed(step, change)
        for server, member in step.now.members.items():
            if not member.has_quorum:
                self._leaders.pop(server, None)
            else:
                yield from self._complete(step, server, member)

    def _removed(self, step: MemberStep, change: MemberChange) -> Iterator[Violation]:
        before, now = change.before, change.now
        if before is None or not is_new(now, before):
            return
        kept = set(_entries(now.log))
        for entry in before.log.all[: before.log.durable]:
            place = self._order.place(entry.zxid)
            if (
                entry.zxid > now.base
                and entry not in kept
                and place is not None
                and self._order.entries[place] == entry
            ):
                yield step.found(
                    "zab-committed-truncated",
                    f"server {change.server} has removed the committed transaction "
                    f"{shown(entry.zxid)} from its log",
                    servers=(change.server,),
                )
                return

    def _complete(self, step: MemberStep, server: int, member: MemberState) -> Iterator[Violation]:
        epoch, compared = self._leaders.get(server, (0, 0))
        if epoch != member.epoch:
            compared = 0
        entries = self._order.entries
        self._leaders[server] = member.epoch, len(entries)
        if compared == len(entries):
            return
        held = set(_entries(member.log))
        for entry in entries[compared:]:
            if (
                epoch_of(entry.zxid) < member.epoch
                and entry.zxid > member.base
                and entry not in held
            ):
                yield step.found(
                    "zab-leader-completeness",
                    f"server {server} leads epoch {member.epoch}, but its log lacks the committed "
                    f"transaction {shown(entry.zxid)}",
                    servers=(server,),
                    epochs=(member.epoch,),
                )
                return


def _entries(log: Entries) -> Sequence[Entry]:
    return log.all[: log.count]
