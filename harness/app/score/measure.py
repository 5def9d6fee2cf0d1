"""Measures a mutant: its plan with and without it, then drawn seeds until it is found often enough.

All runs are simulated, each in a child process, so that a row can be measured again on any machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.app import check, names, plan_resolution, versions
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.run import Interrupted
from harness.app.score import matrix as matrix_
from harness.app.score.effects import Each, Effects, Search
from harness.app.score.matrix import Compared, Control, Drawn, Matrix, Row, Scripted
from harness.app.search import campaign, single_run
from harness.app.search.outcome import RunResult
from harness.app.search.temp_dir import scratch
from harness.app.shrink import trials
from harness.app.shrink.trials import carried_out
from harness.cluster.mutants import Mutant
from model.plan import Plan

RUNS = 200
ENOUGH = 3
COMMIT_DIGITS = 9
STRICTEST: Mapping[str, str] = {
    "broker.transaction.version": "2",
    "broker.unclean.leader.election.enable": "false",
    "consumer.isolation.level": "read_committed",
    "producer.acks": "all",
    "producer.enable.idempotence": "true",
}
"""The settings whose contract permits least."""
CONTROLS = (
    "acks-1-loss",
    "last-replica-standing",
    "late-abort-hits-next-txn",
    "late-commit-hits-next-txn",
    "reorder-without-idempotence",
    "simultaneous-power-loss",
    "unclean-election-default-on",
)


ELSEWHERE: Mapping[str, str] = dict.fromkeys(
    (
        "fenced-producer-appends",
        "fenced-producer-ends-transaction",
        "init-no-epoch-bump",
        "timeout-abort-no-bump",
    ),
    "fencing",
)
"""The workload of a mutant's drawn seeds, if it differs from that of its own schedule.

