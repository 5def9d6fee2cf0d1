"""Creates temporary folders that are removed with their block, or by a later command after a crash.

Each contains a file that names its owner. A later command removes a folder only if that file proves
that this program created it on this machine and that the owner has ended: the folder's name alone
proves nothing.
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
    """The content of the owner file."""

    owner: Known
    place: dict[str, str]


@contextlib.contextmanager
def folder(where: Path | None, prefix: str) -> Iterator[Path]:
    """Create a folder in ``where``, by default in the system's directory for temporary files."""
    with tempfile.TemporaryDirectory(dir=where, prefix=prefix) as name:
        made = Path(name)
        owner = known(os.getpid())
        assert owner is not None, "the running process exists"
        owned = _Owned(owner=owner, place=dict(place()))
        (made / OWNER).write_bytes(msgspec.json.encode(owned))
        yield made


def sweep(where: Path, *patterns: str) -> list[Path]:
    """Remove the folders with these names whose owners have ended, and return them."""
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
    """Remove a folder, and return whether it is gone."""
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()
