"""Shrinks a run that showed an anomaly to a small one that still shows it: greedily, by trial.

Each kind of reduction is tried in order, the boldest first, and again as long as it helps. The
whole round is repeated until no reduction helps or the time is over. The result is a folder, a
report and a test case.
"""

import shutil
import time
from pathlib import Path

import msgspec

from checkers import anomalies
from checkers.anomalies import INVARIANT
from harness.app import judgements, plan_resolution, replay, runtime
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.run import Failed, Interrupted, new_folder
from harness.app.search import single_run
from harness.app.search.outcome import RunResult
from harness.app.search.temp_dir import scratch
from harness.app.shrink import test_case
from harness.app.shrink.reductions import REDUCTIONS, Seen
from harness.app.shrink.trials import Each, FailingPlan, NoTime, Trials, carried_out
from harness.cluster.mutants import protocols
from model.plan import Plan

FILE = "shrink.json"
MINUTES = 10.0


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a plan, in the dimensions that are shrunk."""

    faults: int
    seconds: float
    """The duration of the workload."""
    brokers: int
    topics: int
    clients: int
    rate_hz: float


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``shrink.json``, which ``--json`` also prints."""

    anomaly: str
    before: Size
    after: Size
    of: str
    """The folder of the original run."""
    folder: str
    case: str
    """The test case in the new folder."""
    trials: int
    seconds: float
    is_minimal: bool
    """True if no reduction was left to try; otherwise the time was over."""
    why: tuple[str, ...]


def size(plan: Plan) -> Size:
    """Return the size of a plan."""
    topics = sum(int(plan.options.get(name, 0)) for name in ("topics", "late_topics"))
    return Size(
        faults=len(plan.schedule or ()),
        seconds=plan.time_limit_s,
        brokers=plan.brokers,
        topics=topics,
        clients=plan.concurrency,
        rate_hz=plan.rate_hz,
    )


def run(
    origin: Path,
    results: Path,
    *,
    screen: Screen,
    anomaly: str | None = None,
    jobs: int = 1,
    minutes: float = MINUTES,
    each: Each = single_run.of_plan,
) -> Shrunk:
    """Shrink the plan of a run's folder, in a new folder under ``results/shrunk``.

    ``anomaly`` is the one to keep; by default the most severe that the run shows. Raises
    :class:`~harness.app.refused.Refused` if the plan cannot be simulated or shows no anomaly, and
    :class:`~harness.app.run.Interrupted`.
    """
    began_s = time.monotonic()
    recorded = replay.plan_of(origin)
    if anomaly is not None:
        _refuse_unknown(origin, anomaly)
    plan = plan_resolution.resolve(recorded)
    if plan.target != "simulated":
        raise Refused(
            f"{origin}: its target is {plan.target}, but only simulated runs can be shrunk"
        )
    folder = new_folder(results / "shrunk", f"{plan.workload}-seed{plan.seed}", time.gmtime())
    with runtime.asked_to_end() as ending:
        try:
            with scratch(folder) as place:
                first = place / "origin"
                first.mkdir()
                ran = carried_out(plan, first, each)
                anomaly = _kept(origin, ran, anomaly, replay.changed(recorded))
                screen.say(f"{folder}: {anomaly}")
                correct = protocols(plan.mutants)
                bugs = [name for name in plan.mutants if name not in correct]
                if bugs and anomaly in _of_the_correct(plan, place, each).anomalies:
                    screen.say(f"{anomaly} occurs without {', '.join(bugs)}, too")
                deadline_s = began_s + minutes * 60
                trials = Trials(anomaly, place, jobs, deadline_s, ending, each)
                best, is_minimal = _reduced(FailingPlan(plan, _seen(ran, anomaly)), trials, screen)
        except BaseException:
            shutil.rmtree(folder)
            raise
        ran = carried_out(best.plan, folder, each)
        if anomaly not in ran.anomalies:
            raise Failed(
                f"{folder}: the same plan showed {anomaly} in a trial, but not in the last run",
                folder,
            )
        single_run.finish(folder)
        written = test_case.write(folder, best.plan, anomaly)
        shrunk = Shrunk(
            anomaly=anomaly,
            before=size(plan),
            after=size(best.plan),
            of=str(origin),
            folder=str(folder),
            case=str(written),
            trials=trials.count,
            seconds=round(time.monotonic() - began_s, 1),
            is_minimal=is_minimal,
            why=ran.why,
        )
        (folder / FILE).write_bytes(
            msgspec.json.format(msgspec.json.encode(shrunk), indent=2) + b"\n"
        )
    if ending:
        raise Interrupted(f"interrupted; the smallest plan so far is in {folder}", folder)
    return shrunk


