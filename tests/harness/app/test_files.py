"""Files that are there whole, or not at all."""

import os
from pathlib import Path

import pytest

from harness.app.files import replace


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When writing breaks off in its midst, the old content is still there."""
    path = tmp_path / "plan.json"
    replace(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
