"""Decides where memory comes from, and returns freed memory to the operating system."""

import ctypes

import pyarrow as pa


def share() -> None:
    """Let Arrow take its memory from the C library, like numpy, so that each of them can use what
    the other has freed. What Arrow already has is freed as it was allocated."""
    pa.set_memory_pool(pa.system_memory_pool())


def release() -> None:
    """Release what the C library and Arrow have freed but keep, as it counts as this process's."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
