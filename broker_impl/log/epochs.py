"""A log's leader epochs and their start offsets, by which two replicas find where they diverge.

Epochs and their start offsets both rise strictly (KIP-101, KIP-279).
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from broker_impl.wire.types import Epoch, Offset

UNDEFINED_EPOCH: Epoch = -1
UNDEFINED_OFFSET: Offset = -1


class EpochStart(NamedTuple):
    """The leader of `epoch` wrote its first record at `start`."""

    epoch: Epoch
    start: Offset


class LeaderEpochs:
    """The leader epochs of one log; each method that changes them returns whether it did."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self.entries: tuple[EpochStart, ...] = ()
        """All epochs, oldest first; like ``latest``, changed by the methods of this class only."""
        self.latest: Epoch = UNDEFINED_EPOCH
        """The newest epoch; -1 if the log has none."""
        for entry in entries:
            self.assign(*entry)

    def _replace(self, entries: tuple[EpochStart, ...]) -> bool:
        changed = entries != self.entries
        self.entries = entries
        self.latest = entries[-1].epoch if entries else UNDEFINED_EPOCH
        return changed

    def assign(self, epoch: Epoch, start: Offset) -> bool:
        """Record that the leader of `epoch` starts to write at `start`.

        Entries that contradict this (the same or a newer epoch, or a start at or after `start`) are
        dropped. The newest epoch with a later start changes nothing.
        """
        assert epoch >= 0, f"leader epoch {epoch} is negative"
        assert start >= 0, f"start offset {start} is negative"
        entries = self.entries
        if entries and epoch == self.latest and start >= entries[-1].start:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start >= start):
            entries = entries[:-1]
        self._replace((*entries, EpochStart(epoch, start)))
        self.check()
        return True

    def end_offset_for(self, epoch: Epoch, log_end: Offset) -> tuple[Epoch, Offset]:
        """The largest epoch up to `epoch`, and the offset after its last record (KIP-279).

        (-1, -1) if this log cannot answer, because it has no epoch as high.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest and is_known(self.entries[-1].start, log_end):
            return epoch, log_end
        entries = self.entries
        above = bisect_right(entries, epoch, key=_epoch_of)
        if above == len(entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        known = entries[above - 1].epoch if above else epoch
        return epoch_to_return(epoch, known), end_to_return(entries[above].start, log_end)

    def truncate_from_end(self, offset: Offset) -> bool:
        """Drop the epochs that start at `offset` or later, because the log was truncated there.

        Called even if the log ends before `offset`: an epoch may have started without a record
        (KAFKA-10706).
        """
        entries = self.entries
        while entries and entries[-1].start >= offset:
            entries = entries[:-1]
        return self._replace(entries)

    def truncate_from_start(self, offset: Offset) -> bool:
        """Let the epoch that covers the new log start begin there, and drop older ones."""
        entries = self.entries
        covering = bisect_right(entries, offset, key=_start_of) - 1
        if covering < 0:
            return False
        first = EpochStart(entries[covering].epoch, offset)
        changed = self._replace((first, *entries[covering + 1 :]))
        self.check()
        return changed

    def clear(self) -> bool:
        """Drop all epochs."""
        return self._replace(())

    def check(self) -> None:
        """Check that epochs and start offsets both rise."""
        if len(self.entries) > 1:
            (older_epoch, older_start), (epoch, start) = self.entries[-2:]
            assert older_epoch < epoch, f"epoch {epoch} follows epoch {older_epoch}"
            assert older_start < start, (
                f"epoch {epoch} starts at {start}, but the epoch before it at {older_start}"
            )


def epoch_to_return(asked: Epoch, known: Epoch) -> Epoch:
    """The epoch to return with an end offset: the largest known one up to the requested one.

    A follower that gets another epoch than it asked for must ask again (KIP-279).
    """
    return known


def end_to_return(next_start: Offset, log_end: Offset) -> Offset:
    """The end of an epoch that is not the latest: where the next known epoch starts (KIP-101)."""
    return next_start


def is_known(start: Offset, log_end: Offset) -> bool:
    """Whether the latest epoch, which starts at ``start``, is known to those who ask for its end.

    It is from the election on, before it has any record (KAFKA-7415).
    """
    return True


def _epoch_of(entry: EpochStart) -> Epoch:
    return entry.epoch


def _start_of(entry: EpochStart) -> Offset:
    return entry.start
