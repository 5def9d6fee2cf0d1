"""Releases of Apache Kafka keep what they acknowledge, in both modes, under faults.

These tests are few, because a cluster of Java programs takes some ten seconds to start.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from model import cluster_facts

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.real_kafka,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]

PLAN = """
workload = "{workload}"
nemesis = {nemesis}
system = "{system}"
time-limit = 20
inline = true

[options]
coordination = "{coordination}"

[[schedule]]
id = 1
at_s = 3.0
duration_s = 5.0
fault = "{first}"
targets = "leader:topic0-0"
options = {{ from = ["brokers", "{keepers}"] }}

[[schedule]]
id = 2
at_s = 11.0
duration_s = 2.0
fault = "{second}"
targets = "controller"
"""
ZOOKEEPER = {
    "workload": "idempotent",
    "nemesis": '["kill", "partition"]',
    "system": "apache-kafka:3.9.1",
    "coordination": "zookeeper",
    "first": "partition-one",
    "second": "kill",
    "keepers": "zookeeper",
}
KRAFT = {
    "workload": "idempotent",
    "nemesis": '["controllers", "partition"]',
    "system": "apache-kafka:4.1.0",
    "coordination": "kraft-separate",
    "first": "partition-one",
    "second": "kill-controllers",
    "keepers": "controllers",
}


def run(plan: Path, environment: dict[str, str]) -> tuple[int, dict[str, Any], Path]:
    """Return the exit status, the verdict and the folder of a run."""
    results = plan.parent / "results"
    done = subprocess.run(
        ["faultline", "run", str(plan), "--json", "--results", str(results)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    [folder] = results.iterdir()
    return done.returncode, json.loads(done.stdout), folder


@pytest.mark.parametrize("mode", [ZOOKEEPER, KRAFT], ids=["zookeeper", "kraft"])
def test_a_release_is_valid_under_faults(
    mode: dict[str, str], tmp_path: Path, project_environment: dict[str, str]
) -> None:
    """A leader is cut off from its peers, then the controller is killed: nothing is lost."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(**mode))
    status, verdict, folder = run(plan, project_environment)
    assert status == 0, verdict
    assert verdict["evidence"]["faults_effective"] == 2
    facts = cluster_facts.read(folder)
    assert facts is not None
    assert facts.broker["min.insync.replicas"] == "2"
    assert facts.mode == mode["coordination"].partition("-")[0]
    assert mode["system"].startswith(f"apache-kafka:{facts.release}")
