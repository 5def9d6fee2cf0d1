"""Partition ownership: a generation has one owner per partition, and no former owner commits.

A member that was paused or disconnected does not know that it was replaced, and may continue to
read. That is not a violation. A violation (``double-owner``) is a commit of such a member that is
accepted, or one generation that assigns a partition to two members. A static member that rejoins
with the same ``group.instance.id`` counts as the same member. A group without members and without
committed offsets is deleted, and the next group with the same name starts again with generation 1,
so the same generation number can occur twice. Generations are compared only where the history shows
that the group did not end in between (:mod:`checkers.kernels.lives`).

While a member owns a partition, the group's committed offset for it must not be deleted
(``subscribed-deletion``).
"""

from collections.abc import Iterable

import numpy as np

from checkers.kernels.commits import Register, committed, registers
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, UNKNOWN, groups
from checkers.kernels.steps import ASSIGNED, COMMIT, LOST, REVOKED


def kernel(log: Log) -> list[Found]:
    """Find ``double-owner`` and ``subscribed-deletion``. A ``double-owner`` without a variant is a
    generation that assigns a partition to two members; with the variant ``commit``, it is a commit
    of a former owner that was accepted."""
    found: list[Found] = []
    for _, register in registers(log):
        until = _certain_until(register)
        found += _in_one_generation(log, register, until)
        found += _former_owners(log, register, until)
        found += _deletions(log, register)
    return found


def _certain_until(register: Register) -> I64:
    """Return for each assignment the last event until which its group certainly did not end, by
    what its process did: the last commit of its own that was accepted before its next rebalance.

    The coordinator accepts such a commit from a member only. What the process believes shows
    nothing: it may report that a partition is revoked before it asks the coordinator. Without such
    a commit, and for other rows, it is ``since``.
    """
    steps, members = register.steps, register.group.members
    found: I64 = steps.since.copy()
    accepted = (steps.kind == COMMIT) & (steps.outcome == OK) & ~steps.txn
    accepted &= steps.offset != UNKNOWN
    moves = np.isin(steps.kind, (ASSIGNED, REVOKED, LOST))
    if not moves.any():
        return found
    given: dict[int, int] = {}
    for row in np.flatnonzero(accepted | moves).tolist():
        process = int(steps.process[row])
        if moves[row]:
            given.pop(process, None)
            if steps.kind[row] == ASSIGNED and process in members:
                given[process] = row
        elif process in given:
            found[given[process]] = steps.op[row]
    return found


def _in_one_generation(log: Log, register: Register, until: I64) -> Iterable[Found]:
    steps = register.steps
    given = np.flatnonzero((steps.kind == ASSIGNED) & (steps.generation != UNKNOWN))
    given = given[np.argsort(steps.generation[given], kind="stable")]
    numbers = groups(steps.generation[given])
    for begin, end in zip(*(ends.tolist() for ends in numbers), strict=True):
        pair = _two_owners(register, until, given[begin:end].tolist())
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


def _two_owners(register: Register, until: I64, rows: Iterable[int]) -> tuple[int, int] | None:
    """Return the first two assignments of different members, among the rows of assignments with the
    same generation number; ``None`` if there are none. Assignments before the group may have ended
    do not count, because the generation number may have been used again."""
    steps, members = register.steps, register.group.members
    first: dict[object, int] = {}
    for row in rows:
        process, by = int(steps.process[row]), int(steps.op[row])
        if first and register.lives.may_end(until[[*first.values()]], by).all():
            first.clear()
        first.setdefault(members.get(process) or process, row)
        if len(first) > 1:
            a, b = first.values()
            return a, b
    return None


def _former_owners(log: Log, register: Register, until: I64) -> Iterable[Found]:
    """Find accepted commits of a process that no longer owned the partition. Another member had
    been assigned the partition, and the process learned only later that it had lost it."""
    steps = register.steps
    rebalances = np.flatnonzero(np.isin(steps.kind, (ASSIGNED, REVOKED, LOST)))
    by_process = {
        process: rebalances[steps.process[rebalances] == process]
        for process in np.unique(steps.process[rebalances]).tolist()
    }
    assigned = rebalances[steps.kind[rebalances] == ASSIGNED]
    replacing: dict[int, I64] = {}
    """For each assignment that was looked at, those by which another member replaced it."""
    accepted = (steps.kind == COMMIT) & (steps.outcome == OK) & ~steps.txn
    for row in np.flatnonzero(accepted).tolist():
        mine = by_process.get(int(steps.process[row]), rebalances[:0])
        known = int(np.searchsorted(steps.op[mine], steps.op[row]))
        if not 0 < known < len(mine) or steps.op[mine[known]] == steps.op[row]:
            continue
        given, next_ = int(mine[known - 1]), mine[known]
        if steps.kind[given] != ASSIGNED or steps.kind[next_] == ASSIGNED:
            continue
        later = mine[known:]
        if ((steps.kind[later] == ASSIGNED) & (steps.since[later] < steps.op[row])).any():
            continue  # it may have been assigned the partition again before it committed
        if given not in replacing:
            replacing[given] = _replacing(register, until, assigned, given)
        others = replacing[given]
        others = others[: np.searchsorted(steps.op[others], steps.invoked[row])]
        if len(others):
            yield _accepted(log, register, (given, int(others[-1]), row))


def _replacing(register: Register, until: I64, rows: I64, given: int) -> I64:
    """Return which of the assignments ``rows`` came after ``given``, and to another member."""
    steps, members = register.steps, register.group.members
    process = int(steps.process[given])
    instance = members.get(process)
    same = [p for p, of in members.items() if of is not None and of == instance]
    generation = steps.generation[rows]
    known = (generation != UNKNOWN) & (steps.generation[given] != UNKNOWN)
    known &= ~register.lives.may_end(int(until[given]), steps.op[rows])
    known &= ~register.lives.may_end(until[rows], int(steps.op[given]))
    later = np.where(
        known, generation > steps.generation[given], steps.since[rows] > steps.op[given]
    )
    others: I64 = rows[~np.isin(steps.process[rows], [process, *same]) & later]
    return others


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
