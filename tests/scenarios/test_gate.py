"""``faultline gate`` in a CI job: a suite of two short runs, one of them with a bug."""

import json
import subprocess
from pathlib import Path

import pytest
from junitparser import JUnitXml

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]

# A leader that is cut off from its followers dies before they leave the ISR.
PLAN = """
nemesis = ["partition", "kill"]
time-limit = 5
concurrency = 6
rate = 150

[options]
topics = 1
late_topics = 0
partitions = 1

[[schedule]]
id = 1
at_s = 1.5
duration_s = 1.8
fault = "partition-leader"
targets = "leader:topic0-0"

[[schedule]]
id = 2
at_s = 1.9
duration_s = 1.4
fault = "kill"
targets = "leader:topic0-0"
"""

SUITE = """
name = "tiny"
inline = true
keep = 1

[configurations.with-bug]
mutants = ["ack-on-local-append"]

[[matrix]]
plan = "aimed.toml"
configuration = ["default", "with-bug"]
"""


@pytest.mark.prove
def test_a_bug_in_one_case_turns_the_gate_red_by_name(
    tmp_path: Path, project_environment: dict[str, str]
) -> None:
    """The gate exits with 1, and the JUnit file names the anomaly of the buggy case.

    The message also names the partition. The correct broker's case is green.
    """
    (tmp_path / "aimed.toml").write_text(PLAN)
    (tmp_path / "tiny.toml").write_text(SUITE)
    junit = tmp_path / "out" / "junit.xml"
    done = subprocess.run(
        ["faultline", "gate", "tiny.toml", "--junit", str(junit), "--json", "--results", "results"],
        cwd=tmp_path,
        env=project_environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    gate = json.loads(done.stdout)
    correct, buggy = gate["cases"]
    assert (correct["status"], buggy["status"]) == ("valid", "invalid"), done.stderr
    assert buggy["anomalies"]["lost-write"] > 0
    assert all(fault["proved"] for case in gate["cases"] for fault in case["faults"])
    (suite,) = JUnitXml.fromfile(str(junit))
    assert (suite.tests, suite.failures, suite.errors) == (2, 1, 0)
    (failure,) = [result for case in suite for result in case.result]
    assert failure.message.startswith(
        f"lost-write {buggy['anomalies']['lost-write']:,} · partition topic"
    )
    (folder,) = (tmp_path / "results" / "gates").iterdir()
    assert (folder / "index.html").is_file()
    assert {run["folder"] for run in gate["cases"]} == {
        f"runs/{path.name}" for path in (folder / "runs").iterdir()
    }
    assert (folder / buggy["folder"] / "report.html").is_file()
    assert (folder / buggy["folder"] / "nodes" / "broker-1" / "data").is_dir()
