"""Runs the command line on hostile inputs: in this process, or in one of its own if necessary."""

import contextlib
import io
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.hostile.case import INVALID, Answer, Case
from checkers import history_file
from harness.app import check, cli

LIMIT_S = 180
"""The time limit of an answer; some inputs start a run, on a machine that may be busy."""
PROGRAM = f"{shlex.quote(sys.executable)} -m harness.app.cli"
_ROOT = Path(__file__).resolve().parents[2]


class _Late(BaseException):
    """An answer takes too long."""


def answer(case: Case) -> Answer:
    """Run the command line of a case in a new folder, and return its answer."""
    with tempfile.TemporaryDirectory(prefix="faultline-hostile-") as name:
        folder = Path(name)
        case.prepare(folder)
        return _of_process(case, folder) if case.shell else _of_function(case, folder)


def _of_function(case: Case, folder: Path) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    status: Any = None
    exist = True
    with contextlib.chdir(folder), _limit():
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                cli.main(case.arguments)
        except SystemExit as ended:
            status = ended.code
        except _Late:
            pass
        if status == INVALID and case.history is not None:
            exist = witnesses_exist(Path(case.history))
    return Answer(status, out.getvalue(), err.getvalue(), exist)


def witnesses_exist(path: Path) -> bool:
    """Return whether all illegal findings about a history name events that exist in it."""
    history = history_file.read(path, lambda done: None)
    indices = set(history["index"].to_pylist())
    found = check.examine(path, inline=True).findings
    return all(set(f.ops) <= indices and f.ops for f in found if not f.legal)


@contextlib.contextmanager
def _limit() -> Iterator[None]:
    def end(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _of_process(case: Case, folder: Path) -> Answer:
    assert case.shell is not None, "a case without a shell command is a function call"
    command = case.shell.replace("{}", f"{PROGRAM} {shlex.join(case.arguments)}")
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Answer(None, "", "")
    return Answer(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
