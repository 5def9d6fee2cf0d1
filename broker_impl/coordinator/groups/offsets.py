"""The offsets of one group: committed, being written, or waiting for their transaction.

Each committed offset keeps its record's offset in the log: of two commits the later one counts, in
whatever order the log reports them (KAFKA-5247). A transaction's marker ends the records before it,
and may be reported before them. A deletion removes what counts at its place in the log, so that it
does not remove an offset whose transaction is committed by a later marker.

What was committed for a partition before the partition was deleted does not count any more, also
if its write or its transaction ends later. The log may give such an offset to the next coordinator
until a tombstone is stored behind it, or behind the marker of its transaction.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from broker_impl.coordinator.groups import rules
from broker_impl.coordinator.records import Committed
from broker_impl.wire.types import Offset, TopicPartition


class Placed(msgspec.Struct, frozen=True):
    """A committed offset and the log offset of its record."""

    at: Offset
    committed: Committed
    since: Offset
    """The log offset from which on it counts: its own, or that of its transaction's marker."""
    is_gone: bool = False
    """Whether the partition was deleted since, while the transaction was open."""


class Writing(msgspec.Struct, eq=False):
    """A commit that is being written."""

    producer_id: int
    partitions: dict[TopicPartition, None]
    gone: dict[TopicPartition, None] = {}
    """Partitions of it that were deleted meanwhile."""
    markers: list[tuple[Offset, bool]] = []
    """The producer's markers that were reported meanwhile: each marker's offset, and whether the
    transaction was committed."""


