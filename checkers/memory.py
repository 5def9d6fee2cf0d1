"""Decides where memory comes from, and whether what is freed is reused or returned to the system.

The memory of a page that is used for the first time costs as much as filling it several times. One
process that judges one history after the other therefore keeps what it has freed for the next
column. A task of Spark returns it, since several workers share a machine.
"""

import ctypes

import pyarrow as pa

_KEPT_MAX = 1 << 30
"""Bytes: a column up to this size is taken from the heap; as much may stay unused at its end."""
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _ARENA_MAX = (-3, _KEPT_MAX), (-1, _KEPT_MAX), (-8, 1)
"""Options of ``mallopt(3)`` with their values."""
_reuses: list[bool] = []


def reuse() -> None:
    """Let numpy and Arrow use what either has freed, and keep it in this process from now on.

    Both take their memory from one heap of the C library. What Arrow already has is freed as it was
    allocated.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it
    if set_option is None or _reuses:
        return
    if set_option(*_MMAP_THRESHOLD):  # some versions of the C library have a lower limit
        set_option(*_TRIM_THRESHOLD)
        set_option(*_ARENA_MAX)
        _reuses.append(True)


def release() -> None:
    """Return what the C library and Arrow have freed but keep, unless this process reuses it."""
    if _reuses:
        return
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
