"""Child processes that return bytes or end abnormally."""

import os
import signal
import sys
from pathlib import Path

import pytest

from harness.app.search import jobs as jobs_
from harness.app.search.jobs import Ended, Jobs, how_ended

PATIENCE_S = 20.0


def _all_ended(jobs: Jobs[str]) -> dict[str, Ended[str]]:
    ended: dict[str, Ended[str]] = {}
    while len(jobs):
        ended |= {each.key: each for each in jobs.ended(PATIENCE_S)}
    return ended


def test_a_child_hands_back_bytes(tmp_path: Path) -> None:
    """Several children at a time can return more bytes than a pipe holds."""
    with Jobs[str]() as jobs:
        jobs.start("long", lambda: b"x" * 3_000_000, tmp_path / "long")
        jobs.start("pid", lambda: str(os.getpid()).encode(), tmp_path / "pid")
        ended = _all_ended(jobs)
    assert ended["long"] == Ended("long", b"x" * 3_000_000, 0)
    assert int(ended["pid"].answer) != os.getpid()


def test_a_child_begins_as_its_parent(tmp_path: Path) -> None:
    """Each child starts with the parent's state; what it changes is not seen by other children."""
    state: list[int] = []

    def work() -> bytes:
        state.append(1)
        return str(len(state)).encode()

    with Jobs[str]() as jobs:
        for name in ("a", "b", "c"):
            jobs.start(name, work, tmp_path / name)
        assert {ended.answer for ended in _all_ended(jobs).values()} == {b"1"}
    assert state == []


def test_a_bad_end_is_told(tmp_path: Path) -> None:
    """An exception, an exit and a signal each give a status; the child's output is in a file."""

    def fails() -> bytes:
        raise ValueError("no such luck")

    def dies() -> bytes:
        os.kill(os.getpid(), signal.SIGSEGV)
        return b""

    with Jobs[str]() as jobs:
        jobs.start("fails", fails, tmp_path / "fails")
        jobs.start("exits", lambda: sys.exit(5), tmp_path / "exits")
        jobs.start("dies", dies, tmp_path / "dies")
        ended = _all_ended(jobs)
    assert {name: each.status for name, each in ended.items()} == {
        "fails": 1,
        "exits": 1,
        "dies": -signal.SIGSEGV,
    }
    assert "ValueError: no such luck" in (tmp_path / "fails").read_text()
    assert "Segmentation fault" in (tmp_path / "dies").read_text()


def test_one_that_runs_away_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that exceeds its CPU limit is ended, and the report names its place in the code."""
    monkeypatch.setattr(jobs_, "CPU_S_MAX", 1)

    def spins() -> bytes:
        while True:
            pass

    with Jobs[str]() as jobs:
        jobs.start("spins", spins, tmp_path / "said")
        status = _all_ended(jobs)["spins"].status
    assert status == -signal.SIGXCPU
    told = how_ended(status, tmp_path / "said")
    assert "s of CPU time and was ended at: File" in told
    assert told.endswith("in spins")


def test_one_that_waits_in_vain_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that waits too long is ended by the clock, and the report names its place."""
    monkeypatch.setattr(jobs_, "CLOCK_S_MAX", 0.1)

    def waits() -> bytes:
        return os.read(os.pipe()[0], 1)

    with Jobs[str]() as jobs:
        jobs.start("waits", waits, tmp_path / "said")
        status = _all_ended(jobs)["waits"].status
    assert status == -signal.SIGALRM
    told = how_ended(status, tmp_path / "said")
    assert told.startswith("the run did not finish within 0.1 s and was ended at: File")
    assert told.endswith("in waits")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of such an end")
def test_no_child_outlives_its_parent(tmp_path: Path) -> None:
    """No child outlives its parent, even if the parent is killed by SIGKILL."""
    alive, left = os.pipe()  # at end of file once no process has it open

    def parent() -> bytes:
        with Jobs[str]() as jobs:
            jobs.start("waits", lambda: os.read(os.pipe()[0], 1), tmp_path / "inner")
            while not (tmp_path / "inner").exists():
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return b""

    with Jobs[str]() as jobs:
        jobs.start("parent", parent, tmp_path / "outer")
        assert _all_ended(jobs)["parent"].status == -signal.SIGKILL
    os.close(left)
    assert os.read(alive, 1) == b""


def test_leaving_ends_who_is_left(tmp_path: Path) -> None:
    """All children are killed when the block is left, also by an exception."""

    def forever() -> bytes:
        (tmp_path / "pid").write_text(str(os.getpid()))
        while True:
            signal.pause()

    def interrupted() -> None:
        with Jobs[str]() as jobs:
            jobs.start("forever", forever, tmp_path / "said")
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                assert not list(jobs.ended(0.01))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_ctrl_c_is_not_for_children(tmp_path: Path) -> None:
    """A child has a process group of its own, which a terminal's Ctrl-C does not reach."""
    with Jobs[str]() as jobs:
        jobs.start("group", lambda: str(os.getpgid(0)).encode(), tmp_path / "said")
        assert int(_all_ended(jobs)["group"].answer) != os.getpgid(0)
