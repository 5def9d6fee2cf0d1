"""The memory of a process and of those below it is measured."""

import os
import subprocess
import sys

from bench.spark import memory

SCRIPT = """
import subprocess, sys
held = bytearray(60_000_000)
inner = "held = bytearray(120_000_000); print(flush=True); input()"
subprocess.run([sys.executable, "-c", inner])
"""


def test_the_largest_process_of_each_kind_counts() -> None:
    """The process itself, and the largest one below it, at any depth."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = memory.sample(process.pid)
        process.communicate(b"\n")
    assert 60 < found.driver < 120 < found.python
    assert found.java == 0


def test_a_process_that_has_ended_has_no_memory() -> None:
    """A process may end while it is looked at."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert memory.sample(process.pid) == memory.Peaks(0.0)
    assert memory.sample(os.getpid()).driver > 0
