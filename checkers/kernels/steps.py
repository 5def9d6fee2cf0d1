"""Events of groups and of log ends in one partition, as columns."""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from checkers.kernels.rows import I8, I64, Bools, Rows

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