class Offsets:
    """The committed offsets of one group."""

    def __init__(self) -> None:
        self._placed: dict[TopicPartition, Placed] = {}
        self._writing: list[Writing] = []
        self._pending: dict[int, dict[TopicPartition, Placed]] = {}
        self._doubtful: dict[TopicPartition, Offset] = {}
        """The last record of each partition that was appended, but not acknowledged. It does not
        count here, and counts at the next coordinator if it was replicated."""
        self._owed: dict[TopicPartition, bool] = {}
        """Deleted partitions without a stored tombstone for what the log has of them, and whether
        it is being written."""
        self._deletions = 0
        """The number of deletions that are being written."""
        self._overtaken: dict[TopicPartition, list[Placed]] = {}
        """Offsets of transactions that another record has superseded. A deletion before the
        transaction's marker may remove that record and make them count again. They are kept while
        deletions are being written: one that begins later is after the marker."""

    def __len__(self) -> int:
        return len(self._placed)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._placed)

    def get(self, tp: TopicPartition) -> Committed | None:
        """The offset that counts for this partition."""
        placed = self._placed.get(tp)
        return None if placed is None else placed.committed

    def placed(self, tp: TopicPartition) -> Placed | None:
        """The offset that counts for this partition, with the places of its records."""
        return self._placed.get(tp)

    @property
    def known(self) -> Collection[TopicPartition]:
        """The partitions of all commits, also of those that are not stored or may not be."""
        pending = itertools.chain.from_iterable(self._pending.values())
        written = itertools.chain.from_iterable(each.partitions for each in self._writing)
        return dict.fromkeys((*self.in_log, *pending, *written))

    @property
    def in_log(self) -> Collection[TopicPartition]:
        """The partitions of which the next coordinator may have an offset."""
        return dict.fromkeys((*self._placed, *self._doubtful, *self._owed))

    @property
    def is_settled(self) -> bool:
        """Is no commit being written, and is no offset waiting for its transaction?"""
        return rules.is_settled(is_writing=bool(self._writing), is_pending=bool(self._pending))

    @property
    def owes_tombstones(self) -> bool:
        """Are there deleted partitions whose tombstones are not stored yet?"""
        return bool(self._owed)

    @property
    def pending_producers(self) -> frozenset[int]:
        """The producers whose open transactions have offsets here."""
        return frozenset(self._pending)

    def may_concern(self, producer_id: int) -> bool:
        """May this producer's transaction have offsets here?"""
        return producer_id in self._pending or any(
            each.producer_id == producer_id for each in self._writing
        )

    def is_unstable(self, tp: TopicPartition) -> bool:
        """May the committed offset change without a new commit (KIP-447)?"""
        return any(tp in each.partitions for each in self._writing) or any(
            tp in pending and not pending[tp].is_gone for pending in self._pending.values()
        )

    def begin(self, producer_id: int, partitions: Iterable[TopicPartition]) -> Writing:
        """Note that a commit for these partitions is being written."""
        writing = Writing(producer_id, dict.fromkeys(partitions))
        self._writing.append(writing)
        return writing

    def end(self, writing: Writing) -> None:
        """Note that the write of a commit has ended, whatever its outcome."""
        self._writing.remove(writing)

    def doubt(self, at: Offset, partitions: Iterable[TopicPartition]) -> None:
        """Note that commits were appended at ``at`` without being acknowledged."""
        for tp in partitions:
            placed = self._placed.get(tp)
            if placed is None or rules.supersedes(at, placed.at):
                self._doubtful[tp] = max(at, self._doubtful.get(tp, at))

    def _end_doubt(self, at: Offset, tp: TopicPartition) -> None:
        """Note that a record at ``at`` is stored, which replaces doubtful ones before it."""
        if rules.supersedes(at, self._doubtful.get(tp)):
            self._doubtful.pop(tp, None)

    def begin_deletion(self) -> None:
        """Note that a deletion is being written."""
        self._deletions += 1

    def end_deletion(self) -> None:
        """Note that the write of a deletion has ended, whatever its outcome."""
        self._deletions -= 1
        if not self._deletions:
            self._overtaken.clear()

    def place(self, at: Offset, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Store offsets that were committed by a record at ``at``."""
        for tp, committed in offsets.items():
            self._place(tp, Placed(at, committed, since=at))

    def _place(self, tp: TopicPartition, placed: Placed) -> None:
        known = self._placed.get(tp)
        _put(self._placed, tp, placed)
        self._owed.pop(tp, None)
        self._end_doubt(placed.at, tp)
        loser = known if self._placed[tp] is placed else placed
        if loser is not None and loser.since > loser.at and self._deletions:
            self._overtaken.setdefault(tp, []).append(loser)

    def hold(
        self,
        producer_id: int,
        at: Offset,
        offsets: Mapping[TopicPartition, Committed],
        markers: Sequence[tuple[Offset, bool]] = (),
        *,
        is_gone: bool = False,
    ) -> None:
        """Store a transaction's offsets, which count once it commits.

        ``markers``: those of the producer that were reported while the offsets were being written.
        ``is_gone``: their partitions were deleted meanwhile.
        """
        fate = rules.fate(markers, at)
        for tp, committed in offsets.items():
            placed = Placed(at, committed, since=at, is_gone=is_gone)
            if fate is None:
                _put(self._pending.setdefault(producer_id, {}), tp, placed)
            elif fate[1]:
                self._commit(tp, placed, fate[0])

    def _commit(self, tp: TopicPartition, placed: Placed, marker: Offset) -> None:
        """Apply a marker that commits an offset."""
        if placed.is_gone:
            self.owe((tp,))
        else:
            self._place(tp, msgspec.structs.replace(placed, since=marker))

    def resolve(self, producer_id: int, at: Offset, *, is_commit: bool) -> None:
        """Apply a transaction's marker at ``at`` to the producer's pending offsets before it."""
        for writing in self._writing:
            if writing.producer_id == producer_id:
                writing.markers.append((at, is_commit))
        pending = self._pending.pop(producer_id, {})
        for tp, placed in pending.items():
            if placed.at > at:
                self._pending.setdefault(producer_id, {})[tp] = placed
            elif is_commit:
                self._commit(tp, placed, at)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove what was committed for these partitions, which were deleted.

        Commits that are being written, or wait for their transaction, will not count either.
        """
        for tp in partitions:
            if self._placed.pop(tp, None) is not None or tp in self._doubtful:
                self.owe((tp,))
            self._doubtful.pop(tp, None)
            self._overtaken.pop(tp, None)
            for writing in self._writing:
                if tp in writing.partitions:
                    del writing.partitions[tp]
                    writing.gone[tp] = None
                    if rules.counts_at_once(writing.producer_id):
                        self.owe((tp,))
            for pending in self._pending.values():
                if tp in pending:
                    pending[tp] = msgspec.structs.replace(pending[tp], is_gone=True)

    def owe(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that deleted partitions need tombstones, unless a later commit is stored."""
        self._owed.update((tp, False) for tp in partitions if tp not in self._placed)

    def take_owed(self) -> tuple[TopicPartition, ...]:
        """Return the deleted partitions whose tombstones the caller must write now.

        A tombstone could remove a commit for a later partition of the same name that is being
        written, so it waits until that has ended.
        """
        ready = [tp for tp, is_written in self._owed.items() if not is_written]
        ready = [tp for tp in ready if not self.is_unstable(tp)]
        self._owed.update((tp, True) for tp in ready)
        return tuple(ready)

    def forget(self, at: Offset, partitions: Iterable[TopicPartition]) -> None:
        """Apply tombstones at ``at`` for these partitions."""
        for tp in partitions:
            self._end_doubt(at, tp)
            if self._owed.get(tp):
                del self._owed[tp]
            placed = self._placed.get(tp)
            if placed is not None and rules.supersedes(at, placed.since):
                del self._placed[tp]
                later = [each for each in self._overtaken.pop(tp, ()) if each.since > at]
                for each in sorted(later, key=lambda each: each.at):
                    self._place(tp, each)

    def expired(
        self, now_ms: int, retention_ms: int, unused_since: int, keep: frozenset[str]
    ) -> tuple[TopicPartition, ...]:
        """The partitions whose offsets may be removed; topics in ``keep`` are in use."""
        return tuple(
            tp
            for tp, placed in self._placed.items()
            if tp.topic not in keep
            and not self.is_unstable(tp)
            and now_ms
            >= rules.expires_at_ms(
                placed.committed.committed_ms,
                placed.committed.expires_ms,
                retention_ms,
                unused_since,
            )
        )


def _put(into: dict[TopicPartition, Placed], tp: TopicPartition, placed: Placed) -> None:
    known = into.get(tp)
    if rules.supersedes(placed.at, None if known is None else known.at):
        into[tp] = placed
