"""Early reads: records that were read before their send was invoked.

The read depends on the write (*wr*), although the write was invoked after the read: later in the
same process, or later in real time. Elle and Jepsen name such a cycle ``G1c-process`` or
``G1c-realtime``.
"""

import numpy as np

from checkers.kernels.arrays import places
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, UNKNOWN, Polls, Sends


def early_reads(log: Log) -> list[Found]:
    """Find records that were delivered by a poll that completed before their send was invoked.

    There is one finding for each record. Its ``folded`` is the number of further early polls that
    delivered the record. Records whose send failed are left out: reading such a record is ``G1a``,
    at any time.
    """
    sends = log.sends.where(log.sends.outcome != FAIL)
    sends = sends.where(np.argsort(sends.value, kind="stable"))
    if not len(sends.op) or not len(log.polls.op):
        return []
    row = np.minimum(places(sends.value, log.polls.value), len(sends.value) - 1)
    is_early = (sends.value[row] == log.polls.value) & (log.polls.op < sends.invoked[row])
    polls, row = log.polls.where(is_early), row[is_early]
    found = []
    for write in np.unique(row).tolist():
        mine = polls.where(row == write)
        own = np.flatnonzero(mine.process == sends.process[write])
        found.append(_found(log, sends, write, mine, int(own[0]) if len(own) else 0))
    return found


def _found(log: Log, sends: Sends, write: int, polls: Polls, read: int) -> Found:
    """Return the finding for a record. ``polls`` are its early deliveries, and ``read`` is the row
    of the delivery that the finding shows."""
    is_own = polls.process[read] == sends.process[write]
    sender = "the same process" if is_own else f"process {sends.process[write]}"
    value, offset = int(sends.value[write]), int(polls.offset[read])
    place = "" if offset == UNKNOWN else f" at offset {offset}"
    return Found(
        anomaly="G1c-process" if is_own else "G1c-realtime",
        key=log.key,
        offset=None if offset == UNKNOWN else offset,
        value=value,
        ops=(int(polls.op[read]), int(sends.op[write])),
        why=f"process {polls.process[read]} read value {value}{place} at"
        f" {at(int(polls.end_ns[read]))}, before {sender} began to send it at"
        f" {at(int(sends.start_ns[write]))}",
        folded=len(set(polls.op.tolist())) - 1,
    )
