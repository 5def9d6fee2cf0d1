"""Events of groups and of log ends in one partition, as columns."""

from typing import NamedTuple

import numpy as np

from checkers.kernels.rows import I8, I64, Bools, Rows

COMMIT, FETCH, ASSIGNED, REVOKED, LOST = 0, 1, 2, 3, 4
"""Events of a group: an offset is committed or fetched; a partition is assigned to a member,
revoked from it, or lost."""
START, HIGH, STABLE, DELETE = 5, 6, 7, 8
"""Events of a log: a leader reported the log start, the high watermark or the last stable offset,
or a client requested the deletion of all records before an offset. The log start in the response to
a deletion is the low watermark of all replicas."""

ANY = -2
"""The offset of a commit that no operation reports: it can be any offset."""
NO_METADATA = 0
"""The code for the metadata of a commit without metadata."""
FOREVER = 1 << 62
"""An event index after all events."""


class _Steps(NamedTuple):
    kind: I8
    group: I64
    """An index into :attr:`Log.groups`; UNKNOWN for a log's ends."""
    generation: I64
    """The generation of a rebalance; UNKNOWN where it was not reported."""
    offset: I64
    """UNKNOWN for a fetch that found nothing, and for a position that the client did not know."""
    metadata: I64
    """The metadata that was committed or fetched with the offset."""
    op: I64
    invoked: I64
    """The earliest event at which it may have happened: the invocation, or ``since`` for a commit
    of a rebalance listener."""
    since: I64
    """The invocation of the process's last poll before it, or of its first operation. The client
    library acts on its own during a poll and after it, and the next poll reports what it did."""
    until: I64
    """The last event at which a commit or deletion may take effect, or an assignment is certain.

    A commit or deletion has taken effect by this event, or never will; FOREVER if there is no such
    event. The event is before the invocation if the same operation overwrote the commit before it
    could take effect. For an assignment, it is the first later poll of the process that failed or
    is in doubt.
    """
    after: I64
    """For a commit by a member's rebalance listener, the generation that the member joined after
    it: all members of that generation see the commit."""
    process: I64
    outcome: I8
    txn: Bools
    proven: Bools
    start_ns: I64
    end_ns: I64
    knows: I64
    """For a fetch of offsets: the response shows that the coordinator knows a commit that began at
    this event or later; UNKNOWN if the response shows no such commit."""
    knew: I64
    """For a fetch of offsets: ``knows`` of the coordinator that last answered a fetch or accepted a
    commit of the same process."""
    knew_ns: I64
    """The time of the request whose coordinator ``knew`` describes."""


_STEP_TYPES = [
    np.int8 if name in ("kind", "outcome") else np.bool_ if name in ("txn", "proven") else np.int64
    for name in _Steps._fields
]


class Steps(Rows, _Steps):
    """The events of groups and of the log in a partition, in the order of ``op`` and program order.
    There is one row for each partition of a micro-operation, and for each offset of the log that a
    leader reported."""

    __slots__ = ()


NO_STEPS = Steps(*(np.zeros(0, dtype) for dtype in _STEP_TYPES))


class Group(NamedTuple):
    """The data of a consumer group that does not depend on the partition."""

    name: str
    members: dict[int, str | None]
    """The ``group.instance.id`` of each process that ever subscribed."""
    commits_alone: bool
    """Whether a member uses ``enable.auto.commit``: then no operation records its commits."""
    topics: frozenset[str]
    changed_ns: int
    """When a member joined or left for the last time."""
    polled_ns: int
    """When the last poll of a member completed, even if it delivered nothing."""
    begins_at_start: bool = False
    """Whether the history contains all commits of the members, and no member uses
    ``auto.offset.reset=latest``, which starts at the log end if there is no committed offset."""