That one contains a single takeover of a transactional id, this one consists of takeovers.
"""


@dataclass(frozen=True, kw_only=True)
class ScoreRequest:
    """The request: which mutants to measure, and how thoroughly."""

    names: Sequence[str] = ()
    """Mutants and controls; empty means all that were not measured yet."""
    examples: Path
    """The folder with the plans in ``mutants/`` and ``plans/``."""
    output: Path
    results: Path
    draws: bool = True
    """True if seeds are drawn, too."""
    compares: bool = False
    """True if searches by chance and guided ones are compared, and nothing else is measured."""
    seed: int = 1
    runs: int = RUNS
    enough: int = ENOUGH
    jobs: int = 1


def run(asked: ScoreRequest, known: Mapping[str, Mutant], screen: Screen) -> Matrix:
    """Measure row by row, and write each row to the files at once.

    Raises :class:`Refused` for an unknown name or a missing plan, and
    :class:`~harness.app.run.Interrupted`; an unfinished row then keeps its former values.
    """
    wanted = {name: known[name] for name in known if known[name].is_measured}
    controls = [name for name in CONTROLS if _control_plan(asked, name).exists()]
    if unknown := [name for name in asked.names if name not in wanted and name not in controls]:
        known_names = [*wanted, *controls]
        reason = names.unknown(unknown[0], known_names, plan_resolution.ALL_MUTANTS)
        raise Refused(f"mutants score: {reason}")
    matrix = matrix_.read(asked.output).of(wanted)
    asked.output.mkdir(parents=True, exist_ok=True)
    asked.results.mkdir(parents=True, exist_ok=True)
    with scratch(asked.results) as place:
        effects = Effects(place, single_run.of_seed, _correct_search(asked, screen))
        for name, mutant in wanted.items():
            before = matrix.rows.get(name)
            if _is_due(asked, before, name):
                row = _row(asked, mutant, before, effects, screen)
                matrix = matrix.with_row(row)
                matrix_.write(matrix, asked.output)
    for name in controls:
        if name in asked.names or (not asked.names and name not in matrix.controls):
            screen.say(f"{name}: measuring this control")
            matrix = matrix.with_control(_control(asked, name))
            matrix_.write(matrix, asked.output)
    return matrix


def missed(matrix: Matrix) -> list[str]:
    """Return the mutants that their schedules do not show, and controls that are judged alike."""
    rows = [name for name, row in matrix.rows.items() if not row.is_shown]
    return rows + [
        name for name, control in matrix.controls.items() if not control.is_distinguished
    ]


def _is_due(asked: ScoreRequest, before: Row | None, name: str) -> bool:
    if asked.names:
        return name in asked.names
    return before is None or not before.is_shown or (asked.draws and before.drawn is None)


def _correct_search(asked: ScoreRequest, screen: Screen) -> Search:
    """Return how seeds are run without a bug; their findings are unplanned bugs."""

    def search(pinned: Mapping[str, Any], first: int, runs: int, each: Each) -> None:
        screen.say(f"{runs:,} runs without the bug")
        request = campaign.SearchRequest(
            pinned=pinned, first=first, runs=runs, jobs=asked.jobs, enough=None
        )
        summary = campaign.run(request, asked.results, screen, each)
        if summary.stopped == "interrupted":
            raise Interrupted(_interrupted(asked))
        if summary.findings or summary.doubtful:
            screen.say(f"runs without the bug are not all valid: {summary.folder}")

    return search


def _interrupted(asked: ScoreRequest) -> str:
    return f"interrupted; the rows measured until then are in {asked.output}"


def _row(
    asked: ScoreRequest, mutant: Mutant, before: Row | None, effects: Effects, screen: Screen
) -> Row:
    path = asked.examples / "mutants" / f"{mutant.name}.toml"
    fields = plan_resolution.from_toml(path)
    plan = plan_resolution.plan_of(fields)
    if asked.compares:
        row = before or Row(
            name=mutant.name, source=mutant.source, tier=mutant.tier, symptom=mutant.symptom
        )
        screen.say(f"{mutant.name}: searching by chance, then guided")
        compared = Compared(
            chance=_drawn(asked, _searched(plan, mutant), screen),
            guided=_drawn(asked, _searched(plan, mutant), screen, guided=True),
        )
        return msgspec.structs.replace(row, compared=compared)
    screen.say(f"{mutant.name}: running its schedule")
    scripted = _scripted(asked, plan, mutant.name)
    drawn = None if before is None else before.drawn
    if asked.draws:
        drawn = _drawn(asked, _searched(plan, mutant), screen, each=effects.each)
        correct = {"workload": drawn.workload, "mutants": tuple(plan.mutants)}
        reached = effects.reached(correct, drawn.seed, drawn.runs)
        drawn = msgspec.structs.replace(drawn, reached=reached)
    return Row(
        name=mutant.name,
        source=mutant.source,
        tier=mutant.tier,
        symptom=mutant.symptom,
        scripted=scripted,
        drawn=drawn,
        compared=msgspec.UNSET if before is None else before.compared,
    )


def _searched(plan: Plan, mutant: Mutant) -> Mapping[str, Any]:
    """Return what a search for a mutant sets; its own plan is ``plan``."""
    workload = ELSEWHERE.get(mutant.name, plan.workload)
    return {"workload": workload, "mutants": (*plan.mutants, mutant.name)}


def _scripted(asked: ScoreRequest, plan: Plan, name: str) -> Scripted:
    without = _played(asked, plan, single_run.of_plan)
    planted = msgspec.structs.replace(plan, mutants=(*plan.mutants, name))
    with_it = _played(asked, planted, single_run.of_plan)
    return Scripted(
        without=without.status if without.faults == without.faults_effective > 0 else "unknown",
        anomalies=with_it.anomalies,
        faults=without.faults_effective,
        cpu_seconds=round(without.cpu_seconds + with_it.cpu_seconds, 2),
        commit=_commit(),
    )


def _played(asked: ScoreRequest, plan: Plan, each: trials.Each) -> RunResult:
    with scratch(asked.results) as place:
        folder = place / "it"
        folder.mkdir()
        return carried_out(plan_resolution.resolve(plan), folder, each)


def _drawn(
    asked: ScoreRequest,
    pinned: Mapping[str, Any],
    screen: Screen,
    *,
    each: Each = single_run.of_seed,
    guided: bool = False,
) -> Drawn:
    summary = campaign.run(
        campaign.SearchRequest(
            pinned=pinned,
            first=asked.seed,
            runs=asked.runs,
            jobs=asked.jobs,
            enough=1 if asked.compares else asked.enough,
            guided=guided,
        ),
        asked.results,
        screen,
        each,
    )
    if summary.stopped == "interrupted":
        raise Interrupted(_interrupted(asked))
    first = min((run.seed for run in summary.findings), default=None)
    return Drawn(
        seed=asked.seed,
        runs=summary.runs,
        found=len(summary.findings),
        first=None if first is None else first - asked.seed + 1,
        failed=summary.failed,
        anomalies=summary.anomalies,
        cpu_seconds=summary.cpu_seconds,
        workload=pinned["workload"],
        commit=_commit(),
    )


def _commit() -> str | None:
    """Return the shortened commit, with ``-dirty`` for local changes."""
    number, _, rest = versions.commit().partition("-")
    return "-".join(part for part in (number[:COMMIT_DIGITS], rest) if part) or None


def _control_plan(asked: ScoreRequest, name: str) -> Path:
    return asked.examples / "plans" / f"{name}.toml"


def _control(asked: ScoreRequest, name: str) -> Control:
    plan = plan_resolution.plan_of(plan_resolution.from_toml(_control_plan(asked, name)))
    ran = _played(asked, plan, _judged_twice)
    return Control(name=name, status=ran.status, allowed=ran.allowed, strict=ran.anomalies)


def _judged_twice(plan: Plan, folder: Path) -> RunResult:
    """Judge a run by its own contract, with the anomalies of a judgement by the strictest one."""
    ran = single_run.of_plan(plan, folder)
    if ran.status == "failed":
        return ran
    strict = check.examine(folder, inline=True, settings=STRICTEST).verdict
    return msgspec.structs.replace(ran, anomalies=strict.anomalies)
