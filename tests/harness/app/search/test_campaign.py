"""A search over fake runs: what it counts, keeps and reports, and when it ends."""

import errno
import io
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app.lake import store
from harness.app.lake.store import Lake
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.search import batch_check, campaign, draw, outcome, single_run
from harness.app.search.batch_check import BatchResult
from harness.app.search.campaign import SearchRequest
from harness.app.search.outcome import RunResult, Status, Summary


@pytest.fixture(autouse=True)
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the page of a run: fake runs have no history to draw."""
    monkeypatch.setattr(
        single_run, "finish", lambda folder: (folder / "report.html").write_text("page")
    )


def _ran(seed: int, status: Status = "valid", **more: Any) -> RunResult:
    values: dict[str, Any] = {"simulated_seconds": 41.0, "acked": 600 + seed}
    values |= {"faults_effective": 4, "snapshots": 2000}
    return RunResult(seed=seed, status=status, **(values | more))


def _red(*seeds: int, status: Status = "invalid") -> Any:
    """Return a fake run that has the given status for the given seeds and is valid otherwise."""

    def each(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        (folder / "history.jsonl").write_text(str(seed))
        if seed not in seeds:
            return _ran(seed)
        return _ran(seed, status, why=(f"it was {seed}",), anomalies={"lost-write": 3})

    return each


def _search(tmp_path: Path, each: Any, **asked: Any) -> Summary:
    return campaign.run(SearchRequest(**asked), tmp_path, Screen(io.StringIO()), each)


def test_green_runs_are_counted_and_dropped(tmp_path: Path) -> None:
    """A green search leaves a summary, and no folder of any run."""
    told = _search(tmp_path, _red(), first=5, runs=7, jobs=2)
    assert (told.runs, told.seed, told.stopped) == (7, 5, "done")
    assert told.acked == sum(600 + seed for seed in range(5, 12))
    assert told.simulated_seconds == 7 * 41
    assert told.faults_effective == 28
    assert told.snapshots == 14_000
    assert told.least == {"simulated_seconds": 41, "acked": 605, "faults_effective": 4}
    assert (told.findings, told.doubtful, told.unknown, told.failed) == ((), (), 0, 0)
    assert outcome.exit_status(told) == 0
    folder = Path(told.folder)
    assert folder.parent == tmp_path / "searches"
    assert [path.name for path in folder.iterdir()] == [outcome.FILE]
    assert msgspec.json.decode((folder / outcome.FILE).read_bytes(), type=Summary) == told


def test_a_sample_of_passes_is_kept(tmp_path: Path) -> None:
    """The folders of the first `keep` valid runs are kept, with a page each."""
    told = _search(tmp_path, _red(), runs=4, keep=2)
    kept = sorted(path.name for path in Path(told.folder).glob("seed*"))
    assert kept == ["seed1", "seed2"]
    assert (Path(told.folder) / "seed1" / "report.html").exists()


def test_the_workload_of_each_run_is_reported(tmp_path: Path) -> None:
    """The summary names the workload of every run, also of one whose process crashed."""
    pinned = {"brokers": 3}

    def each(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        if seed == 2:
            os.kill(os.getpid(), signal.SIGABRT)
        status: Status = "invalid" if seed == 3 else "valid"
        return _ran(seed, status, workload=draw.workload_of(seed, pinned), why=("why",))

    told = _search(tmp_path, each, runs=4, enough=None, pinned=pinned)
    expected = {seed: draw.plan_of(seed, pinned).workload for seed in range(1, 5)}
    assert {seed: name for name, seeds in told.workloads.items() for seed in seeds} == expected
    assert told.findings[0].workload == expected[3]
    assert told.doubtful[0].workload == expected[2]
    words = outcome.describe(told, "faultline replay")
    assert f"seed 3 {expected[3]} INVALID: why" in words
    assert f"{len(told.workloads[expected[4]])} {expected[4]}" in words
    assert "-mixed-seed1" in told.folder


def test_the_first_anomaly_ends_it(tmp_path: Path) -> None:
    """No run begins after the first anomaly.

    Its run's folder is kept and reported with the reason.
    """
    told = _search(tmp_path, _red(3), runs=50, jobs=1)
    assert (told.runs, told.stopped) == (3, "found")
    [found] = told.findings
    assert found.seed == 3
    assert found.folder == str(Path(told.folder) / "seed3")
    assert (Path(found.folder) / "history.jsonl").read_text() == "3"
    assert told.anomalies == {"lost-write": 1}
    assert outcome.exit_status(told) == 1
    words = outcome.describe(told, "faultline replay")
    assert "seed 3 INVALID: it was 3" in words
    assert f"faultline replay {found.folder}" in words


@pytest.mark.parametrize("red", [(1,), ()])
def test_a_page_that_cannot_be_written_loses_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, red: tuple[int, ...]
) -> None:
    """Without a page a run has the same verdict and folder, and the reason is reported."""

    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(single_run, "finish", full)
    told = _search(tmp_path, _red(*red), runs=1, keep=1)
    assert (len(told.findings), told.failed) == (len(red), 0)
    assert outcome.exit_status(told) == len(red)
    assert (Path(told.folder) / "seed1" / "history.jsonl").exists()
    for found in told.findings:
        assert found.anomalies == {"lost-write": 3}
        assert "report.html cannot be written (OSError: [Errno 28] No space" in found.why[1]


def test_it_goes_on_when_told_to(tmp_path: Path) -> None:
    """With ``enough=None`` all seeds are run, and all findings reported in the order of seeds."""
    told = _search(tmp_path, _red(2, 4), runs=6, jobs=2, enough=None)
    assert (told.runs, told.stopped) == (6, "done")
    assert [found.seed for found in told.findings] == [2, 4]
    assert told.anomalies == {"lost-write": 2}


def test_it_can_be_told_how_many_are_enough(tmp_path: Path) -> None:
    """A search ends after `enough` findings, which suffice for a detection rate."""
    told = _search(tmp_path, _red(*range(2, 50)), runs=50, enough=3)
    assert (told.runs, len(told.findings)) == (4, 3)


def test_folders_of_red_runs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded number of red folders is kept, so that the disk stays free; others have a seed."""
    monkeypatch.setattr(campaign, "RED_KEPT_MAX", 2)
    told = _search(tmp_path, _red(*range(1, 6)), runs=5, enough=None)
    assert [found.folder is not None for found in told.findings] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert len(list(Path(told.folder).glob("seed*"))) == 2


