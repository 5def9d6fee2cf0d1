"""The verdict: the promises were kept, or were broken, or too little was seen to decide."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any, Literal

import msgspec

from checkers import anomalies, findings, material, node_signs
from checkers.kernels.availability import Outage, Recovery
from checkers.kernels.checker_runs import CheckerRun
from checkers.kernels.consumption import NOTHING, Consumption, merged
from checkers.kernels.found import at
from checkers.kernels.key import Report
from checkers.overview import Overview, Repeated
from model.finding import Finding
from model.node_sign import NodeSign
from model.plan import Plan
from model.text import brief
from model.violation import Record

Valid = bool | Literal["unknown"]

_RANK: dict[Valid, int] = {True: 0, "unknown": 1, False: 2}


_CRASHED = "the checker "
"""How the reason begins when a checker did not finish."""

LATE_MS = 1000
"""A schedule that is late by less than this is not mentioned."""


class CheckerResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one checker over all partitions."""

    valid: Valid
    seconds: float
    judged: int | None = None
    """How much it had to judge (:data:`checkers.material.MATERIAL` has the unit). A checker that is
    valid and judged 0 has found nothing wrong because it had no input. ``None`` in verdicts of
    earlier versions."""


class Availability(msgspec.Struct, frozen=True, kw_only=True):
    """How long partitions took no writes; reported, not judged."""

    longest: Outage | None = None
    recoveries: tuple[Recovery, ...] = ()
    """For each healed fault, the partition that was slowest to take a write again when one was
    sent."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``verdict.json``."""

    valid: Valid
    anomalies: dict[str, int] = {}
    """Illegal findings: by anomaly, the number of distinct (partition, value) or (partition,
    offset)."""
    allowed: dict[str, int] = {}
    """Findings that the contract permits, counted like the illegal ones."""
    evidence: dict[str, int] = {}
    unknown_because: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out of the history, a sentence each."""
    checkers: dict[str, CheckerResult] = {}
    availability: Availability = Availability()
    consumption: Consumption = NOTHING
    """How far readers were behind, and what they had not read; reported, not judged."""
    plan: dict[str, Any] = {}
    contract: dict[str, Any] = {}
    """The promises that it was judged by (:class:`~checkers.expectations.Contract`)."""
    settings: dict[str, str] = {}
    """The settings that replaced the plan's and changed its contract (``producer.acks`` …); empty
    if it was judged by the plan's own contract."""
    judged_by: dict[str, str] = {}
    """Version and commit of the code, and the executor."""

    def to_json(self) -> bytes:
        """Return the text of ``verdict.json``, indented for people."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def merge(verdicts: Iterable[Valid]) -> Valid:
    """Return the worst of several verdicts, by true < unknown < false; true for none."""
    return max(verdicts, key=_RANK.__getitem__, default=True)


def exit_status(verdict: Verdict) -> int:
    """Return 0 for valid, 1 for invalid, 2 for unknown."""
    return {True: 0, False: 1, "unknown": 2}[verdict.valid]


def crashed(reason: str, plan: Mapping[str, Any]) -> Verdict:
    """Return the verdict for a history that could not be judged to the end."""
    return Verdict(valid="unknown", unknown_because=(reason,), plan=dict(plan))


def is_complete(verdict: Verdict) -> bool:
    """Return whether every checker finished."""
    return bool(verdict.checkers) and not any(
        reason.startswith(_CRASHED) for reason in verdict.unknown_because
    )


def replaces(later: Verdict, earlier: Verdict) -> bool:
    """Return whether a later verdict on a history replaces an earlier one by the same contract.

    A weaker one never does (valid < unknown < invalid), nor one that did not finish: without Java
    nothing is known, whatever was known before.
    """
    return _weight(later) >= _weight(earlier)


def _weight(verdict: Verdict) -> tuple[int, bool]:
    is_whole = is_complete(verdict)
    is_empty = verdict.valid == "unknown" and not is_whole
    return -1 if is_empty else _RANK[verdict.valid], is_whole


def essence(verdict: Verdict) -> bytes:
    """Return a verdict's content without the times of checkers and the version of the code."""
    checkers = {
        name: msgspec.structs.replace(result, seconds=0.0)
        for name, result in sorted(verdict.checkers.items())
    }
    return msgspec.structs.replace(verdict, checkers=checkers, judged_by={}).to_json()


