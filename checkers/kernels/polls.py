"""Order of reads: a consumer that keeps its assignment gets each record of the log once, in order.

Positions are compared by rank among the known offsets, per process and partition. A process that is
assigned other partitions gives up its positions in the rest, and nothing is compared within an
operation that reports a rebalance of the partition (Jepsen's rules). A transaction that did not
commit must rewind; a plain poll that failed may or may not have moved the position, so nothing
follows from it.
"""

import numpy as np

from checkers.kernels.arrays import is_in, stable_order
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, Polls, groups
from checkers.kernels.steps import ASSIGNED, LOST, REVOKED


def poll_order(log: Log) -> list[Found]:
    """Find records that a reader skipped, and places where it jumped back.

    Between operations these are Jepsen's ``poll-skip`` and ``nonmonotonic-poll``, inside one
    ``int-poll-skip`` and ``int-nonmonotonic-poll``. A skip's ``offset`` is the first that was
    skipped and ``also`` are all of them; a jump's ``offset`` is where the reader landed. In a
    compacted log, skipped records may have been replaced, so :mod:`checkers.kernels.compacted`
    judges them. Records that may have been deleted by then are no skip.
    """
    polls = log.placed_polls
    if len(polls.op) < 2:
        return []
    polls = polls.where(stable_order(polls.process))
    rank = log.known.rank(polls.offset)
    steps = log.steps
    rebalances = steps.op[is_in(steps.kind, np.array((ASSIGNED, REVOKED, LOST), np.int8))]
    inside = np.flatnonzero(
        (polls.process[1:] == polls.process[:-1])
        & (polls.op[1:] == polls.op[:-1])
        & (rank[1:] - rank[:-1] != 1)
        & ~is_in(polls.op[1:], rebalances)
    )
    found = [_found(log, polls, rank, row, row + 1, inside=True) for row in inside.tolist()]
    begins, ends = groups(polls.op)  # an operation belongs to one process
    before = _previous(log, polls.where(begins))
    mine = np.flatnonzero(before >= 0)
    last, first = ends[before[mine]] - 1, begins[mine]
    jumps = rank[first] - rank[last] != 1
    found += [
        _found(log, polls, rank, a, b, inside=False)
        for a, b in zip(last[jumps].tolist(), first[jumps].tolist(), strict=True)
    ]
    if len(log.deletions.op):
        found = [f for f in found if not _is_of_deleted(log, f)]
    skipping = {f.ops[-1] for f in found}
    ops = np.flatnonzero(is_in(polls.op[begins], np.array(sorted(skipping), dtype=np.int64)))
    delivered = {
        op: set(polls.offset[begin:end].tolist())
        for op, begin, end in zip(
            *(column[ops].tolist() for column in (polls.op[begins], begins, ends)), strict=True
        )
    }
    if log.is_compacted:
        found = [f for f in found if not f.anomaly.endswith("poll-skip")]
    return _without_reordered(found, delivered)


def _previous(log: Log, ops: Polls) -> I64:
    """Return for each polling operation the one whose last record is the reader's position, or
    -1."""
    number = np.arange(len(ops.op))
    moves = (ops.outcome == OK) | ~ops.txn
    previous = np.empty_like(number)
    previous[0] = -1
    previous[1:] = np.maximum.accumulate(np.where(moves, number, -1))[:-1]
    certain = (
        (previous >= 0)
        & (ops.process[previous] == ops.process)
        & (log.resets.before(ops.process, ops.op) < ops.op[previous])
        & (ops.outcome[previous] == OK)
    )
    return np.where(certain, previous, -1)


def _found(log: Log, polls: Polls, rank: I64, a: int, b: int, *, inside: bool) -> Found:
    prefix = "int-" if inside else ""
    where = "in one operation" if inside else f"next, at {at(int(polls.end_ns[b]))}"
    story = (
        f"process {polls.process[a]} read offset {polls.offset[a]} (value {polls.value[a]}) at"
        f" {at(int(polls.end_ns[a]))} and {where}, offset {polls.offset[b]}"
        f" (value {polls.value[b]})"
    )
    ops = tuple(dict.fromkeys((int(polls.op[a]), int(polls.op[b]))))
    if rank[b] <= rank[a]:
        return Found(
            anomaly=prefix + "nonmonotonic-poll",
            key=log.key,
            offset=int(polls.offset[b]),
            value=int(polls.value[b]),
            ops=ops,
            why=story + ": again" * bool(rank[b] == rank[a]) + ": back" * bool(rank[b] < rank[a]),
        )
    skipped = log.known.offsets[rank[a] + 1 : rank[b]].tolist()
    row = int(np.searchsorted(log.known.offset, skipped[0]))
    return Found(
        anomaly=prefix + "poll-skip",
        key=log.key,
        offset=skipped[0],
        value=int(log.known.value[row]),
        ops=ops,
        also=tuple(skipped),
        why=f"{story}: it skipped {len(skipped)} known"
        f" {'record' if len(skipped) == 1 else 'records'} from offset {skipped[0]}"
        f" (value {log.known.value[row]}) on",
    )


def _is_of_deleted(log: Log, found: Found) -> bool:
    """Return whether a finding skips only records that may have been deleted by then. A reader
    whose position is deleted continues at the start of the log."""
    is_skip = found.anomaly.endswith("poll-skip")
    return is_skip and found.also[-1] < log.deleted_below(found.ops[-1])


def _without_reordered(found: list[Found], delivered: dict[int, set[int]]) -> list[Found]:
    """Drop the skips whose records the same operation delivered: the jump back shows what happened,
    and one record out of place is one finding."""
    return [
        f
        for f in found
        if not (f.anomaly.endswith("poll-skip") and delivered[f.ops[-1]].issuperset(f.also))
    ]