def test_an_unknown_run_does_not_end_it(tmp_path: Path) -> None:
    """An unknown run does not end the search; it is reported and sets the exit status."""
    told = _search(tmp_path, _red(2, status="unknown"), runs=3)
    assert (told.runs, told.unknown) == (3, 1)
    assert [run.seed for run in told.doubtful] == [2]
    assert outcome.exit_status(told) == 2


def test_a_child_that_crashes_is_a_failed_run(tmp_path: Path) -> None:
    """A child that crashes is a failed run: it is reported with its seed, and its folder is kept.

    The search fails with exit status 70.
    """

    def each(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        if seed == 2:
            os.kill(os.getpid(), signal.SIGABRT)
        if seed == 3:
            raise RuntimeError("out of luck")
        return _ran(seed)

    told = _search(tmp_path, each, runs=4, enough=None)
    assert (told.runs, told.failed) == (4, 2)
    assert "SIGABRT" in told.doubtful[0].why[0]
    assert "RuntimeError: out of luck" in told.doubtful[1].why[0]
    assert (Path(told.folder) / "seed3" / "said.txt").read_text()
    assert outcome.exit_status(told) == 70
    assert _search(tmp_path, each, runs=4).runs == 2  # a crash ends a search as an anomaly does


def test_no_run_begins_when_the_time_is_over(tmp_path: Path) -> None:
    """When the time is over no run begins; running ones complete and count."""

    def each(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        time.sleep(0.05)
        return _ran(seed)

    told = _search(tmp_path, each, minutes=0.2 / 60)
    assert told.stopped == "time"
    assert 1 <= told.runs <= 6


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_tells_what_there_is(tmp_path: Path, number: signal.Signals) -> None:
    """An interruption ends running runs without a trace and reports the others, with status 70."""
    parent = os.getpid()

    def each(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        if seed == 3:
            os.kill(parent, number)
            while True:
                signal.pause()
        return _ran(seed)

    told = _search(tmp_path, each, runs=10, jobs=1)
    assert (told.runs, told.stopped) == (2, "interrupted")
    assert "interrupted" in outcome.describe(told, "again")
    assert outcome.exit_status(told) == 70
    assert [path.name for path in Path(told.folder).iterdir()] == [outcome.FILE]


def test_what_there_is_so_far_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary is written during the search, so that a killed one leaves it.

    It says that the search was interrupted.
    """
    monkeypatch.setattr(campaign, "NOTED_EVERY_S", 0.0)

    def each(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        noted = [path.read_text() for path in tmp_path.glob(f"searches/*/{outcome.FILE}")]
        return _ran(seed, "unknown", why=tuple(noted))

    told = _search(tmp_path, each, runs=3, jobs=1)
    first, *_, last = told.doubtful
    assert first.why == ()
    noted = msgspec.json.decode(last.why[0], type=Summary)
    assert (noted.runs, noted.stopped) == (2, "interrupted")
    assert (told.runs, told.stopped) == (3, "done")


def test_what_cannot_be_drawn_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """An invalid plan is refused in one line before any folder is made."""
    with pytest.raises(Refused, match="no such-bug"):
        _search(tmp_path, _red(), pinned={"mutants": ("such-bug",)})
    assert not list(tmp_path.iterdir())


def _with_parts(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
    for name in batch_check.PARTS:
        (folder / name).write_text(f"{name} of {seed}")
    return _ran(seed, "failed") if seed == 2 else _ran(seed)


@pytest.mark.parametrize("odd", [(), (3,)])
def test_all_histories_are_judged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: tuple[int, ...]
) -> None:
    """All histories are judged together, except those of failed runs, which have no verdict.

    The summary names the histories with different judgements.
    """
    asked: list[str] = []

    def judge(folders: Sequence[Path]) -> BatchResult:
        asked.extend(folder.name for folder in folders)
        assert all((folder / name).exists() for folder in folders for name in batch_check.PARTS)
        return BatchResult(
            histories=len(folders),
            seconds=1.0,
            differ=tuple(str(f) for f in folders if f.name in [f"seed{seed}" for seed in odd]),
        )

    monkeypatch.setattr(batch_check, "judge", judge)
    told = _search(tmp_path, _with_parts, runs=3, enough=None, spark=True)
    assert asked == ["seed1", "seed3"]
    assert told.together is not None
    assert [Path(folder).name for folder in told.together.differ] == [f"seed{n}" for n in odd]
    assert (Path(told.folder) / "judged").exists() == bool(odd)
    assert ("DIFFER" in outcome.describe(told, "again")) == bool(odd)
    without_failed = msgspec.structs.replace(told, failed=0)
    assert outcome.exit_status(without_failed) == (70 if odd else 0)
    assert (
        msgspec.json.decode((Path(told.folder) / outcome.FILE).read_bytes(), type=Summary) == told
    )


def test_a_second_judgement_that_fails_leaves_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the second judgement fails, the summary says so, and an anomaly is still an anomaly."""

    def judge(folders: Sequence[Path]) -> BatchResult:
        raise ValueError("no Spark today")

    monkeypatch.setattr(batch_check, "judge", judge)
    told = _search(tmp_path, _with_parts, runs=1, spark=True)
    assert told.spark_failed == "ValueError: no Spark today"
    assert (told.findings, outcome.exit_status(told)) == ((), 70)
    stored = (Path(told.folder) / outcome.FILE).read_bytes()
    assert msgspec.json.decode(stored, type=Summary) == told
    found = msgspec.structs.replace(told, findings=(_ran(1, "invalid"),))
    assert outcome.exit_status(found) == 1
    assert outcome.exit_status(msgspec.structs.replace(told, spark_failed=None)) == 0


def test_every_run_is_in_the_lake(tmp_path: Path) -> None:
    """Each run is added by its own process, and one that died by the search, each once."""

    def each(seed: int, pinned: Mapping[str, Any], folder: Path) -> RunResult:
        (folder / "history.jsonl").write_text("{}")
        if seed == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return _ran(seed, "invalid" if seed == 3 else "valid")

    lake = Lake.create(tmp_path / "lake")
    summary = _search(tmp_path, each, runs=3, enough=None, jobs=2, lake=lake)
    with lake.reading() as paths:
        rows = store.read(paths, ["name", "folder"]).to_pylist()
    folder = Path(summary.folder)
    found = sorted((row["name"], row["folder"] is not None) for row in rows)
    assert found == [(f"{folder.name}/seed{n}", n > 1) for n in (1, 2, 3)]


def test_a_run_that_cannot_be_added_says_why(tmp_path: Path) -> None:
    """Its status stays the same."""
    lake = Lake.create(tmp_path / "lake")
    (lake.folder / "rows-00000001.parquet").write_bytes(b"no rows")
    (run,) = _search(tmp_path, _red(1), runs=1, lake=lake).findings
    assert run.why[0] == "it was 1"
    assert run.why[1].startswith("not added to the lake: ")
