"""Each planted bug has a schedule that shows it every time; the correct broker passes it.

A new one is a registration (``broker_impl/mutants``) and a plan of its name: no line here.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker_impl import mutants

ROOT = Path(__file__).resolve().parents[3]
PLANS = {plan.stem: plan for plan in sorted((ROOT / "examples" / "mutants").glob("*.toml"))}

Verdict = dict[str, Any]


def played(plan: Path, *planted: str) -> tuple[Verdict, Verdict]:
    """The verdicts on a plan as it is, and with these mutants planted too."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("play.py")), str(plan), *planted],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    without, with_them = map(json.loads, done.stdout.splitlines())
    return without, with_them


def test_every_mutant_has_a_plan() -> None:
    """No planted bug goes unseen, and no plan is for none."""
    assert sorted(PLANS) == [
        name for name in mutants.names() if mutants.get(name).kind not in ("control", "protocol")
    ]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", PLANS)
def test_red_with_it_and_green_without(name: str) -> None:
    """Its plan is red with the bug, by the anomaly that its story names, and valid without it,
    all faults in effect."""
    without, planted = played(PLANS[name], name)
    assert without["valid"] is True, without
    assert without["evidence"]["faults"] == without["evidence"]["faults_effective"] > 0
    assert planted["valid"] is False, planted
    assert mutants.get(name).symptom in planted["anomalies"], planted["anomalies"]
