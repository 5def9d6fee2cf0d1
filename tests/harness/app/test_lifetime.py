"""A process that ends with the one that started it."""

import os
import signal
import sys

import pytest

from harness.app import lifetime


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of such an end")
@pytest.mark.parametrize("ends", [True, False])
def test_a_process_ends_with_its_parent(ends: bool) -> None:
    """The kernel kills the process when its parent ends; without the call it runs on."""
    alive, held = os.pipe()  # at end of file once no process has the other end open
    parent = os.fork()
    if parent == 0:
        begun, began = os.pipe()
        child = os.fork()
        if child == 0:
            if ends:
                lifetime.end_with_parent()
            os.close(alive)
            os.write(held, b"%d " % os.getpid())
            os.write(began, b"x")
            signal.pause()
        os.read(begun, 1)
        os._exit(0)
    os.close(held)
    os.waitpid(parent, 0)
    pid = int(os.read(alive, 20))
    if not ends:
        os.kill(pid, 0)
        os.kill(pid, signal.SIGKILL)
    assert os.read(alive, 1) == b""
    os.close(alive)
