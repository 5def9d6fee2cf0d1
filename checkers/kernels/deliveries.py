"""Compares what a group's members received with what they committed and where they began.

A commit says that everything before it was processed, so a commit beyond what any member received
skips records for good (``commit-ahead``). A member begins where the last commit says: at an earlier
place it receives again what was processed (``resume-overlap``), at a later one it leaves something
out (``resume-gap``). Where nothing is committed, it begins at the start of the log, unless its
client is configured to begin at the end (variant ``start``). Places are compared by the records
that are certainly there, because a log has holes. Once a poll has ended badly, not all that it
delivered is known.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from checkers.kernels.commits import Register, committed, registers
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, UNKNOWN, Polls
from checkers.kernels.steps import ASSIGNED, COMMIT, FOREVER, LOST, REVOKED, START


def kernel(log: Log) -> list[Found]:
    """Find ``commit-ahead``, ``resume-overlap`` and ``resume-gap``."""
    return [
        f
        for _, register in registers(log)
        if register.group.members
        for f in _Deliveries(log, register).found()
    ]


class _Expected(NamedTuple):
    """The range of offsets, from ``low`` to ``high``, in which a member has to begin."""

    low: int
    high: int
    story: str
    ops: tuple[int, ...] = ()
    variant: str = ""
    """``start`` if possibly nothing was committed."""


class _Deliveries:
    def __init__(self, log: Log, register: Register) -> None:
        self._log, self._register = log, register
        self._steps = register.steps
        members = list(register.group.members)
        polls = log.polls.where(log.polls.offset != UNKNOWN)
        self._polls: Polls = polls.where(np.isin(polls.process, members))

    def found(self) -> Iterable[Found]:
        yield from self._ahead()
        for row in np.flatnonzero(self._steps.kind == ASSIGNED).tolist():
            yield from self._resumed(row)

    @cached_property
    def _reach(self) -> tuple[I64, I64]:
        """How far the group had come, by event: past what it received, or at a place that a member
        was assigned or committed."""
        steps = self._steps
        stated = steps.where(np.isin(steps.kind, (ASSIGNED, COMMIT)) & (steps.offset != UNKNOWN))
        op = np.concatenate((self._polls.op, stated.op))
        place = np.concatenate((self._polls.offset + 1, stated.offset))
        order = np.argsort(op, kind="stable")
        return op[order], place[order]

    def _skipped(self, begin: int, end: int) -> int:
        """Count the records between two places that are certainly there."""
        firm = self._log.firm
        return int(np.searchsorted(firm, end) - np.searchsorted(firm, begin))

    def _ahead(self) -> Iterable[Found]:
        """Find commits of members beyond what the group had received by then."""
        steps = self._steps
        op, place = self._reach
        reach = np.maximum.accumulate(place)
        given = np.maximum.accumulate(self._polls.offset + 1)
        holds: dict[int, int] = {}  # by process: until when all deliveries are known
        for row in range(len(steps.op)):
            process, kind = int(steps.process[row]), int(steps.kind[row])
            if kind == ASSIGNED:
                holds[process] = int(steps.until[row])
            if kind != COMMIT or steps.outcome[row] != OK or process not in holds:
                continue
            if holds[process] <= steps.op[row]:
                continue
            offset = int(steps.offset[row])
            # what a member received in the same operation counts, its own commits there do not
            count = int(np.searchsorted(self._polls.op, steps.op[row], side="right"))
            before = int(np.searchsorted(op, steps.invoked[row]))
            if not count and not before:
                continue
            known = int(max(given[:count][-1:].max(initial=0), reach[:before][-1:].max(initial=0)))
            if offset > known and (count := self._skipped(known, offset)):
                yield self._found(
                    "commit-ahead",
                    offset,
                    (int(steps.op[row]),),
                    f"{committed(self._register.group, steps, row)}, but its members had "
                    f"received no record from offset {known} on: {_records(count)} between "
                    "were skipped",
                )

    def _resumed(self, row: int) -> Iterable[Found]:
        """Check where a member began after it was assigned the partition."""
        steps, register = self._steps, self._register
        position = int(steps.offset[row])
        if register.group.commits_alone:
            yield from self._ahead_alone(row)
        expected = None if register.group.commits_alone else self._expected(row)
        ops: tuple[int, ...] = (int(steps.op[row]),)
        assignment = (
            f"process {steps.process[row]} was assigned {self._log.key} by "
            f"{at(int(steps.end_ns[row]))}"
        )
        if position != UNKNOWN and expected is not None:
            story = f"{expected.story}; {assignment}, and was to begin at {position}"
            yield from self._compared(expected, position, (*expected.ops, *ops), story)
        first = self._first(row)
        if first is None:
            return
        offset, op, end_ns = first
        if position != UNKNOWN:
            expected = _Expected(
                position, position, f"{assignment}, and was to begin at {position}"
            )
        elif expected is not None:
            expected = expected._replace(story=f"{expected.story}; {assignment}")
        else:
            return
        what = f"{expected.story}; the first record that it read, by {at(end_ns)}, was at offset"
        yield from self._compared(expected, offset, (*expected.ops, *ops, op), f"{what} {offset}")

    def _expected(self, row: int) -> "_Expected | None":
        """Return where a member has to begin; ``None`` where that is unknown."""
        steps, register = self._steps, self._register
        choices = register.choices(
            int(steps.since[row]), int(steps.op[row]), int(steps.generation[row])
        )
        if choices.is_open or self._log.is_deleted:
            return None
        low = int(choices.offsets.min(initial=FOREVER))
        high = int(choices.offsets.max(initial=UNKNOWN))
        if not choices.explains(UNKNOWN):
            high = max(high, self._start(row))  # what is before the start is deleted
            ops = (int(register.commits.op[choices.newest]),)
            return _Expected(low, high, register.described(choices.newest), ops)
        if not register.group.begins_at_start:
            return None
        story = f"it is possible that no offset was committed for group {register.group.name}"
        return _Expected(UNKNOWN, max(high, self._start(row)), story, variant="start")

    def _start(self, row: int) -> int:
        """Return the highest offset at which the log may have begun at an assignment.

        It follows from the deletions that were requested until then, or where there were none, from
        the log starts that leaders reported.
        """
        log, op = self._log, int(self._steps.op[row])
        starts = log.steps.where(log.steps.kind == START)
        earlier = int(starts.offset[starts.invoked < op].max(initial=0))
        if len(log.deletions.op):
            asked = log.deletions.offset[log.deletions.invoked < op]
            return max(earlier, int(asked.max(initial=0)), FOREVER if (asked < 0).any() else 0)
        return max(earlier, int(starts.offset[starts.invoked >= op][:1].max(initial=0)))

    def _compared(
        self, expected: "_Expected", place: int, ops: tuple[int, ...], story: str
    ) -> Iterable[Found]:
        """Compare where a member begins, or the first record that it receives, with what is
        expected."""
        if place < expected.low:
            yield self._found("resume-overlap", place, ops, story)
        elif place > expected.high and (count := self._skipped(expected.high, place)):
            why = f"{story}: {_records(count)} between were skipped"
            yield self._found("resume-gap", place, ops, why, variant=expected.variant)

    def _ahead_alone(self, row: int) -> Iterable[Found]:
        """Find a member that begins beyond what any member received: a client has committed
        automatically."""
        steps = self._steps
        op, place = self._reach
        before = place[: np.searchsorted(op, steps.op[row])]
        position = int(steps.offset[row])
        known = int(before.max(initial=UNKNOWN))
        if len(before) and position > known and (count := self._skipped(known, position)):
            yield self._found(
                "commit-ahead",
                position,
                (int(steps.op[row]),),
                f"process {steps.process[row]} began at offset {position} by "
                f"{at(int(steps.end_ns[row]))}, but no member of group "
                f"{self._register.group.name} had received a record from offset {known} on: "
                f"{_records(count)} between were skipped",
                variant="alone",
            )

    def _first(self, row: int) -> tuple[int, int, int] | None:
        """Return offset, event and time of the first record that a member certainly received after
        it was assigned the partition."""
        steps, polls = self._steps, self._polls
        process, op = int(steps.process[row]), int(steps.op[row])
        mine = (steps.process == process) & np.isin(steps.kind, (ASSIGNED, REVOKED, LOST))
        later = steps.op[np.flatnonzero(mine & (np.arange(len(steps.op)) > row))]
        until = min(int(later.min(initial=FOREVER)), int(steps.until[row]))
        rows = np.flatnonzero((polls.process == process) & (polls.op >= op) & (polls.op < until))
        if not len(rows):
            return None
        first = int(rows[0])
        return int(polls.offset[first]), int(polls.op[first]), int(polls.end_ns[first])

    def _found(
        self, anomaly: str, offset: int, ops: tuple[int, ...], why: str, variant: str = ""
    ) -> Found:
        return Found(
            anomaly=anomaly,
            key=self._log.key,
            group=self._register.group.name,
            offset=offset,
            variant=variant,
            ops=tuple(dict.fromkeys(ops)),
            why=why,
        )


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"
