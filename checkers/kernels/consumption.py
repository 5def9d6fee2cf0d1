"""Consumption: how far readers were behind, what was not read, and how often records were received.

Jepsen reports the same as ``worst-realtime-lag``, ``unseen`` and ``consume-counts``. None of it
breaks a promise; it shows where to look.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from checkers.kernels.arrays import changes, first_rows, is_in, places
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK


@dataclass(frozen=True, slots=True)
class Lag:
    """The time between a record's certain presence in the log and its delivery to a reader that had
    begun to read before."""

    key: str
    process: int
    value: int
    op: int
    """The poll that delivered it."""
    ns: int


@dataclass(frozen=True, slots=True)
class Unseen:
    """The number of records of a partition that were acknowledged but not yet read by a process."""

    key: str
    most: int
    most_ns: int
    """The time at which ``most`` was first reached."""
    end: int
    """The number at the end of the history."""


@dataclass(frozen=True, slots=True)
class Consumption:
    """How records of one partition, or of all partitions together, were consumed."""

    lag: Lag | None
    unseen: Unseen | None
    counts: dict[int, int]
    """The number of pairs of a process and a record, by how often the process received the record.
    Only polls that ended well count."""
    unseen_changes: dict[int, int] = field(default_factory=dict)
    """By second of the run, the change of the number of unseen records: acknowledged records that
    no process had read. The running sum of the changes is the number itself."""


NOTHING = Consumption(None, None, {})


def consumption(log: Log) -> Consumption:
    """Return lag, unseen records and delivery counts of one partition."""
    values, first = log.first_reads
    first_ns = log.polls.end_ns[first]
    time_ns, change = _changes(log.acked.value, log.acked.end_ns, values, first_ns)
    return Consumption(
        lag=_worst_lag(log),
        unseen=_unseen(log.key, time_ns, change),
        counts=_counts(log),
        unseen_changes=_by_second(time_ns, change),
    )


def seen(log: Log) -> tuple[I64, I64]:
    """Return when records were acknowledged, and when those that were read were both acknowledged
    and read."""
    acked, (values, first) = log.acked, log.first_reads
    was_read = is_in(acked.value, values)
    read_ns = log.polls.end_ns[first[places(values, acked.value[was_read])]]
    return acked.end_ns, np.maximum(read_ns, acked.end_ns[was_read])


def of_times(
    key: str, acked_ns: I64, seen_ns: I64, lag: Lag | None, counts: dict[int, int]
) -> Consumption:
    """Return the consumption of a partition of which only times are known.

    ``acked_ns`` are when records were acknowledged, and ``seen_ns`` when those that were read were
    both acknowledged and read, in any order.
    """
    if not len(acked_ns):
        return Consumption(lag, None, counts)
    acked_ns, seen_ns = (np.sort(each, kind="stable") for each in (acked_ns, seen_ns))
    # most records are unseen just after one was acknowledged
    unseen = np.arange(1, len(acked_ns) + 1) - seen_ns.searchsorted(acked_ns, side="right")
    most = int(unseen.argmax())
    by_second = summed((_per_second(acked_ns, 1), _per_second(seen_ns, -1)))
    return Consumption(
        lag=lag,
        unseen=Unseen(
            key,
            max(int(unseen[most]), 0),
            int(acked_ns[most]),
            len(acked_ns) - len(seen_ns),
        ),
        counts=counts,
        unseen_changes={second: by for second, by in by_second.items() if by},
    )


def _per_second(time_ns: I64, change: int) -> dict[int, int]:
    return _by_second(time_ns, np.full(len(time_ns), change))


def _worst_lag(log: Log) -> Lag | None:
    polls, acked = log.polls, log.acked
    values, first = log.first_reads
    if not len(values):
        return None
    known_ns = polls.end_ns[first]
    was_read = is_in(acked.value, values)
    np.minimum.at(known_ns, places(values, acked.value[was_read]), acked.end_ns[was_read])
    # for this reader, records that were there before it began have no lag
    readers, first_of_reader = first_rows(polls.process)
    began_ns = polls.end_ns[first_of_reader][places(readers, polls.process)]
    known = known_ns[places(values, polls.value)]
    lag = np.where(known > began_ns, polls.end_ns - known, 0)
    row = int(lag.argmax())
    if lag[row] <= 0:
        return None
    return Lag(
        key=log.key,
        process=int(polls.process[row]),
        value=int(polls.value[row]),
        op=int(polls.op[row]),
        ns=int(lag[row]),
    )


def _changes(acked: I64, acked_ns: I64, read: I64, read_ns: I64) -> tuple[I64, I64]:
    """Return the changes of the number of unseen records, in the order of time: +1 when a record is
    acknowledged, and -1 when it is first read."""
    place = np.minimum(places(read, acked), max(len(read) - 1, 0))
    seen = read[place] == acked if len(read) else np.zeros(len(acked), dtype=np.bool_)
    seen_ns = np.maximum(read_ns[place[seen]], acked_ns[seen])
    time_ns = np.concatenate((seen_ns, acked_ns))
    change = np.concatenate((np.full(len(seen_ns), -1), np.ones(len(acked), dtype=np.int64)))
    order = time_ns.argsort(kind="stable")  # at one time what is read counts first
    return time_ns[order], change[order]


def _unseen(key: str, time_ns: I64, change: I64) -> Unseen | None:
    if not len(time_ns):
        return None
    unseen = change.cumsum()
    most = int(unseen.argmax())
    return Unseen(
        key=key,
        most=max(int(unseen[most]), 0),
        most_ns=int(time_ns[most]),
        end=int(unseen[-1]),
    )


def _by_second(time_ns: I64, change: I64) -> dict[int, int]:
    if not len(time_ns):
        return {}
    second = time_ns // 1_000_000_000
    if second[0] == second[-1]:
        total = int(change.sum())
        return {int(second[0]): total} if total else {}
    begins = changes(second).nonzero()[0]
    sums = np.add.reduceat(change, begins)
    return {at: by for at, by in zip(second[begins].tolist(), sums.tolist(), strict=True) if by}


def _counts(log: Log) -> dict[int, int]:
    polls = log.polls.where(log.polls.outcome == OK)
    if len(log.first_reads[0]) == len(log.polls.value):  # no record was delivered twice
        return {1: len(polls.value)} if len(polls.value) else {}
    begins = _first_of_pairs(polls.process, polls.value)
    ends = np.concatenate((begins[1:], (len(polls.value),)))
    pairs = np.bincount(ends - begins) if len(begins) else begins
    return {times: count for times, count in enumerate(pairs.tolist()) if count}


def _first_of_pairs(process: I64, value: I64) -> I64:
    """Return where each distinct pair begins, if pairs are sorted."""
    if not len(process):
        return np.zeros(0, dtype=np.int64)
    least, most = int(value.min()), int(value.max())
    readers = int(process.max()) + 1
    if (most - least + 1) * readers < 1 << 63 and process.min() >= 0:  # sorted as one number
        pairs = np.sort(process * (most - least + 1) + (value - least))
        return np.flatnonzero(changes(pairs))
    order = np.lexsort((value, process))
    return np.flatnonzero(changes(process[order]) | changes(value[order]))


def merged(of_keys: Iterable[Consumption]) -> Consumption:
    """Combine the values of partitions: the worst lag, the partition with the most unseen records,
    and the sums of the counts and of the changes."""
    parts = list(of_keys)
    return Consumption(
        lag=max((p.lag for p in parts if p.lag), key=lambda lag: lag.ns, default=None),
        unseen=max((p.unseen for p in parts if p.unseen), key=lambda u: u.most, default=None),
        counts=summed(part.counts for part in parts),
        unseen_changes=summed(part.unseen_changes for part in parts),
    )


def summed(parts: Iterable[dict[int, int]]) -> dict[int, int]:
    """Return the sums of several dictionaries of numbers, in the order of their keys."""
    sums: dict[int, int] = {}
    for part in parts:
        for number, by in part.items():
            sums[number] = sums.get(number, 0) + by
    return dict(sorted(sums.items()))
