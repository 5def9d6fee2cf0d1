"""The exit status is 1 for INVALID only, whatever fails."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CLI = (sys.executable, "-m", "harness.app.cli")
LIST = "mutants list"

pytestmark = [pytest.mark.slow, pytest.mark.prove]


def shell(repository: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ``$F`` is the program; the status is the program's."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {script}"],
        cwd=repository,
        env={**os.environ, "F": " ".join(CLI)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("redirected", "status"),
    [
        ("| true", 0),
        ("2>&1 | true", 0),
        (">&-", 0),
        (">&- 2>&- <&-", 0),
        ("2>/dev/full", 0),
        (">/dev/full", 70),
    ],
)
def test_what_reads_the_output_does_not_decide_the_status(
    repository: Path, redirected: str, status: int
) -> None:
    """A closed pipe or stream does not change the status.

    Output lost to a full disk is a failure.
    """
    done = shell(repository, f"$F {LIST} {redirected}")
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr


def test_progress_that_nobody_reads_does_not_end_a_command(
    repository: Path, tmp_path: Path
) -> None:
    """``check`` prints its verdict although standard error is closed before its progress."""
    history = tmp_path / "history.jsonl"
    history.write_text(
        '{"index":0,"time_ns":1,"process":1,"type":"invoke","f":"send","value":[["send","x-0",7]]}\n'
        '{"index":1,"time_ns":2,"process":1,"type":"ok","f":"send","value":[["send","x-0",[0,7]]]}\n'
    )
    for redirected in ("2>&-", "2> >(true)", "2>/dev/full"):
        done = shell(repository, f"$F check --inline {history} {redirected}")
        assert (done.returncode, done.stdout.split()[0]) == (2, "UNKNOWN"), done


def test_a_simulated_run_replaces_its_process_without_standard_streams(
    repository: Path, tmp_path: Path
) -> None:
    """After a simulated run's restart with pinned hashes, closed streams are harmless, too.

    The second process refuses the request.
    """
    done = shell(repository, f"$F run --target simulated --workload bank --results {tmp_path} >&-")
    assert (done.returncode, "--workload" in done.stderr) == (64, True), done.stderr


BROKEN = {
    "an exception": "raise RuntimeError('no idea')",
    "too little memory": "raise MemoryError",
    "a C library": "import ctypes; ctypes.CDLL(None).exit(1)",
    "a library's own way out": "raise SystemExit('giving up')",
    "an interrupt": "raise KeyboardInterrupt",
}


@pytest.mark.parametrize("module", ["click", "harness/cluster/mutants"])
@pytest.mark.parametrize("how", BROKEN)
def test_imports_that_fail_are_70(repository: Path, tmp_path: Path, how: str, module: str) -> None:
    """A failing import ends in status 70, before there is a command line or during a verb."""
    broken = f"""
import sys, runpy
sys.argv = ["faultline", "mutants", "list"]
class Breaking:
    def find_spec(self, name, path=None, target=None):
        if name == {module.replace("/", ".")!r}:
            {BROKEN[how]}
sys.meta_path.insert(0, Breaking())
import harness.app.cli
harness.app.cli.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", broken], cwd=repository, capture_output=True, text=True, check=False
    )
    assert done.returncode == 70, (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("limit", "values"),
    [
        (resource.RLIMIT_AS, [24 << 20, 100 << 20, 300 << 20]),
        (resource.RLIMIT_NOFILE, [4, 6]),
    ],
    ids=["memory", "files"],
)
def test_limits_of_the_shell_are_not_taken_for_a_verdict(
    repository: Path, tmp_path: Path, limit: int, values: list[int]
) -> None:
    """With ``ulimit -v`` or ``ulimit -n`` the status is no verdict's.

    OpenBLAS, for example, calls ``exit(1)`` if it gets no memory.
    """

    def limited(value: int) -> Callable[[], None]:
        return lambda: resource.setrlimit(limit, (value, value))

    for value in values:
        done = subprocess.run(
            [*CLI, "check", "--inline", str(tmp_path)],
            cwd=repository,
            preexec_fn=limited(value),
            capture_output=True,
            check=False,
        )
        assert done.returncode not in (0, 1, 2), (value, done.returncode, done.stderr)


def test_what_fails_after_the_verb_is_no_verdict(repository: Path) -> None:
    """Exceptions in a thread or in an exit handler, after the verb, do not change its status."""
    late = """
import atexit, sys, threading
sys.argv = ["faultline", "mutants", "list"]
import harness.app.cli
def fail(): raise RuntimeError("too late")
atexit.register(fail)
threading.Thread(target=fail).start()
harness.app.cli.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", late], cwd=repository, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.count("\n") > 10) == (0, True)
    done = subprocess.run(
        [sys.executable, "-c", late.replace("harness.app.cli.main()", "fail()")],
        cwd=repository, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 70
