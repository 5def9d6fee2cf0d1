"""The sequence of events around a finding: its witnesses, the faults, and the nodes' log lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.app.report.faults import Fault, spoken
from harness.app.report.findings import FindingRow
from harness.app.report.node_logs import AROUND_NS, Logs

TIMELINES = 12
"""The number of findings of a page that have a timeline: the first ones."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A row of a timeline."""

    time_ns: int
    kind: str
    """``witness``, ``fault`` or ``log``."""
    source: str
    what: str
    fault: Fault | None = None
    event: int | None = None
    is_about: bool = False
    """For a log line: whether it names the partition."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events around a finding, in the order of time."""

    moments: list[Moment]
    left: int
    """The number of log lines that are not quoted."""
    moved: list[Fault]
    """Faults that moved a clock, so that the times in the logs of their nodes may be wrong."""


def of(shown: FindingRow, faults: Sequence[Fault], logs: Logs) -> Timeline | None:
    """Return the timeline of a finding; ``None`` if it has no witness, or no log can be matched."""
    lines = [witness.line for witness in shown.witnesses if witness.line is not None]
    if not lines or not logs.are_timed:
        return None
    times = [line.time_ns for line in lines]
    begin_ns, end_ns = min(times) - AROUND_NS, max(times) + AROUND_NS
    excerpt = logs.around(times, shown.finding.key)
    if not excerpt.lines:
        return None
    moments = [
        Moment(
            line.time_ns,
            "witness",
            f"process {line.process}",
            f"{line.type} {line.f}: {line.what} {line.error}".rstrip(),
            event=line.index,
        )
        for line in lines
    ]
    moments += [
        Moment(time_ns, "fault", fault.fault, f"{did} {spoken(fault.targets)}".rstrip(), fault)
        for fault in faults
        for time_ns, did in (
            (fault.asked_ns, "requested for"),
            (fault.applied_ns, "in effect on"),
            (fault.healed_ns, "healed on"),
        )
        if time_ns is not None and begin_ns <= time_ns <= end_ns
    ]
    moments += [
        Moment(
            said.time_ns,
            "log",
            said.node,
            said.text if said.times == 1 else f"{said.text} ({said.times:,} times in a row)",
            is_about=said.is_about,
        )
        for said in excerpt.lines
    ]
    moved = [
        fault
        for fault in faults
        if fault.fault.startswith("clock-")
        and fault.applied_ns is not None
        and fault.applied_ns <= end_ns
    ]
    return Timeline(sorted(moments, key=lambda each: each.time_ns), excerpt.left, moved)
