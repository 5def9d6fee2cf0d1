"""Where runs of a search take place: in memory, since most of what they write is thrown away.

A run makes hundreds of small files, and making them on a disk is an eighth of what it costs.
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
"""Far more than a few runs write; where there is less, they go to the disk."""


@contextlib.contextmanager
def scratch(other: Path, memory: Path = MEMORY) -> Iterator[Path]:
    """A new folder, which goes with the block; below ``other`` where memory has no room.

    What a search left there that was killed goes first: whoever lives holds a lock.
    """
    with contextlib.ExitStack() as stack:
        where = memory if _has_room(memory) else other
        made = Path(tempfile.mkdtemp(prefix=".", dir=where))
        held = os.open(made, os.O_RDONLY)
        stack.callback(os.close, held)
        fcntl.flock(held, fcntl.LOCK_SH)
        folder = made.rename(where / f"{PREFIX}{made.name[1:]}")  # swept from now on, if not held
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        sweep(where)
        yield folder


def _has_room(memory: Path) -> bool:
    try:
        return os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= BYTES_MIN
    except OSError:
        return False


def sweep(where: Path) -> list[Path]:
    """Remove the folders of this user that no process holds any more; which ones."""
    removed = []
    for folder in sorted(where.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):  # held, or just gone
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
