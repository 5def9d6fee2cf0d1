"""A run's folder from an untrusted source is read safely."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.app import cli, files, replay, run_folder
from harness.app.check import examine
from harness.app.refused import Refused
from harness.app.report import sheet
from model.history import BadHistory
from model.plan import Plan

HISTORY = b'{"index":0,"time_ns":1,"process":1,"type":"invoke","f":"poll","value":[["poll"]]}\n'

KINDS: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a named pipe": os.mkfifo,
    "a symbolic link": lambda path: path.symlink_to("elsewhere"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a run's folder."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "plan.json").write_bytes(msgspec.json.encode(Plan(schedule=(), nemesis=("none",))))
    (run / "history.jsonl").write_bytes(HISTORY)
    return run


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", run_folder.FILES)
def test_only_regular_files_are_read(kind: str, name: str, folder: Path) -> None:
    """``check`` refuses pipes, links and folders in place of files, without reading or writing."""
    (folder / name).unlink(missing_ok=True)
    KINDS[kind](folder / name)
    before = sorted(folder.iterdir())
    with pytest.raises(BadHistory, match=f"{name} is {kind}; it must be a regular file"):
        examine(folder, inline=True)
    assert sorted(folder.iterdir()) == before
    if name == "plan.json":
        with pytest.raises(Refused, match=f"plan.json is {kind}"):
            replay.plan_of(folder)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("verb", ["check", "replay", "shrink"])
def test_a_pipe_does_not_hold_a_command_up(
    verb: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every verb that takes a folder refuses a pipe at once, with one line and status 64."""
    monkeypatch.setattr("harness.simulation.determinism.exec_pinned", lambda: None)
    (folder / "plan.json").unlink()
    os.mkfifo(folder / "plan.json")
    with pytest.raises(SystemExit) as exit_:
        cli.main([verb, str(folder)])
    assert exit_.value.code == 64
    assert "plan.json is a named pipe" in capsys.readouterr().err


def test_what_is_written_follows_no_link(tmp_path: Path) -> None:
    """Writing replaces a link by a file, and follows no link in place of the temporary file."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("page.html", ".page.html." + str(os.getpid()), "page.html.part"):
        (tmp_path / name).symlink_to(victim)
    sheet.write(tmp_path / "page.html", "new")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "page.html").is_symlink()
    assert (tmp_path / "page.html").read_text() == "new"
    files.replace(tmp_path / "page.html", b"newer")
    assert (tmp_path / "page.html").read_text() == "newer"


def test_a_plan_of_gigabytes_is_not_read(folder: Path) -> None:
    """A huge plan is refused without being read: a sparse file is cheap to send."""
    with (folder / "plan.json").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(Refused, match="bytes; the maximum is"):
        replay.plan_of(folder)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "name", ["nodes", "judgements", "nodes/broker-1", "nodes/broker-1/log.txt"]
)
def test_folders_and_logs_are_what_they_seem(name: str, folder: Path, tmp_path: Path) -> None:
    """A link in place of a folder or log is refused: no file outside is shown or written."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(BadHistory, match="is a symbolic link; "):
        examine(folder, inline=True)
    assert list(elsewhere.iterdir()) == []


def test_a_segment_is_a_regular_file(tmp_path: Path) -> None:
    """Through a link in place of a segment, a file from elsewhere would be read."""
    (tmp_path / "history-000001.jsonl").symlink_to("/etc/passwd")
    refused = run_folder.refusal(tmp_path)
    assert refused is not None
    assert "is a symbolic link" in refused
