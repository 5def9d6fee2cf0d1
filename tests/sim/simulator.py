"""Simulates and judges plans, each in a copy of this process: pinned, and with all imports done.

Each line of its input is a JSON list of two paths, a resolved plan and the folder of the run. It
answers with a line: the plan's own, once the folder holds the run and its verdict, or what failed.
"""

import json
import os
import sys
import traceback
from pathlib import Path

from harness.simulation import determinism

DONE = "done"


def simulate(path: Path, folder: Path) -> None:
    """Simulate the plan in a new folder, and judge it; no page is written."""
    import msgspec

    from harness.app.search import single_run
    from model.plan import Plan

    folder.mkdir()
    ran = single_run.of_plan(msgspec.json.decode(path.read_bytes(), type=Plan), folder)
    if ran.status == "failed":
        raise AssertionError((folder / "crash.txt").read_text())


def in_a_copy(path: Path, folder: Path) -> str:
    """Simulate in a child process; return what failed, or :data:`DONE`."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            simulate(path, folder)
            status = 0
        except BaseException:  # noqa: BLE001 - the parent says what it was
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    _, status = os.waitpid(pid, 0)
    return DONE if status == 0 else text or f"the child ended with {status}"


def main() -> None:
    """Answer each line until the input ends."""
    from harness.app.search import single_run as _one  # noqa: F401 - children have it already

    for line in sys.stdin:
        path, folder = map(Path, json.loads(line))
        sys.stdout.write(json.dumps(in_a_copy(path, folder)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    determinism.exec_pinned()
    determinism.install()
    main()
