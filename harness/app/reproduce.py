"""Reproduce: tests whether a simulation shows what a red run on real processes has shown.

The run's plan is simulated with its own seed and with the seeds after it, until a simulated run
shows the same anomaly. Each seed is tried with the schedule as it was planned. If the recorded run
was late, the seed is also tried with the times at which its faults were really applied and healed.
The folder of the first hit is a simulated run like any other, which ``shrink`` accepts.
"""

import functools
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.app import catalogue, plan_resolution, replay, run_folder, runtime
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.report import faults
from harness.app.run import Interrupted, new_folder
from harness.app.search import single_run
from harness.app.search.jobs import SAID, Jobs, drop_if_empty, how_ended
from harness.app.search.outcome import RunResult, Status
from harness.app.search.temp_dir import scratch
from harness.app.shrink.shrink import severity
from harness.app.shrink.trials import GLANCE_S, Each
from harness.systems.catalogue import OURS, ZOOKEEPER
from model.plan import Plan, ScheduledFault

SEEDS = 10
"""The default number of seeds: the run's own, and those after it."""
RATE_HZ_MAX = 20.0
"""The highest rate of a simulation.

A simulated write costs far more CPU time than a real one, and real runs ask for hundreds per
second.
"""
WAITS = ("when", "once")
"""Options by which a fault waits; a schedule with recorded times needs none of them."""
LATE_NS = 250_000_000
"""A schedule whose faults all came within this time of the plan is tried only as planned."""

Schedule = Literal["planned", "recorded"]
Shows = Literal["same", "other", "none"]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated run of the plan; one line of the table."""

    seed: int
    schedule: Schedule
    """``recorded``: with the times of the recorded run's faults."""
    status: Status
    anomalies: dict[str, int]
    shows: Shows
    why: tuple[str, ...] = ()


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """What was recorded, what was simulated, and what the simulation showed."""

    recorded: str
    """The folder of the recorded run."""
    target: str
    """The target of the recorded run."""
    anomalies: dict[str, int]
    """The anomalies of the recorded run."""
    changes: tuple[str, ...]
    """How the simulation differs from the recorded run, one phrase each."""
    attempts: tuple[Attempt, ...]
    shows: Shows
    folder: str
    """The simulated run that is kept.

    It is the first that shows the same anomaly, else the first that shows another one, else the
    first.
    """
    anomaly: str | None
    """The anomaly for which to shrink the run; ``None`` if it shows none."""


def recorded_anomalies(folder: Path) -> dict[str, int]:
    """Return the anomalies in a recorded run's verdict; none if it has no verdict or is not red."""
    if (refusal := run_folder.refusal(folder, ("verdict.json", "schedule.jsonl"))) is not None:
        raise Refused(refusal)
    try:
        verdict = msgspec.json.decode((folder / "verdict.json").read_bytes())
        found = verdict["anomalies"] if verdict["valid"] is False else {}
        return {str(name): int(count) for name, count in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError):
        raise Refused(f"{folder / 'verdict.json'} is not a verdict; judge the run again") from None


