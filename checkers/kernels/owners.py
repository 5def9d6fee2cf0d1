"""Partition ownership: a generation has one owner per partition, and no former owner commits.

A member that was paused or disconnected does not know that it was replaced, and may continue to
read. That is not a violation. A violation (``double-owner``) is a commit of such a member that is
accepted, or one generation that assigns a partition to two members. A static member that rejoins
with the same ``group.instance.id`` counts as the same member. A group without members and without
committed offsets is deleted, and the next group with the same name starts again with generation 1,
so the same generation number can occur twice. Generations are compared only where the history shows
that the group was not deleted in between.

While a member owns a partition, the group's committed offset for it must not be deleted
(``subscribed-deletion``).
"""

from collections.abc import Iterable

import numpy as np

from checkers.kernels.commits import Register, committed, registers
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, UNKNOWN, Bools, groups
from checkers.kernels.steps import ASSIGNED, COMMIT, FETCH, LOST, REVOKED, Steps


def kernel(log: Log) -> list[Found]:
    """Find ``double-owner`` and ``subscribed-deletion``. A ``double-owner`` without a variant is a
    generation that assigns a partition to two members; with the variant ``commit``, it is a commit
    of a former owner that was accepted."""
    found: list[Found] = []
    for _, register in registers(log):
        lives = _Lives(register)
        found += _in_one_generation(log, register, lives)
        found += _former_owners(log, register, lives)
        found += _deletions(log, register)
    return found


class _Lives:
    """Whether a group can have been deleted, so that generations began again at 1.

    It cannot, while it has an offset or a member. It has an offset after a commit was acknowledged
    or a fetch found one, until offsets are deleted. A member that reports an assignment and then a
    revocation was a member all the time; one that reports a loss may have been removed before.
    """

    def __init__(self, register: Register) -> None:
        steps = register.steps
        shows = np.isin(steps.kind, (COMMIT, FETCH)) & (steps.outcome == OK)
        proofs = steps.where(shows & (steps.offset != UNKNOWN))
        self._shown = proofs.op
        """The events that show an offset, in their order."""
        self._since = np.maximum.accumulate(proofs.invoked) if len(proofs.op) else proofs.invoked
        """For each of them, the latest begin of the operations that have shown one by then."""
        deletions = np.array(register.group.deletions, dtype=np.int64).reshape(-1, 2)
        self._deleting, self._deleted = deletions.T
        self._member_until = _member_until(steps)

    def may_end(self, rows: I64 | list[int], end: I64 | int) -> Bools:
        """Return for assignments whether the group may have ended between them and an event."""
        begin = self._member_until[rows]
        last = np.searchsorted(self._shown, begin, side="right") - 1
        lacks: Bools = last < 0
        if len(self._shown) and len(self._deleting):
            earlier = np.searchsorted(self._deleting, end) - 1
            until = np.where(earlier < 0, UNKNOWN, self._deleted[earlier])
            lacks |= until > self._since[last]
        return lacks & (begin < end)


def _member_until(steps: Steps) -> I64:
    """Return for each assignment the last event at which its process certainly was still a member
    of the same group: the earliest moment of the revocation that follows, or ``since`` if there is
    none."""
    found: I64 = steps.since.copy()
    next_: dict[int, int] = {}
    for row in np.flatnonzero(np.isin(steps.kind, (ASSIGNED, REVOKED, LOST)))[::-1].tolist():
        process = int(steps.process[row])
        later = next_.get(process)
        if later is not None and steps.kind[row] == ASSIGNED and steps.kind[later] == REVOKED:
            found[row] = steps.since[later]
        next_[process] = row
    return found


def _in_one_generation(log: Log, register: Register, lives: _Lives) -> Iterable[Found]:
    steps = register.steps
    given = np.flatnonzero((steps.kind == ASSIGNED) & (steps.generation != UNKNOWN))
    given = given[np.argsort(steps.generation[given], kind="stable")]
    numbers = groups(steps.generation[given])
    for begin, end in zip(*(ends.tolist() for ends in numbers), strict=True):
        pair = _two_owners(register, lives, given[begin:end].tolist())
        if pair is not None:
            generation = int(steps.generation[pair[0]])
            owners = " and ".join(
                f"process {steps.process[row]} by {at(int(steps.end_ns[row]))}" for row in pair
            )
            yield Found(
                anomaly="double-owner",
                key=log.key,
                group=register.group.name,
                generation=generation,
                ops=tuple(steps.op[list(pair)].tolist()),
                why=f"generation {generation} of group {register.group.name} "
                f"assigned {log.key} to {owners}",
            )


def _two_owners(register: Register, lives: _Lives, rows: Iterable[int]) -> tuple[int, int] | None:
    """Return the first two assignments of different members, among the rows of assignments with the
    same generation number; ``None`` if there are none. Assignments before the group may have been
    deleted do not count, because the generation number may have been used again."""
    steps, members = register.steps, register.group.members
    first: dict[object, int] = {}
    for row in rows:
        process, by = int(steps.process[row]), int(steps.op[row])
        if first and lives.may_end([*first.values()], by).all():
            first.clear()
        first.setdefault(members.get(process) or process, row)
        if len(first) > 1:
            a, b = first.values()
            return a, b
    return None


