"""Committed offsets: a register for each group and partition, written by commits, read by fetches.

A fetch finds what the last commit wrote. Which one is last is not always known: commits overlap
each other and the fetch, some are in doubt, and those of a transaction take effect after it was
acknowledged. So a fetch is wrong only if no order of the commits that agrees with real time
explains it: it finds an offset that was certainly overwritten before, or that no client wrote.

The metadata of a commit belongs to its offset: a fetch that finds the offset finds that metadata,
whichever commit was last.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from checkers.kernels import former
from checkers.kernels.former import seconds
from checkers.kernels.found import Found, at
from checkers.kernels.lives import Lives
from checkers.kernels.log import Log
from checkers.kernels.rows import FAIL, I64, INFO, OK, UNKNOWN, Bools
from checkers.kernels.steps import ANY, ASSIGNED, COMMIT, FETCH, FOREVER, NO_METADATA, Group, Steps


class Choices(NamedTuple):
    """What a fetch may have found."""

    offsets: I64
    """The offsets of the commits that may be the last one."""
    newest: int
    """The last commit that certainly came before the fetch, by its row in :attr:`Register.commits`;
    UNKNOWN if there is none, so that the fetch may have found no offset."""

    @property
    def is_open(self) -> bool:
        """Whether the fetch may have found any offset."""
        return bool((self.offsets == ANY).any())

    def explains(self, offset: int) -> bool:
        """Return whether the fetch may have found this offset. A commit of an unknown offset
        explains any offset, but not that nothing is committed."""
        if offset == UNKNOWN:
            return self.newest == UNKNOWN or UNKNOWN in self.offsets
        return self.is_open or offset in self.offsets


class Register:
    """The commits of a group to a partition."""

    def __init__(self, log: Log, group: int, doubted: Collection[int] = ()) -> None:
        """``doubted``: rows of :attr:`commits` that may have no effect, whatever was answered."""
        steps = log.steps.where(log.steps.group == group)
        self.number, self.group = group, log.groups[group]
        self.steps = steps
        self.lives = Lives(steps, log.is_deleted)
        commits = steps.where((steps.kind == COMMIT) & (steps.outcome != FAIL))
        if self.group.commits_alone:
            commits = _with_untold(commits, steps)
        self.commits = commits
        self.failed = steps.where((steps.kind == COMMIT) & (steps.outcome == FAIL))
        self.end = _ends(commits, steps)
        """The event from which on each commit has taken effect, or never will."""
        certain = (commits.outcome == OK) | commits.proven | _were_found(commits, steps, self.end)
        certain &= self.end >= commits.invoked
        certain[list(doubted)] = False
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

    def choices(
        self, begin: int, end: int, generation: int = UNKNOWN, known: int = UNKNOWN
    ) -> Choices:
        """Return what a fetch may find at some time between two events.

        It may be the fetch of a member of this ``generation``; ``known`` is the row of a commit
        that the coordinator certainly knows.
        """
        commits = self.commits
        newest = self._known.before(begin)
        if known != UNKNOWN and (
            newest == UNKNOWN or commits.invoked[known] > commits.invoked[newest]
        ):
            newest = known
        if generation != UNKNOWN:
            known = self._joined.before(generation + 1)
            begun = known != UNKNOWN and commits.invoked[known] < end
            if begun and self.lives.may_end(begin, max(end, int(commits.op[known]))):
                begun = False  # it may be a generation of an earlier group of this name
            if begun and (newest == UNKNOWN or commits.invoked[known] > commits.invoked[newest]):
                newest = known
        from_ = UNKNOWN if newest == UNKNOWN else int(commits.invoked[newest])
        first = np.searchsorted(self._closed_end, from_)
        last = np.searchsorted(self._begun_later, end)
        rows = np.concatenate((self._closed[first:last], self._open))
        return Choices(commits.offset[rows[commits.invoked[rows] < end]], newest)

    def described(self, row: int) -> str:
        """Describe one of the commits."""
        return committed(self.group, self.commits, row)


def committed(group: Group, steps: Steps, row: int) -> str:
    """Describe a commit."""
    how = " in a transaction" if steps.txn[row] else ""
    if steps.offset[row] == ANY:
        return (
            f"process {steps.process[row]} found an offset of group {group.name} committed by"
            f" {at(int(steps.end_ns[row]))}"
        )
    if steps.offset[row] == UNKNOWN:
        return (
            f"process {steps.process[row]} deleted the offset of group {group.name} at"
            f" {at(int(steps.end_ns[row]))}"
        )
    return (
        f"process {steps.process[row]} committed offset {steps.offset[row]} for group"
        f" {group.name}{how} at {at(int(steps.end_ns[row]))}"
    )


def _with_untold(commits: Steps, steps: Steps) -> Steps:
    """Add the commits of clients that commit automatically: for each offset that a fetch found,
    there was a commit before it."""
    found = steps.where((steps.kind == FETCH) & (steps.offset != UNKNOWN))
    of_clients = found._replace(
        kind=np.full_like(found.kind, COMMIT),
        offset=np.full_like(found.offset, ANY),
        invoked=np.zeros_like(found.invoked),
    )
    both = {
        name: np.concatenate((getattr(commits, name), getattr(of_clients, name)))
        for name in Steps._fields
    }
    return Steps(**both)


class _Latest:
    """Finds the row that began last among those whose column is below a value."""

    def __init__(self, rows: I64, column: I64, begun: I64) -> None:
        self._place = column[rows]
        best = np.maximum.accumulate(begun[rows]) if len(rows) else rows
        is_best = begun[rows] == best
        self._rows = rows[np.maximum.accumulate(np.where(is_best, np.arange(len(rows)), 0))]

    def before(self, value: int) -> int:
        """Return the row that began last before a value; UNKNOWN if there is none."""
        count = int(np.searchsorted(self._place, value))
        return int(self._rows[count - 1]) if count else UNKNOWN


def _ends(commits: Steps, steps: Steps) -> I64:
    """Return the event from which on each commit has taken effect, or never will.

    A coordinator rejects a member's commit in doubt once it has assigned the partition to another
    member. But the record of that commit may be in the log by then, where the next coordinator
    finds it, though this one did not wait for it. So the commit is settled by the next one that was
    acknowledged, whose record is behind it. A transaction has ended everywhere once its producer
    has committed the next one; a process with several producers has one for each partition. A
    commit that was overwritten before it could take effect may take effect after all where the
    commit that overwrote it is deleted.
    """
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
    """Return which commits a fetch has found that no other operation can have made.

    They have taken effect by then, even if they are in doubt or of a transaction. Their ``end`` is
    set. A fetch that found nothing proves no deletion.
    """
    found = np.zeros(len(commits.op), dtype=np.bool_)
    fetches = steps.where(steps.kind == FETCH)
    count = Counter(commits.offset.tolist())
    is_stated = (commits.offset != ANY) & (commits.offset != UNKNOWN)
    open_ = (commits.outcome == INFO) | commits.txn
    for row in np.flatnonzero(open_ & is_stated).tolist():
        later = (fetches.offset == commits.offset[row]) & (fetches.op > commits.invoked[row])
        if count[int(commits.offset[row])] == 1 and ANY not in count and later.any():
            found[row] = True
            end[row] = min(int(end[row]), int(fetches.op[later].min()))
    return found


def registers(log: Log) -> Iterable[tuple[int, Register]]:
    """Yield the register of each group that used this partition, with the group's number."""
    for group in np.unique(log.steps.group[log.steps.group != UNKNOWN]).tolist():
        yield group, Register(log, group)