def simulated(recorded: Plan) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with which a run on another target is simulated, and how it differs.

    The plan is resolved, and each difference is one phrase. Raises :class:`Refused` if the
    simulation lacks what the workload needs.
    """
    target, workload = catalogue.SIMULATED, catalogue.WORKLOADS[recorded.workload]
    if recorded.system not in (OURS, ZOOKEEPER):
        raise Refused(
            f"--target {target.name}: {recorded.system} cannot be simulated; only this project's"
            " broker and ZooKeeper can"
        )
    of_target = Plan(target=target.name)
    if recorded.system == ZOOKEEPER:
        of_target = msgspec.structs.replace(recorded, target=target.name)
    able = {
        fault
        for name in plan_resolution.offered(of_target)
        for fault in catalogue.NEMESES[name].names
    }
    schedule = recorded.schedule or ()
    kept = tuple(fault for fault in schedule if fault.fault in able)
    changes = [
        f"fault {fault.id} ({fault.fault}) is left out: the simulation has no such fault"
        for fault in schedule
        if fault not in kept
    ]
    if schedule and not kept:
        raise Refused(
            f"--target {target.name}: the simulation offers none of the faults of this run"
        )
    plan = replay.retarget(msgspec.structs.replace(recorded, schedule=kept), target.name)
    for option in plan_resolution.CLIENTS:
        was, client = recorded.options.get(option), plan.options.get(option)
        if was != client:
            changes.append(f"the client is {client} in place of {was}, which starts threads")
    known = {**workload.options, **target.options, **catalogue.system_of(plan).options}
    theirs = catalogue.TARGETS[recorded.target].options
    changes += [
        f"the option {name} is left out"
        for name, value in recorded.options.items()
        if name not in known and value != theirs.get(name)
    ]
    if plan.rate_hz > RATE_HZ_MAX:
        changes.append(
            f"the rate is {RATE_HZ_MAX:g} writes per second in place of {plan.rate_hz:g}"
        )
        plan = msgspec.structs.replace(plan, rate_hz=RATE_HZ_MAX)
    nodes = "brokers" if recorded.brokers else "servers"
    changes.append(f"the {nodes}, the network and the clock are simulated")
    try:
        return plan_resolution.resolve(plan), tuple(changes)
    except Refused as error:
        raise Refused(f"--target {target.name}: this run cannot be simulated: {error}") from None


def as_recorded(schedule: Sequence[ScheduledFault], folder: Path) -> tuple[ScheduledFault, ...]:
    """Return the schedule with the times at which the recorded run applied and healed its faults.

    Faults without recorded times keep their planned ones. If the run was not late, the planned
    schedule is returned.
    """
    try:
        rows = {row.id: row for row in faults.load(folder / "schedule.jsonl")}
    except msgspec.DecodeError as error:
        raise Refused(f"{folder / 'schedule.jsonl'}: {error}") from None
    moved, is_late = [], False
    for fault in schedule:
        row = rows.get(fault.id)
        if row is None or row.asked_ns is None or row.applied_ns is None:
            moved.append(fault)
            continue
        at_s, duration_s = row.asked_ns / 1e9, fault.duration_s
        if row.healed_ns is not None:
            duration_s = (row.healed_ns - row.applied_ns) / 1e9
        is_late |= abs(at_s - fault.at_s) * 1e9 > LATE_NS
        is_late |= abs(duration_s - fault.duration_s) * 1e9 > LATE_NS
        options = {name: value for name, value in fault.options.items() if name not in WAITS}
        moved.append(
            msgspec.structs.replace(
                fault, at_s=round(at_s, 3), duration_s=round(duration_s, 3), options=options
            )
        )
    return tuple(moved) if is_late else tuple(schedule)


def plans(plan: Plan, folder: Path, seeds: int) -> Iterator[tuple[Schedule, Plan]]:
    """Yield the plans to try: each seed with the planned times, then with the recorded ones."""
    planned = plan.schedule or ()
    recorded = as_recorded(planned, folder)
    last_s = max((fault.at_s for fault in recorded), default=0.0)
    late = msgspec.structs.replace(
        plan, schedule=recorded, time_limit_s=max(plan.time_limit_s, round(last_s + 1.0, 3))
    )
    for seed in range(plan.seed, plan.seed + seeds):
        yield "planned", msgspec.structs.replace(plan, seed=seed)
        if recorded != planned:
            yield "recorded", msgspec.structs.replace(late, seed=seed)


def run(
    recorded: Path,
    results: Path,
    *,
    screen: Screen,
    seeds: int = SEEDS,
    jobs: int = 1,
    each: Each = single_run.of_plan,
) -> Reproduction:
    """Simulate the plan of a red run's folder, with up to ``seeds`` seeds, until the anomaly shows.

    The best run is kept in a new folder under ``results``. The result does not depend on ``jobs``,
    the number of runs at a time. Raises :class:`Refused` if the plan cannot be simulated, and
    :class:`Interrupted`.
    """
    before = replay.plan_of(recorded)
    wanted = recorded_anomalies(recorded)
    plan, changes = simulated(before)
    tried = list(plans(plan, recorded, seeds))
    folder = new_folder(results, f"{plan.workload}-seed{plan.seed}", time.gmtime())
    try:
        with runtime.asked_to_end() as ending, scratch(folder) as place:
            trial = functools.partial(_tried, each, place)
            ran = _until_shown(tried, trial, place, wanted, screen, jobs, ending)
            best = min(range(len(ran)), key=lambda number: _rank(shows(ran[number], wanted)))
            for left in (place / f"attempt{best}").iterdir():
                shutil.move(left, folder / left.name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    drop_if_empty(folder / SAID)
    single_run.finish(folder)
    anomalies = ran[best].anomalies
    same = [name for name in anomalies if name in wanted]
    return Reproduction(
        recorded=str(recorded),
        target=before.target,
        anomalies=wanted,
        changes=changes,
        attempts=tuple(
            Attempt(
                seed=attempt.seed,
                schedule=schedule,
                status=found.status,
                anomalies=found.anomalies,
                shows=shows(found, wanted),
                why=found.why,
            )
            for (schedule, attempt), found in zip(tried, ran, strict=False)
        ),
        shows=shows(ran[best], wanted),
        folder=str(folder),
        anomaly=min(same or anomalies, key=severity, default=None),
    )


def _tried(each: Each, place: Path, number: int, plan: Plan) -> bytes:
    """Run one attempt in a child process."""
    return msgspec.json.encode(each(plan, place / f"attempt{number}"))


def _until_shown(
    tried: Sequence[tuple[Schedule, Plan]],
    trial: Any,
    place: Path,
    wanted: Mapping[str, int],
    screen: Screen,
    jobs: int,
    ending: Sequence[int],
) -> list[RunResult]:
    """Run the attempts, and return the results up to the first that shows the same anomaly."""
    ran: dict[int, RunResult] = {}
    later, first = 0, len(tried)
    with Jobs[int]() as children:
        while len(children) or later < min(first, len(tried)):
            while later < min(first, len(tried)) and len(children) < jobs:
                attempt = place / f"attempt{later}"
                attempt.mkdir()
                children.start(
                    later, functools.partial(trial, later, tried[later][1]), attempt / SAID
                )
                later += 1
            for ended in children.ended(GLANCE_S):
                found = _found(ended.answer, tried[ended.key][1], ended.status, place, ended.key)
                ran[ended.key] = found
                if shows(found, wanted) == "same":
                    first = min(first, ended.key + 1)
                screen.say(
                    f"simulation {len(ran)} of at most {len(tried)}: seed {found.seed} is"
                    f" {found.status}"
                )
            if ending:
                raise Interrupted("interrupted")
            if all(number in ran for number in range(first)):
                break
    return [ran[number] for number in range(min(first, len(tried)))]


def _found(answer: bytes, plan: Plan, status: int, place: Path, number: int) -> RunResult:
    if answer:
        return msgspec.json.decode(answer, type=RunResult)
    why = how_ended(status, place / f"attempt{number}" / SAID)
    return RunResult(seed=plan.seed, status="failed", why=(why,))


def shows(ran: RunResult, wanted: Mapping[str, int]) -> Shows:
    """Return whether a simulated run shows one of these anomalies, another one, or none."""
    if not wanted.keys().isdisjoint(ran.anomalies):
        return "same"
    return "other" if ran.anomalies else "none"


def _rank(shown: Shows) -> int:
    return ("same", "other", "none").index(shown)


def exit_status(reproduction: Reproduction) -> int:
    """Return the exit status of the command.

    1 if the simulation shows an anomaly; else 70 if a simulated run failed, 2 if one was unknown, 0
    if all were valid.
    """
    statuses = {attempt.status for attempt in reproduction.attempts}
    if reproduction.shows != "none":
        return 1
    return 70 if "failed" in statuses else 2 if "unknown" in statuses else 0


ANSWERS: Mapping[Shows, str] = {
    "same": "the simulation shows the same anomaly",
    "other": "the simulation shows another anomaly",
    "none": "the simulation shows no anomaly",
}


def describe(reproduction: Reproduction, again: str, shrink: str) -> str:
    """Return the question, a table of the attempts and the next commands as text for a terminal.

    ``again`` and ``shrink`` are the beginnings of commands that take a folder.
    """
    asked = _listed(reproduction.anomalies)
    rows = [("seed", "schedule", "verdict", "anomalies", "same anomaly?")]
    for attempt in reproduction.attempts:
        answer = {"same": "yes", "other": "no, another", "none": "no"}[attempt.shows]
        why = _listed(attempt.anomalies) or next(iter(attempt.why), "")
        rows.append((str(attempt.seed), attempt.schedule, attempt.status.upper(), why, answer))
    widths = [min(60, max(len(row[column]) for row in rows)) for column in range(5)]
    lines = [
        f"{asked} on {reproduction.target}: {ANSWERS[reproduction.shows]}",
        *(f"  {change}" for change in reproduction.changes),
        "",
        *(
            "  ".join(_fit(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ),
        "",
        f"  repeat: {again} {shlex.quote(reproduction.folder)}",
    ]
    if reproduction.anomaly is not None:
        folder = shlex.quote(reproduction.folder)
        lines.append(f"  shrink: {shrink} {folder} --anomaly {shlex.quote(reproduction.anomaly)}")
    return "\n".join(lines)


def _fit(cell: str, width: int) -> str:
    return (cell if len(cell) <= width else cell[: width - 1] + "…").ljust(width)


def _listed(anomalies: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in anomalies.items())
