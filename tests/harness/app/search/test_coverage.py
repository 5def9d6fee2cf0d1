"""What a search reaches: the figures of its runs, merged from several processes."""

import hashlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from broker_impl.replica import isr
from harness.app.progress import Screen
from harness.app.rules import figures
from harness.app.rules.figures import Figures, FunctionFigures
from harness.app.search import campaign
from harness.app.search.campaign import SearchRequest
from harness.app.search.outcome import RunResult

ROOT = Path(__file__).resolve().parents[4]


def _each(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
    """A run that calls one rule: even seeds with enough replicas, odd ones without."""
    isr.enough_in_sync(1 + seed % 2, 2)
    if seed == 4:
        os.kill(os.getpid(), signal.SIGABRT)
    return RunResult(seed=seed, status="valid")


def _search(tmp_path: Path, jobs: int) -> Figures:
    asked = SearchRequest(runs=4, jobs=jobs, enough=None, coverage=True)
    seen = campaign.run(asked, tmp_path, Screen(io.StringIO()), _each)
    return figures.read(Path(seen.folder))


def _function(found: Figures, name: str) -> FunctionFigures:
    [function] = [each for each in found.functions if each.name.endswith(name)]
    return function


def test_the_figures_of_processes_are_merged(tmp_path: Path) -> None:
    """Any number of processes gives the same figures; one that crashed counts as no run."""
    own = isr.enough_in_sync.__code__
    found = _search(tmp_path / "one", 1)
    assert _search(tmp_path / "three", 3) == found
    assert found.runs == 3
    rule = _function(found, "isr:enough_in_sync")
    assert (rule.runs, rule.first_seed, "no-min-isr-check" in rule.mutants) == (3, 1, True)
    assert [(each.outcome, each.runs, each.first_seed) for each in rule.branches] == [
        ("true", 2, 1),
        ("false", 1, 2),
    ]
    assert _function(found, "transactions.rules:fenced").runs == 0
    assert isr.enough_in_sync.__code__ is own


def test_the_rules_are_those_of_the_system(tmp_path: Path) -> None:
    """A search of ensembles counts the rules of ZooKeeper."""
    asked = SearchRequest(runs=1, coverage=True, pinned={"system": "zookeeper"})
    seen = campaign.run(asked, tmp_path, Screen(io.StringIO()), _each)
    names = {each.name.split(":")[0] for each in figures.read(Path(seen.folder)).functions}
    assert "broker_impl.zookeeper.quorum.leader_rules" in names
    assert all(name.startswith("broker_impl.zookeeper") for name in names)


@pytest.mark.prove
def test_a_run_is_the_same_with_probes(tmp_path: Path) -> None:
    """The history of a seed does not depend on whether coverage is recorded, or on the jobs."""
    plan = tmp_path / "plan.toml"
    plan.write_text('target = "simulated"\nworkload = "transactions"\ntime-limit = 3\n')
    hashes = [
        _hashes(tmp_path / name, plan, *options)
        for name, options in {
            "plain": (),
            "probed": ("--coverage", "--jobs", "1"),
        }.items()
    ]
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) == 2
    [folder] = (tmp_path / "probed" / "searches").iterdir()
    found = figures.read(folder)
    assert found.runs == 2
    assert found.rules.functions_reached > 40
    assert _function(found, "transactions.rules:may_expire").branches


def _hashes(results: Path, plan: Path, *options: str) -> list[str]:
    """Return the hashes of the histories of two runs."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "harness.app.cli", "search", str(plan), "--nemesis", "none"),
            *("--runs", "2", "--keep", "2", "--keep-going", "--results", str(results), *options),
        ],
        cwd=results.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode in (0, 2), done.stderr
    if options:
        assert "branches reached" in done.stdout
    histories = sorted(results.glob("searches/*/seed*/history.jsonl"))
    return [hashlib.sha256(history.read_bytes()).hexdigest() for history in histories]
