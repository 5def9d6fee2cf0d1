"""Writes a shrunk plan as a test case: one self-contained file for pytest."""

import json
import re
import textwrap
from pathlib import Path

import msgspec

from harness.app import plan_resolution
from harness.cluster.mutants import protocols
from model.plan import Plan

_TEST = '''"""Seed {seed}: {faults}."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PLAN = json.loads(
    r"""
{plan}
"""
)


def verdict(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the verdict of this plan in a new simulation."""
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan))
    command = ["replay", str(folder), "--inline", "--json", "--results", str(folder / "again")]
    done = subprocess.run(
        [sys.executable, "-m", "harness.app.cli", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    judged: dict[str, Any] = json.loads(done.stdout)
    return judged

{tests}'''

_MUTANT = '''
def test_{name}_is_found(tmp_path: Path) -> None:
    """With the planted bug this shows {anomaly}.

    Without the bug, and with faults that take effect, the verdict is valid.
    """
    assert "{anomaly}" in verdict(PLAN, tmp_path / "planted")["anomalies"]
    correct = verdict(PLAN | {{"mutants": {protocols}}}, tmp_path / "correct")
    assert correct["valid"] is True, correct
'''

_BUG = '''
def test_no_{name}(tmp_path: Path) -> None:
    """This schedule showed {anomaly} once.

    If its faults no longer take effect, the verdict is not valid, and the test fails too.
    """
    judged = verdict(PLAN, tmp_path / "run")
    assert judged["valid"] is True, judged
'''


def write(folder: Path, plan: Plan, anomaly: str) -> Path:
    """Write ``test_<anomaly>_seed<n>.py`` into this folder, and return its path."""
    path = folder / f"test_{_name(anomaly)}_seed{plan.seed}.py"
    path.write_text(text(plan, anomaly))
    return path


def text(plan: Plan, anomaly: str) -> str:
    """Return the test case: red while the bug exists; with a planted bug, green while it shows."""
    small = msgspec.structs.replace(plan_resolution.masked(plan), versions={}, commit="")
    document = msgspec.json.format(msgspec.json.encode(small), indent=2).decode()
    correct = protocols(plan.mutants)
    shape = _BUG if correct == plan.mutants else _MUTANT
    names = json.dumps(list(correct))
    test = shape.format(name=_name(anomaly), anomaly=anomaly, protocols=names)
    faults = ", ".join(fault.fault for fault in plan.schedule or ()) or "no faults"
    faults = textwrap.shorten(faults, 80, placeholder=" …")
    return _TEST.format(seed=plan.seed, faults=faults, plan=document, tests=test)


def _name(anomaly: str) -> str:
    """Return the anomaly's name in a form that suits functions and files."""
    return re.sub(r"\W", "_", anomaly).lower()
