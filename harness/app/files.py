"""Writes files atomically: readers and crashes never see half of a file. Locks files."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a write to a full disk, or beyond a quota or a limit."""


def replace(path: Path, content: bytes) -> None:
    """Write a file atomically. An :class:`OSError` names the path."""

    def fill(beside: Path) -> None:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    write(path, fill)


def write(path: Path, fill: Callable[[Path], None]) -> None:
    """Write a file atomically with ``fill``, which receives a temporary path in the same folder."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            # It may be left from a killed process, or be a link that leads elsewhere.
            beside.unlink(missing_ok=True)
            fill(beside)
            beside.replace(path)
        except OSError as error:  # the error of a failed write does not name its file
            raise named(error, path) from error
    finally:
        with contextlib.suppress(OSError):  # it does not exist, or the disk is read-only
            beside.unlink()


@contextlib.contextmanager
def locked(path: Path, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """Hold a lock, as :func:`fcntl.flock` has it, on a file that is created if it is missing.

    A shared lock on a file that cannot be written is left out, because no process can write there.
    For any other lock, an :class:`OSError` names the path.
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        if how != fcntl.LOCK_SH:
            raise named(error, path) from error
        yield
        return
    try:
        fcntl.flock(number, how)
        yield
    finally:
        os.close(number)


def named(error: OSError, path: Path) -> OSError:
    """Return the same error with this path in it."""
    if error.errno is None:
        return OSError(f"{path}: {error}")
    return OSError(error.errno, os.strerror(error.errno), str(path))


def attempted(step: Callable[[], object], failure: str, folder: Path) -> str | None:
    """Take a step that no verdict depends on; if it fails, return ``failure`` with the reason."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - the verdict is stored and stands without it
        return f"{failure} ({described(error, folder)})"
    return None


def described(error: BaseException, folder: Path) -> str:
    """Describe an error in one line; an error of a full disk that names no file gets ``folder``.

    A group of errors, such as that of tasks which were started together, has its first one.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    first = next(iter(str(error).splitlines()), "")
    how = f"{type(error).__name__}: {first}".rstrip(": ")
    if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
        return f"{how}: {folder}"
    return how
