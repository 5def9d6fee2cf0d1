"""Guards the exit status of the whole process: 1 means INVALID, whatever else goes wrong.

Python itself exits with 1 after an unhandled exception, also during imports. So do C libraries that
run out of memory (OpenBLAS calls ``exit(1)``), and click and rich when the reader of a pipe has
closed it. :func:`guard` maps all of these to 70: every other status must be passed to
:func:`leave`. It also makes the standard streams harmless: a closed pipe or a full disk behind them
must not end a run whose evidence is in files.

This module imports little, because it is imported before everything else.
"""

import atexit
import ctypes
import errno
import io
import os
import select
import sys
from pathlib import PurePath
from typing import Any, NoReturn, TextIO

FAILED = 70
"""EX_SOFTWARE of sysexits.h: faultline itself failed."""
PROGRAM = "faultline"
"""The name of the installed program."""
MODULE = "harness.app.cli"
"""The package that ``python -m`` runs."""

_status: int | None = None
_kept: list[object] = []
"""Objects that C code refers to and that Python must not free."""


def is_program() -> bool:
    """Return whether this process runs only the command line; tests and scripts import it, too."""
    return PurePath(sys.argv[0] if sys.argv else "").name == PROGRAM or is_module()


def is_module() -> bool:
    """Return whether this process was started by ``python -m`` with the command line's package."""
    return ["-m", MODULE] in [sys.orig_argv[at : at + 2] for at in range(1, len(sys.orig_argv))]


def guard() -> None:
    """Make this process end with the status passed to :func:`leave`, and with 70 otherwise."""
    _open_standard_streams()
    atexit.register(_end)  # registered first, so it is called last
    _guard_c_exit()


def leave(status: int) -> NoReturn:
    """Exit with this status, or with 70 if standard output could not be written.

    A pipe that its reader closed does not count as such a failure.
    """
    global _status
    lost = _lost_output()
    if lost is not None and lost.errno not in (errno.EPIPE, errno.ECONNRESET):
        sys.stderr.write(f"faultline failed: standard output: {lost.strerror}\n")
        status = FAILED
    _status = status
    sys.exit(status)


def _end() -> None:
    """End the process as the last exit handler, before Python chooses a status of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # closed, or replaced
    os._exit(FAILED if _status is None else _status)


def _guard_c_exit() -> None:
    """Make ``exit(3)``, which C libraries call when they give up, end the process with 70."""
    register = getattr(ctypes.CDLL(None), "on_exit", None)  # a function of glibc only
    if register is None:
        return
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(_of_c)
    _kept.append(callback)
    register(callback, None)


def _of_c(status: int, _: object) -> None:
    os.write(2, b"faultline failed: a library ended the process; its message is above\n")
    os._exit(FAILED)


class _Lenient(io.FileIO):
    """A standard stream that never fails: data that cannot be written is dropped."""

    error: OSError | None = None
    """The first error; ``None`` while nothing was dropped."""

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        written = 0
        while written < len(view) and self.error is None:
            try:
                count = super().write(view[written:])
            except OSError as error:
                self.error = error
                break
            if count is None:  # another process that shares the pipe made it non-blocking
                select.select([], [self], [])
            else:
                written += count
        return len(view)


def _open_standard_streams() -> None:
    """Make standard output and error lenient, and open closed standard streams on ``/dev/null``.

    Otherwise the next file to be opened, such as a history, would take the number of a closed
    stream.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
            os.set_inheritable(number, True)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - as long as the process
    sys.stdout = _stream(1, sys.stdout)
    sys.stderr = _stream(2, sys.stderr)


def _stream(number: int, before: TextIO | None) -> TextIO:
    raw = _Lenient(number, "w", closefd=False)
    is_error = number == 2
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        errors="backslashreplace",  # for a terminal that lacks the character
        line_buffering=is_error or raw.isatty(),
    )


def _lost_output() -> OSError | None:
    """Return why standard output was not written in full; ``None`` if it was."""
    stream = sys.stdout
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        return None  # a test or a caller has replaced the stream
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.error if isinstance(raw, _Lenient) else None
