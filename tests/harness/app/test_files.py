"""Files are written completely or not at all."""

import errno
import os
import re
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.app.files import attempted, described, replace
from harness.engine.recorder import Lines


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If writing fails midway, the old content stays."""
    path = tmp_path / "plan.json"
    replace(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.fixture
def small_files() -> Iterator[None]:
    """Limit files to one block, so that writes fail as on a full disk.

    The system's error does not name a path.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_says_which_path(tmp_path: Path, small_files: None) -> None:
    """The error for a full disk names the path: of a replaced file, a history, or the folder."""
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "verdict.json"))):
        replace(tmp_path / "verdict.json", bytes(10_000))
    lines = Lines(tmp_path / "history.jsonl")
    with pytest.raises(OSError, match=re.escape(str(tmp_path / "history.jsonl"))):
        lines.append(bytes(10_000))
    lines.close()
    with pytest.raises(OSError, match="File too large") as told:
        (tmp_path / "page").write_bytes(bytes(10_000))
    assert described(told.value, tmp_path).endswith(f"File too large: {tmp_path}")


def test_a_step_that_fails_is_described(tmp_path: Path, small_files: None) -> None:
    """A step without which a verdict stands fails with one line; a signal is no failure of it."""
    page = tmp_path / "report.html"
    why = attempted(lambda: page.write_bytes(bytes(10_000)), "no page", tmp_path)
    assert why == f"no page (OSError: [Errno 27] File too large: {tmp_path})"
    assert attempted(lambda: page.write_bytes(b"page"), "no page", tmp_path) is None

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempted(interrupted, "no page", tmp_path)


def test_the_first_error_of_a_group_is_described(tmp_path: Path) -> None:
    """A full disk is named, however deep it is in groups; a cause is not described instead."""
    full = OSError(errno.ENOSPC, "No space left on device", "history.jsonl")
    group = ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("two", [full, full])])
    said = "OSError: [Errno 28] No space left on device: 'history.jsonl'"
    assert described(group, tmp_path) == said
    unnamed = OSError(errno.ENOSPC, "No space left on device")
    assert described(BaseExceptionGroup("one", [unnamed]), tmp_path).endswith(f": {tmp_path}")
    failed = RuntimeError("the run failed")
    failed.__cause__ = full
    assert described(failed, tmp_path) == "RuntimeError: the run failed"
