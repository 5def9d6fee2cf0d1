"""Measures how many wrong answers about consumer groups the checkers find.

    python -m bench.group_corruptions results/*-groups-seed*

Each trial takes the history of a correct run, plants one wrong observation of one kind at a random
place, and judges it. An observation only counts if the oracle (:mod:`bench.group_history`) says
that no correct Kafka could have produced it; the others are listed with the reason. A trial counts
as found if the verdict is INVALID.

The runs are folders of VALID simulated runs of ``groups``, ``offsets`` or ``exactly-once``, such as
``faultline search --workload groups --keep 20`` keeps. Exit status 1: less than ``LEAST`` of the
trials of some kind were found.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.group_history import GroupHistory, read_events, read_logs
from bench.group_kinds import KINDS, Plant, Source, Trial, Undecidable
from checkers import findings, history_file, inline, overview, table_builder
from checkers.expectations import Contract
from checkers.kernels import history_kernels
from model.plan import Plan

LEAST = 0.9
PLACES = 10
"""The number of places that a trial tries before it gives up."""


def source_of(folder: Path) -> Source:
    """Load a recorded run."""
    path = folder / "plan.json"
    plan = msgspec.json.decode(path.read_bytes(), type=Plan) if path.exists() else None
    partitions = int((plan.broker if plan else {}).get("offsets.topic.num.partitions", "50"))
    logs = read_logs(folder / "nodes") if (folder / "nodes").is_dir() else None
    history = GroupHistory(read_events(folder / "history.jsonl"), logs, partitions)
    return Source(folder, history, plan)


def illegal(events: Iterable[dict[str, Any]], plan: Plan | None, scratch: Path) -> list[str]:
    """Return the illegal anomalies of a history."""
    path = scratch / "history.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    made = table_builder.of_history(history_file.read(path, lambda done: None))
    reports = inline.judge(made, lambda done: None)
    found = history_kernels.judge(
        made, [f for report in reports.values() for f in report.found]
    ).found
    contract = Contract.of(plan)
    return [f.anomaly for f in findings.findings(found, overview.of(made), contract) if not f.legal]


@dataclass
class Score:
    """The results of the trials of one kind."""

    planted: int = 0
    found: int = 0
    undecidable: Counter[str] = field(default_factory=Counter)
    anomalies: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)


def measure(
    sources: Sequence[Source],
    each: int,
    seed: int,
    say: Callable[[str], None],
    kinds: Iterable[str] = KINDS,
) -> dict[str, Score]:
    """Run ``each`` trials of each of these kinds on each source."""
    scores = {kind: Score() for kind in kinds}
    with tempfile.TemporaryDirectory(prefix="faultline-bench-") as scratch:
        for source in sources:
            for kind in scores:
                rng = random.Random(f"{seed}:{source.folder.name}:{kind}")
                for _ in range(each):
                    score, trial = scores[kind], _planted(KINDS[kind], source, rng)
                    if isinstance(trial, Undecidable):
                        score.undecidable[trial.why] += 1
                    elif trial is not None:
                        anomalies = illegal(trial.events, source.plan, Path(scratch))
                        score.planted += 1
                        score.found += bool(anomalies)
                        score.anomalies.update(set(anomalies))
                        if not anomalies:
                            score.missed.append(f"{source.folder.name}: {trial.what}")
            say(f"{source.folder.name}: done")
    return scores


def _planted(plant: Plant, source: Source, rng: random.Random) -> Trial:
    """Plant a corruption at the first place that has something to corrupt."""
    trials = (plant(source, rng) for _ in range(PLACES))
    return next((trial for trial in trials if trial is not None), None)


def table(scores: dict[str, Score]) -> str:
    """Return the results of each kind as a table."""
    lines = [f"{'kind':34} {'planted':>8} {'found':>6} {'share':>6}  undecidable"]
    for kind, score in scores.items():
        share = f"{score.found / score.planted:6.0%}" if score.planted else "     -"
        reasons = "; ".join(f"{count} {why}" for why, count in score.undecidable.items())
        lines.append(f"{kind:34} {score.planted:8} {score.found:6} {share}  {reasons}")
    return "\n".join(lines)


def main() -> int:
    """Measure, and print the table and the corruptions that were missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.group_corruptions", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of correct runs")
    parser.add_argument(
        "--each", type=int, default=3, help="number of trials of each kind in each run"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--kind", action="append", choices=KINDS, help="plant only this kind; can be repeated"
    )
    options = parser.parse_args()
    sources = [source_of(folder) for folder in options.runs]
    scores = measure(sources, options.each, options.seed, _say, options.kind or KINDS)
    print(table(scores))
    for kind, score in scores.items():
        for missed in score.missed:
            print(f"missed: {kind}: {missed}")
    return int(any(s.planted and s.found < LEAST * s.planted for s in scores.values()))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
