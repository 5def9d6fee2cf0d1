"""Settled blocks: parts of a log, by offsets, of which a judgement needs only the ends.

The checkers find nothing in a settled block, whatever is around it: every record was sent once and
acknowledged, or else certainly failed and was never read; and each process that read any of its
records read all of them, in order. What spans blocks (:mod:`checkers.distributed.reduction`)
concerns the ends of a block, or the whole block.
"""

from typing import TypeVar

import numpy as np

from checkers.kernels import duplicates, early, loss, offsets, order, plain, polls
from checkers.kernels.arrays import is_in, places
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, INFO, UNKNOWN, Polls, Sends

_R = TypeVar("_R", Sends, Polls)


def is_settled(log: Log) -> bool:
    """Return whether the part of a log that has the records of some offsets is settled.

    ``log`` has no other records, and no resets and no catch-up. ``False`` means nothing.
    """
    sends, read = log.sends, log.polls
    if (sends.outcome == INFO).any() or read.outcome.any():  # OK is 0
        return False
    acked, failed = log.acked, sends.where(sends.outcome == FAIL)
    values, _ = log.first_reads
    if not 0 < len(acked.op) == len(values) or (acked.offset == UNKNOWN).any():
        return False
    if len(failed.op) and (is_in(failed.value, values).any() or _has_twice(failed)):
        return False
    by_value = acked.value.argsort()
    if (acked.value[by_value] != values).any() or acked.txn.any() != acked.txn.all():
        return False
    row = by_value[places(values, read.value)]
    if (read.offset != acked.offset[row]).any() or (read.txn & (read.op == acked.op[row])).any():
        return False
    readers, count = np.unique(read.process, return_counts=True)
    if (count != len(acked.op)).any() or not len(readers):
        return False
    bare = Log(log.key, _bare(acked), _bare(read), log.resets)
    return plain.is_plain(bare) or _is_in_order(bare)


def _has_twice(sends: Sends) -> bool:
    ordered = np.sort(sends.value)
    return bool((ordered[1:] == ordered[:-1]).any())


def _bare(rows: _R) -> _R:
    """Return rows as if no transaction had made them: all of them were committed."""
    return rows._replace(txn=np.zeros(len(rows.op), dtype=np.bool_))


def _is_in_order(log: Log) -> bool:
    """Return whether the checkers find nothing, although acknowledgements or first reads are not in
    the order of offsets."""
    kernels = (
        duplicates.duplicates,
        offsets.inconsistent_offsets,
        early.early_reads,
        loss.unseen,
        order.kernel,
        order.send_skips,
        polls.poll_order,
    )
    return not any(kernel(log) for kernel in kernels)
