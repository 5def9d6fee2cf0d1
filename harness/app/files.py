"""Files that others may be reading, and that must not be half there when we are killed."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. An :class:`OSError` names the path."""

    def fill(beside: Path) -> None:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    write(path, fill)


def write(path: Path, fill: Callable[[Path], None]) -> None:
    """The same for a file that ``fill`` writes; it is given another path in the same folder."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
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
