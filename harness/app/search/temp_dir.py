"""Runs of a search work in memory if possible, because most of their files are deleted.

A run creates hundreds of small files; on a disk this takes an eighth of the run's time.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEMORY = Path("/dev/shm")
PREFIX = "faultline-"
BYTES_MIN = 256 << 20
"""The free memory that is required, far more than a few runs write; else they use the disk."""


@contextlib.contextmanager
def scratch(other: Path, memory: Path = MEMORY) -> Iterator[Path]:
    """Create a folder that is removed with the block; below ``other`` if memory has no room.

    Folders that killed searches left there are removed first: a search that is alive holds a lock.
    """
    with contextlib.ExitStack() as stack:
        where = memory if _has_room(memory) else other
        made = Path(tempfile.mkdtemp(prefix=".", dir=where))
        held = os.open(made, os.O_RDONLY)
        stack.callback(os.close, held)
        fcntl.flock(held, fcntl.LOCK_SH)
        folder = made.rename(where / f"{PREFIX}{made.name[1:]}")  # sweep() sees it from now on
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        sweep(where)
        yield folder


def _has_room(memory: Path) -> bool:
    try:
        return os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= BYTES_MIN
    except OSError:
        return False


def sweep(where: Path) -> list[Path]:
    """Remove this user's folders that no process holds any more, and return them."""
    removed = []
    for folder in sorted(where.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):  # locked, or just removed
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if os.fstat(held).st_uid != os.getuid():
                    continue
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
                removed.append(folder)
            finally:
                os.close(held)
    return removed
