"""Compacted partitions: the last record of each record key stays, and every reader receives it.

A record may be removed once a later one of its record key is there (``model.record_keys`` says
which key a value was written to). A reader that passes the place of a record, and does not receive
it, must have been able to meet a later one: one whose write had begun by then. The last record of a
record key stays, and a tombstone stays for ``delete.retention.ms`` at least, so that no reader
keeps what was deleted.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, I64, OK, UNKNOWN, Bools, CatchUp, Polls, Sends
from checkers.kernels.steps import FOREVER
from model import record_keys


def replaced_from(log: Log, value: I64, offset: I64, *, known_only: bool = False) -> I64:
    """Return for each value at an offset when the first write began that may have replaced it.

    The result is an event. The write is a later one of the value's record key; FOREVER if there is
    none, or no record key. With ``known_only``, only records count that are known to be behind it;
    otherwise, records without a known place count, too.
    """
    sends = log.sends.where(log.sends.outcome != FAIL)
    place = np.where(sends.offset != UNKNOWN, sends.offset, log.known.offset_of(sends.value))
    if known_only:
        sends, place = sends.where(place != UNKNOWN), place[place != UNKNOWN]
    place = np.where(place == UNKNOWN, FOREVER, place)
    order = np.argsort(place, kind="stable")
    sends, place, key = sends.where(order), place[order], record_keys.key_of(sends.value[order])
    begun = np.full(len(value), FOREVER)
    for one in set(record_keys.key_of(value).tolist()) - {record_keys.NO_KEY}:
        mine, asked = key == one, np.flatnonzero(record_keys.key_of(value) == one)
        first = np.minimum.accumulate(sends.invoked[mine][::-1])[::-1]
        behind = np.searchsorted(place[mine], offset[asked], side="right")
        begun[asked] = np.append(first, FOREVER)[behind]
    return begun


def excused(log: Log, rows: I64, offset: I64) -> Bools:
    """Return which of these rows of ``log.sends``, at these offsets, may have been compacted away.

    A row without a known place may have been replaced by any other record of its record key that
    was not answered before it was sent.
    """
    sends = log.sends.where(rows)
    finally_read = log.caught_up is not None
    gone: Bools = replaced_from(log, sends.value, offset, known_only=finally_read) < FOREVER
    for row in np.flatnonzero(offset == UNKNOWN).tolist():
        gone[row] = _others(log, sends, row).any()
    return gone


def deleted_for_ms(log: Log, row: int) -> int | None:
    """Return how many milliseconds ago the tombstone was sent that this row of ``log.sends`` is, or
    that may have replaced it; None if there is none."""
    sends = log.sends
    tombstone = _others(log, sends, row) & (record_keys.deletes(sends.value))
    tombstone[row] = record_keys.deletes(int(sends.value[row]))
    if not tombstone.any():
        return None
    end_ns = max(
        int(log.polls.end_ns.max(initial=0)), log.caught_up.time_ns if log.caught_up else 0
    )
    return max(end_ns - int(sends.start_ns[tombstone].min()), 0) // 1_000_000


def _others(log: Log, sends: Sends, row: int) -> Bools:
    """Return which of all records may be behind this one of ``sends``: those of its record key that
    were not answered before it was sent."""
    every = log.sends
    key = record_keys.key_of(int(sends.value[row]))
    same = (record_keys.key_of(every.value) == key) & (key != record_keys.NO_KEY)
    possible = (every.outcome != FAIL) & (every.op >= sends.invoked[row])
    others: Bools = same & possible & (every.value != sends.value[row])
    return others


class _Pass(NamedTuple):
    """A read of a log from its beginning by one process."""

    polls: Polls
    end: CatchUp | None

    def passed(self, offset: I64) -> tuple[I64, I64]:
        """Return for each offset the row of ``polls`` and the event by which this reader was past
        it; FOREVER if it never was."""
        reach = np.maximum.accumulate(self.polls.offset)
        row = np.searchsorted(reach, offset, side="right")
        event = np.append(self.polls.op, FOREVER)[row]
        if self.end is not None:
            ended = (event == FOREVER) & (offset < self.end.position)
            event = np.where(ended, self.end.op, event)
        return row, event


def _passes(log: Log) -> Iterator[_Pass]:
    """Yield the reads of a log, each of which ends where its process gives up its position.
    Processes that read within transactions are left out, because they go back."""
    polls = log.polls.where(log.polls.offset != UNKNOWN)
    polls = polls.where(~np.isin(polls.process, polls.process[polls.txn]))
    polls = polls.where(np.argsort(polls.process, kind="stable"))
    reset = log.resets.before(polls.process, polls.op)
    end, last = log.caught_up, None
    if end is not None:
        before_end = log.resets.before(np.array([end.process]), np.array([end.op]))
        last = end.process, int(before_end[0])
    changes = (polls.process[1:] != polls.process[:-1]) | (reset[1:] != reset[:-1])
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(polls.op)]
    for begin, stop in pairwise(bounds) if len(polls.op) else ():
        is_last = (int(polls.process[begin]), int(reset[begin])) == last
        yield _Pass(polls.where(np.arange(begin, stop)), end if is_last else None)


def stale_keys(log: Log) -> list[Found]:
    """Find ``stale-key`` and ``resurrected-key``.

    - ``stale-key``: a reader passed the last record of a record key without receiving it, and holds
      an older one as the last, or none.
    - ``resurrected-key``: that record was a tombstone, and the reader holds what it was to delete;
      ``also`` is how long ago the tombstone was sent, in milliseconds.

    There is one finding for each record that was not received, however many readers missed it: of
    the reader that passed a tombstone first.
    """
    if not log.is_compacted:
        return []
    writes = log.placed_sends
    writes = writes.where(writes.accountable)
    since = replaced_from(log, writes.value, writes.offset)
    found: dict[int, Found] = {}
    for reader in _passes(log):
        row, event = reader.passed(writes.offset)
        missing = (event < FOREVER) & (since >= event) & ~np.isin(writes.value, reader.polls.value)
        for number in np.flatnonzero(missing).tolist():
            stale = _stale(log, writes, number, reader, int(row[number]), int(event[number]))
            if stale is None:
                continue
            value = int(writes.value[number])
            first = found.get(value)
            if first is not None:
                worse = stale if stale.also < first.also else first
                stale = replace(worse, folded=first.folded + 1)
            found[value] = stale
    return [found[value] for value in sorted(found)]


def _stale(
    log: Log, writes: Sends, number: int, reader: _Pass, row: int, event: int
) -> Found | None:
    value = int(writes.value[number])
    key, is_tombstone = record_keys.key_of(value), record_keys.deletes(value)
    before = reader.polls.where(np.arange(len(reader.polls.op)) < row)
    held = before.where(record_keys.key_of(before.value) == key)
    holds = bool(len(held.op)) and not record_keys.deletes(int(held.value[-1]))
    if is_tombstone and not holds:
        return None
    if row < len(reader.polls.op):
        passed_ns = int(reader.polls.end_ns[row])
    else:
        assert reader.end is not None, "a reader without a later poll has reached the end"
        passed_ns = reader.end.time_ns
    process = int(reader.polls.process[0])
    what = "deleted" if is_tombstone else "written"
    status = (
        "was acknowledged"
        if writes.outcome[number] == OK
        else "was in doubt, and is proven by a reader"
    )
    has = f"value {held.value[-1]} at offset {held.offset[-1]}" if holds else "nothing"
    return Found(
        anomaly="resurrected-key" if is_tombstone else "stale-key",
        key=log.key,
        offset=int(writes.offset[number]),
        value=value,
        variant="proven" if writes.txn[number] and writes.outcome[number] != OK else "",
        ops=tuple(
            dict.fromkeys(
                [int(writes.op[number]), *(held.op[-1:].tolist() if holds else []), event]
            )
        ),
        also=((passed_ns - int(writes.start_ns[number])) // 1_000_000,) if is_tombstone else (),
        why=f"record key {key} was {what} by value {value} at offset {writes.offset[number]}, "
        f"which {status} at {at(int(writes.end_ns[number]))}; process {process} had read past it "
        f"by {at(passed_ns)} and received {has} for that key, although no client had begun to "
        "write it again",
    )
