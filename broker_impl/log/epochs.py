"""Which leader epoch began where: the history that lets two replicas find where they part.

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
    """The epochs of one log. Each changing method says whether there was something to change."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries: list[EpochStart] = []
        for entry in entries:
            self.assign(*entry)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """All epochs, oldest first."""
        return tuple(self._entries)

    @property
    def latest(self) -> Epoch:
        """The newest epoch; -1 when the log has none."""
        return self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    def assign(self, epoch: Epoch, start: Offset) -> bool:
        """The leader of `epoch` starts to write at `start`.

        What contradicts that (the same or newer epochs, starts at or after it) is dropped; the
        newest epoch said again at a later offset changes nothing.
        """
        assert epoch >= 0, f"leader epoch {epoch} is none"
        assert start >= 0, f"start offset {start} is none"
        if self._entries and epoch == self.latest and start >= self._entries[-1].start:
            return False
        while self._entries and (
            self._entries[-1].epoch >= epoch or self._entries[-1].start >= start
        ):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start))
        self.check()
        return True

    def end_offset_for(self, epoch: Epoch, log_end: Offset) -> tuple[Epoch, Offset]:
        """The largest epoch up to `epoch` and the offset after its last record (KIP-279).

        (-1, -1) when this log cannot tell: it holds no epoch as high.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end
        above = bisect_right(self._entries, epoch, key=_epoch_of)
        if above == len(self._entries):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        known = self._entries[above - 1].epoch if above else epoch
        return told(epoch, known), self._entries[above].start

    def truncate_from_end(self, offset: Offset) -> bool:
        """The log was cut at `offset`: epochs that start there or later never were.

        Asked even when the log ends before `offset`: an epoch may have started with no record
        (KAFKA-10706).
        """
        before = len(self._entries)
        while self._entries and self._entries[-1].start >= offset:
            self._entries.pop()
        return len(self._entries) != before

    def truncate_from_start(self, offset: Offset) -> bool:
        """The log starts at `offset` now: the epoch that covers it starts there, older ones go."""
        covering = bisect_right(self._entries, offset, key=_start_of) - 1
        if covering < 0 or self._entries[covering].start == offset == self._entries[0].start:
            return False
        self._entries[: covering + 1] = [EpochStart(self._entries[covering].epoch, offset)]
        self.check()
        return True

    def clear(self) -> bool:
        """Forget every epoch."""
        before = len(self._entries)
        self._entries.clear()
        return before > 0

    def check(self) -> None:
        """Epochs and starts both rise."""
        if len(self._entries) > 1:
            (older_epoch, older_start), (epoch, start) = self._entries[-2:]
            assert older_epoch < epoch, f"epoch {epoch} after epoch {older_epoch}"
            assert older_start < start, f"epoch {epoch} starts at {start}, after {older_start}"


def told(asked: Epoch, known: Epoch) -> Epoch:
    """Which epoch is told beside an end offset: the largest that is known, up to the one asked for.

    Who hears of another than he asked for has to ask again (KIP-279).
    """
    return known


def _epoch_of(entry: EpochStart) -> Epoch:
    return entry.epoch


def _start_of(entry: EpochStart) -> Offset:
    return entry.start
