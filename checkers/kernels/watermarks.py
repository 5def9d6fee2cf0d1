"""The ends of a log, as leaders tell them: its start, its high watermark, its last stable offset.

Each of them only ever grows. Probes that did not overlap are compared, and each with what was
acknowledged, or read, before it began. A leader that was replaced and has not heard of it may tell
an older end: such an answer excuses itself (variant ``stale``).
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from checkers.kernels.availability import STUCK_NS
from checkers.kernels.rows import (
    HIGH,
    I64,
    OK,
    STABLE,
    START,
    UNKNOWN,
    Found,
    Log,
    Steps,
    at,
)

_ENDS = {
    START: ("log-start-regress", "log start"),
    HIGH: ("hw-regress", "high watermark"),
    STABLE: ("lso-regress", "last stable offset"),
}


def kernel(log: Log) -> list[Found]:
    """``hw-regress``, ``lso-regress``, ``log-start-regress``, ``acked-above-end``, ``stuck-lso``.

    One finding of each and variant: the one that falls deepest, the others folded into it.
    """
    found: list[Found] = []
    for kind, (anomaly, name) in _ENDS.items():
        probes = log.steps.where(log.steps.kind == kind)
        found += _deepest(_regresses(log, probes, anomaly, name))
    high = log.steps.where(log.steps.kind == HIGH)
    found += _deepest(_above(log, high))
    found += _stuck(log, high)
    return found


def _deepest(found: Iterable[tuple[int, Found]]) -> list[Found]:
    """Of each variant the one that falls deepest."""
    best: dict[str, tuple[int, Found]] = {}
    count: dict[str, int] = {}
    for depth, f in found:
        count[f.variant] = count.get(f.variant, -1) + 1
        if f.variant not in best or depth > best[f.variant][0]:
            best[f.variant] = depth, f
    return [msgspec.structs.replace(f, folded=count[variant]) for variant, (_, f) in best.items()]


def _before(op: I64, offset: I64, invoked: I64) -> I64:
    """Of each probe: the row of the highest offset whose operation ended before it began, or -1.
    Rows are in the order of ``op``."""
    highest = np.maximum.accumulate(offset)
    row = np.maximum.accumulate(np.where(offset == highest, np.arange(len(offset)), 0))
    count = np.searchsorted(op, invoked)
    return np.where(count > 0, row[np.maximum(count - 1, 0)], -1) if len(op) else count - 1


def _regresses(log: Log, probes: Steps, anomaly: str, name: str) -> Iterable[tuple[int, Found]]:
    before = _before(probes.op, probes.offset, probes.invoked)
    fell = (before >= 0) & (probes.offset[before] > probes.offset) if len(before) else before > 0
    for row in np.flatnonzero(fell).tolist():
        earlier = int(before[row])
        yield (
            int(probes.offset[earlier] - probes.offset[row]),
            Found(
                anomaly=anomaly,
                key=log.key,
                offset=int(probes.offset[row]),
                variant=_variant(log, probes, row),
                ops=(int(probes.op[earlier]), int(probes.op[row])),
                why=f"process {probes.process[earlier]} was told that the {name} is"
                f" {probes.offset[earlier]} by {at(int(probes.end_ns[earlier]))}; process"
                f" {probes.process[row]} asked after that, and was told by"
                f" {at(int(probes.end_ns[row]))} that it is {probes.offset[row]}",
            ),
        )


def _variant(log: Log, probes: Steps, row: int) -> str:
    return "stale" if log.is_disturbed(int(probes.start_ns[row]), int(probes.end_ns[row])) else ""


def _above(log: Log, high: Steps) -> Iterable[tuple[int, Found]]:
    """High watermarks at or below a record that had been acknowledged, or read, before."""
    sends = log.sends.where((log.sends.outcome == OK) & (log.sends.offset != UNKNOWN))
    polls = log.polls.where(log.polls.offset != UNKNOWN)
    for rows, what in ((sends, "acknowledged to"), (polls, "read by")):
        if not len(rows.op):
            continue
        before = _before(rows.op, rows.offset, high.invoked)
        above = (before >= 0) & (rows.offset[before] >= high.offset)
        for row in np.flatnonzero(above).tolist():
            record = int(before[row])
            stale = _variant(log, high, row)
            yield (
                int(rows.offset[record] - high.offset[row]),
                Found(
                    anomaly="acked-above-end",
                    key=log.key,
                    offset=int(rows.offset[record]),
                    value=int(rows.value[record]),
                    variant=stale or ("read" if rows is polls else ""),
                    ops=(int(rows.op[record]), int(high.op[row])),
                    why=f"value {rows.value[record]} was {what} process {rows.process[record]} at"
                    f" offset {rows.offset[record]} by {at(int(rows.end_ns[record]))}; process"
                    f" {high.process[row]} asked after that, and was told by"
                    f" {at(int(high.end_ns[row]))} that the high watermark is {high.offset[row]}",
                ),
            )


def _stuck(log: Log, high: Steps) -> Iterable[Found]:
    """A last stable offset that stays below the high watermark, long after the last heal: a
    transaction that nobody ends. ``also`` is for how many seconds."""
    if any(band.to_ns is None for band in log.faults):
        return
    healed = max((band.to_ns for band in log.faults if band.to_ns is not None), default=0)
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
            why=f"the last fault was healed at {at(healed)}; from"
            f" {at(int(rest.end_ns[0]))} to {at(int(rest.start_ns[-1]))} the last stable offset was"
            f" {last}, and the high watermark {ends[0]} or more",
        )
