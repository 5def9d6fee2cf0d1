"""Committed offsets: a register for each group and key, written by commits, read by fetches.

A fetch finds what the last commit has put there. Which one is last is not always known: commits
overlap each other and the fetch, some are in doubt, and those of a transaction take effect after it
was acknowledged. So a fetch is wrong only if no order of the commits that agrees with what followed
what explains it: it finds an offset that was certainly overwritten before, or that nobody wrote.

What is committed beside an offset, its metadata, belongs to it: a fetch that finds the one finds
the other, whichever commit was last.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from checkers.kernels.rows import (
    ANY,
    ASSIGNED,
    COMMIT,
    FAIL,
    FETCH,
    FOREVER,
    I64,
    INFO,
    NO_METADATA,
    OK,
    SETTLED_NS,
    UNKNOWN,
    Bools,
    Found,
    Group,
    Log,
    Steps,
    at,
)


class Choices(NamedTuple):
    """What a reader may have found."""

    offsets: I64
    """Of the commits that may be the last one."""
    newest: int
    """The last commit that it certainly came after, by its row in :attr:`Register.commits`;
    UNKNOWN if there is none, so that it may have found nothing."""

    @property
    def is_open(self) -> bool:
        """May it have found anything?"""
        return bool((self.offsets == ANY).any())


class Register:
    """The commits of a group to a key."""

    def __init__(self, log: Log, group: int) -> None:
        steps = log.steps.where(log.steps.group == group)
        self.group = log.groups[group]
        self.steps = steps
        self.commits = commits = steps.where((steps.kind == COMMIT) & (steps.outcome != FAIL))
        self.failed = steps.where((steps.kind == COMMIT) & (steps.outcome == FAIL))
        self.end = _ends(commits, steps)
        """The event from which on each has taken effect, or never will."""
        certain = (commits.outcome == OK) | commits.proven | _were_found(commits, steps, self.end)
        certain &= self.end >= commits.invoked
        closed = np.flatnonzero(self.end < FOREVER)
        self._closed = closed[np.argsort(self.end[closed], kind="stable")]
        self._open = np.flatnonzero(self.end == FOREVER)
        self._closed_end = self.end[self._closed]
        begun = commits.invoked[self._closed]
        self._begun_later = np.minimum.accumulate(begun[::-1])[::-1]
        self._known = _Latest(self._closed[certain[self._closed]], self.end, commits.invoked)
        joined = np.flatnonzero(certain & (commits.after != UNKNOWN))
        order = joined[np.argsort(commits.after[joined], kind="stable")]
        self._joined = _Latest(order, commits.after, commits.invoked)

    def choices(self, begin: int, end: int, generation: int = UNKNOWN) -> Choices:
        """Of who reads at some time between two events, perhaps as a member of this generation."""
        commits = self.commits
        newest = self._known.before(begin)
        if generation != UNKNOWN:
            known = self._joined.before(generation + 1)
            if known != UNKNOWN and (
                newest == UNKNOWN or commits.invoked[known] > commits.invoked[newest]
            ):
                newest = known
        from_ = UNKNOWN if newest == UNKNOWN else int(commits.invoked[newest])
        first = np.searchsorted(self._closed_end, from_)
        last = np.searchsorted(self._begun_later, end)
        rows = np.concatenate((self._closed[first:last], self._open))
        return Choices(commits.offset[rows[commits.invoked[rows] < end]], newest)

    def told(self, row: int) -> str:
        """A commit in words."""
        return committed(self.group, self.commits, row)


def committed(group: Group, steps: Steps, row: int) -> str:
    """A commit in words."""
    how = " in a transaction" if steps.txn[row] else ""
    if steps.offset[row] == UNKNOWN:
        return (
            f"process {steps.process[row]} deleted the offset of group {group.name} at"
            f" {at(int(steps.end_ns[row]))}"
        )
    return (
        f"process {steps.process[row]} committed offset {steps.offset[row]} for group"
        f" {group.name}{how} at {at(int(steps.end_ns[row]))}"
    )


class _Latest:
    """Of rows in the order of some column: the one that began last among those before a value."""

    def __init__(self, rows: I64, column: I64, begun: I64) -> None:
        self._place = column[rows]
        best = np.maximum.accumulate(begun[rows]) if len(rows) else rows
        is_best = begun[rows] == best
        self._rows = rows[np.maximum.accumulate(np.where(is_best, np.arange(len(rows)), 0))]

    def before(self, value: int) -> int:
        """UNKNOWN if there is none."""
        count = int(np.searchsorted(self._place, value))
        return int(self._rows[count - 1]) if count else UNKNOWN


def _ends(commits: Steps, steps: Steps) -> I64:
    """A member's commit in doubt is refused once somebody else was given its key; but its record
    may be in the log by then, where the next coordinator finds it, though this one did not wait for
    it. So it is over with the next commit that was acknowledged, whose record lies behind it.
    A transaction has ended everywhere once its producer has committed the next one: if a process
    has several, then each is of a key. What was overwritten before it could count may count all the
    same where what has overwritten it is deleted."""
    end = commits.until.copy()
    if (commits.offset == UNKNOWN).any():
        end[end < commits.invoked] = FOREVER
    next_: dict[int, int] = {}
    for row in reversed(np.flatnonzero(commits.txn).tolist()):
        process = int(commits.process[row])
        end[row] = min(int(end[row]), next_.get(process, FOREVER))
        if commits.outcome[row] == OK:
            next_[process] = int(commits.op[row])
    given = steps.where(steps.kind == ASSIGNED)
    members = set(given.process.tolist())
    firm = (commits.outcome == OK) & ~commits.txn
    for row in np.flatnonzero((commits.outcome == INFO) & ~commits.txn).tolist():
        process, op = int(commits.process[row]), int(commits.op[row])
        if process in members:
            taken = given.op[(given.since > op) & (given.process != process)].min(initial=FOREVER)
            behind = commits.invoked[firm & (commits.invoked > taken)]
            end[row] = (behind - 1).min(initial=end[row])
    return end


def _were_found(commits: Steps, steps: Steps, end: I64) -> Bools:
    """Commits in doubt that somebody found, and that nobody else made: they did happen, by then.
    Their ``end`` is set. That nothing was found tells of no deletion."""
    found = np.zeros(len(commits.op), dtype=np.bool_)
    fetches = steps.where(steps.kind == FETCH)
    count = Counter(commits.offset.tolist())
    told = (commits.offset != ANY) & (commits.offset != UNKNOWN)
    for row in np.flatnonzero((commits.outcome == INFO) & told).tolist():
        seen = (fetches.offset == commits.offset[row]) & (fetches.op > commits.invoked[row])
        if count[int(commits.offset[row])] == 1 and ANY not in count and seen.any():
            found[row] = True
            end[row] = min(int(end[row]), int(fetches.op[seen].min()))
    return found


def registers(log: Log) -> Iterable[tuple[int, Register]]:
    """Of each group that did something with this key."""
    for group in np.unique(log.steps.group[log.steps.group != UNKNOWN]).tolist():
        yield group, Register(log, group)


def kernel(log: Log) -> list[Found]:
    """``lost-commit``: nothing is committed, though something was. ``commit-regression``: what was
    committed before is. ``commit-ahead``, of variant ``nobody``: what nobody has committed is.

    ``offset`` is what was found, or what is missing. One finding for each commit that is
    contradicted; further fetches are folded into it. The variant ``stale`` may come from a
    coordinator that was one: nobody who answers from memory can know that he is no longer asked.
    What he remembers was right in his time, which was not over long before he was misled.

    ``commit-mismatch``: an offset is found with other metadata than it was committed with, by
    whomever.
    """
    found: list[Found] = []
    for _, register in registers(log):
        found += [*_misread(log, register), *_mismatched(log, register)]
    return found


def _misread(log: Log, register: Register) -> Iterable[Found]:
    found: dict[tuple[str, str, int], Found] = {}
    fetches = register.steps.where(register.steps.kind == FETCH)
    for row in range(len(fetches.op)):
        fetch = _Fetch(fetches, row)
        choices = register.choices(fetch.invoked, fetch.op)
        if choices.is_open or fetch.offset in choices.offsets:
            continue
        if fetch.offset == UNKNOWN:
            if choices.newest == UNKNOWN:
                continue
        elif register.group.commits_alone:
            continue
        one = _contradiction(log, register, fetch, choices)
        place = (one.anomaly, one.variant, choices.newest)
        if first := found.get(place):
            found[place] = msgspec.structs.replace(first, folded=first.folded + 1)
        else:
            found[place] = one
    return found.values()


def _mismatched(log: Log, register: Register) -> Iterable[Found]:
    """One for each offset."""
    commits, found = register.commits, dict[int, Found]()
    fetches = register.steps.where(register.steps.kind == FETCH)
    says_any = (commits.metadata != NO_METADATA).any() or (fetches.metadata != NO_METADATA).any()
    if register.group.commits_alone or not says_any:
        return []
    for row in np.flatnonzero(fetches.offset != UNKNOWN).tolist():
        offset, metadata = int(fetches.offset[row]), int(fetches.metadata[row])
        begun = commits.invoked < fetches.op[row]
        if (begun & (commits.offset == ANY)).any():
            continue
        same = np.flatnonzero(begun & (commits.offset == offset))
        if not len(same) or metadata in commits.metadata[same]:
            continue
        if first := found.get(offset):
            found[offset] = msgspec.structs.replace(first, folded=first.folded + 1)
            continue
        last = int(same[-1])
        found[offset] = Found(
            anomaly="commit-mismatch",
            key=log.key,
            group=register.group.name,
            offset=offset,
            ops=(int(commits.op[last]), int(fetches.op[row])),
            why=f"{register.told(last)} with {_beside(int(commits.metadata[last]))};"
            f" process {fetches.process[row]} asked what is committed until"
            f" {at(int(fetches.end_ns[row]))}, and it was that offset with {_beside(metadata)}",
        )
    return found.values()


def _beside(metadata: int) -> str:
    return "no metadata" if metadata == NO_METADATA else f"metadata {metadata}"


class _Fetch:
    def __init__(self, fetches: Steps, row: int) -> None:
        self.offset, self.op = int(fetches.offset[row]), int(fetches.op[row])
        self.invoked, self.process = int(fetches.invoked[row]), int(fetches.process[row])
        self.start_ns, self.end_ns = int(fetches.start_ns[row]), int(fetches.end_ns[row])


def _may_be_remembered(log: Log, register: Register, fetch: _Fetch) -> bool:
    """Was it right at some time since somebody may have ceased to hear who is the coordinator?"""
    since_ns = _misled_since(log, fetch.start_ns, fetch.end_ns)
    if since_ns is None:
        return False
    before = register.steps.end_ns < since_ns - SETTLED_NS
    begin = int(register.steps.op[before].max(initial=UNKNOWN)) + 1
    choices = register.choices(begin, fetch.op)
    if fetch.offset == UNKNOWN and choices.newest == UNKNOWN:
        return True
    return choices.is_open or fetch.offset in choices.offsets


def _misled_since(log: Log, begin_ns: int, end_ns: int) -> int | None:
    """When the first of those faults began that have left nobody time to hear who leads until
    then; ``None`` if everybody has heard."""
    since_ns: int | None = None
    for band in sorted(log.faults, key=lambda band: band.from_ns, reverse=True):
        until_ns = begin_ns if since_ns is None else since_ns
        is_over = band.to_ns is not None and band.to_ns + SETTLED_NS < until_ns
        if band.misleads and band.from_ns <= end_ns and not is_over:
            since_ns = band.from_ns
    return since_ns


def _contradiction(log: Log, register: Register, fetch: _Fetch, choices: Choices) -> Found:
    commits, newest = register.commits, choices.newest
    stale = "stale" if _may_be_remembered(log, register, fetch) else ""
    begun = commits.invoked < fetch.op
    same = np.flatnonzero(begun & (commits.offset == fetch.offset))
    ops, story = [], ""
    if newest != UNKNOWN:
        ops.append(int(commits.op[newest]))
        story = f"{register.told(newest)}; "
    asked = f"{story}process {fetch.process} asked what is committed until {at(fetch.end_ns)}"
    expected = None if newest == UNKNOWN else int(commits.offset[newest])
    if fetch.offset == UNKNOWN:
        anomaly, variant, why = "lost-commit", stale, f"{asked}, and it was nothing"
    elif len(same):
        earlier = int(same[-1])
        anomaly, variant = "commit-regression", stale
        why = f"{asked}, and it was offset {fetch.offset}, from before: {register.told(earlier)}"
        ops.append(int(commits.op[earlier]))
    else:
        variant = "nobody"
        is_lower = expected is not None and fetch.offset < expected
        anomaly = "commit-regression" if is_lower else "commit-ahead"
        failed = np.flatnonzero(register.failed.offset == fetch.offset)
        why = f"{asked}, and it was offset {fetch.offset}, which nobody had committed"
        if len(failed):
            why += f": that commit of process {register.failed.process[failed[0]]} failed"
            ops.append(int(register.failed.op[failed[0]]))
    return Found(
        anomaly=anomaly,
        key=log.key,
        group=register.group.name,
        offset=expected if fetch.offset == UNKNOWN else fetch.offset,
        variant=variant,
        ops=(*dict.fromkeys(ops), fetch.op),
        why=why,
    )
