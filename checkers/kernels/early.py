"""Early reads: records that were read before the operation that sent them began.

The read depends on the write (*wr*), and the write comes after the read: in the order of one
process, or in real time. Elle and Jepsen name such a cycle ``G1c-process`` or ``G1c-realtime``.
"""

import numpy as np

from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, UNKNOWN, Polls, Sends


def early_reads(log: Log) -> list[Found]:
    """Find records that were delivered by a poll that ended before their send was invoked.

    ``folded`` counts further such polls. A record whose write failed is ``G1a``, whenever it was
    read.
    """
    sends = log.sends.where(log.sends.outcome != FAIL)
    sends = sends.where(np.argsort(sends.value, kind="stable"))
    if not len(sends.op) or not len(log.polls.op):
        return []
    row = np.minimum(np.searchsorted(sends.value, log.polls.value), len(sends.value) - 1)
    is_early = (sends.value[row] == log.polls.value) & (log.polls.op < sends.invoked[row])
    polls, row = log.polls.where(is_early), row[is_early]
    found = []
    for write in np.unique(row).tolist():
        mine = polls.where(row == write)
        own = np.flatnonzero(mine.process == sends.process[write])
        found.append(_found(log, sends, write, mine, int(own[0]) if len(own) else 0))
    return found


def _found(log: Log, sends: Sends, write: int, polls: Polls, read: int) -> Found:
    """Return the finding. ``polls`` are the early deliveries of a record; ``read`` is the row to
    show."""
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
