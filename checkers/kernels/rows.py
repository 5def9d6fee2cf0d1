"""The rows of one partition, as columns: what was sent and polled, and the log that both show.

A kernel is a function from a :class:`Log` to findings. Offsets need not be dense (a transaction's
markers and aborted records take offsets too), so positions are compared by *rank* among the known
offsets: a hole without a known record is no skip. ``key`` names a partition, as in histories.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkers.kernels.arrays import changes, first_rows, is_in, last_before

I64 = NDArray[np.int64]
I8 = NDArray[np.int8]
Bools = NDArray[np.bool_]

OK, FAIL, INFO = 0, 1, 2
"""Outcomes. An invocation that was never completed is INFO: it may have happened."""

UNKNOWN = -1
"""The offset of a record that no broker reported."""


class Rows:
    """Columns of equal length; a mixin of named tuples."""

    def where(self, mask: NDArray[Any]) -> Self:
        """Return the rows that a mask or an array of row numbers selects. A mask that selects all
        of them copies nothing."""
        if mask.dtype == np.bool_ and np.count_nonzero(mask) == len(mask):
            return self
        return self._make([column[mask] for column in self])  # type: ignore[attr-defined,no-any-return]


class _Sends(NamedTuple):
    value: I64
    offset: I64
    """As acknowledged; UNKNOWN when the client did not receive it."""
    op: I64
    """Index of the completing event, or of the invocation when there is none."""
    invoked: I64
    """Index of the invocation."""
    process: I64
    outcome: I8
    txn: Bools
    proven: Bools
    """Whether it is an INFO operation of which a value was read: then it did happen."""
    start_ns: I64
    end_ns: I64


class Sends(Rows, _Sends):
    """One row per record that a client tried to write, in the order of ``op`` and program order."""

    __slots__ = ()

    @property
    def accountable(self) -> Bools:
        """Rows that must be in the log: acknowledged, or proven to have happened."""
        rows: Bools = (self.outcome == OK) | self.proven
        return rows


class _Polls(NamedTuple):
    value: I64
    offset: I64
    op: I64
    process: I64
    outcome: I8
    txn: Bools
    end_ns: I64


class Polls(Rows, _Polls):
    """One row per record delivered, in the order of delivery; polls of every outcome deliver."""

    __slots__ = ()


class _Resets(NamedTuple):
    process: I64
    op: I64


class Resets(Rows, _Resets):
    """When a process gave up its position: it was assigned other partitions, without this one. Of
    several resets without a poll between them, some may be missing."""

    __slots__ = ()

    def before(self, process: I64, op: I64) -> I64:
        """Return for each process and event the last reset before it; UNKNOWN if there is none."""
        row = last_before(self.process, self.op, process, op)
        return np.where(row < 0, UNKNOWN, self.op[row]) if len(self.op) else row


class _Begins(NamedTuple):
    process: I64
    invoked: I64


class Begins(Rows, _Begins):
    """Processes that were assigned a partition, and from when on each may have looked up where it
    begins."""

    __slots__ = ()

    def since(self, process: I64, event: I64) -> I64:
        """Return for each process and event the first begin then or later; UNKNOWN if there is
        none."""
        row = last_before(self.process, -self.invoked, process, 1 - event)
        return np.where(row < 0, UNKNOWN, self.invoked[row]) if len(self.invoked) else row


NO_BEGINS = Begins(np.zeros(0, np.int64), np.zeros(0, np.int64))


class CatchUp(NamedTuple):
    """A reader that began at the log start reached the high watermark that was measured after the
    last acknowledgement."""

    op: int
    process: int
    position: int
    time_ns: int


class Band(NamedTuple):
    """A fault interval: from the fault's request until it was healed, if ever."""

    id: int
    from_ns: int
    to_ns: int | None
    misleads: bool = True
    """Whether it may leave a former leader answering."""
    silences: bool = False
    """Whether the brokers that it struck give no answer while it is active."""
    disconnects: bool = True
    """Whether brokers need their timeouts to hear of a leader after it; otherwise they hear
    soon."""
    nodes: frozenset[str] | None = None
    """The brokers that it struck; ``None`` if it may have been any."""
    restarts: bool = False
    """Whether these brokers ended, and started again with its healing."""
    keys: frozenset[str] | None = None
    """The partitions whose leaders it may have replaced; ``None`` for all partitions of clients."""
    coordinators: bool = True
    """Whether it may have replaced coordinators of groups."""


SETTLED_NS = 15_000_000_000
"""The longest time after such a fault for which a broker may not have heard of a new leader."""


