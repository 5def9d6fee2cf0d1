"""A gate's files: checked before the first case, and written whatever happens."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import pytest

from harness.app.gate import outcome
from harness.app.gate.outcome import Gate, exit_status
from harness.app.gate.suite import load, suite
from harness.app.lake import store
from harness.app.lake.store import Lake
from harness.app.refused import Refused
from harness.app.run import Failed
from tests.harness.app.gate.fake_runs import (
    LOST,
    VALID,
    FakeRun,
    asked,
    carried_out,
    names,
    statuses,
)


def test_a_folder_that_cannot_be_removed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's folder that cannot be removed stays, a message says so, and the gate continues."""

    def fail(*_: object) -> None:
        raise PermissionError(13, "not yours")

    monkeypatch.setattr(shutil, "rmtree", fail)
    gate, _, told = carried_out(tmp_path, FakeRun(), asked(keep=0))
    assert statuses(gate) == ["valid"] * 3
    assert told.count("could not be removed: [Errno 13] not yours") == 3


@pytest.mark.parametrize("path", ["/dev/null/x/junit.xml", "folder"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    path: str, tmp_path: Path
) -> None:
    """A JUnit path that cannot be written is refused in one line before any case begins."""
    (tmp_path / "folder").mkdir()
    run = FakeRun()
    with pytest.raises(Refused, match="--junit "):
        carried_out(tmp_path, run, junit_to=tmp_path / path)
    assert not run.plans


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    """A JUnit path that is a device, pipe or folder is refused; a link is followed and stays.

    Replacing a device would remove it for the whole machine.
    """
    pipe, link, there = tmp_path / "pipe", tmp_path / "link", tmp_path / "deep" / "junit.xml"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link, tmp_path):
        with pytest.raises(Refused, match="this path exists and is not a regular file"):
            carried_out(tmp_path, FakeRun(), junit_to=path)
    assert pipe.is_fifo()
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(Refused, match="this path exists and is not a regular file"):
        carried_out(tmp_path, FakeRun(), junit_to=link)
    link.unlink()
    link.symlink_to(there)
    carried_out(tmp_path, FakeRun(), junit_to=link)
    assert link.is_symlink()
    assert there.read_text().startswith("<testsuites")


def test_a_suite_is_not_replaced_by_its_junit_file(tmp_path: Path) -> None:
    """A JUnit path that is the suite's file, or a plan of it, by any name, is refused."""
    (tmp_path / "plan.toml").write_text("seed = 1\n")
    (tmp_path / "suite.toml").write_text("[[matrix]]\nplan = 'plan.toml'\n")
    (tmp_path / "link.xml").symlink_to("suite.toml")
    asked = dataclasses.replace(load(tmp_path / "suite.toml"), inline=True)
    for name in ("suite.toml", "plan.toml", "link.xml"):
        with pytest.raises(Refused, match="this file belongs to the suite itself"):
            carried_out(tmp_path, FakeRun(), asked, junit_to=tmp_path / name)
    assert (tmp_path / "suite.toml").stat().st_size
    assert (tmp_path / "plan.toml").stat().st_size


def test_a_file_that_cannot_be_written_meanwhile_does_not_lose_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If ``gate.json`` cannot be written after a case, the gate continues and writes it later."""
    write = outcome.write

    def full(folder: Path, gate: Gate) -> None:
        if len(gate.cases) == 1:
            raise OSError(28, "No space left on device")
        write(folder, gate)

    monkeypatch.setattr(outcome, "write", full)
    gate, folder, _ = carried_out(tmp_path, FakeRun(LOST))
    assert (statuses(gate), exit_status(gate)) == (["invalid", "valid", "valid"], 1)
    assert names(folder) == {"gate.json", "index.html", "junit.xml", "summary.md", "runs"}


def test_the_job_summary_is_added_to_githubs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary is appended to that of GitHub's job, after the text of other steps."""
    github = tmp_path / "step.md"
    github.write_text("# Build\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(github))
    _, folder, _ = carried_out(tmp_path, FakeRun())
    assert github.read_text() == "# Build\n" + (folder / "summary.md").read_text()


def test_a_page_that_cannot_be_written_does_not_change_the_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that cannot be written is reported, and does not change the verdict."""

    def fail(*_: object) -> None:
        raise ValueError("no ink")

    monkeypatch.setattr("harness.app.gate.page.render", fail)
    gate, folder, told = carried_out(tmp_path, FakeRun())
    assert exit_status(gate) == 0
    assert "index.html could not be written: ValueError: no ink" in told
    assert names(folder) == {"gate.json", "junit.xml", "summary.md", "runs"}


def test_earlier_gates_are_on_the_page(tmp_path: Path) -> None:
    """Trends come from earlier gates of the same suite in the same results folder."""
    first, _, _ = carried_out(tmp_path, FakeRun())
    _, folder, _ = carried_out(tmp_path, FakeRun())
    assert names(tmp_path / "gates") >= {first.name, folder.name}
    assert len(names(tmp_path / "gates")) == 2
    assert [gate.name for gate in outcome.earlier(folder, "quick")] == [first.name]


def test_what_was_asked_in_the_suites_place_is_told(tmp_path: Path) -> None:
    """``--seed`` and ``--mutant`` are recorded in ``gate.json``, and mutants in each case."""
    wanted = suite({"inline": True, "matrix": [{}]}, Path("q.toml"), seed=7,
                   mutants=["no-min-isr-check"])  # fmt: skip
    _, folder, _ = carried_out(tmp_path, FakeRun(), wanted, seed=7, mutants=["no-min-isr-check"])
    there = json.loads((folder / "gate.json").read_text())
    assert (there["seed"], there["mutants"]) == (7, ["no-min-isr-check"])
    assert there["cases"][0]["mutants"] == ["no-min-isr-check"]
    assert there["cases"][0]["seed"] == 7


def test_every_run_is_in_the_lake(tmp_path: Path) -> None:
    """Each case's run is added to the lake, also one that failed or whose folder is removed."""
    lake = Lake.create(tmp_path / "lake")
    run = FakeRun(VALID, VALID, Failed("it broke"))
    _, folder, printed = carried_out(tmp_path, run, asked(3, keep=1), lake=lake)
    with lake.reading() as paths:
        rows = store.read(paths, ["name", "suite", "configuration", "folder"]).to_pylist()
    assert [(row["name"], row["suite"], row["configuration"]) for row in rows] == [
        (f"run-{number}", "quick", "default") for number in range(3)
    ]
    kept = {row["name"] for row in rows if row["folder"] is not None}
    assert kept == names(folder / "runs")
    assert "not added" not in printed


def test_a_lake_that_cannot_be_written_changes_no_verdict(tmp_path: Path) -> None:
    """Why a run was not added is printed; the gate goes on."""
    lake = Lake.create(tmp_path / "lake")
    (lake.folder / "rows-00000001.parquet").write_bytes(b"no rows")
    gate, _, printed = carried_out(tmp_path, FakeRun(), asked(1), lake=lake)
    assert (gate.valid, printed.count("was not added")) == (True, 1)