def _former_owners(log: Log, register: Register, lives: _Lives) -> Iterable[Found]:
    """Find accepted commits of a process that no longer owned the partition. Another member had
    been assigned the partition, and the process learned only later that it had lost it."""
    steps = register.steps
    rebalances = np.flatnonzero(np.isin(steps.kind, (ASSIGNED, REVOKED, LOST)))
    by_process = {
        process: rebalances[steps.process[rebalances] == process]
        for process in np.unique(steps.process[rebalances]).tolist()
    }
    accepted = (steps.kind == COMMIT) & (steps.outcome == OK) & ~steps.txn
    for row in np.flatnonzero(accepted).tolist():
        mine = by_process.get(int(steps.process[row]), rebalances[:0])
        known = int(np.searchsorted(steps.op[mine], steps.op[row]))
        if not 0 < known < len(mine) or steps.op[mine[known]] == steps.op[row]:
            continue
        given, next_ = mine[known - 1], mine[known]
        if steps.kind[given] != ASSIGNED or steps.kind[next_] == ASSIGNED:
            continue
        later = mine[known:]
        if ((steps.kind[later] == ASSIGNED) & (steps.since[later] < steps.op[row])).any():
            continue  # it may have been assigned the partition again before it committed
        others = rebalances[_replaces(register, lives, rebalances, int(given), row)]
        if len(others):
            yield _accepted(log, register, (int(given), int(others[-1]), row))


def _replaces(register: Register, lives: _Lives, rows: I64, given: int, commit: int) -> Bools:
    """Return which of the rebalances assigned the partition to another member, after the assignment
    ``given`` to this member and before its commit was invoked."""
    steps, members = register.steps, register.group.members
    process = int(steps.process[given])
    instance = members.get(process)
    same = [p for p, of in members.items() if of is not None and of == instance]
    generation = steps.generation[rows]
    known = (generation != UNKNOWN) & (steps.generation[given] != UNKNOWN)
    known &= ~lives.may_end(np.full_like(rows, given), steps.op[rows])
    known &= ~lives.may_end(rows, np.full_like(rows, steps.op[given]))
    later = np.where(
        known, generation > steps.generation[given], steps.since[rows] > steps.op[given]
    )
    replaces: Bools = (
        (steps.kind[rows] == ASSIGNED)
        & ~np.isin(steps.process[rows], [process, *same])
        & (steps.op[rows] < steps.invoked[commit])
        & later
    )
    return replaces


def _accepted(log: Log, register: Register, rows: tuple[int, int, int]) -> Found:
    steps = register.steps
    given, other, commit = rows
    return Found(
        anomaly="double-owner",
        key=log.key,
        group=register.group.name,
        offset=int(steps.offset[commit]),
        variant="commit",
        ops=tuple(steps.op[list(rows)].tolist()),
        why=f"process {steps.process[given]} was assigned {log.key} by "
        f"{at(int(steps.end_ns[given]))}, process {steps.process[other]} by "
        f"{at(int(steps.end_ns[other]))}; then {committed(register.group, steps, commit)}, and "
        "learned only later that it had lost the partition",
    )


def _deletions(log: Log, register: Register) -> Iterable[Found]:
    """Find deletions of a committed offset that succeeded while a member owned the partition. The
    member was assigned the partition before the deletion, had a commit accepted after it, and lost
    the partition only after that commit."""
    steps = register.steps
    done = (steps.kind == COMMIT) & (steps.outcome == OK) & ~steps.txn
    deletions = np.flatnonzero(done & (steps.offset == UNKNOWN))
    if not len(deletions):
        return
    rebalances = np.isin(steps.kind, (ASSIGNED, REVOKED, LOST))
    for process in register.group.members:
        mine = np.flatnonzero(rebalances & (steps.process == process))
        commits = np.flatnonzero(done & (steps.process == process) & (steps.offset != UNKNOWN))
        for given, next_ in zip(mine[:-1].tolist(), mine[1:].tolist(), strict=True):
            if steps.kind[given] != ASSIGNED:
                continue
            held = commits[steps.op[commits] <= steps.since[next_]]
            inside = deletions[steps.invoked[deletions] > steps.op[given]]
            for deletion in inside.tolist():
                after = held[steps.invoked[held] > steps.op[deletion]]
                if len(after):
                    yield _deleted(log, register, (given, deletion, int(after[0])))


def _deleted(log: Log, register: Register, rows: tuple[int, int, int]) -> Found:
    steps = register.steps
    given, deletion, commit = rows
    return Found(
        anomaly="subscribed-deletion",
        key=log.key,
        group=register.group.name,
        offset=int(steps.offset[commit]),
        ops=tuple(steps.op[list(rows)].tolist()),
        why=f"process {steps.process[given]} was assigned {log.key} by "
        f"{at(int(steps.end_ns[given]))}; then {committed(register.group, steps, deletion)}; "
        f"then {committed(register.group, steps, commit)}, and learned only later that it had "
        "lost the partition",
    )
