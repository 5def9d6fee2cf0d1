"""The verbs ``lake add`` and ``sql``: what they print, and their exit statuses."""

import json
from pathlib import Path

import pytest

from tests.harness.app.cli.conftest import Call
from tests.harness.app.lake import made_runs


def test_adding(tmp_path: Path, call: Call) -> None:
    """A run is added once; the result is a line, or JSON."""
    run = made_runs.make(tmp_path / made_runs.NAME)
    lake = tmp_path / "lake"
    status, out, _ = call("lake", "add", str(run), "--lake", str(lake))
    assert (status, out) == (0, f"{lake}: 1 runs added\n")
    status, out, _ = call("lake", "add", str(run), "--lake", str(lake), "--json")
    assert status == 0
    assert json.loads(out) == {"lake": str(lake), "runs": 1, "added": 0, "incomplete": 0}


def test_the_environment_names_a_lake(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --lake, FAULTLINE_LAKE counts; without both the request is wrong."""
    run = made_runs.make(tmp_path / made_runs.NAME)
    monkeypatch.delenv("FAULTLINE_LAKE", raising=False)
    status, _, err = call("lake", "add", str(run))
    assert (status, err.count("\n")) == (64, 1)
    monkeypatch.setenv("FAULTLINE_LAKE", str(tmp_path / "lake"))
    assert call("lake", "add", str(run))[0] == 0


@pytest.mark.parametrize("arguments", [("lake", "add", "none"), ("sql", "select 1")])
def test_wrong_requests(arguments: tuple[str, ...], tmp_path: Path, call: Call) -> None:
    """A path that does not exist and a folder without a lake: status 64 and one line."""
    status, out, err = call(*arguments, "--lake", str(tmp_path))
    assert (status, out, err.count("\n")) == (64, "", 1)
    assert err.startswith("faultline: ")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.prove
def test_asking(tmp_path: Path, project_environment: dict[str, str]) -> None:
    """``faultline sql`` starts Spark and prints the rows; Spark's options work."""
    import subprocess

    run = made_runs.make(tmp_path / made_runs.NAME)
    statement = "select verdict, count(*) as n from runs group by verdict"
    for arguments in (
        ["lake", "add", str(run), "--lake", "lake"],
        ["sql", statement, "--lake", "lake", "--format", "csv", "--spark-master", "local[1]",
         "--conf", "spark.sql.shuffle.partitions=1"],
    ):  # fmt: skip
        done = subprocess.run(
            ["faultline", *arguments], cwd=tmp_path, env=project_environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert done.stdout == "verdict,n\nvalid,1\n"
