"""Files that others may be reading, and that must not be half there when we are killed."""

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a write to a full disk, or beyond a quota or a limit, ends in."""


def replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. An :class:`OSError` names the path."""

    def fill(beside: Path) -> None:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    write(path, fill)


def write(path: Path, fill: Callable[[Path], None]) -> None:
    """The same for a file that ``fill`` writes; it is given another path in the same folder."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            # One is left of a process that was killed, or it is a link that leads elsewhere.
            beside.unlink(missing_ok=True)
            fill(beside)
            beside.replace(path)
        except OSError as error:  # a write that fails does not say to which file
            raise named(error, path) from error
    finally:
        with contextlib.suppress(OSError):  # it is gone, or the disk is read-only
            beside.unlink()


def named(error: OSError, path: Path) -> OSError:
    """The same error with this path in it."""
    if error.errno is None:
        return OSError(f"{path}: {error}")
    return OSError(error.errno, os.strerror(error.errno), str(path))


def described(error: BaseException, folder: Path) -> str:
    """An error in one line; one that leaves open which file it is about is of one in ``folder``."""
    first = next(iter(str(error).splitlines()), "")
    how = f"{type(error).__name__}: {first}".rstrip(": ")
    if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
        return f"{how}: {folder}"
    return how