COMMIT, FETCH, ASSIGNED, REVOKED, LOST = 0, 1, 2, 3, 4
"""Events of a group: an offset is committed or fetched; a partition is assigned to a member,
revoked from it, or lost."""
START, HIGH, STABLE, DELETE = 5, 6, 7, 8
"""Events of a log: a leader reported its start, its high watermark, its last stable offset; or was
asked to delete all records before an offset. The start that it reports to a deletion is that of all
replicas."""

ANY = -2
"""The offset of a commit that no operation reports."""
NO_METADATA = 0
"""The metadata of a commit that has none."""
FOREVER = 1 << 62
"""An event after every event."""


class _Steps(NamedTuple):
    kind: I8
    group: I64
    """An index into :attr:`Log.groups`; UNKNOWN for a log's ends."""
    generation: I64
    """The generation of a rebalance; UNKNOWN where it was not reported."""
    offset: I64
    """UNKNOWN for a fetch that found nothing, and for a position that the client did not know."""
    metadata: I64
    """What was committed with the offset, or found with it."""
    op: I64
    invoked: I64
    """From when on it may have happened: the invocation, or ``since`` for what a listener
    committed."""
    since: I64
    """When the process began the last poll before it: the next poll reports what the client library
    did on its own since then."""
    until: I64
    """Until when it may take effect, or is certain.

    For a commit or deletion, the event from which on it has taken effect everywhere or never will,
    FOREVER when there is none; it is before the invocation if the same operation has overwritten it
    before it could take effect. For an assignment, the first poll of the process from then on that
    did not end well.
    """
    after: I64
    """For a commit by a member's listener, the generation that the member joined then: all members
    of that generation know of the commit."""
    process: I64
    outcome: I8
    txn: Bools
    proven: Bools
    start_ns: I64
    end_ns: I64
    knows: I64
    """For a fetch: its answer shows that the coordinator knows a commit that began at or after this
    event; UNKNOWN if it shows none."""
    knew: I64
    """For a fetch: ``knows`` of the coordinator that last answered its process, or accepted a
    commit of it."""
    knew_ns: I64
    """The time of the request to the coordinator of ``knew``."""


_STEP_TYPES = [
    np.int8 if name in ("kind", "outcome") else np.bool_ if name in ("txn", "proven") else np.int64
    for name in _Steps._fields
]


class Steps(Rows, _Steps):
    """Events of groups in a partition, and log ends that leaders reported: one row per partition of
    a micro-operation, or per end, in the order of ``op`` and program order."""

    __slots__ = ()


NO_STEPS = Steps(*(np.zeros(0, dtype) for dtype in _STEP_TYPES))


class Group(NamedTuple):
    """A consumer group, as far as it is the same for all its partitions."""

    name: str
    members: dict[int, str | None]
    """The ``group.instance.id`` of each process that ever subscribed."""
    commits_alone: bool
    """Whether a client commits automatically, which no operation records
    (``enable.auto.commit``)."""
    topics: frozenset[str]
    changed_ns: int
    """When a member joined or left for the last time."""
    polled_ns: int
    """When the last poll of a member completed, even if it delivered nothing."""
    deletions: tuple[tuple[int, int], ...] = ()
    """The deletions of committed offsets that may have happened, in the order of invocations.

    Each has its invocation, and the last completion (``FOREVER`` in doubt) of this and earlier
    ones. A group without members ends with its last offset, and the generations of the next group
    of its name begin with 1 again.
    """
    begins_at_start: bool = False
    """Whether all members commit by operations that the history holds, and none begins at the end
    of a log without a committed offset (``auto.offset.reset=latest``)."""

    def may_restart(self, begin: int, end: int) -> bool:
        """Return whether the group may have been deleted between these two events."""
        earlier = bisect_left(self.deletions, (end,))
        return earlier > 0 and self.deletions[earlier - 1][1] > begin


