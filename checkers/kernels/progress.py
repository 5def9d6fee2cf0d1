"""Progress: once all faults are healed, groups continue to read, and producers to write.

A standstill is reported with the seconds that it lasted (``also``): how long is too long depends on
timeouts that the contract knows.
"""

from collections.abc import Iterable

import numpy as np

from checkers.kernels.availability import STUCK_NS
from checkers.kernels.faults import healed_ns
from checkers.kernels.found import Found, at
from checkers.kernels.history import Attempts, History
from checkers.kernels.log import Log
from checkers.kernels.rows import OK
from checkers.kernels.steps import ASSIGNED, Group

_SECOND_NS = 1_000_000_000


def stuck_groups(log: Log) -> list[Found]:
    """Find groups whose members poll long after the last change of members, and receive no record
    of this partition that others received (``stuck-group``), unless its topic was deleted."""
    if log.is_deleted:
        return []
    return [f for number, group in enumerate(log.groups) for f in _stuck_group(log, number, group)]


def _stuck_group(log: Log, number: int, group: Group) -> Iterable[Found]:
    healed = healed_ns([interval.to_ns for interval in log.faults])
    if log.key.rpartition("-")[0] not in group.topics or healed is None:
        return
    polls = log.polls.where(np.isin(log.polls.process, list(group.members)))
    since = max(healed, group.changed_ns, int(polls.end_ns.max(initial=0)))
    lasted_ns = group.polled_ns - since
    if lasted_ns < STUCK_NS:
        return
    steps = log.steps
    positions = steps.offset[(steps.group == number) & (steps.kind <= ASSIGNED)]
    reach = max(int(polls.offset.max(initial=-1)) + 1, int(positions.max(initial=0)))
    sends = log.sends
    waiting = (sends.outcome == OK) & (sends.end_ns < since) & (sends.offset >= reach)
    rows = np.flatnonzero(waiting & np.isin(sends.offset, log.firm))
    if not len(rows):
        return
    row = int(rows[0])
    yield Found(
        anomaly="stuck-group",
        key=log.key,
        group=group.name,
        offset=int(sends.offset[row]),
        value=int(sends.value[row]),
        ops=(int(sends.op[row]),),
        also=(lasted_ns // _SECOND_NS,),
        why=f"value {sends.value[row]} was acknowledged at offset {sends.offset[row]} at "
        f"{at(int(sends.end_ns[row]))}, and other processes read it; from {at(since)} to "
        f"{at(group.polled_ns)}, after the last heal and the last change of its members, "
        f"members of group {group.name} polled, and received no record of {log.key}",
    )


ATTEMPTS_MIN = 3
"""Fewer failures are not reported: one or two may have a cause of their own."""


def stuck_producers(history: History) -> list[Found]:
    """Find transactional producers that complete nothing any more (``stuck-producer``), one for
    each transactional id; producers without a reported id count as one."""
    healed = history.healed_ns
    if healed is None or not len(history.attempts.op):
        return []
    attempts = history.attempts.where(history.attempts.start_ns >= healed)
    found: list[Found] = []
    for number in np.unique(attempts.transactional_id).tolist():
        found += _stuck_producer(attempts.where(attempts.transactional_id == number), healed)
    return found


def _stuck_producer(attempts: Attempts, healed_ns: int) -> Iterable[Found]:
    last = int(np.flatnonzero(attempts.succeeded).max(initial=-1))
    failed = attempts.where(np.arange(len(attempts.op)) > last)
    if last >= 0:  # former owners of the id are fenced, and fail as they should
        before = attempts.process[: last + 1]
        fenced = before[before != attempts.process[last]]
        failed = failed.where(~np.isin(failed.process, fenced))
    if len(failed.op) < ATTEMPTS_MIN:
        return
    begin, end = int(failed.start_ns.min()), int(failed.end_ns.max())
    if end - begin < STUCK_NS:
        return
    processes = np.unique(failed.process)
    yield Found(
        anomaly="stuck-producer",
        ops=(int(failed.op[0]), int(failed.op[-1])),
        also=((end - begin) // _SECOND_NS,),
        why=f"the last fault was healed at {at(healed_ns)}; from {at(begin)} to {at(end)} "
        f"{len(failed.op)} transactions of {_named(processes.tolist())} failed or stayed in "
        "doubt",
    )


def _named(processes: list[int]) -> str:
    return f"process {processes[0]}" if len(processes) == 1 else f"{len(processes)} processes"
