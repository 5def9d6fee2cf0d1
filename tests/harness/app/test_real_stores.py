"""A real store, such as HDFS or S3: what is there is judged as what is here."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench.histories import World
from harness.app import check
from model import history

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        "FAULTLINE_STORE" not in os.environ, reason="store: FAULTLINE_STORE names no folder"
    ),
]

UPLOAD = """
import sys
from pathlib import Path
from checkers import engine, session
engine.select(engine.Engine.of(None, sys.argv[4:]))
spark = session.start(Path(sys.argv[1]))
try:
    java = spark.sparkContext._jvm.org.apache.hadoop.fs
    target = java.Path(sys.argv[3])
    files = target.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    files.copyFromLocalFile(False, True, java.Path(sys.argv[2]), target)
finally:
    session.stop(spark)
"""
"""Copies a folder into the store."""


def test_histories_in_a_store(tmp_path: Path) -> None:
    """A large file that executors read, and a small one that is copied, give the same findings."""
    here = tmp_path / "nightly"
    here.mkdir()
    for name, operations in (("large", 80_000), ("small", 500)):
        world = World(random.Random(7), keys=9, lost=2, phantom=1, doubt=0.02, span=2000)
        history.write(here / f"{name}.jsonl", world.events(operations))
    assert (here / "large.jsonl").stat().st_size > 64 << 20
    store = f"{os.environ['FAULTLINE_STORE'].rstrip('/')}/nightly"
    settings = os.environ.get("FAULTLINE_STORE_CONF", "").split()
    upload = [sys.executable, "-c", UPLOAD, tmp_path, here, store, *settings]
    subprocess.run([*map(str, upload)], check=True)
    command = [sys.executable, "-m", "harness.app.cli", "check", f"{store}/*.jsonl", "--json"]
    for setting in settings:
        command += ["--conf", setting]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 1, run.stderr
    for name, verdict in zip(("large", "small"), json.loads(run.stdout), strict=True):
        expected = check.judge(here / f"{name}.jsonl", inline=True)
        assert verdict["anomalies"] == expected.anomalies
        assert verdict["evidence"] == expected.evidence
    command[4] = f"{store}/missing*.jsonl"
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 64
    assert "no file or folder has such a name" in run.stderr
