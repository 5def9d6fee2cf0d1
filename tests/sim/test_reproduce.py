"""A red run on processes is simulated and shrunk by the commands that it prints."""

import json
import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest

from harness.app import plan_resolution
from tests.sim.conftest import INVALID

BUG = "ack-on-local-append"


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_from_processes_to_a_test_case(
    project_environment: dict[str, str], repository: Path, tmp_path: Path
) -> None:
    """A red run on processes becomes a small test case.

    Its plan shows the same anomaly in a simulation, and ``shrink`` accepts the folder of that by
    the command that is printed; a second time, the answer is the same.
    """
    fields = plan_resolution.from_toml(repository / "examples" / "plans" / f"{BUG}.toml")
    plan = plan_resolution.resolve(plan_resolution.plan_of(fields | {"mutants": (BUG,)}))
    assert plan.target == "processes"
    real = tmp_path / "real"
    real.mkdir()
    (real / "plan.json").write_bytes(msgspec.json.encode(plan))
    (real / "verdict.json").write_text('{"valid": false, "anomalies": {"lost-write": 2704}}')

    def faultline(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["faultline", *map(str, words)],
            env=project_environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    words = ("replay", real, "--target", "simulated", "--seeds", 2, "--results")
    shown = faultline(*words, "shown")
    assert shown.returncode == INVALID, shown.stderr
    assert "lost-write 2,704 on processes: the simulation shows the same anomaly" in shown.stdout
    again = faultline(*words, "again", "--json", "--jobs", 1)
    told = json.loads(again.stdout)
    assert (again.returncode, told["shows"], told["anomaly"]) == (INVALID, "same", "lost-write")
    [folder] = (tmp_path / "shown").iterdir()
    for name in ("history.jsonl", "plan.json"):
        assert (folder / name).read_bytes() == (tmp_path / told["folder"] / name).read_bytes()
    [line] = [line for line in shown.stdout.splitlines() if "shrink: " in line]
    _, *shrink = shlex.split(line.partition("shrink: ")[2])
    small = faultline(*shrink, "--minutes", 0.5, "--json", "--results", "small")
    assert small.returncode == INVALID, small.stderr
    assert json.loads(small.stdout)["anomaly"] == "lost-write"