def kernel(log: Log) -> list[Found]:
    """Find ``lost-commit``, ``commit-regression``, ``commit-ahead`` and ``commit-mismatch``.

    - ``lost-commit``: a fetch finds nothing, though an offset is committed.
    - ``commit-regression``: a fetch finds what was committed earlier.
    - ``commit-ahead``, of variant ``nobody``: a fetch finds what no client has committed; an offset
      below the last commit is a ``commit-regression`` of that variant.
    - ``commit-mismatch``: a fetch finds an offset with other metadata than any commit of it had.

    ``offset`` is what was found, or what is missing. There is one finding for each commit that is
    contradicted; further fetches are folded into it. The variant ``stale`` may be the answer of a
    former coordinator (:mod:`checkers.kernels.former`), or follow a deletion that one has
    acknowledged: ``also`` holds for how many seconds without a fault it must have missed its
    successor. Such a coordinator answers from a state that was right in its time, so one answer of
    it does not contain a later commit of another partition.
    """
    found: list[Found] = []
    for _, register in registers(log):
        found += [*_misread(log, register), *_mismatched(log, register)]
    return found


def unexplained(log: Log) -> list[tuple[int, int]]:
    """Return the operation and the process of each fetch that no order of the commits explains."""
    return [
        (fetch.op, fetch.process)
        for _, register in registers(log)
        for fetch, _ in _unexplained(register)
    ]


