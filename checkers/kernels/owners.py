"""Partition ownership: a generation has one owner per partition, and no former owner commits.

A member that was paused or disconnected does not know that it was replaced, and may continue to
read. That is not a violation. A violation (``double-owner``) is a commit of such a member that is
accepted, or one generation that assigns a partition to two members. A static member that rejoins
with the same ``group.instance.id`` counts as the same member. If a group without members is deleted
with its last committed offset, the next group with the same name starts again with generation 1, so
the same generation number can occur twice.

While a member owns a partition, the group's committed offset for it must not be deleted
(``subscribed-deletion``).
"""

from collections.abc import Iterable

import numpy as np

from checkers.kernels.commits import Register, committed, registers
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, UNKNOWN, Bools, groups
from checkers.kernels.steps import ASSIGNED, COMMIT, LOST, REVOKED, Group, Steps


def kernel(log: Log) -> list[Found]:
    """Find ``double-owner`` and ``subscribed-deletion``. A ``double-owner`` without a variant is a
    generation that assigns a partition to two members; with the variant ``commit``, it is a commit
    of a former owner that was accepted."""
    found: list[Found] = []
    for _, register in registers(log):
        found += _in_one_generation(log, register)
        found += _former_owners(log, register)
        found += _deletions(log, register)
    return found


def _in_one_generation(log: Log, register: Register) -> Iterable[Found]:
    steps = register.steps
    given = steps.where((steps.kind == ASSIGNED) & (steps.generation != UNKNOWN))
    given = given.where(np.argsort(given.generation, kind="stable"))
    for begin, end in zip(*(ends.tolist() for ends in groups(given.generation)), strict=True):
        pair = _two_owners(given, register.group, range(begin, end))
        if pair is not None:
            a, b = pair
            owners = " and ".join(
                f"process {given.process[row]} by {at(int(given.end_ns[row]))}" for row in (a, b)
            )
            yield Found(
                anomaly="double-owner",
                key=log.key,
                group=register.group.name,
                generation=int(given.generation[begin]),
                ops=(int(given.op[a]), int(given.op[b])),
                why=f"generation {given.generation[begin]} of group {register.group.name} "
                f"assigned {log.key} to {owners}",
            )


def _two_owners(given: Steps, group: Group, rows: Iterable[int]) -> tuple[int, int] | None:
    """Return the first two assignments of different members, among assignments with the same
    generation number; ``None`` if there are none. Assignments before the group may have been
    deleted do not count, because the generation number may have been used again."""
    first: dict[object, int] = {}
    for row in rows:
        process = int(given.process[row])
        if any(
            group.may_restart(int(given.since[at]), int(given.op[row])) for at in first.values()
        ):
            first.clear()
        first.setdefault(group.members.get(process) or process, row)
        if len(first) > 1:
            a, b = first.values()
            return a, b
    return None


def _former_owners(log: Log, register: Register) -> Iterable[Found]:
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
        others = rebalances[_replaces(register, rebalances, int(given), row)]
        if len(others):
            yield _accepted(log, register, (int(given), int(others[-1]), row))


def _replaces(register: Register, rows: I64, given: int, commit: int) -> Bools:
    """Return which of the rebalances assigned the partition to another member, after the assignment
    ``given`` to this member and before its commit was invoked."""
    steps, members = register.steps, register.group.members
    process = int(steps.process[given])
    instance = members.get(process)
    same = [p for p, of in members.items() if of is not None and of == instance]
    generation = steps.generation[rows]
    known = (generation != UNKNOWN) & (steps.generation[given] != UNKNOWN)
    if register.group.may_restart(0, int(steps.invoked[commit])):
        known[:] = False
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