def conclude(
    history: Overview,
    reports: Mapping[str, Report],
    results: Sequence[Finding],
    *,
    run: Plan | None,
    plan: Mapping[str, Any],
    watched: Record | None = None,
    must_be_watched: bool = False,
    of_history: Sequence[CheckerRun] = (),
    signs: Sequence[NodeSign] = (),
) -> Verdict:
    """Combine reports and findings into the verdict of a history.

    ``results`` are the findings of the ``reports`` by partition and of the kernels for the whole
    history, which ran as ``of_history``. ``run`` is the plan that the run carried out. A run ends
    with catch-ups of every partition, so a partition without one was not read to its end; in a bare
    history (``None``), a partition counts as read to its end when every acknowledged record was
    read.
    ``plan`` is what the verdict says about the plan; ``watched`` is what white-box checks recorded,
    where there were any. ``must_be_watched`` says that the run's target always records that.
    ``signs`` are what the nodes left behind that shows that one was broken.
    """
    illegal, allowed = (findings.counts(results, legal=legal) for legal in (False, True))
    evidence, late = _evidence(history, reports, results, has_final_phase=run is not None)
    snapshots = 0 if watched is None or watched.end is None else watched.end.snapshots
    nodes = 0 if run is None else run.brokers + 1
    given = material.Input(
        counts=history.counts,
        crashes=len(history.crashes),
        groups_with_members=history.groups_with_members,
        folded=sum(1 + f.folded for report in reports.values() for f in report.found),
        nodes=nodes,
        snapshots=snapshots,
        of_zookeeper=history.judged,
    )
    if run is not None and run.schedule:
        evidence["faults_late_ms"] = _late_ms(history, run)
    if watched is not None:
        evidence["snapshots"] = snapshots
        if watched.end is not None and watched.end.zookeeper_leaders:
            evidence["zookeeper_leaders"] = watched.end.zookeeper_leaders
    reasons = [
        *_crashes(reports, of_history),
        *_unwatched(watched, must_be_watched=must_be_watched),
        *_doubts(history),
        *_repeated(history.repeated),
        *_too_little(history, evidence, late, allowed),
        *_not_done(history, run),
        *_unforeseen(history),
        *node_signs.reasons(signs, history.faults),
    ]
    return Verdict(
        valid=False if illegal else "unknown" if reasons else True,
        anomalies=illegal,
        allowed=allowed,
        evidence=evidence,
        unknown_because=tuple(reasons),
        notes=tuple(_notes(history)),
        checkers=_checkers(reports, of_history, results, given, is_watched=watched is not None),
        availability=_availability(reports.values()),
        consumption=merged(report.consumption for report in reports.values()),
        plan=dict(plan),
    )


def _unwatched(watched: Record | None, *, must_be_watched: bool) -> list[str]:
    """Return why a run was not fully watched by white-box checks."""
    if watched is None:
        return ["the brokers' state was not watched"] if must_be_watched else []
    return [] if watched.end is not None else ["the brokers' state was not watched to the end"]


def _availability(reports: Iterable[Report]) -> Availability:
    reports = list(reports)
    outages = [report.outage for report in reports if report.outage is not None]
    slowest: dict[int, Recovery] = {}
    for recovery in (recovery for report in reports for recovery in report.recoveries):
        other = slowest.get(recovery.fault)
        if other is None or _longer(recovery, other):
            slowest[recovery.fault] = recovery
    return Availability(
        longest=max(outages, key=lambda outage: outage.to_ns - outage.from_ns, default=None),
        recoveries=tuple(slowest.values()),
    )


def _longer(a: Recovery, b: Recovery) -> bool:
    return b.seconds is not None and (a.seconds is None or a.seconds > b.seconds)


def _evidence(
    history: Overview,
    reports: Mapping[str, Report],
    results: Sequence[Finding],
    *,
    has_final_phase: bool,
) -> tuple[dict[str, int], list[str]]:
    """Return what was seen, and the partitions that were not read to their ends."""
    caught_up = set(history.caught_up)
    if not has_final_phase:
        caught_up |= _read_to_the_end(history, reports, results)
    keys = history.record_keys
    late = sorted(keys - caught_up)
    evidence = {
        **history.outcomes._asdict(),
        "acked": sum(report.acked for report in reports.values()),
        "read": sum(report.read for report in reports.values()),
        "keys": len(keys),
        "keys_caught_up": len(keys) - len(late),
        "faults": len(history.faults),
        "faults_effective": sum(fault.proved for fault in history.faults),
    }
    if history.groups:
        evidence["commits"] = history.counts.commits_acknowledged
    if history.ignored:
        evidence["ignored"] = sum(history.ignored.values())
    return evidence, late


def _read_to_the_end(
    history: Overview, reports: Mapping[str, Report], results: Sequence[Finding]
) -> set[str]:
    """Return the partitions without a catch-up of which every acknowledged record was read."""
    unchecked = {f.key for f in results if f.anomaly == "unseen-unchecked"}
    return reports.keys() - history.tried - unchecked


def _too_little(
    history: Overview, evidence: Mapping[str, int], late: Sequence[str], allowed: Mapping[str, int]
) -> list[str]:
    """Return why too little was seen to decide, a sentence each."""
    reasons = []
    if not evidence["acked"] and not evidence.get("commits") and not history.repeated:
        reasons.append("no operation was acknowledged")
    reasons += [
        f"fault {fault.id} ({fault.fault}) is not proved to have had an effect: {fault.how}"
        for fault in history.faults
        if not fault.proved
    ]
    reasons += [
        f"fault {fault.id} ({fault.fault}) is not proved to have been healed: {fault.unhealed}"
        for fault in history.faults
        if fault.unhealed is not None
    ]
    if late:
        reasons.append(f"not read to the end: {_some(late)}")
    if unchecked := allowed.get("unseen-unchecked"):
        reasons.append(
            f"{unchecked} acknowledged records were not read, and no reader went past them"
        )
    return reasons