def _unexplained(register: Register) -> Iterable[tuple["_Fetch", Choices]]:
    fetches = register.steps.where(register.steps.kind == FETCH)
    for row in range(len(fetches.op)):
        fetch = _Fetch(fetches, row)
        choices = register.choices(fetch.invoked, fetch.op)
        if choices.explains(fetch.offset):
            continue
        if not register.group.commits_alone or fetch.offset == UNKNOWN:
            yield fetch, choices


def _misread(log: Log, register: Register) -> Iterable[Found]:
    found: dict[tuple[str, str, int], Found] = {}
    for fetch, choices in _unexplained(register):
        one = _contradiction(log, register, fetch, choices)
        if one.variant != "nobody":
            idle_ns = _remembered(log, register, fetch)
            if idle_ns is None:
                idle_ns = _undeleted(log, register, fetch, choices)
            if idle_ns is not None:
                one = replace(one, variant="stale", also=(seconds(idle_ns),))
        place = (one.anomaly, one.variant, choices.newest)
        found[place] = _worst(found.get(place), one)
    return found.values()


def _worst(first: Found | None, other: Found) -> Found:
    """Return the finding that is harder to explain, with the other folded into it."""
    if first is None:
        return other
    worst = other if other.also > first.also else first
    return replace(worst, folded=first.folded + 1)


def _mismatched(log: Log, register: Register) -> Iterable[Found]:
    """Return one ``commit-mismatch`` for each offset."""
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
            found[offset] = replace(first, folded=first.folded + 1)
            continue
        last = int(same[-1])
        found[offset] = Found(
            anomaly="commit-mismatch",
            key=log.key,
            group=register.group.name,
            offset=offset,
            ops=(int(commits.op[last]), int(fetches.op[row])),
            why=f"{register.described(last)} with {_beside(int(commits.metadata[last]))}; "
            f"process {fetches.process[row]} fetched the committed offset until "
            f"{at(int(fetches.end_ns[row]))}, and received that offset with {_beside(metadata)}",
        )
    return found.values()


def _beside(metadata: int) -> str:
    return "no metadata" if metadata == NO_METADATA else f"metadata {metadata}"


class _Fetch:
    def __init__(self, fetches: Steps, row: int) -> None:
        self.offset, self.op = int(fetches.offset[row]), int(fetches.op[row])
        self.invoked, self.process = int(fetches.invoked[row]), int(fetches.process[row])
        self.start_ns, self.end_ns = int(fetches.start_ns[row]), int(fetches.end_ns[row])
        self.knows = int(fetches.knows[row])
        self.knew, self.knew_ns = int(fetches.knew[row]), int(fetches.knew_ns[row])


def _remembered(log: Log, register: Register, fetch: _Fetch) -> int | None:
    """Return for how long, while no fault was active, a former coordinator must have missed its
    successor to give this answer (:func:`~checkers.kernels.former.idle_ns`); ``None`` if faults do
    not explain it."""
    steps = register.steps
    last = _last_known(register, fetch)

    def explains(spell: former.Spell) -> bool:
        before = int(steps.op[steps.end_ns < spell.from_ns].max(initial=UNKNOWN))
        behind = int(steps.invoked[steps.start_ns > spell.to_ns].min(initial=FOREVER))
        begin, known = max(before + 1, fetch.knows), UNKNOWN
        if not _is_moved(log, fetch.knew_ns, fetch.end_ns, spell.broker):
            begin = max(begin, fetch.knew)
        if last is not None and not _is_moved(log, last[1], fetch.end_ns, spell.broker):
            known = last[0]
        choices = register.choices(begin, min(behind, fetch.op), known=known)
        return choices.explains(fetch.offset)

    intervals = former.coordinators_of(log.faults)
    return former.idle_ns(intervals, fetch.start_ns, fetch.end_ns, explains)


