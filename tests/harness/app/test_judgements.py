"""A run's verdict stays; other judgements of the same history are kept in ``judgements``."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from checkers import inline as inline_
from checkers import verdict as verdict_
from checkers.verdict import CheckerResult, Verdict
from harness.app import cli, judgements
from harness.app.check import examine
from model import history
from model.op import Op
from model.plan import Plan

FILES = ("findings.parquet", "report.html", "verdict.json")


def op(index: int, process: int, type_: Any, f: str, *micro: Any) -> Op:
    return Op(index=index, time_ns=index, process=process, type=type_, f=f, value=list(micro))


def events(*, loses: bool) -> list[Op]:
    """Make a history of two acknowledged records; both are read, or only the second."""
    polled = {"x-0": [[1, 8]] if loses else [[0, 7], [1, 8]]}
    return [
        op(0, 0, "invoke", "send", ["send", "x-0", 7]),
        op(1, 0, "ok", "send", ["send", "x-0", [0, 7]]),
        op(2, 0, "invoke", "send", ["send", "x-0", 8]),
        op(3, 0, "ok", "send", ["send", "x-0", [1, 8]]),
        op(4, 1, "invoke", "poll", ["poll"]),
        op(5, 1, "ok", "poll", ["poll", polled]),
        op(6, 1, "invoke", "catch-up", ["catch-up", "x-0"]),
        op(7, 1, "ok", "catch-up", ["catch-up", "x-0", 2, 2]),
    ]


def run_folder(place: Path, *, loses: bool = True, plan: Plan | None = None) -> Path:
    """Make a run's folder without a verdict."""
    folder = place / "run"
    folder.mkdir()
    history.write(folder / "history.jsonl", events(loses=loses))
    plan = Plan(seed=7) if plan is None else plan
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    return folder


def check(
    capsys: pytest.CaptureFixture[str], folder: Path, *options: str
) -> tuple[int, str, dict[str, bytes]]:
    """Run ``faultline check``; return its status, its output, and the files of the verdict."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", str(folder), "--inline", *options])
    assert isinstance(ended.value.code, int)
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
    return ended.value.code, capsys.readouterr().out, files


def valid(folder: Path) -> Any:
    return json.loads((folder / "verdict.json").read_text())["valid"]


def explode(tables: object, progress: object) -> Any:
    raise MemoryError("no room")


def test_strict_holds_against_a_run_what_its_settings_permit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With acks=1 a loss is allowed, with ``--strict`` it is not; ``--set`` wins over both."""
    folder = run_folder(tmp_path, plan=Plan(producer={"acks": "1"}))
    assert check(capsys, folder)[0] == 0
    assert check(capsys, folder, "--strict")[0] == 1
    assert check(capsys, folder, "--strict", "--set", "producer.acks=1")[0] == 0


@pytest.mark.slow
def test_other_settings_do_not_replace_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A judgement under other settings is kept separately and does not replace the verdict.

    With ``--set producer.acks=1`` a loss is allowed. The run's verdict, its findings and its page
    stay as they are, and the other judgement records its settings.
    """
    folder = run_folder(tmp_path)
    status, _, before = check(capsys, folder)
    assert (status, len(before)) == (1, 3)
    status, out, after = check(capsys, folder, "--set", "producer.acks=1")
    assert (status, after) == (0, before)
    assert "producer.acks=1 in place of the plan's" in out
    assert "The verdict of the run stays INVALID" in out
    other = folder / "judgements" / "1"
    assert sorted(path.name for path in other.iterdir()) == sorted(FILES)
    written = json.loads((other / "verdict.json").read_text())
    assert (written["valid"], written["settings"]) == (True, {"producer.acks": "1"})
    assert (written["contract"]["acks"], written["judged_by"]["executor"]) == ("1", "inline")
    page = (other / "report.html").read_text()
    assert "This judgement uses producer.acks=1 in place of the plan&#39;s settings" in page
    assert b"This judgement uses the plan&#39;s own contract: acks all" in after["report.html"]


@pytest.mark.slow
def test_the_same_judgement_is_not_kept_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repeated judgement, such as a nightly one, is kept once."""
    folder = run_folder(tmp_path)
    for _ in range(3):
        check(capsys, folder)
        check(capsys, folder, "--set", "producer.acks=1")
        check(capsys, folder, "--set", "producer.acks=0")
    assert sorted(path.name for path in (folder / "judgements").iterdir()) == ["1", "2"]


def test_settings_that_change_nothing_are_the_plans_own(tmp_path: Path) -> None:
    """Settings equal to the plan's, such as ``--set producer.acks=all``, are its own contract."""
    folder = run_folder(tmp_path)
    judged = examine(folder, inline=True, settings={"producer.acks": "all"})
    assert (judged.verdict.settings, valid(folder)) == ({}, False)
    assert not (folder / "judgements").exists()


def test_a_judgement_under_other_settings_is_no_first_verdict(tmp_path: Path) -> None:
    """A judgement under other settings does not become the first verdict of a folder."""
    folder = run_folder(tmp_path)
    examine(folder, inline=True, settings={"producer.acks": "1"})
    assert not (folder / "verdict.json").exists()
    assert (folder / "judgements" / "1" / "verdict.json").exists()


