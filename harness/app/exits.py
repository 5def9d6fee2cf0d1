"""The exit status of the whole process: 1 means INVALID, whatever else goes wrong.

Python itself exits with 1 after an exception that nobody handles, also during imports; so do C
libraries that run out of memory (OpenBLAS calls ``exit(1)``), and click and rich when the reader of
a pipe has gone. :func:`guard` maps all of them to 70: the only other way out is a status that was
passed to :func:`leave`. It also makes the standard streams harmless: a closed pipe or a full disk
behind them must not end a run whose evidence is in files.

This module imports little, because it comes before everything else.
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
PROGRAMS = ("faultline", "cli.py")
"""What ``sys.argv[0]`` ends in when the command line is all that this process does."""

_status: int | None = None
_kept: list[object] = []
"""What C code refers to, and Python must not free."""


def is_program() -> bool:
    """Is the command line all that this process does? Tests and scripts import it, too."""
    return PurePath(sys.argv[0] if sys.argv else "").name in PROGRAMS


def guard() -> None:
    """From now on this process ends with the status of :func:`leave`, or with 70."""
    _open_standard_streams()
    atexit.register(_end)  # the first to be registered is the last to be called
    _guard_c_exit()


def leave(status: int) -> NoReturn:
    """Exit with this status; 70 if standard output could not be written, except where its reader
    closed the pipe."""
    global _status
    lost = _lost_output()
    if lost is not None and lost.errno not in (errno.EPIPE, errno.ECONNRESET):
        sys.stderr.write(f"faultline failed: standard output: {lost.strerror}\n")
        status = FAILED
    _status = status
    sys.exit(status)


def _end() -> None:
    """Python's last step before it would choose an exit status of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # closed, or replaced
    os._exit(FAILED if _status is None else _status)


def _guard_c_exit() -> None:
    """Have ``exit(3)``, which C libraries call when they give up, end in 70."""
    register = getattr(ctypes.CDLL(None), "on_exit", None)  # glibc has it
    if register is None:
        return
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(_of_c)
    _kept.append(callback)
    register(callback, None)


def _of_c(status: int, _: object) -> None:
    os.write(2, b"faultline failed: a library ended the process; its message is above\n")
    os._exit(FAILED)


class _Lenient(io.FileIO):
    """A standard stream that never fails: what cannot be written is dropped."""

    error: OSError | None = None
    """Why something was dropped first."""

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        written = 0
        while written < len(view) and self.error is None:
            try:
                count = super().write(view[written:])
            except OSError as error:
                self.error = error
                break
            if count is None:  # whoever shares the pipe made it non-blocking
                select.select([], [self], [])
            else:
                written += count
        return len(view)


def _open_standard_streams() -> None:
    """Make standard output and error lenient, and open the standard streams that are closed: the
    next file to be opened, such as a history, would take their number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
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
        errors="backslashreplace",  # a terminal that has no such letter
        line_buffering=is_error or raw.isatty(),
    )


def _lost_output() -> OSError | None:
    """Why standard output was not written in full; ``None`` when it was."""
    stream = sys.stdout
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        return None  # replaced by somebody who knows better
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.error if isinstance(raw, _Lenient) else None