class Known(NamedTuple):
    """The distinct (offset, value) pairs that polls and accountable sends report, by offset.

    ``op``, ``process`` and ``time_ns`` are of the first poll that showed a pair, else of its
    acknowledgement.
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
        ranks: I64 = np.searchsorted(self.offsets, offset)
        return ranks

    def offset_of(self, value: I64) -> I64:
        """Return the one offset of each value; UNKNOWN where there is none or more than one."""
        values = self.value[self.by_value]
        first = np.searchsorted(values, value, side="left")
        found = np.searchsorted(values, value, side="right") - first == 1
        offset = np.full(len(value), UNKNOWN)
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
    faults: tuple[Band, ...] = ()
    steps: Steps = NO_STEPS
    groups: tuple[Group, ...] = ()
    begins: Begins = NO_BEGINS
    is_deleted: bool = False
    """Whether its topic was deleted, or may have been: then no record need be there."""
    is_compacted: bool = False
    """Whether a record may be gone once there is a later one of its record key
    (``model.record_keys``)."""

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
        """Deletions that were made or may have been."""
        return self.steps.where((self.steps.kind == DELETE) & (self.steps.outcome != FAIL))

    def deleted_below(self, event: int) -> int:
        """Return the offset below which records may have been deleted by an event; UNKNOWN if no
        deletion was requested before it."""
        asked = self.deletions.offset[self.deletions.invoked < event]
        return int(asked.max(initial=UNKNOWN))

    @cached_property
    def firm(self) -> I64:
        """The offsets, ascending, of records that were acknowledged and read: every reader that
        reads on past one of them has received it."""
        known = self.known
        offsets: I64 = np.unique(known.offset[known.read & is_in(known.value, self.acked.value)])
        return offsets

    @cached_property
    def known(self) -> Known:
        polls = self.placed_polls
        told = self.sends.where(self.sends.accountable & (self.sends.offset != UNKNOWN))
        offset = np.concatenate((polls.offset, told.offset))
        value = np.concatenate((polls.value, told.value))
        order = np.lexsort((value, offset))  # stable: of equal pairs the first poll comes first
        offset, value = offset[order], value[order]
        first = np.flatnonzero(changes(offset) | changes(value))
        chosen = order[first]
        offset, value = offset[first], value[first]
        return Known(
            offset=offset,
            value=value,
            read=chosen < len(polls.offset),
            op=np.concatenate((polls.op, told.op))[chosen],
            process=np.concatenate((polls.process, told.process))[chosen],
            time_ns=np.concatenate((polls.end_ns, told.end_ns))[chosen],
            offsets=offset[changes(offset)],
            by_value=np.lexsort((offset, value)),
        )

    @cached_property
    def placed_sends(self) -> Sends:
        """The records whose place in the log is known, from an acknowledgement or from a read."""
        sends = self.sends.where(self.sends.outcome != FAIL)
        told = sends.accountable & (sends.offset != UNKNOWN)
        if told.all():
            return sends
        offset = np.where(told, sends.offset, self.known.offset_of(sends.value))
        return sends._replace(offset=offset).where(offset != UNKNOWN)

    @cached_property
    def _by_value(self) -> tuple[I64, I64]:
        order = np.argsort(self.sends.value, kind="stable")
        return order, self.sends.value[order]

    def senders(self, value: int) -> list[int]:
        """Return the operations that tried to write a value: one, since values are unique per
        partition."""
        order, values = self._by_value
        begin, end = np.searchsorted(values, (value, value + 1))
        ops: list[int] = self.sends.op[order[begin:end]].tolist()
        return ops

    def without(self, offsets: Iterable[int], values: Iterable[int]) -> "Log":
        """Return this log without the sends and the reads of these offsets and values.

        A reader that received such a value in the place of another is still known to have been at
        that place.
        """
        gone_offsets, gone_values = (np.array(sorted(x), dtype=np.int64) for x in (offsets, values))

        def stays(rows: Sends | Polls) -> Bools:
            return ~(np.isin(rows.offset, gone_offsets) | np.isin(rows.value, gone_values))

        sends, polls = self.sends.where(stays(self.sends)), self.polls
        stay = stays(polls)
        places = np.concatenate((polls.offset[stay], sends.offset[sends.accountable]))
        return replace(self, sends=sends, polls=polls.where(stay | np.isin(polls.offset, places)))


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel saw. It becomes a :class:`model.finding.Finding` with its contract and
    faults."""

    anomaly: str
    key: str | None = None
    """The partition; ``None`` if the finding is about several."""
    group: str | None = None
    """The consumer group that it is about, if it is about one."""
    offset: int | None = None
    generation: int | None = None
    """The generation of the group that it is about, if it is about one."""
    value: int | None = None
    variant: str = ""
    """A distinction that the contract may need: what shows it (``ack``, ``read``), ``txn`` …"""
    ops: tuple[int, ...] = ()
    also: tuple[int, ...] = ()
    """Further offsets or values that the argument rests on; each kernel defines them."""
    why: str = ""
    folded: int = 0


def groups(column: I64) -> tuple[I64, I64]:
    """Return begin and end (exclusive) of each run of equal values in a sorted column."""
    begins = np.flatnonzero(changes(column))
    ends = np.empty_like(begins)
    ends[:-1] = begins[1:]
    ends[-1:] = len(column)
    return begins, ends


def at(time_ns: int) -> str:
    """Return a time of the history in seconds, for people."""
    return f"{time_ns / 1e9:.3f} s"
