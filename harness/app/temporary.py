"""Folders that go with the block they are made for, and are found again when nobody removed them.

Each holds a file that names its owner. A folder is removed later only when that file proves that
this program made it, on this machine, and that the owner has gone: names prove nothing.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.cluster.registry import Known, known, place

OWNER = ".faultline-owner.json"


class _Owned(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds."""

    owner: Known
    place: dict[str, str]


@contextlib.contextmanager
def folder(where: Path | None, prefix: str) -> Iterator[Path]:
    """A new folder in ``where``, by default in the system's place for temporary files."""
    with tempfile.TemporaryDirectory(dir=where, prefix=prefix) as name:
        made = Path(name)
        owner = known(os.getpid())
        assert owner is not None, "this process exists"
        owned = _Owned(owner=owner, place=dict(place()))
        (made / OWNER).write_bytes(msgspec.json.encode(owned))
        yield made


def sweep(where: Path, *patterns: str) -> list[Path]:
    """Remove the folders with these names that processes which are gone have left; which ones."""
    found = [path for pattern in patterns for path in sorted(where.glob(pattern)) if _is_left(path)]
    return [path for path in found if is_removed(path)]


def _is_left(path: Path) -> bool:
    try:
        if path.is_symlink() or path.stat().st_uid != os.getuid():
            return False
        owned = msgspec.json.decode((path / OWNER).read_bytes(), type=_Owned)
    except (OSError, msgspec.MsgspecError):
        return False
    return owned.place == dict(place()) and not owned.owner.alive()


def is_removed(path: Path) -> bool:
    """Remove a folder; has it gone?"""
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()
