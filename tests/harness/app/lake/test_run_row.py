"""The row of a run, from the files of its folder."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.app.lake import run_row, schema
from tests.harness.app.lake import made_runs


def row(folder: Path, **about: str) -> dict[str, Any]:
    """The row of a folder, as it is read from a table of the lake's schema."""
    found = run_row.of_folder(folder, about)
    assert set(found) <= set(schema.ROW.names)
    (stored,) = pa.Table.from_pylist([found], schema=schema.ROW).to_pylist()
    return dict(stored)


def test_a_run_has_a_row(tmp_path: Path) -> None:
    """Plan, verdict, faults and measures of a run are columns of its row."""
    found = row(made_runs.make(tmp_path / made_runs.NAME), suite="quick")
    named = {"name": made_runs.NAME, "commit": made_runs.COMMIT, "suite": "quick", "seed": 7,
             "system": "kafka", "release": None, "nemesis": "kill", "verdict": "valid", "acked": 2,
             "throughput_hz": 0.5, "duration_s": 3.5, "missing": []}  # fmt: skip
    assert {name: found[name] for name in named} == named
    assert found["time"] == datetime(2026, 11, 20, 16, 15, tzinfo=UTC)
    assert {"component": "broker", "key": "min.insync.replicas", "value": "2"} in found["settings"]
    (fault,) = found["fault_list"]
    assert (fault["fault"], fault["targets"], fault["healed_s"]) == ("kill", "broker-1", 2.0)


def test_measures(tmp_path: Path) -> None:
    """The outage lasts until the acknowledgement, the recovery from the heal until then."""
    found = row(made_runs.make(tmp_path / made_runs.NAME))
    assert found["outage_s"] == pytest.approx(2.4)
    assert found["recovery_s"] == pytest.approx(0.5)
    assert {(span["kind"], span["key"], span["fault_id"]) for span in found["spans"]} == {
        ("outage", "x-0", None),
        ("recovery", "x-0", 1),
    }
    of_f = {(each["operation"], each["phase"]): each for each in found["latency_list"]}
    assert set(of_f) == {("send", "work"), ("poll", "final"), ("catch-up", "final")}
    sent = of_f["send", "work"]
    assert (sent["count"], sent["max_ms"], sent["p50_ms"]) == (2, 2400.0, 1205.0)
    acked = {each["second"]: each["acked"] for each in found["seconds"]}
    assert acked == {0: 1, 2: 1, 3: 0}


@pytest.mark.parametrize(
    ("gone", "nulls"),
    [
        ("plan.json", ("commit", "workload", "throughput_hz")),
        ("verdict.json", ("verdict", "acked")),
        ("findings.parquet", ()),
        ("schedule.jsonl", ()),
        ("history.*", ("outage_s", "duration_s")),
    ],
)
def test_a_missing_file_is_named(gone: str, nulls: tuple[str, ...], tmp_path: Path) -> None:
    """A run without some file has a row with what the other files have."""
    folder = made_runs.make(tmp_path / made_runs.NAME)
    for path in list(folder.glob(gone)):
        path.unlink()
    found = row(folder)
    (missing,) = found["missing"]
    assert missing.startswith(gone.split(".")[0])
    assert [found[name] for name in nulls] == [None] * len(nulls)
    assert found["name"] == made_runs.NAME


@pytest.mark.parametrize("name", ["plan.json", "verdict.json", "findings.parquet",
                                  "schedule.jsonl"])  # fmt: skip
def test_a_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    """A file that cannot be read is named with the reason, in one line."""
    folder = made_runs.make(tmp_path / made_runs.NAME)
    (folder / name).write_bytes(b'{"seed":\n')
    missing = row(folder)["missing"]
    assert [text.startswith(f"{name}: ") and "\n" not in text for text in missing] == [True]


def test_a_damaged_parquet_history_is_read_from_its_lines(tmp_path: Path) -> None:
    """Where history.parquet cannot be read, history.jsonl is; then nothing is missing."""
    folder = made_runs.make(tmp_path / made_runs.NAME)
    (folder / "history.parquet").write_bytes(b"PAR1")
    found = row(folder)
    assert (found["duration_s"], found["missing"]) == (3.5, [])


def test_a_crash_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    """Without a verdict, crash.txt shows that Faultline failed; otherwise nothing is known."""
    folder = made_runs.make(tmp_path / made_runs.NAME, judged=False)
    assert row(folder)["verdict"] is None
    (folder / "crash.txt").write_text("Traceback")
    assert row(folder)["verdict"] == "failed"


def test_releases(tmp_path: Path) -> None:
    """A release of Apache Kafka is in the system's name."""
    folder = made_runs.make(tmp_path / made_runs.NAME, system="apache-kafka:3.9.1")
    found = row(folder)
    assert (found["system"], found["release"]) == ("apache-kafka", "3.9.1")


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    """A folder without any file of a run, or with a link in its place, has no row."""
    with pytest.raises(run_row.NoRun, match="not the folder of a run"):
        run_row.of_folder(tmp_path)
    (tmp_path / "plan.json").symlink_to("/etc/hostname")
    with pytest.raises(run_row.NoRun, match="symbolic link"):
        run_row.of_folder(tmp_path)