def _reduced(best: FailingPlan, trials: Trials, screen: Screen) -> tuple[FailingPlan, bool]:
    """Return the smallest plan that was found, and whether no reduction was left to try."""
    try:
        while True:
            before = best.plan
            for reduction in REDUCTIONS:
                while shown := trials.first(list(reduction(best.plan, best.seen))):
                    best = shown
                    screen.say(f"{trials.count} trials: {words(size(best.plan))}")
            if best.plan == before:
                return best, True
    except NoTime:
        return best, False


def words(of: Size) -> str:
    """Format a size for one line."""
    return (
        f"{of.faults} faults in {of.seconds:g} s, {of.brokers} brokers, {of.topics} topics,"
        f" {of.clients} clients at {of.rate_hz:g} Hz"
    )


def describe(shrunk: Shrunk, again: str) -> str:
    """Return the result for a terminal; ``again`` begins a command that repeats a folder."""
    end = "" if shrunk.is_minimal else "; the time ended before all reductions were tried"
    return "\n".join(
        (
            f"{shrunk.anomaly}: {shrunk.trials} trials in {shrunk.seconds:.0f} s{end}",
            f"  before  {words(shrunk.before)}",
            f"  after   {words(shrunk.after)}",
            *(f"  {line}" for line in shrunk.why if line.startswith(f"{shrunk.anomaly} ")),
            f"  {shrunk.case}",
            f"  repeat: {again} {shrunk.folder}",
        )
    )


def _of_the_correct(plan: Plan, place: Path, each: Each) -> RunResult:
    """Run the plan without its planted bugs."""
    folder = place / "correct"
    folder.mkdir()
    correct = msgspec.structs.replace(plan, mutants=protocols(plan.mutants))
    return carried_out(correct, folder, each)


def _kept(origin: Path, ran: RunResult, wanted: str | None, changed: str | None) -> str:
    """Return the anomaly to keep. ``changed`` says which versions differ from the recorded ones."""
    if ran.status == "failed":
        raise Failed(f"{origin}: the repeated run failed: {ran.why[0]}")
    if not ran.anomalies:
        why = f" ({changed})" if changed else ""
        raise Refused(
            f"{origin}: the repeated run shows no anomaly{why}; there is nothing to shrink"
        )
    if wanted is None:
        return min(ran.anomalies, key=severity)
    if wanted not in ran.anomalies:
        raise Refused(f"--anomaly {wanted}: the run shows only {', '.join(ran.anomalies)}")
    return wanted


def _refuse_unknown(origin: Path, wanted: str) -> None:
    """Refuse, before the run is repeated, an anomaly that is unknown or that it never showed."""
    if found := judgements.anomalies(origin):
        if wanted not in found:
            raise Refused(f"--anomaly {wanted}: the run shows only {', '.join(sorted(found))}")
    elif not wanted.startswith(INVARIANT):
        plan_resolution.known("--anomaly", wanted, anomalies.OF_HISTORIES, "docs/anomalies.md")


def severity(anomaly: str) -> tuple[bool, bool, str]:
    """Return a sort key for anomalies, the most important first.

    Lost writes come first, then what clients observed, then what only the brokers' state shows.
    """
    return anomaly != "lost-write", anomaly.startswith(INVARIANT), anomaly


def _seen(ran: RunResult, anomaly: str) -> Seen:
    return Seen(*ran.witnessed_s.get(anomaly, ()))
