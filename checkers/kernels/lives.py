"""Whether a consumer group may have ended between two events, so that its generations began again.

A coordinator deletes a group that has neither members nor committed offsets, and the next group
with the same name starts again with generation 1. So the generation numbers of two events can be
compared only if the group had an offset, or a certain member, all the time between them. This is
judged by the offsets of one partition, which is on the safe side.

What ends a group otherwise is not seen: DeleteGroups, and the expiry of offsets.
"""

import numpy as np

from checkers.kernels.rows import FAIL, I64, OK, UNKNOWN, Bools
from checkers.kernels.steps import COMMIT, FETCH, FOREVER, Steps


class Lives:
    """When a group certainly had a committed offset of a partition.

    It has one once a commit was acknowledged, until its offset may be deleted. A fetch that found
    one shows the same, but only before the first deletion: a former coordinator may answer from
    what it knew before.
    """

    def __init__(self, steps: Steps, is_deleted: bool) -> None:
        """``steps``: those of the group and partition. ``is_deleted``: whether the topic was."""
        self._is_deleted = is_deleted
        none = steps.offset == UNKNOWN
        deleting = np.flatnonzero((steps.kind == COMMIT) & none & (steps.outcome != FAIL))
        deleting = deleting[np.argsort(steps.invoked[deleting], kind="stable")]
        self._deleting: I64 = steps.invoked[deleting]
        ends = np.where(steps.outcome[deleting] == OK, steps.op[deleting], FOREVER)
        self._deleted: I64 = np.maximum.accumulate(ends) if len(ends) else ends
        """For each deletion the latest end of it and all earlier ones."""
        first = int(self._deleting[0]) if len(deleting) else FOREVER
        shows = (steps.kind == COMMIT) | ((steps.kind == FETCH) & (steps.op < first))
        rows = np.flatnonzero(shows & (steps.outcome == OK) & ~none)
        self._shown: I64 = steps.op[rows]
        """The events that show an offset, in their order."""
        begun = steps.invoked[rows]
        self._since: I64 = np.maximum.accumulate(begun) if len(begun) else begun
        """For each of them, the latest begin of the operations that have shown one by then."""

    def may_end(self, begin: I64 | int, end: I64 | int) -> Bools:
        """Return whether the group may have had no offset at some time between two events."""
        begin, end = np.broadcast_arrays(np.asarray(begin), np.asarray(end))
        if self._is_deleted or not len(self._shown):
            return begin < end
        last = np.searchsorted(self._shown, begin, side="right") - 1
        lacks: Bools = last < 0
        if len(self._deleting):
            earlier = np.searchsorted(self._deleting, end) - 1
            until = np.where(earlier < 0, UNKNOWN, self._deleted[earlier])
            lacks = lacks | (until > self._since[last])
        return lacks & (begin < end)
