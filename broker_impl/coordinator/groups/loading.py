"""Reads groups and committed offsets from the records of a ``__consumer_offsets`` partition.

Later records replace earlier ones, and a record without a value is a tombstone. Offsets that were
committed in a transaction stay pending until the transaction's marker is read.
"""

import logging
from collections.abc import Iterable

import msgspec

from broker_impl.coordinator import records
from broker_impl.coordinator.groups import rules
from broker_impl.coordinator.groups.events import Marked
from broker_impl.coordinator.groups.offsets import Placed
from broker_impl.coordinator.records import GroupKey, GroupRecord, OffsetKey
from broker_impl.errors import WireError
from broker_impl.wire.types import Offset, TopicPartition

LOG = logging.getLogger(__name__)

Row = tuple[Offset, bytes | None, bytes | None]
"""A record's offset, key and value."""
_Of = tuple[str, TopicPartition]


class Loading:
    """The groups and offsets that have been read from a partition while it is loading."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupRecord] = {}
        self.offsets: dict[_Of, Placed] = {}
        self.pending: dict[int, dict[_Of, Placed]] = {}
        self.marked_meanwhile: list[Marked] = []
        """Transactions that ended while the partition was being read. Their markers may be after
        the offset at which reading ended."""

    def rows(self, rows: Iterable[Row], producer_id: int = -1) -> None:
        """Add the records of one batch.

        ``producer_id`` is the producer of the batch's transaction, or -1 outside of transactions.
        """
        for at, key, value in rows:
            try:
                self._row(at, key or b"", value, producer_id)
            except WireError as error:
                LOG.warning("a record of %s at offset %d is skipped: %s", records.TOPIC, at, error)

    def _row(self, at: Offset, key: bytes, value: bytes | None, producer_id: int) -> None:
        match records.decode_key(key):
            case GroupKey(group) if value is None:
                end(self.groups, group)
            case GroupKey(group) if value is not None:
                self.groups[group] = records.decode_group(value)
            case OffsetKey(group, tp) if value is None:
                if takes_back(at, self.offsets.get((group, tp))):
                    self.offsets.pop((group, tp), None)
            case OffsetKey(group, tp) if value is not None:
                placed = Placed(at, records.decode_offset(value), since=at)
                keep_later(self._of(producer_id), (group, tp), placed)

    def _of(self, producer_id: int) -> dict[_Of, Placed]:
        return self.offsets if producer_id < 0 else self.pending.setdefault(producer_id, {})

    def marker(self, producer_id: int, at: Offset, *, is_commit: bool) -> None:
        """Apply a transaction's marker at offset ``at``."""
        pending = self.pending.pop(producer_id, {})
        for key, placed in pending.items():
            if placed.at > at:
                self.pending.setdefault(producer_id, {})[key] = placed
            elif is_commit:
                keep_later(self.offsets, key, msgspec.structs.replace(placed, since=at))

    def names(self) -> list[str]:
        """Return the names of all groups that have a record, a committed or a pending offset."""
        known = dict.fromkeys(self.groups)
        known |= dict.fromkeys(group for group, _ in self.offsets)
        for pending in self.pending.values():
            known |= dict.fromkeys(group for group, _ in pending)
        return list(known)


def end(groups: dict[str, GroupRecord], group: str) -> None:
    """Apply the tombstone of a group: it was deleted (KIP-229)."""
    groups.pop(group, None)


def takes_back(at: Offset, placed: Placed | None) -> bool:
    """Return whether a tombstone at this offset removes the commit.

    It removes only a commit that is before it in the log.
    """
    return placed is not None and rules.supersedes(at, placed.at)


def keep_later(into: dict[_Of, Placed], key: _Of, placed: Placed) -> None:
    """Store a commit unless a commit for the same partition is later in the log."""
    known = into.get(key)
    if rules.supersedes(placed.at, None if known is None else known.at):
        into[key] = placed
