"""Runs a story's plan at its four places with the seeds 1 to N, one run at a time.

Each run is a ``faultline run`` of its own, exactly the command that the page prints.
"""

import hashlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.historic import results as results_
from bench.historic.results import Results, Run
from bench.historic.stories import Place, Story

ROOT = Path(__file__).resolve().parent.parent.parent
FAULTLINE = (sys.executable, "-m", "harness.app.cli")

Say = Callable[[str], None]
Command = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]
"""Runs ``faultline`` with these arguments, and returns its exit status and output."""


def faultline(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run ``faultline``; its progress appears on this command's standard error."""
    return subprocess.run(
        (*FAULTLINE, *arguments), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )


def arguments(story: Story, place: Place, seed: int) -> list[str]:
    """Return the arguments of ``faultline`` for one run, as a user would type them."""
    named = ["--system", place.system] if not place.is_ours else []
    planted = [word for name in place.mutants for word in ("--mutant", name)]
    changed = [word for setting in place.settings for word in ("--set", setting)]
    return ["run", story.plan, *named, *changed, *planted, "--seed", str(seed)]


def digest(story: Story, root: Path = ROOT) -> str:
    """Return what identifies the content of a story's plan file."""
    return hashlib.sha256((root / story.plan).read_bytes()).hexdigest()[:16]


def measure(
    pairs: Sequence[tuple[Story, Place]],
    data: Path,
    folders: Path,
    runs: int,
    say: Say,
    *,
    command: Command = faultline,
    stored: Callable[[Results], None] = lambda results: None,
) -> Results:
    """Do the runs that are missing in the file ``data``, and store each as soon as it has ended.

    All pairs run with one seed before the next seed. ``folders`` receives the folders of the runs.
    ``stored`` is called after each run.
    """
    for seed in range(1, runs + 1):
        for story, place in pairs:
            plan = digest(story)
            if seed in results_.read(data).of(story, place, plan):
                continue
            run = _run(story, place, seed, folders, plan, command)
            say(_line(story, place, run))
            stored(results_.add(data, story, place, run))
    return results_.read(data)


def _run(story: Story, place: Place, seed: int, folders: Path, plan: str, command: Command) -> Run:
    begun_s = time.monotonic()
    asked = [*arguments(story, place, seed), "--inline", "--json", "--results", str(folders)]
    done = command(asked)
    common: dict[str, Any] = {
        "system": place.system,
        "mutants": place.mutants,
        "seed": seed,
        "digest": plan,
        "status": done.returncode,
        "seconds": round(time.monotonic() - begun_s, 1),
        "load": round(os.getloadavg()[0], 1),
    }
    try:
        verdict = msgspec.json.decode(done.stdout)
    except msgspec.DecodeError:
        last = tuple(done.stdout.splitlines()[-3:])
        return Run(valid="unknown", why=last or (shlex.join(asked),), **common)
    return Run(**common, **_figures(verdict))


def _figures(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a run that its verdict has."""
    evidence = verdict.get("evidence", {})
    return {
        "valid": verdict["valid"],
        "anomalies": verdict.get("anomalies", {}),
        "allowed": verdict.get("allowed", {}),
        "acknowledged": evidence.get("acked", 0),
        "read": evidence.get("read", 0),
        "faults": evidence.get("faults", 0),
        "effective": evidence.get("faults_effective", 0),
        "commit": str(verdict.get("judged_by", {}).get("commit", "")),
        "why": tuple(verdict.get("unknown_because", ())),
    }


def _line(story: Story, place: Place, run: Run) -> str:
    state = {True: "VALID", False: "INVALID", "unknown": "UNKNOWN"}[run.valid]
    shown = ", ".join(f"{name} {count:,}" for name, count in run.anomalies.items())
    judged = "as expected" if run.is_as_expected(story, place) else "NOT AS EXPECTED"
    planted = "".join(f" with {name}" for name in place.mutants)
    return (
        f"{story.name}: {place.system}{planted}, seed {run.seed}: {state} {shown}"
        f" ({judged}; {run.seconds:.0f} s, load {run.load})"
    )
