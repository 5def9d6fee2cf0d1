"""Memory that is free is given back."""

import ctypes

import pyarrow as pa


def release() -> None:
    """Give the system what was freed: the C library and arrow keep it otherwise, and it counts as
    this process's."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
