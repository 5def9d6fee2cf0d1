"""Returns freed memory to the operating system."""

import ctypes

import pyarrow as pa


def release() -> None:
    """Release what the C library and Arrow have freed but keep, as it counts as this process's."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
