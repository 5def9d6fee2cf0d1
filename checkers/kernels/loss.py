"""Loss: an acknowledged record that nobody ever read, although somebody read past it."""

from bisect import bisect_right

import numpy as np

from checkers.kernels.rows import OK, UNKNOWN, Found, Log, at, groups

DELAY_NS = 30_000_000_000
"""A record that is first seen later than this after its acknowledgement came late."""


def frontier(log: Log) -> int:
    """How far the log was certainly read: the highest first offset of a value that was sent.

    The first offset of a doubled value, and of values that were sent at all, because one wild
    offset must not make everything before it look lost.
    """
    known = log.known
    if not len(known.offset):
        return UNKNOWN
    value = known.value[known.by_value]
    first = known.by_value[groups(value)[0]]
    counts = known.read[first] & np.isin(known.value[first], log.sends.value)
    return int(known.offset[first][counts].max(initial=UNKNOWN))


def lost_writes(log: Log) -> list[Found]:
    """Records that must be in the log, lie below the frontier (or whose key was read to its end by
    a final reader) and were never delivered to anybody. Jepsen's ``lost-write``."""
    known, sends = log.known, log.sends
    unread = sends.accountable & ~np.isin(sends.value, log.polls.value)
    if log.caught_up is None:
        unread &= (sends.offset != UNKNOWN) & (sends.offset <= frontier(log))
    else:  # without an offset, only the acknowledged: a proven operation may have landed in part
        unread &= (sends.offset != UNKNOWN) | (sends.outcome == OK)
    read = np.flatnonzero(known.read)
    read_offsets = known.offset[read]
    found = []
    for value, offset, op, _, process, outcome, _, _, _, end_ns in zip(
        *(column.tolist() for column in sends.where(unread)), strict=True
    ):
        sent = "acknowledged to" if outcome == OK else "in doubt (but proven by another read) for"
        told = "" if offset == UNKNOWN else f" at offset {offset}"
        beyond = bisect_right(read_offsets, offset) if offset != UNKNOWN else len(read)
        if beyond < len(read):
            row = read[beyond]
            past = (
                f"process {known.process[row]} read on at offset {known.offset[row]}"
                f" at {at(known.time_ns[row])}"
            )
            witness = int(known.op[row])
        elif log.caught_up is not None:
            past = (
                f"process {log.caught_up.process} read the log to its end, position"
                f" {log.caught_up.position}, at {at(log.caught_up.time_ns)}"
            )
            witness = log.caught_up.op
        else:  # the frontier itself: two values claim the last offset that was read
            row = read[-1]
            past = (
                f"process {known.process[row]} read value {known.value[row]} at offset"
                f" {known.offset[row]} at {at(known.time_ns[row])}"
            )
            witness = int(known.op[row])
        found.append(
            Found(
                anomaly="lost-write",
                key=log.key,
                offset=None if offset == UNKNOWN else offset,
                value=value,
                ops=(op, witness),
                why=f"value {value} was {sent} process {process}{told} at {at(end_ns)}; {past};"
                f" nobody ever read {value}",
            )
        )
    return found


def unseen(log: Log) -> list[Found]:
    """Acknowledged records that were first read late (``unseen-delayed``), or that nobody has read
    and nobody has read past (``unseen-unchecked``: no evidence either way).

    At most one finding of each: the latest, and the first; the others are folded into it.
    """
    sends, polls = log.sends, log.polls
    acked = sends.where(sends.outcome == OK)
    values, first = np.unique(polls.value, return_index=True)  # the first delivery of each value
    seen = np.isin(acked.value, values)
    found = []
    reach = frontier(log)
    beyond = (acked.offset == UNKNOWN) | (acked.offset > reach)
    unchecked = acked.where(~seen & beyond)
    if log.caught_up is None and len(unchecked.op):
        value, offset = int(unchecked.value[0]), int(unchecked.offset[0])
        found.append(
            Found(
                anomaly="unseen-unchecked",
                key=log.key,
                offset=None if offset == UNKNOWN else offset,
                value=value,
                ops=(int(unchecked.op[0]),),
                why=f"value {value} was acknowledged"
                + (f" at offset {offset}" if offset != UNKNOWN else "")
                + f" at {at(int(unchecked.end_ns[0]))}; nobody read"
                + (f" beyond offset {reach}" if reach != UNKNOWN else ""),
                folded=len(unchecked.op) - 1,
            )
        )
    acked = acked.where(seen)
    reading = polls.where(first[np.searchsorted(values, acked.value)])
    delay = reading.end_ns - acked.end_ns
    if (delay > DELAY_NS).any():
        row = int(delay.argmax())
        found.append(
            Found(
                anomaly="unseen-delayed",
                key=log.key,
                offset=int(reading.offset[row]),
                value=int(acked.value[row]),
                ops=(int(acked.op[row]), int(reading.op[row])),
                why=f"value {acked.value[row]} was acknowledged at {at(int(acked.end_ns[row]))}"
                f" and first read at {at(int(reading.end_ns[row]))}, by process"
                f" {reading.process[row]} at offset {reading.offset[row]}",
                folded=int((delay > DELAY_NS).sum()) - 1,
            )
        )
    return found


def kernel(log: Log) -> list[Found]:
    """Both: they share nothing but the question."""
    return lost_writes(log) + unseen(log)