def _undeleted(log: Log, register: Register, fetch: _Fetch, choices: Choices) -> int | None:
    """Return the same time for a former coordinator that has acknowledged a deletion.

    The deletion has no effect at its successor: the former coordinator has no offset to delete, or
    writes the tombstone to a log that will be truncated (Kafka does not wait for its replication).
    ``None`` if the fetch is wrong without such deletions, too.
    """
    intervals = former.coordinators_of(log.faults)
    commits, doubted = register.commits, dict[int, int]()
    while choices.newest != UNKNOWN and commits.offset[choices.newest] == UNKNOWN:
        row = choices.newest
        began_ns, answered_ns = int(commits.start_ns[row]), int(commits.end_ns[row])
        idle_ns = former.idle_ns(intervals, began_ns, answered_ns, lambda spell: True)
        if idle_ns is None or row in doubted:
            return None
        doubted[row] = idle_ns
        without = Register(log, register.number, doubted)
        choices = without.choices(fetch.invoked, fetch.op)
        if choices.explains(fetch.offset):
            return max(doubted.values())
    return None


def _last_known(register: Register, fetch: _Fetch) -> tuple[int, int] | None:
    """Return the last commit of this partition that the process of a fetch made or found before, by
    its row, and when it asked for that; ``None`` if there is none."""
    steps, commits = register.steps, register.commits
    mine = (steps.process == fetch.process) & (steps.op < fetch.invoked)
    made = (steps.kind == COMMIT) & (steps.outcome == OK) & ~steps.txn
    found = (steps.kind == FETCH) & (steps.offset != UNKNOWN)
    last = np.flatnonzero(mine & (made | found))[-1:]
    if not len(last) or (commits.offset == ANY).any():
        return None
    row = int(last[0])
    same = commits.offset == steps.offset[row]
    if made[row]:
        same &= commits.op == steps.op[row]
    rows = np.flatnonzero(same)
    if not len(rows):
        return None
    return int(rows[np.argmin(commits.invoked[rows])]), int(steps.start_ns[row])


def _is_moved(log: Log, from_ns: int, to_ns: int, former_broker: str) -> bool:
    """Return whether a process may have been sent to a former coordinator between two times. It
    stays with the successor that it knows, unless a fault strikes another broker than the former
    one."""
    return any(
        interval.nodes != frozenset({former_broker})
        and interval.from_ns <= to_ns
        and (interval.to_ns is None or interval.to_ns >= from_ns)
        for interval in log.faults
    )


def _contradiction(log: Log, register: Register, fetch: _Fetch, choices: Choices) -> Found:
    commits, newest = register.commits, choices.newest
    begun = commits.invoked < fetch.op
    same = np.flatnonzero(begun & (commits.offset == fetch.offset))
    ops, story = [], ""
    if newest != UNKNOWN:
        ops.append(int(commits.op[newest]))
        story = f"{register.described(newest)}; "
    asked = f"{story}process {fetch.process} fetched the committed offset until {at(fetch.end_ns)}"
    is_known = newest != UNKNOWN and commits.offset[newest] != ANY
    expected = int(commits.offset[newest]) if is_known else None
    if fetch.offset == UNKNOWN:
        anomaly, variant, why = "lost-commit", "", f"{asked}, and there was none"
    elif len(same):
        earlier = int(same[-1])
        anomaly, variant = "commit-regression", ""
        why = (
            f"{asked}, and received offset {fetch.offset}, which is older: "
            f"{register.described(earlier)}"
        )
        ops.append(int(commits.op[earlier]))
    else:
        variant = "nobody"
        is_lower = expected is not None and fetch.offset < expected
        anomaly = "commit-regression" if is_lower else "commit-ahead"
        failed = np.flatnonzero(register.failed.offset == fetch.offset)
        why = f"{asked}, and received offset {fetch.offset}, which no client had committed"
        if len(failed):
            why += f": the commit of it by process {register.failed.process[failed[0]]} failed"
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
