"""One plan on two targets: processes and containers have the same results where they must.

Times, offsets and roles differ from run to run. The operations, the faults and their proofs, and
the verdict do not.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from model import history
from model.op import NEMESIS, Op

pytestmark = [pytest.mark.docker, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]

PLAN = """
workload = "idempotent"
nemesis = ["kill", "pause", "partition", "slow", "restart"]
time-limit = 20
concurrency = 6
rate = 200
seed = 11

[[schedule]]
id = 1
at_s = 1.0
duration_s = 1.5
fault = "kill"
targets = ["broker-1"]

[[schedule]]
id = 2
at_s = 6.0
duration_s = 2.0
fault = "partition-one"
targets = ["broker-2"]
options = { from = ["brokers", "zookeeper"] }

[[schedule]]
id = 3
at_s = 10.0
duration_s = 1.0
fault = "slow"
targets = ["broker-3"]
options = { latency_s = 0.05, from = ["brokers"] }

[[schedule]]
id = 4
at_s = 13.0
duration_s = 2.0
fault = "pause"
targets = ["broker-3"]

[[schedule]]
id = 5
at_s = 17.0
duration_s = 1.0
fault = "restart"
targets = ["broker-2"]
"""


@dataclass(frozen=True)
class Run:
    """The results of a run."""

    status: int
    verdict: dict[str, Any]
    plan: dict[str, Any]
    schedule: list[dict[str, Any]]
    ops: list[Op]

    def keys(self) -> set[str]:
        """The partitions that records were sent to."""
        return {op.value[0][1] for op in self._clients() if op.f == "send" and op.value}

    def kinds(self) -> set[tuple[str, str]]:
        """The kinds of operations invoked or completed by clients; doubt is left out as random."""
        return {(op.type, op.f) for op in self._clients() if op.type in ("invoke", "ok")}

    def mix(self) -> dict[str, float]:
        """The share of each operation among those invoked before the final reads."""
        asked = [op for op in self.ops if op.type == "invoke"]
        end = next(at for at, op in enumerate(asked) if op.f == "recover")
        counts = Counter(op.f for op in asked[:end] if op.process != NEMESIS)
        return {f: count / counts.total() for f, count in counts.items()}

    def _clients(self) -> Iterator[Op]:
        return (op for op in self.ops if op.process != NEMESIS)


def run(target: str, plan: Path, results: Path, environment: dict[str, str]) -> Run:
    where = ("--target", target, "--results", str(results))
    done = subprocess.run(
        ["faultline", "run", str(plan), "--json", "--inline", *where],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    [folder] = results.iterdir()
    return Run(
        status=done.returncode,
        verdict=json.loads(done.stdout),
        plan=json.loads((folder / "plan.json").read_text()),
        schedule=[
            json.loads(line) for line in (folder / "schedule.jsonl").read_text().splitlines()
        ],
        ops=list(history.read(folder / "history.jsonl")),
    )


def test_the_same_plan_on_processes_and_containers(
    project_environment: dict[str, str], tmp_path: Path
) -> None:
    """Verdict, faults and their proofs, partitions and the mix of operations are the same."""
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    environment = project_environment | {"XDG_STATE_HOME": str(tmp_path / "state")}
    one, other = (
        run(target, path, tmp_path / target, environment) for target in ("processes", "containers")
    )
    assert one.status == other.status == 0, (one.verdict, other.verdict)

    for what in ("broker", "producer", "consumer", "nemesis", "seed", "workload"):
        assert one.plan[what] == other.plan[what], what
    carried_out = [
        [
            (row["id"], row["fault"], row["targets"], row["effect"]["proved"])
            for row in each.schedule
        ]
        for each in (one, other)
    ]
    assert carried_out[0] == carried_out[1]
    assert all(proved for *_, proved in carried_out[0])
    assert len(carried_out[0]) == 5

    for what in ("valid", "anomalies"):
        assert one.verdict[what] == other.verdict[what], what
    for what in ("faults", "faults_effective"):
        assert one.verdict["evidence"][what] == other.verdict["evidence"][what], what
    assert one.verdict["checkers"].keys() == other.verdict["checkers"].keys()

    for each in (one, other):
        evidence = each.verdict["evidence"]
        assert evidence["keys_caught_up"] == evidence["keys"] == len(each.keys())
    # Topics are created over time, so the faster target may have created one more.
    fewer, more = sorted((one.keys(), other.keys()), key=len)
    assert fewer <= more
    assert len(fewer) >= len(more) / 2
    assert one.kinds() == other.kinds()
    assert one.mix() == pytest.approx(other.mix(), abs=0.1)
