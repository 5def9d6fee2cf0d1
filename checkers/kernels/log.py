"""The log of one partition, as sends and polls show it.

A kernel is a function that takes a :class:`Log` and returns findings. Offsets need not be
consecutive, because markers and aborted records of transactions have offsets too. Positions are
therefore compared by *rank* among the known offsets: a gap without a known record does not count as
skipped. ``key`` is the name of a partition, as in histories.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from checkers.kernels.arrays import changes, first_rows, is_in, places, stable_order
from checkers.kernels.faults import FaultInterval
from checkers.kernels.rows import (
    FAIL,
    I64,
    NO_BEGINS,
    OK,
    UNKNOWN,
    Begins,
    Bools,
    CatchUp,
    Polls,
    Resets,
    Sends,
)
from checkers.kernels.steps import DELETE, NO_STEPS, Group, Steps


def _are_mixed(offset: I64, value: I64) -> bool:
    """Return whether an offset has different values, where rows are in the order of offsets."""
    return bool(((offset[1:] == offset[:-1]) & (value[1:] != value[:-1])).any())


class Known(NamedTuple):
    """The distinct (offset, value) pairs that polls and accountable sends report, by offset.

    ``op``, ``process`` and ``time_ns`` belong to the first poll that returned the pair, or to its
    acknowledgement if no poll did.
    """

    offset: I64
    value: I64
    read: Bools
    op: I64
    process: I64
    time_ns: I64
    offsets: I64
    """The distinct offsets, ascending: the rank of an offset is its index here."""
    by_value: I64
    """Row numbers of the pairs in the order of value, then offset."""

    def rank(self, offset: I64) -> I64:
        """Return the rank of offsets that are all known."""
        return places(self.offsets, offset)

    def offset_of(self, value: I64) -> I64:
        """Return the offset of each value; UNKNOWN if it has no known offset or several."""
        values = self.value[self.by_value]
        offset = np.full(len(value), UNKNOWN)
        if not len(values):
            return offset
        is_single = changes(values)
        is_single[:-1] &= is_single[1:]
        first = np.minimum(places(values, value), len(values) - 1)
        found = (values[first] == value) & is_single[first]
        offset[found] = self.offset[self.by_value[first[found]]]
        return offset


@dataclass(frozen=True)
class Log:
    """Everything that a history shows of one partition."""

    key: str
    sends: Sends
    polls: Polls
    resets: Resets
    caught_up: CatchUp | None = None
    faults: tuple[FaultInterval, ...] = ()
    steps: Steps = NO_STEPS
    groups: tuple[Group, ...] = ()
    begins: Begins = NO_BEGINS
    is_deleted: bool = False
    """Whether its topic was or may have been deleted: then every record may be missing."""
    is_compacted: bool = False
    """Whether the topic is compacted: a record may be missing if a later record has the same record
    key (``model.record_keys``)."""

    @cached_property
    def acked(self) -> Sends:
        """The records that were acknowledged."""
        return self.sends.where(self.sends.outcome == OK)

    @cached_property
    def first_reads(self) -> tuple[I64, I64]:
        """The distinct values that were polled, ascending, and the row of ``polls`` that delivered
        each of them first."""
        return first_rows(self.polls.value)

    @cached_property
    def placed_polls(self) -> Polls:
        """The polled records whose offset is known."""
        return self.polls.where(self.polls.offset != UNKNOWN)

    @cached_property
    def deletions(self) -> Steps:
        """The deletions of records that happened or may have happened."""
        return self.steps.where((self.steps.kind == DELETE) & (self.steps.outcome != FAIL))

    def deleted_below(self, event: int) -> int:
        """Return the offset below which records may have been deleted before an event; UNKNOWN if
        no deletion was requested before it."""
        asked = self.deletions.offset[self.deletions.invoked < event]
        return int(asked.max(initial=UNKNOWN))

    @cached_property
    def firm(self) -> I64:
        """The offsets, ascending, of records that were acknowledged and also read. Every reader
        that continues beyond such an offset must have received its record."""
        known = self.known
        offsets = known.offset[known.read & is_in(known.value, self.acked.value)]
        firm: I64 = offsets[changes(offsets)]
        return firm

    @cached_property
    def known(self) -> Known:
        polls = self.placed_polls
        stated = self.sends.where(self.sends.accountable & (self.sends.offset != UNKNOWN))
        offset = np.concatenate((polls.offset, stated.offset))
        value = np.concatenate((polls.value, stated.value))
        # stable: of equal pairs the first poll comes first
        order = stable_order(offset)
        if _are_mixed(offset[order], value[order]):
            order = np.lexsort((value, offset))
        offset, value = offset[order], value[order]
        first = np.flatnonzero(changes(offset) | changes(value))
        chosen = order[first]
        offset, value = offset[first], value[first]
        return Known(
            offset=offset,
            value=value,
            read=chosen < len(polls.offset),
            op=np.concatenate((polls.op, stated.op))[chosen],
            process=np.concatenate((polls.process, stated.process))[chosen],
            time_ns=np.concatenate((polls.end_ns, stated.end_ns))[chosen],
            offsets=offset[changes(offset)],
            by_value=stable_order(value),
        )

    @cached_property
    def placed_sends(self) -> Sends:
        """The sent records whose offset is known, from an acknowledgement or from a read."""
        sends = self.sends.where(self.sends.outcome != FAIL)
        is_stated = sends.accountable & (sends.offset != UNKNOWN)
        if is_stated.all():
            return sends
        offset = np.where(is_stated, sends.offset, self.known.offset_of(sends.value))
        return sends._replace(offset=offset).where(offset != UNKNOWN)

    @cached_property
    def _by_value(self) -> tuple[I64, I64]:
        order = stable_order(self.sends.value)
        return order, self.sends.value[order]

    def senders(self, value: int) -> list[int]:
        """Return the operations that tried to write a value. There is at most one in a valid
        history, because values are unique in a partition."""
        order, values = self._by_value
        begin, end = np.searchsorted(values, (value, value + 1))
        ops: list[int] = self.sends.op[order[begin:end]].tolist()
        return ops

    def without(self, offsets: Iterable[int], values: Iterable[int]) -> "Log":
        """Return this log without the sends and polls of these offsets and values.

        A poll is kept if a remaining record has the same offset: it shows that its reader was at
        that offset, even if it received a wrong value.
        """
        gone_offsets, gone_values = (np.array(sorted(x), dtype=np.int64) for x in (offsets, values))

        def stays(rows: Sends | Polls) -> Bools:
            return ~(np.isin(rows.offset, gone_offsets) | np.isin(rows.value, gone_values))

        sends, polls = self.sends.where(stays(self.sends)), self.polls
        stay = stays(polls)
        places = np.concatenate((polls.offset[stay], sends.offset[sends.accountable]))
        return replace(self, sends=sends, polls=polls.where(stay | np.isin(polls.offset, places)))
