"""A temporary folder that is removed with its block, in memory if there is room."""

import fcntl
import os
from pathlib import Path

import pytest

from harness.app.search import temp_dir as scratch_
from harness.app.search.temp_dir import PREFIX, scratch


def test_it_goes_with_the_block(tmp_path: Path) -> None:
    """The folder is removed at the block's end, with everything in it."""
    memory, other = tmp_path / "memory", tmp_path / "other"
    memory.mkdir()
    other.mkdir()
    with scratch(other, memory) as folder:
        assert folder.parent == memory
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")
    assert not list(memory.iterdir())


@pytest.mark.parametrize("bytes_min", [0, 1 << 60])
def test_without_room_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_min: int
) -> None:
    """If there is no memory file system, or no room in it, the folder is on disk."""
    memory = tmp_path / "memory"
    if bytes_min:
        memory.mkdir()
        monkeypatch.setattr(scratch_, "BYTES_MIN", bytes_min)
    other = tmp_path / "other"
    other.mkdir()
    with scratch(other, memory) as folder:
        assert folder.parent == other
    assert not list(other.iterdir())


def test_what_a_killed_search_left_is_swept(tmp_path: Path) -> None:
    """A new folder's creation removes unlocked leftovers; locked and other folders stay."""
    left, held, foreign = tmp_path / f"{PREFIX}left", tmp_path / f"{PREFIX}held", tmp_path / "other"
    for folder in (left, held, foreign):
        folder.mkdir()
    lock = os.open(held, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    try:
        with scratch(tmp_path, tmp_path) as folder:
            assert sorted(tmp_path.iterdir()) == sorted([held, foreign, folder])
    finally:
        os.close(lock)