def _repeated(values: Sequence[Repeated]) -> list[str]:
    """Return why values were not judged that are not unique in their partition."""
    if not values:
        return []
    (key, value, ops), *more = values
    events = ", ".join(map(str, dict.fromkeys(ops)))
    others = f", and {len(more):,} more values like it" if more else ""
    return [
        f"value {value} of {key} was sent {len(ops)} times (by events {events}){others}: "
        "values must be unique per partition, so these values were not judged"
    ]


def _doubts(history: Overview) -> list[str]:
    """Return the first acknowledgement of another value than was sent, and how many more there
    are."""
    if not history.doubts:
        return []
    first, *more = history.doubts
    return [f"{first} ({len(more):,} more like it)" if more else first]


def _notes(history: Overview) -> list[str]:
    """Return what was left out of the judgement without a doubt about the rest."""
    notes = [] if history.torn is None else [history.torn]
    for what, found in (("operations", history.ignored), ("fields", history.unknown)):
        if found:
            names = _some([f"{brief(name)} ({count:,})" for name, count in sorted(found.items())])
            notes.append(f"{what} that no checker knows were ignored: {names}")
    return notes


def _not_done(history: Overview, run: Plan | None) -> list[str]:
    """Return which planned faults were never tried: a run without them proves nothing."""
    if run is None:
        return []
    if run.nemesis and not run.schedule:
        return [f"no fault was scheduled, although the plan has {_some(run.nemesis)}"]
    tried = {fault.id for fault in history.faults}
    missing = [
        f"{fault.id} ({fault.fault})" for fault in run.schedule or () if fault.id not in tried
    ]
    late = lateness(_late_ms(history, run))
    because = f": {late}" if late else ""
    if len(missing) > 1:
        return [f"{len(missing)} faults were never applied{because}: {_some(missing)}"]
    return [f"fault {fault} was never applied{because}" for fault in missing]


def _late_ms(history: Overview, run: Plan) -> int:
    """Return by how many milliseconds the latest fault was applied later than planned.

    A fault that waits for a moment of the workload is late on purpose, and does not count. Once a
    fault waits for a state of the cluster, the clock of the schedule stands still: that fault and
    those after it do not count either.
    """
    ordered = sorted(run.schedule or (), key=lambda fault: (fault.at_s, fault.id))
    timed = takewhile(lambda fault: "once" not in fault.options, ordered)
    planned = {fault.id: fault for fault in timed if "when" not in fault.options}
    late_ns = [
        fault.from_ns - round(planned[fault.id].at_s * 1e9)
        for fault in history.faults
        if fault.id in planned
    ]
    return max(0, max(late_ns, default=0) // 1_000_000)


def lateness(late_ms: int) -> str | None:
    """Return a sentence about a schedule that ran late; ``None`` for one that ran in time."""
    if late_ms < LATE_MS:
        return None
    return f"the schedule of faults ran up to {late_ms / 1000:.1f} s late"


def _unforeseen(history: Overview) -> list[str]:
    """Return what went wrong with the test itself, a sentence each."""
    reasons = []
    if history.recovered is False:
        reasons.append("the cluster did not recover after all faults were healed")
    reasons += [
        f"{crash.node} was killed from outside at {at(crash.time_ns)}"
        if crash.status == findings.KILLED
        else f"{crash.node} exited unexpectedly at {at(crash.time_ns)}: {crash.last_line}"
        for crash in history.crashes
        if crash.status == findings.KILLED or not crash.serves
    ]
    return reasons


def _some(names: Sequence[str], count_max: int = 8) -> str:
    rest = len(names) - count_max
    return ", ".join(names[:count_max]) + (f" and {rest} more" if rest > 0 else "")


def _crashes(reports: Mapping[str, Report], of_history: Iterable[CheckerRun]) -> list[str]:
    of_keys = {key: report.checker_runs for key, report in reports.items()}
    return [
        f"{_CRASHED}{checker_run.checker} crashed on {what}: {checker_run.crash}"
        for what, checker_runs in {**of_keys, "the whole history": of_history}.items()
        for checker_run in checker_runs
        if checker_run.crash is not None
    ]


def _checkers(
    reports: Mapping[str, Report],
    of_history: Iterable[CheckerRun],
    results: Sequence[Finding],
    given: material.Input,
    *,
    is_watched: bool,
) -> dict[str, CheckerResult]:
    seconds: defaultdict[str, float] = defaultdict(float, {"crashes": 0.0})
    if is_watched:
        seconds["invariants"] = 0.0
    crashed = set()
    for checker_run in chain(of_history, *(report.checker_runs for report in reports.values())):
        seconds[checker_run.checker] += checker_run.seconds
        if checker_run.crash is not None:
            crashed.add(checker_run.checker)
    convicted = {anomalies.of(f.anomaly).checker for f in results if not f.legal}
    return {
        name: CheckerResult(
            valid=False if name in convicted else "unknown" if name in crashed else True,
            seconds=round(spent, 3),
            judged=material.judged(name, given),
        )
        for name, spent in sorted(seconds.items())
    }
