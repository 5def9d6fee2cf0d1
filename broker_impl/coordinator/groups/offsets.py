"""The offsets of one group: committed, being written, or waiting for their transaction.

Each committed offset keeps its record's offset in the log: of two commits the later one counts, in
whatever order the log reports them (KAFKA-5247). A transaction's marker ends the records before it,
and may be reported before them. A deletion removes what counts at its place in the log, so that it
does not remove an offset whose transaction is committed by a later marker.
"""

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


class Writing(msgspec.Struct, eq=False):
    """A commit that is being written."""

    producer_id: int
    partitions: Collection[TopicPartition]
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
    def in_log(self) -> Collection[TopicPartition]:
        """The partitions of which the next coordinator may have an offset."""
        return dict.fromkeys((*self._placed, *self._doubtful))

    @property
    def is_settled(self) -> bool:
        """Is no commit being written, and is no offset waiting for its transaction?"""
        return rules.is_settled(is_writing=bool(self._writing), is_pending=bool(self._pending))

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
            tp in pending for pending in self._pending.values()
        )

    def begin(self, producer_id: int, partitions: Collection[TopicPartition]) -> Writing:
        """Note that a commit for these partitions is being written."""
        writing = Writing(producer_id, partitions)
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
    ) -> None:
        """Store a transaction's offsets, which count once it commits.

        ``markers``: those of the producer that were reported while the offsets were being written.
        """
        fate = rules.fate(markers, at)
        if fate is None:
            pending = self._pending.setdefault(producer_id, {})
            for tp, committed in offsets.items():
                _put(pending, tp, Placed(at, committed, since=at))
            return
        marker, is_commit = fate
        if is_commit:
            for tp, committed in offsets.items():
                self._place(tp, Placed(at, committed, since=marker))

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
                self._place(tp, msgspec.structs.replace(placed, since=at))

    def forget(self, at: Offset, partitions: Iterable[TopicPartition]) -> None:
        """Apply tombstones at ``at`` for these partitions."""
        for tp in partitions:
            self._end_doubt(at, tp)
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