@pytest.mark.parametrize("loses", [True, False])
def test_a_judgement_that_crashes_replaces_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loses: bool
) -> None:
    """A judgement that crashes replaces no verdict, and is replaced by a later complete one.

    INVALID and VALID do not become UNKNOWN because memory or Java is missing.
    """
    folder = run_folder(tmp_path, loses=loses)
    with monkeypatch.context() as patched:
        patched.setattr(inline_, "judge", explode)
        examine(folder, inline=True)
        assert valid(folder) == "unknown", "there was no other"
    examine(folder, inline=True)
    before = (folder / "verdict.json").read_bytes()
    assert valid(folder) is not loses
    assert valid(folder / "judgements" / "1") == "unknown"
    monkeypatch.setattr(inline_, "judge", explode)
    judged = examine(folder, inline=True)
    assert judged.verdict.valid == "unknown"
    assert (folder / "verdict.json").read_bytes() == before
    assert pq.read_table(folder / "findings.parquet").num_rows == loses
    assert len([*(folder / "judgements").iterdir()]) == 1, "it says what the first one said"


def test_a_milder_checker_does_not_acquit(tmp_path: Path) -> None:
    """A run stays INVALID if a later version finds no anomaly; both judgements are kept."""
    folder = run_folder(tmp_path, loses=False)
    old = {"valid": False, "anomalies": {"lost-write": 1}, "checkers": {}}
    (folder / "verdict.json").write_text(json.dumps(old))
    examine(folder, inline=True)
    assert (valid(folder), valid(folder / "judgements" / "1")) == (False, True)


def test_a_stricter_checker_convicts_and_keeps_what_was_said_before(tmp_path: Path) -> None:
    """A run becomes INVALID if a later version finds an anomaly.

    The former verdict moves into a folder of its own, with its page.
    """
    folder = run_folder(tmp_path, loses=True)
    (folder / "verdict.json").write_text('{"valid": true, "checkers": {}}')
    (folder / "report.html").write_text("the former page")
    examine(folder, inline=True)
    assert (valid(folder), valid(folder / "judgements" / "1")) == (False, True)
    assert (folder / "judgements" / "1" / "report.html").read_text() == "the former page"
    assert not (folder / "report.html").exists(), "it belongs to the other"


CRASHED = ("the checker loss crashed on x-0: KeyError",)
DONE = {"loss": CheckerResult(valid=True, seconds=0.0)}


def of(valid: bool | str, *reasons: str, **checkers: CheckerResult) -> Verdict:
    return Verdict(valid=valid, unknown_because=reasons, checkers=checkers or DONE)  # type: ignore[arg-type]


EMPTY = Verdict(valid="unknown", unknown_because=("the checkers crashed",))
HALF = of("unknown", *CRASHED)
HALF_INVALID = of(False, *CRASHED)
ORDER = [[EMPTY, HALF], [of(True)], [of("unknown", "too little")], [HALF_INVALID], [of(False)]]
"""Judgements from the weakest to the strongest."""


@pytest.mark.parametrize("later", range(len(ORDER)))
@pytest.mark.parametrize("earlier", range(len(ORDER)))
def test_no_judgement_is_replaced_by_a_weaker_one(later: int, earlier: int) -> None:
    """No judgement at all < VALID < UNKNOWN < INVALID, and complete ones before incomplete ones."""
    for new in ORDER[later]:
        for old in ORDER[earlier]:
            assert verdict_.replaces(new, old) is (later >= earlier)


@contextmanager
def somebody_elses(folder: Path) -> Iterator[None]:
    """Make a folder read-only, like one of another user that is readable for all."""
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    is_root = os.geteuid() == 0  # root ignores permission bits
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize("is_judged", [False, True])
def test_a_folder_that_cannot_be_written_is_judged(
    capsys: pytest.CaptureFixture[str], is_judged: bool
) -> None:
    """If the folder is read-only, the judgement is printed and kept under ``--results``.

    A message says where.
    """
    place = Path(tempfile.mkdtemp(prefix="faultline-test-"))
    try:
        place.chmod(0o777)
        folder = run_folder(place)
        if is_judged:
            check(capsys, folder)
        mine = place / "mine"
        with somebody_elses(folder):
            names = sorted(path.name for path in folder.iterdir())
            status, out, _ = check(capsys, folder, "--results", str(mine))
            other, _, _ = check(capsys, folder, "--results", str(mine), "--set", "producer.acks=1")
            assert sorted(path.name for path in folder.iterdir()) == names
        assert (status, other) == (1, 0)
        kept = sorted(path.parent.name for path in mine.glob("judgements/run/*/verdict.json"))
        assert kept == (["1"] if is_judged else ["1", "2"])
        assert is_judged or f"this judgement is stored in {mine}/judgements/run/1" in out
        assert (mine / "judgements" / "run" / "1" / "report.html").exists()
    finally:
        shutil.rmtree(place)


@pytest.mark.spark
def test_without_java_a_verdict_stands(tmp_path: Path) -> None:
    """Without Java ``faultline check`` is UNKNOWN, and the earlier verdict and its files stay."""
    folder = run_folder(tmp_path)
    examine(folder, inline=True)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = subprocess.run(
        [sys.executable, "-m", "harness.app.cli", "check", str(folder)],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "The verdict of the run stays INVALID" in done.stdout) == (2, True)
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_a_contract_is_written_with_its_units() -> None:
    """A contract's fields are written in words, with units where the names have them."""
    contract = {"acks": "all", "late_ends": False, "hears_s": 7.0, "delete_retention_ms": 86400000}
    assert judgements.contract_of({"contract": contract}) == (
        "This judgement uses the plan's own contract: acks all, late ends no,"
        " a broker learns of a new leader within 7 s, delete retention 86,400,000 ms."
    )
