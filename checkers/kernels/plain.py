"""Plain logs: a log in which every record was sent once, acknowledged, and read in order.

Most partitions of most histories are like that, and one cheap question shows that none of the
checkers of records can find anything in them.
"""

from checkers.kernels import loss
from checkers.kernels.arrays import changes, is_in, places, stable_order
from checkers.kernels.log import Log
from checkers.kernels.rows import I64


def is_plain(log: Log) -> bool:
    """Is it certain that the checkers of loss, duplicates, phantoms and order find nothing?

    ``True`` where the values that were acknowledged are exactly those that were polled, each at the
    offset of its acknowledgement; where offsets follow the order of acknowledgements, and first
    reads the order of offsets; where each reader read from the first record on without a gap; and
    where no record was read before its send or late. ``False`` means nothing.
    """
    sends, polls = log.sends, log.polls
    values, first = log.first_reads
    if log.is_compacted or not 0 < len(sends.op) == len(values):
        return False
    order = sends.value.argsort()
    if (sends.value[order] != values).any():
        return False
    if sends.outcome.any() or polls.outcome.any() or sends.txn.any() or polls.txn.any():
        return False  # OK is 0
    row = order[places(values, polls.value)]
    if (polls.offset != sends.offset[row]).any() or (polls.op < sends.invoked[row]).any():
        return False
    if sends.offset[0] < 0 or (sends.offset[1:] <= sends.offset[:-1]).any():
        return False
    return (
        _reads_each_from_the_first(polls.process, row)
        and _reads_follow(log, order, first)
        and _is_seen_finally(log)
    )


def _reads_each_from_the_first(process: I64, row: I64) -> bool:
    """Does each process read the rows 0, 1, 2 … one after the other?"""
    by_process = stable_order(process)
    row = row[by_process]
    begins = changes(process[by_process])
    follows = row == 0
    follows[1:] |= row[1:] == row[:-1] + 1
    return bool((follows & (begins == (row == 0))).all())


def _reads_follow(log: Log, order: I64, first: I64) -> bool:
    """Do the first reads of records follow their offsets, none of them late?"""
    read = log.polls.op[first]
    by_offset = read[order.argsort()]
    delay_ns = log.polls.end_ns[first] - log.sends.end_ns[order]
    is_late = (delay_ns > loss.DELAY_NS).any()
    return not is_late and not (by_offset[1:] < by_offset[:-1]).any()


def _is_seen_finally(log: Log) -> bool:
    """Did the final reader, if there is one, see every record?"""
    if log.caught_up is None:
        return True
    seen = loss.seen_finally(log, log.caught_up)
    return len(seen) == len(log.polls.op) or bool(is_in(log.sends.value, seen).all())
