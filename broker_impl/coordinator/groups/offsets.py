"""The offsets of one group: what counts, what is being written, what waits for its transaction.

Each offset keeps the place of its record in the log: of two commits the later one counts, whatever
order the log reports them in (KAFKA-5247). A transaction's marker ends the records before it, and
may be reported first. A deletion removes what counts at its place in the log, so that
it does not remove an offset whose transaction is committed by a later marker.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from broker_impl.coordinator.groups import rules
from broker_impl.coordinator.records import Committed
from broker_impl.wire.types import Offset, TopicPartition


class Placed(msgspec.Struct, frozen=True):
    """A committed offset and where its record is."""

    at: Offset
    committed: Committed
    since: Offset
    """From where on it counts: its own place, or that of the marker of its transaction."""


class Offsets:
    """What one group has committed."""

    def __init__(self) -> None:
        self._placed: dict[TopicPartition, Placed] = {}
        self._writing: dict[TopicPartition, int] = {}
        self._pending: dict[int, dict[TopicPartition, Placed]] = {}
        self._markers: dict[int, list[tuple[Offset, bool]]] = {}
        """By producer, those that were told while something was being written: where, and whether
        the transaction was committed."""
        self._deletions = 0
        """How many are being written."""
        self._overtaken: dict[TopicPartition, list[Placed]] = {}
        """Offsets of transactions that a later record replaced, which a deletion may yet remove;
        they are kept while records are being written."""

    def __len__(self) -> int:
        return len(self._placed)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._placed)

    def get(self, tp: TopicPartition) -> Committed | None:
        """What counts for this partition."""
        placed = self._placed.get(tp)
        return None if placed is None else placed.committed

    @property
    def is_settled(self) -> bool:
        """Is everything that was begun over?"""
        return rules.is_settled(is_writing=bool(self._writing), is_pending=bool(self._pending))

    @property
    def pending_producers(self) -> frozenset[int]:
        """Whose transactions are open."""
        return frozenset(self._pending)

    def may_concern(self, producer_id: int) -> bool:
        """May there be offsets of this producer's transaction?"""
        return producer_id in self._pending or bool(self._writing)

    def is_unstable(self, tp: TopicPartition) -> bool:
        """May what counts change without anybody committing anew (KIP-447)?"""
        return tp in self._writing or any(tp in pending for pending in self._pending.values())

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Commits are being written."""
        for tp in partitions:
            self._writing[tp] = self._writing.get(tp, 0) + 1

    def end(self, partitions: Iterable[TopicPartition]) -> None:
        """They were written, or were not."""
        for tp in partitions:
            self._writing[tp] -= 1
            if not self._writing[tp]:
                del self._writing[tp]
        if not self._writing:
            self._markers.clear()
        self._clear_overtaken()

    def begin_deletion(self) -> None:
        """A deletion is being written."""
        self._deletions += 1

    def end_deletion(self) -> None:
        """It was written, or was not."""
        self._deletions -= 1
        self._clear_overtaken()

    def _clear_overtaken(self) -> None:
        if not self._writing and not self._deletions:
            self._overtaken.clear()

    def place(self, at: Offset, offsets: Mapping[TopicPartition, Committed]) -> None:
        """These were committed by a record at ``at``."""
        for tp, committed in offsets.items():
            self._place(tp, Placed(at, committed, since=at))

    def _place(self, tp: TopicPartition, placed: Placed) -> None:
        known = self._placed.get(tp)
        _put(self._placed, tp, placed)
        loser = known if self._placed[tp] is placed else placed
        if loser is not None and loser.since > loser.at:
            self._overtaken.setdefault(tp, []).append(loser)

    def hold(
        self, producer_id: int, at: Offset, offsets: Mapping[TopicPartition, Committed]
    ) -> None:
        """These count once the transaction of this producer commits, which it may have."""
        fate = rules.fate(self._markers.get(producer_id, ()), at)
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
        """The transaction ended, by a marker at ``at``."""
        if self._writing:
            self._markers.setdefault(producer_id, []).append((at, is_commit))
        pending = self._pending.pop(producer_id, {})
        for tp, placed in pending.items():
            if placed.at > at:
                self._pending.setdefault(producer_id, {})[tp] = placed
            elif is_commit:
                self._place(tp, msgspec.structs.replace(placed, since=at))

    def forget(self, at: Offset, partitions: Iterable[TopicPartition]) -> None:
        """These were taken back by a record at ``at``."""
        for tp in partitions:
            placed = self._placed.get(tp)
            if placed is not None and rules.supersedes(at, placed.since):
                del self._placed[tp]
                later = [each for each in self._overtaken.pop(tp, ()) if each.since > at]
                for each in sorted(later, key=lambda each: each.at):
                    self._place(tp, each)

    def expired(
        self, now_ms: int, retention_ms: int, unused_since: int, keep: frozenset[str]
    ) -> tuple[TopicPartition, ...]:
        """Which may be forgotten; topics in ``keep`` are in use."""
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
