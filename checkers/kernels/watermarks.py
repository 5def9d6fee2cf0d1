"""The ends of a log as leaders report them: its start, its high watermark, its last stable offset.

Each of them only ever grows. Probes that did not overlap are compared, and each with what was
acknowledged, or read, before it began. Where records are deleted, a leader may report a start
before other replicas have it. So only the start that answers a deletion counts: it is the start of
all replicas, and no reader receives what is before it any more. A leader that was replaced and has
not heard of it may report an older end (variant ``stale``): the end that it knew, if faults explain
why it has not heard since (:mod:`checkers.kernels.former`). ``also`` holds for how many seconds
without a fault it must have missed its successor.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from checkers.kernels import former
from checkers.kernels.availability import STUCK_NS
from checkers.kernels.faults import FaultInterval, healed_ns
from checkers.kernels.found import Found, at
from checkers.kernels.log import Log
from checkers.kernels.rows import I64, OK, UNKNOWN, Polls, Sends
from checkers.kernels.steps import DELETE, HIGH, STABLE, START, Steps

_ENDS = {
    START: ("log-start-regress", "log start"),
    HIGH: ("hw-regress", "high watermark"),
    STABLE: ("lso-regress", "last stable offset"),
}


def kernel(log: Log) -> list[Found]:
    """Find ends that go back, that are below what was acknowledged, or that do not move.

    The anomalies are ``hw-regress``, ``lso-regress``, ``log-start-regress``, ``acked-above-end``
    and ``stuck-lso``. There is one finding of each anomaly and variant: the one that falls deepest,
    with the others folded into it.
    """
    found: list[Found] = []
    answers = np.isin(log.steps.op, log.steps.op[log.steps.kind == DELETE])
    confirmed = log.steps.where((log.steps.kind == START) & answers)
    intervals = former.leaders_of(log.faults, log.key)
    for kind, (anomaly, name) in _ENDS.items():
        probes = log.steps.where((log.steps.kind == kind) & ~answers)
        firm = confirmed if kind == START and len(log.deletions.op) else probes
        found += _deepest(_regresses(log, intervals, (firm, probes), anomaly, name))
    found += _deepest(_given(log, intervals, confirmed))
    high = log.steps.where(log.steps.kind == HIGH)
    found += _deepest(_above(log, intervals, high))
    found += _stuck(log, high)
    return found


def _deepest(found: Iterable[tuple[int, Found]]) -> list[Found]:
    """Return for each variant the finding that falls deepest; of stale ones, among those that are
    hardest to explain."""
    best: dict[str, tuple[tuple[int, ...], int, Found]] = {}
    count: dict[str, int] = {}
    for depth, f in found:
        count[f.variant] = count.get(f.variant, -1) + 1
        if f.variant not in best or (f.also, depth) > best[f.variant][:2]:
            best[f.variant] = f.also, depth, f
    return [replace(f, folded=count[variant]) for variant, (*_, f) in best.items()]


def _before(op: I64, offset: I64, invoked: I64) -> I64:
    """Return for each probe the row of the highest offset whose operation ended before it began, or
    -1. Rows are in the order of ``op``."""
    highest = np.maximum.accumulate(offset)
    row = np.maximum.accumulate(np.where(offset == highest, np.arange(len(offset)), 0))
    count = np.searchsorted(op, invoked)
    return np.where(count > 0, row[np.maximum(count - 1, 0)], -1) if len(op) else count - 1


def _regresses(
    log: Log, intervals: Sequence[FaultInterval], ends: tuple[Steps, Steps], anomaly: str, name: str
) -> Iterable[tuple[int, Found]]:
    """Find probes that report less than was certain before they began."""
    firm, probes = ends
    before = _before(firm.op, firm.offset, probes.invoked)
    fell = (before >= 0) & (firm.offset[before] > probes.offset) if len(firm.op) else before > 0
    for row in np.flatnonzero(fell).tolist():
        earlier = int(before[row])
        higher = firm.where(firm.offset > probes.offset[row])
        variant, also = _variant(intervals, higher, probes, row)
        yield (
            int(firm.offset[earlier] - probes.offset[row]),
            Found(
                anomaly=anomaly,
                key=log.key,
                offset=int(probes.offset[row]),
                variant=variant,
                also=also,
                ops=(int(firm.op[earlier]), int(probes.op[row])),
                why=f"process {firm.process[earlier]} received {firm.offset[earlier]} as the "
                f"{name} by {at(int(firm.end_ns[earlier]))}; process {probes.process[row]} "
                f"asked after that, and received {probes.offset[row]} by "
                f"{at(int(probes.end_ns[row]))}",
            ),
        )


def _given(
    log: Log, intervals: Sequence[FaultInterval], confirmed: Steps
) -> Iterable[tuple[int, Found]]:
    """Find records that were deleted on all replicas before their reader had begun to look up where
    the log begins."""
    if not len(confirmed.op):
        return
    polls = log.polls.where(log.polls.offset != UNKNOWN)
    began = _began(log, polls)
    before = _before(confirmed.op, confirmed.offset, began)
    given = (before >= 0) & (confirmed.offset[before] > polls.offset)
    for row in np.flatnonzero(given).tolist():
        answer = int(before[row])
        begun_ns = int(confirmed.end_ns[answer])
        above = confirmed.where(confirmed.offset > polls.offset[row])
        variant, also = _stale(intervals, above, begun_ns, int(polls.end_ns[row]))
        yield (
            int(confirmed.offset[answer] - polls.offset[row]),
            Found(
                anomaly="log-start-regress",
                key=log.key,
                offset=int(polls.offset[row]),
                value=int(polls.value[row]),
                variant=variant or "read",
                also=also,
                ops=(int(confirmed.op[answer]), int(polls.op[row])),
                why=f"process {confirmed.process[answer]} received {confirmed.offset[answer]} as "
                f"the start of the log on all replicas by {at(begun_ns)}; process "
                f"{polls.process[row]} began to read after that, and received value "
                f"{polls.value[row]} at offset {polls.offset[row]} by "
                f"{at(int(polls.end_ns[row]))}",
            ),
        )


def _began(log: Log, polls: Polls) -> I64:
    """Return for each record an event at or before which its reader had no place in the log;
    UNKNOWN where there is none."""
    return log.begins.since(polls.process, log.resets.before(polls.process, polls.op))


def _variant(
    intervals: Sequence[FaultInterval], higher: Steps | Sends | Polls, probes: Steps, row: int
) -> tuple[str, tuple[int, ...]]:
    return _stale(intervals, higher, int(probes.start_ns[row]), int(probes.end_ns[row]))


def _stale(
    intervals: Sequence[FaultInterval], higher: Steps | Sends | Polls, begin_ns: int, end_ns: int
) -> tuple[str, tuple[int, ...]]:
    """Return the variant of an answer between two times, and the seconds of a stale one.

    The variant is ``stale`` if a former leader may have given the answer; the seconds are for how
    long it must have missed its successor without a fault. Until that successor was elected, the
    former leader knew every end that was reported or acknowledged, so none of these is above its
    answer.
    """
    first_ns = int(higher.end_ns.min(initial=end_ns))
    idle_ns = former.idle_ns(intervals, begin_ns, end_ns, lambda spell: spell.from_ns <= first_ns)
    return ("", ()) if idle_ns is None else ("stale", (former.seconds(idle_ns),))


def _above(
    log: Log, intervals: Sequence[FaultInterval], high: Steps
) -> Iterable[tuple[int, Found]]:
    """Find high watermarks at or below a record that was acknowledged, or read, before they were
    requested."""
    sends = log.sends.where((log.sends.outcome == OK) & (log.sends.offset != UNKNOWN))
    polls = log.polls.where(log.polls.offset != UNKNOWN)
    for rows, what in ((sends, "acknowledged to"), (polls, "read by")):
        if not len(rows.op):
            continue
        before = _before(rows.op, rows.offset, high.invoked)
        above = (before >= 0) & (rows.offset[before] >= high.offset)
        for row in np.flatnonzero(above).tolist():
            record = int(before[row])
            higher = rows.where(rows.offset >= high.offset[row])
            stale, also = _variant(intervals, higher, high, row)
            yield (
                int(rows.offset[record] - high.offset[row]),
                Found(
                    anomaly="acked-above-end",
                    key=log.key,
                    offset=int(rows.offset[record]),
                    value=int(rows.value[record]),
                    variant=stale or ("read" if rows is polls else ""),
                    also=also,
                    ops=(int(rows.op[record]), int(high.op[row])),
                    why=f"value {rows.value[record]} was {what} process {rows.process[record]} "
                    f"at offset {rows.offset[record]} by {at(int(rows.end_ns[record]))}; "
                    f"process {high.process[row]} asked after that, and received "
                    f"{high.offset[row]} as the high watermark by {at(int(high.end_ns[row]))}",
                ),
            )


def _stuck(log: Log, high: Steps) -> Iterable[Found]:
    """Find a last stable offset that stays below the high watermark long after the last heal: a
    transaction that is never ended. ``also`` is for how many seconds."""
    healed = healed_ns([interval.to_ns for interval in log.faults])
    if healed is None:
        return
    stable = log.steps.where((log.steps.kind == STABLE) & (log.steps.start_ns >= healed))
    if not len(stable.op):
        return
    last = int(stable.offset[-1])
    moved = np.flatnonzero(stable.offset != last)
    rest = stable.where(np.arange(len(stable.op)) > moved.max(initial=-1))
    first = int(rest.op[0])
    ends = high.offset[high.op == first]
    if not len(ends) or int(ends[0]) <= last:
        return
    lasted_ns = int(rest.start_ns[-1] - rest.end_ns[0])
    if lasted_ns >= STUCK_NS:
        yield Found(
            anomaly="stuck-lso",
            key=log.key,
            offset=last,
            ops=(first, int(rest.op[-1])),
            also=(lasted_ns // 1_000_000_000,),
            why=f"the last fault was healed at {at(healed)}; from {at(int(rest.end_ns[0]))} to "
            f"{at(int(rest.start_ns[-1]))} the last stable offset stayed at {last}, although "
            f"the high watermark was {ends[0]} or more",
        )
