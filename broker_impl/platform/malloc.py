"""Have the C library keep large buffers instead of mapping and unmapping one for each request.

Left alone, glibc gives each 1 MB frame back to the kernel and faults it in again for the next one,
which costs more than everything else that is done with the frame.
"""

import ctypes

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_KEEP_BYTES = 256 * 1024 * 1024
_PAD_BYTES = 8 * 1024 * 1024
_MMAP_BYTES = 1024 * 1024 * 1024


def tune_malloc() -> None:
    """Set glibc's malloc parameters; no effect where the C library has no ``mallopt``."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEEP_BYTES)
        mallopt(_M_TOP_PAD, _PAD_BYTES)
