"""A Spark whose Python has none of this project's packages finds what inline finds."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import broker_model, corruptions
from bench.histories import World
from bench.isolation import generate
from model import history
from tests.checkers.standalone_spark import ConnectServer, StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

SIMULATED = (
    ("transactions", "late-produce-hangs"),
    ("groups", "commit-any-generation"),
    ("exactly-once", "txn-offsets-visible-early"),
)
"""Workloads, each with a planted bug that may or may not show in the run."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("spark-cluster")) as started:
        yield started


def faultline(*arguments: Any, folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "harness.app.cli", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def verdicts(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    """Return what was judged, without the names of the executor and the times."""
    out, errors = process.communicate(timeout=400)
    assert out, errors
    judged = json.loads(out)
    found = judged if isinstance(judged, list) else [judged]
    return [{"valid": v["valid"], **{name: v[name] for name in KEPT}} for v in found]


KEPT = ("anomalies", "allowed", "evidence", "notes", "unknown_because")


def write(path: Path, seed: int, operations: int, keys: int = 3) -> Path:
    """Write a history with lost, duplicated and phantom records."""
    rng = random.Random(seed)
    made = World(rng, keys=keys, lost=seed % 3, doubled=seed % 2, phantom=seed % 4, span=30)
    history.write(path, made.events(operations))
    return path


def write_transactions(path: Path, seed: int, operations: int = 100) -> Path:
    """Write a history of transactions with cycles and with defects."""
    rng = random.Random(seed)
    model = broker_model.Model(rng, keys=4, doubt=0.1, deletes=0.05, transactional=4)
    model.run(operations)
    history.write(path, corruptions.corrupt(model, rng, 3)[0])
    return path


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> list[Path]:
    """Thirty histories of all kinds, with and without defects."""
    folder = tmp_path_factory.mktemp("histories")
    paths = [write(folder / f"{seed}.jsonl", seed, 150) for seed in range(18)]
    paths += [write_transactions(folder / f"txn-{seed}.jsonl", seed) for seed in range(6)]
    for seed in (1, 2):
        for workload, mutant in SIMULATED:
            results = folder / f"{workload}-{seed}"
            run = faultline(
                "run", "--target", "simulated", "--workload", workload, "--mutant", mutant,
                "--json", "--time-limit", 10, "--seed", seed, "--results", results,
                folder=repository,
            )  # fmt: skip
            run.communicate(timeout=100)
            paths += results.glob("*/history.jsonl")
    assert len(paths) == 30
    return paths


@pytest.fixture(scope="module")
def here(histories: list[Path], repository: Path) -> list[dict[str, Any]]:
    """What inline finds in them."""
    found = verdicts(faultline("check", *histories, "--inline", "--json", folder=repository))
    assert {v["valid"] for v in found} >= {True, False}
    return found


@pytest.mark.prove
def test_a_cluster_finds_what_inline_finds(
    cluster: StandaloneCluster, histories: list[Path], here: list[dict[str, Any]], repository: Path
) -> None:
    """Both give the same verdicts."""
    done = subprocess.run(
        [cluster.python, "-c", "import msgspec"], capture_output=True, check=False
    )
    assert b"No module named 'msgspec'" in done.stderr
    there = verdicts(
        faultline(
            "check", *histories, "--json", "--spark-master", cluster.url,
            "--conf", f"spark.pyspark.python={cluster.python}", folder=repository,
        )
    )  # fmt: skip
    assert there == here
    assert "Asked to launch executor" in cluster.said("worker-1") + cluster.said("worker-2")


LARGE = """
import sys
from harness.app import spark_judge, typed_history
from harness.app.cli.entry_point import main
from checkers.distributed import chunks
spark_judge.LARGE_BYTES = {".jsonl": 0}
typed_history.read = None
chunks.of_file.__kwdefaults__["size"] = 50_000
main()
"""
"""Judges every history as if it were large."""


@pytest.mark.prove
@pytest.mark.parametrize("has_transactions", [False, True])
def test_a_cluster_reads_a_large_history_in_chunks(
    cluster: StandaloneCluster, tmp_path: Path, repository: Path, has_transactions: bool
) -> None:
    """Its workers get the machine code that they need to read lines, and to find cycles."""
    path = tmp_path / "large.jsonl"
    if has_transactions:
        write_transactions(path, 80, 600)
    else:
        write(path, 5, 3000, keys=9)
    asked = ("check", path, "--json")
    spark = ("--spark-master", cluster.url, "--conf", f"spark.pyspark.python={cluster.python}")
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", LARGE, *map(str, (*asked, *spark))]
    there = subprocess.Popen(command, cwd=repository, stdout=pipe, stderr=pipe, text=True)
    [found] = verdicts(there)
    assert [found] == verdicts(faultline(*asked, "--inline", folder=repository))
    assert ("G0" in found["allowed"]) == has_transactions
    assert found["valid"] is False


@pytest.mark.prove
def test_a_cluster_judges_transactions_on_lists(
    cluster: StandaloneCluster, tmp_path: Path, repository: Path
) -> None:
    """Its workers find cycles without SciPy, and return what was found inline."""
    path = tmp_path / "lists.parquet"
    generate.write(path, 20_000, planted=True)
    asked = ("check", path, "--model", "list-append", "--json")
    spark = ("--spark-master", cluster.url, "--conf", f"spark.pyspark.python={cluster.python}")
    there, here = (
        json.loads(faultline(*asked, *where, folder=repository).communicate(timeout=400)[0])
        for where in (spark, ("--inline",))
    )
    assert there == here
    assert there["verdict"]["anomalies"]["G2-item"] == 1


@pytest.mark.prove
def test_a_connect_server_finds_what_inline_finds(
    tmp_path: Path, histories: list[Path], here: list[dict[str, Any]], repository: Path
) -> None:
    """Tables and code reach a server that sees none of this process's files."""
    with ConnectServer(tmp_path) as server:
        there = verdicts(
            faultline(
                "check", *histories[::3], "--json", "--spark-remote", server.url, folder=repository
            )
        )
        refused = faultline(
            "check", histories[0], "--spark-remote", server.url,
            "--conf", "spark.executor.memory=1g", folder=repository,
        )  # fmt: skip
        out, _ = refused.communicate(timeout=60)
    assert there == here[::3]
    assert refused.returncode == 2
    assert "refused: spark.executor.memory can only be set where the server is started" in out


@pytest.mark.prove
def test_a_worker_that_is_killed_costs_no_finding(
    cluster: StandaloneCluster, tmp_path: Path, repository: Path
) -> None:
    """Tasks of a lost worker run again on the other one."""
    path = write(tmp_path / "large.jsonl", 7, 60_000, keys=24)
    here = verdicts(faultline("check", path, "--inline", "--json", folder=repository))
    judging = faultline(
        "check", path, "--json", "--spark-master", cluster.url,
        "--conf", f"spark.pyspark.python={cluster.python}", folder=repository,
    )  # fmt: skip
    limit_s = time.monotonic() + 100
    while not cluster.runs_python("worker-2"):
        assert time.monotonic() < limit_s
        assert judging.poll() is None, "it ended before a worker could be killed"
        time.sleep(0.01)
    cluster.kill("worker-2")
    assert verdicts(judging) == here
    assert here[0]["anomalies"].keys() >= {"lost-write", "phantom"}
