"""Freed memory is reused by a process that judges, and returned by others."""

import subprocess
import sys

import pytest

_MAPPINGS = """
import numpy as np
from checkers import memory

def faults():
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if {reuse}:
    memory.reuse()
np.ones(8 << 20)
before = faults()
for _ in range(10):
    np.ones(8 << 20)
    memory.release()
print(faults() - before)
"""
_PAGES = 10 * (64 << 20) // 4096
"""Number of pages that the arrays have which are made and freed."""


def _faults(*, reuse: bool) -> int:
    command = [sys.executable, "-c", _MAPPINGS.format(reuse=reuse)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_memory_is_reused_or_returned() -> None:
    """Arrays that follow one another touch no new page where memory is reused, and elsewhere the
    system takes the pages back each time."""
    reused, returned = _faults(reuse=True), _faults(reuse=False)
    assert reused < _PAGES // 100
    assert returned > 10 * max(reused, 1)
