"""Returns freed memory to the operating system."""

import ctypes

import pyarrow as pa


def release() -> None:
    """Return freed memory to the system. The C library and Arrow keep it otherwise, and it counts
    as memory of this process."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
